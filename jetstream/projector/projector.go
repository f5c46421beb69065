// Package projector applies a stream, in order and exactly once, from a cursor
// on, and lets others wait until a position is applied.
//
// What was appended as one atomic batch is applied as one: a position inside a
// batch is never seen. Whoever decides on what is applied could otherwise decide on
// a part of a decision, and with replicas the server may even take what is then
// appended on the condition that this part is the last: its leader compares with
// what it has stored, while it stores the batch.
package projector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/synadia-io/orbit.go/jetstreamext"
)

// Message is one message of the stream.
type Message struct {
	Subject string
	Header  nats.Header
	Data    []byte
	Seq     uint64    // stream sequence
	Time    time.Time // when the stream stored it; if it was restored, when it was first stored
	// Original is its sequence in the stream where it was first stored: Seq, unless it was restored.
	Original uint64
}

// Defaults of Config.
const (
	DefaultBatch     = 256
	DefaultHeartbeat = time.Second
	DefaultExpiry    = 5 * time.Second
	DefaultPatience  = 100 * time.Millisecond
)

// Config says what to apply and how. Stream and Handler are required.
type Config struct {
	Stream string
	// Filter selects subjects; empty means all. What it selects of a batch is applied
	// as it comes, since where the batch ends may be among what it does not select.
	Filter string
	// From is the last sequence already applied; 0 begins with the first message.
	From uint64
	// Created is when the stream that From belongs to was created. Zero accepts the
	// stream that is there; keep what Created returns beside the cursor.
	Created time.Time
	// Batch is the most messages that Handler gets at once, unless one atomic batch
	// has more.
	Batch int
	// Handler applies messages: ascending sequences, at least one, never one twice,
	// atomic batches whole. It is never called concurrently. Its error ends Run; the position then stays
	// before the batch.
	Handler func(ctx context.Context, messages []Message) error
	// Heartbeat and Expiry bound how long a dead server goes unnoticed: the
	// library's own defaults stall for 27 s after a leader was killed.
	Heartbeat, Expiry time.Duration
	// Patience is how long a waiter waits for the consumer before the stream is read
	// directly.
	Patience time.Duration
	Logger   zerolog.Logger
}

var (
	// ErrStreamChanged: the stream is not the one that the cursor belongs to, or ends
	// before it. Whatever was built from it must be built again.
	ErrStreamChanged = errors.New("the stream is not the one of the cursor")
	// ErrStopped: Run has ended, so the position will not move any more.
	ErrStopped = errors.New("the projector has stopped")
)

// Projector applies one stream. Create it with New, then call Run.
type Projector struct {
	js  jetstream.JetStream
	cfg Config

	in     chan Message // from the consumer, in order
	direct chan reading // from reading the stream directly
	wake   chan struct{}
	// begun are the first messages of an atomic batch whose end has not come yet. Only
	// Run uses it.
	begun []Message

	mu       sync.Mutex
	position uint64
	created  time.Time
	waiters  map[*waiter]struct{}
	// directFrom is when the stream may be read directly again.
	directFrom time.Time
	stopped    error // why Run ended; nil while it may go on
}

type waiter struct {
	seq     uint64
	reached chan struct{}
	hurry   time.Time // from when on the stream is read directly for it
}

// New returns a projector at position cfg.From. It does nothing before Run.
func New(js jetstream.JetStream, cfg Config) *Projector {
	if cfg.Batch <= 0 {
		cfg.Batch = DefaultBatch
	}
	if cfg.Heartbeat <= 0 {
		cfg.Heartbeat = DefaultHeartbeat
	}
	if cfg.Expiry <= 0 {
		cfg.Expiry = DefaultExpiry
	}
	if cfg.Patience <= 0 {
		cfg.Patience = DefaultPatience
	}
	return &Projector{
		js: js, cfg: cfg, position: cfg.From, created: cfg.Created,
		in: make(chan Message, cfg.Batch), direct: make(chan reading), wake: make(chan struct{}, 1),
		waiters: map[*waiter]struct{}{},
	}
}

