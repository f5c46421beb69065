package notebook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/factstream/factstream/jetstream/batch"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/telemetry"
	"github.com/factstream/factstream/shared/text"
)

// How long an append tries before it says that it does not know.
const (
	CommandTimeout = 10 * time.Second
	WorkerTimeout  = 30 * time.Second
	publishTimeout = 5 * time.Second
)

// Uncertain is returned when the time is over and nobody can say whether the events are stored. To ask again with the same seed is safe.
type Uncertain struct {
	Thread string
	Cause  error
}

func (u *Uncertain) Error() string {
	return fmt.Sprintf("append to thread %s: it is not known whether it was stored: %v", u.Thread, u.Cause)
}

func (u *Uncertain) Unwrap() error { return u.Cause }

// ErrInvalid: a decision led to an event that is none, for instance with an id that may not stand in a subject. Nothing was sent.
var ErrInvalid = errors.New("not a valid event")

// Appender turns commands into events of the stream.
type Appender struct {
	js   jetstream.JetStream
	tail *Tail
	now  func() time.Time

	chainPause time.Duration
	broken     atomic.Int64 // when a chain last met another's event, Unix time in nanoseconds
}

// NewAppender appends through js and decides on the states of tail.
func NewAppender(js jetstream.JetStream, tail *Tail, now func() time.Time) *Appender {
	return &Appender{js: js, tail: tail, now: now, chainPause: chainPause}
}

// Origin says where the ids of the events come from. Ids are a function of it, so that the same step or request makes the same events.
type Origin struct {
	Cause   string        // id of the event that the worker consumed; empty for a person's command
	Seed    string        // Idempotency-Key or a random token; empty: the cause
	Timeout time.Duration // 0: WorkerTimeout
}

func (o Origin) withDefaults() Origin {
	if o.Timeout == 0 {
		o.Timeout = WorkerTimeout
	}
	if o.Seed == "" {
		o.Seed = cmp.Or(o.Cause, text.RandomID())
	}
	return o
}

// Appended is what came of a command. No events mean that there was nothing to do.
type Appended struct {
	Events []event.Event
	Seq    uint64 // of the last of them; else the position that the decision was made at
}

// Append decides the command on the newest state and appends what it leads to, as one batch under the condition that the thread has not moved on.
// Errors are *Refusal, *Wait, *Uncertain, batch.ErrTooLarge, ErrInvalid, or that of ctx. Events beside a refusal (a Start that parks) are in Appended.
func (a *Appender) Append(ctx context.Context, thread string, cmd Command, origin Origin) (Appended, error) {
	origin = origin.withDefaults()
	ctx, cancel := context.WithTimeoutCause(ctx, origin.Timeout, errTimeout)
	defer cancel()
	for try := 0; ; try++ {
		decided := a.decide(thread, cmd, origin)
		if len(decided.events) == 0 {
			current, err := a.confirm(ctx, thread, decided)
			if err != nil {
				return Appended{}, a.uncertain(ctx, thread, err)
			}
			if current {
				return Appended{Seq: decided.seq}, decided.err
			}
			continue
		}
		if a.tail.seen(thread, decided.events[0].ID, 0) { // the same request or step was stored by another append, which the caller could not see yet
			return a.stored(ctx, decided, a.tail.Position())
		}
		seq, err := a.publish(ctx, thread, decided)
		switch {
		case err == nil:
			return a.stored(ctx, decided, seq)
		case errors.Is(err, batch.ErrTooLarge), errors.Is(err, ErrInvalid):
			return Appended{}, fmt.Errorf("append to thread %s: %w", thread, err)
		}
		if pauseErr := pause(ctx, try, errors.Is(err, batch.ErrConflict)); pauseErr != nil {
			return Appended{}, a.uncertain(ctx, thread, errors.Join(err, pauseErr))
		}
		if _, catchErr := a.tail.CatchUp(ctx); catchErr != nil {
			return Appended{}, a.uncertain(ctx, thread, errors.Join(err, catchErr))
		}
		if a.tail.seen(thread, decided.events[0].ID, decided.seq) { // an earlier try was stored after all
			return a.stored(ctx, decided, a.tail.Position())
		}
	}
}

var errTimeout = errors.New("the time for appending is over")

type decision struct {
	seq    uint64
	events []event.Event
	err    error
}

func (a *Appender) decide(thread string, cmd Command, origin Origin) (d decision) {
	a.tail.View(thread, func(t *Thread) { d = a.decideOn(t, thread, cmd, origin) })
	return d
}

// decideOn decides on a state.
func (a *Appender) decideOn(t *Thread, thread string, cmd Command, origin Origin) decision {
	now := a.now().UTC()
	drafts, err := Decide(t, cmd, now)
	d := decision{seq: t.Seq, err: err}
	for i, draft := range drafts {
		d.events = append(d.events, event.Event{
			ID: EventID(origin.Seed, thread, draft, i), Type: event.TypeOf(draft.Data), Time: now, Thread: thread,
			Run: draft.Run, Cause: origin.Cause, N: draft.N, Data: draft.Data, Entity: draft.Entity,
		})
	}
	return d
}

// EventID makes the id of the i-th event that a decision leads to.
func EventID(seed, thread string, d Draft, i int) string {
	return text.ID("event", seed, thread, d.Data.Kind(), d.Entity, strconv.Itoa(d.N), strconv.Itoa(i))
}

// confirm says whether a decision that appends nothing was made on the newest state.
func (a *Appender) confirm(ctx context.Context, thread string, d decision) (bool, error) {
	if _, err := a.tail.CatchUp(ctx); err != nil {
		return false, err
	}
	current := false
	a.tail.View(thread, func(t *Thread) { current = t.Seq == d.seq })
	return current, nil
}

func (a *Appender) publish(ctx context.Context, thread string, d decision) (uint64, error) {
	messages, err := marshal(ctx, d.events)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	return batch.Publish(ctx, a.js, messages, batch.Expect{Filter: topology.ThreadFilter(thread), LastSeq: d.seq})
}

// marshal makes the messages of events. The error is ErrInvalid.
func marshal(ctx context.Context, events []event.Event) ([]batch.Message, error) {
	messages := make([]batch.Message, len(events))
	for i, e := range events {
		if _, err := topology.Parse(e.Subject()); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		body, err := event.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		header := nats.Header{}
		telemetry.Inject(ctx, header)
		messages[i] = batch.Message{Subject: e.Subject(), Header: header, Data: body}
	}
	return messages, nil
}

// stored waits until the process sees its own events, so that the next step decides on them.
func (a *Appender) stored(ctx context.Context, d decision, seq uint64) (Appended, error) {
	_ = a.tail.WaitFor(ctx, seq) // stored is stored: a tail that lags behind is no failure of the append
	return Appended{Events: d.events, Seq: seq}, d.err
}

func (a *Appender) uncertain(ctx context.Context, thread string, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errTimeout) {
		return fmt.Errorf("append to thread %s: %w", thread, cause)
	}
	return &Uncertain{Thread: thread, Cause: err}
}

// pause waits a random time that grows with the tries: 185 tries were seen at worst for 8 writers of one thread, so the first are short.
func pause(ctx context.Context, try int, conflict bool) error {
	limit := min(time.Millisecond<<min(try, 7), 100*time.Millisecond)
	if !conflict {
		limit = min(20*time.Millisecond<<min(try, 7), 2*time.Second)
	}
	timer := time.NewTimer(rand.N(limit) + time.Millisecond/2)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