// Run applies until ctx ends (it then returns nil), the handler fails (its error)
// or the stream turns out to be another one (ErrStreamChanged). What the bus does
// meanwhile, being away included, does not end it. Call it once.
func (p *Projector) Run(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	var background sync.WaitGroup
	defer func() {
		cancel()
		background.Wait()
		p.stop(err)
	}()
	changed := make(chan error, 1)
	background.Go(func() {
		if err := p.consume(ctx); err != nil {
			changed <- err
		}
	})

	reading := false // one direct reading at a time
	for {
		var hurry <-chan time.Time
		if at, ok := p.hurryAt(); ok && !reading {
			hurry = time.After(time.Until(at))
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-changed:
			return err
		case <-p.wake: // a new waiter: look at the clock again
		case m := <-p.in:
			if err := p.apply(ctx, p.atHand(m)); err != nil {
				return err
			}
		case <-hurry:
			reading = true
			from := p.at()
			background.Go(func() { p.readOn(ctx, from) })
		case r := <-p.direct:
			reading = false
			if err := p.take(ctx, r); err != nil {
				return err
			}
		}
	}
}

// Position is the last sequence that is applied, or known to hold nothing to
// apply.
func (p *Projector) Position() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.position
}

// Created is when the stream was created; zero before Run has reached it.
func (p *Projector) Created() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.created
}

// WaitFor returns nil once everything up to seq is applied. It may be far in the
// future; a seq whose message was purged counts as applied when what is left
// before it is. If it takes longer than Patience, the stream is read directly.
// Errors: the cause of ctx's end, or ErrStopped with what ended Run.
func (p *Projector) WaitFor(ctx context.Context, seq uint64) error {
	p.mu.Lock()
	if p.position >= seq {
		p.mu.Unlock()
		return nil
	}
	if p.stopped != nil {
		defer p.mu.Unlock()
		return p.stopped
	}
	w := &waiter{seq: seq, reached: make(chan struct{}), hurry: time.Now().Add(p.cfg.Patience)}
	p.waiters[w] = struct{}{}
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default: // it is awake, or will be
	}
	defer func() {
		p.mu.Lock()
		delete(p.waiters, w)
		p.mu.Unlock()
	}()
	select {
	case <-ctx.Done():
		return fmt.Errorf("wait for position %d of %s: %w", seq, p.cfg.Stream, context.Cause(ctx))
	case <-w.reached:
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.position >= seq {
			return nil
		}
		return p.stopped
	}
}

// LastSeq asks the stream for its last sequence of this moment, once: a question
// that got lost with a server fails after two seconds, long before ctx may end.
func (p *Projector) LastSeq(ctx context.Context) (uint64, error) {
	info, err := p.stream(ctx)
	if err != nil {
		return 0, err
	}
	return info.CachedInfo().State.LastSeq, nil
}

// CatchUp waits until all is applied that the stream held when it was called, and
// returns that sequence. What is decided afterwards is decided on a state that
// was true. Like LastSeq it asks once; what fails while ctx lasts may be tried again.
func (p *Projector) CatchUp(ctx context.Context) (uint64, error) {
	seq, err := p.LastSeq(ctx)
	if err != nil {
		return 0, err
	}
	return seq, p.WaitFor(ctx, seq)
}

// take applies what a direct reading brought.
func (p *Projector) take(ctx context.Context, r reading) error {
	if errors.Is(r.err, ErrStreamChanged) {
		return r.err
	}
	if r.err != nil {
		p.cfg.Logger.Debug().Err(r.err).Str("stream", p.cfg.Stream).Msg("direct reading failed, trying again")
	}
	if err := p.apply(ctx, r.messages); err != nil {
		return err
	}
	if len(p.begun) > 0 && p.at() <= r.upTo { // the end of the batch is gone
		if err := p.hand(ctx, &p.begun, len(p.begun)); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.begun) == 0 || p.begun[0].Seq > r.upTo {
		p.advance(r.upTo)
	}
	switch {
	case len(r.messages) > 0 || r.upTo > 0: // there may be more
		p.directFrom = time.Time{}
	case r.err != nil:
		p.directFrom = time.Now().Add(p.cfg.Patience)
	default: // somebody waits for what is not written yet
		p.directFrom = time.Now().Add(p.cfg.Heartbeat)
	}
	return nil
}

// at is the last sequence that has come: the position, or that of the last message
// of a batch whose end has not.
func (p *Projector) at() uint64 {
	if n := len(p.begun); n > 0 {
		return p.begun[n-1].Seq
	}
	return p.Position()
}

// apply hands the messages that are new to the handler and moves the position, up
// to the last that is no part of an unfinished batch. All sources begin at a
// position already applied and go on without a gap, so what lies above what has
// come is what follows it.
func (p *Projector) apply(ctx context.Context, messages []Message) error {
	at := p.at()
	for len(messages) > 0 && messages[0].Seq <= at {
		messages = messages[1:]
	}
	if len(p.begun) > 0 {
		messages = append(p.begun, messages...)
		p.begun = nil
	}
	for len(messages) > 0 {
		n := p.cut(messages)
		if n == 0 {
			p.begun = slices.Clone(messages)
			return nil
		}
		if err := p.hand(ctx, &messages, n); err != nil || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// cut is how many of the messages the handler gets next: at most as many as Batch
// says, but whole batches, and the first even if it is larger; 0 if what there is is
// a batch without its end.
func (p *Projector) cut(messages []Message) (n int) {
	if p.cfg.Filter != "" {
		return min(len(messages), p.cfg.Batch)
	}
	for n < len(messages) {
		end := n + wholeAt(messages[n:])
		if end == n || end > p.cfg.Batch && n > 0 {
			return n
		}
		n = end
	}
	return n
}

// wholeAt is how many messages belong to what the first begins: 1, or those of its
// batch; 0 if the batch's end has not come. A batch also ends where another message
// follows: then the rest of it was deleted.
func wholeAt(messages []Message) int {
	id := messages[0].Header.Get(jetstreamext.BatchIDHeader)
	if id == "" {
		return 1
	}
	for i, m := range messages {
		if m.Header.Get(jetstreamext.BatchIDHeader) != id {
			return i
		}
		if m.Header.Get(jetstreamext.BatchCommitHeader) != "" {
			return i + 1
		}
	}
	return 0
}

// hand gives the first n messages to the handler, takes them off and moves the
// position; if the handler fails because ctx ended, it does neither.
func (p *Projector) hand(ctx context.Context, messages *[]Message, n int) error {
	if n == 0 {
		return nil
	}
	some := (*messages)[:n]
	if err := p.cfg.Handler(ctx, some); err != nil {
		if ctx.Err() != nil {
			return nil // Run ends; the position says what is applied
		}
		return fmt.Errorf("apply %s from %d to %d: %w", p.cfg.Stream, some[0].Seq, some[n-1].Seq, err)
	}
	*messages = (*messages)[n:]
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance(some[n-1].Seq)
	return nil
}

// atHand is first and what has already come behind it, so that a handler can put
// many messages into one transaction without waiting for any.
func (p *Projector) atHand(first Message) []Message {
	messages := []Message{first}
	last := first.Seq
	for len(messages) < p.cfg.Batch {
		select {
		case m := <-p.in:
			if m.Seq > last { // a consumer made again repeats some
				messages, last = append(messages, m), m.Seq
			}
		default:
			return messages
		}
	}
	return messages
}

// advance moves the position and releases who waited for it. p.mu is held.
func (p *Projector) advance(to uint64) {
	if to <= p.position {
		return
	}
	p.position = to
	for w := range p.waiters {
		if w.seq <= to {
			close(w.reached)
			delete(p.waiters, w)
		}
	}
}

// hurryAt is when the stream must be read directly because somebody has waited
// long enough; false if nobody waits.
func (p *Projector) hurryAt() (at time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.waiters {
		if !ok || w.hurry.Before(at) {
			at, ok = w.hurry, true
		}
	}
	if at.Before(p.directFrom) {
		at = p.directFrom
	}
	return at, ok
}

func (p *Projector) stop(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = ErrStopped
	if err != nil {
		p.stopped = fmt.Errorf("%w: %w", ErrStopped, err)
	}
	for w := range p.waiters {
		close(w.reached)
		delete(p.waiters, w)
	}
}
