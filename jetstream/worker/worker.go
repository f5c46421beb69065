// Package worker runs a handler over the messages of a durable consumer: one
// message at a time for each slot, with a heartbeat while it works, and an answer
// for every way in which it can end.
package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/factstream/factstream/jetstream/dead"
)

// Message is one delivery of a message of the stream.
type Message struct {
	Subject      string
	Data         []byte
	Header       nats.Header
	Seq          uint64    // stream sequence
	Time         time.Time // when the stream stored it
	NumDelivered int       // 1 at the first delivery
	Durable      string
}

// Handler does the work of one message. Its context ends at the deadline, or some
// time after the worker was told to stop. Finished work comes again now and then,
// since acknowledgements do not survive a crash, and must be harmless.
//
// It returns nil when the work is done or is not its own; Later to have the
// message again; GiveUp or Malformed to end the step; any other error, or a
// panic, has the message delivered again after a growing delay.
type Handler func(ctx context.Context, m Message) error

// Defaults of Config.
const (
	DefaultSlots    = 1
	DefaultAckWait  = 15 * time.Second
	DefaultDeadline = 20 * time.Minute
	DefaultGrace    = 5 * time.Second
)

const (
	// MaxLater is how many deliveries of one message may end in Later.
	MaxLater = 10
	// MaxDelivered deliveries mean that the process dies of this message.
	MaxDelivered = 20

	pullExpiry      = 30 * time.Second
	pullHeartbeat   = time.Second // two missed ones mean the pull is lost
	maxPause        = 2 * time.Second
	giveUpWithin    = 30 * time.Second
	leftoversWithin = 200 * time.Millisecond
)

// Config says what to work on. Stream and Durable are required, and OnGiveUp for a
// worker whose steps have an outcome.
type Config struct {
	Stream  string
	Durable string
	// Slots is how many messages are worked on at once.
	Slots int
	// AckWait is the consumer's. HeartbeatEvery tells the server that the work goes
	// on; by default 4/15 of AckWait, so that three may get lost.
	AckWait        time.Duration
	HeartbeatEvery time.Duration
	// Deadline ends the handler's context, and the step with class timeout. Negative
	// is none, for work that waits for its turn with the message in hand.
	Deadline time.Duration
	// Grace is how long handlers may go on when Run is told to stop.
	Grace time.Duration
	// RetryDelay is the pause before delivery numDelivered+1 after an unexpected
	// error. By default half a second, doubling to 30 s.
	RetryDelay func(numDelivered int) time.Duration
	// OnGiveUp records the outcome of a step that ends without success. If it fails,
	// the message stays and comes again.
	OnGiveUp func(ctx context.Context, m Message, f Failure) error
	Logger   zerolog.Logger
}

// Worker works on one durable consumer. Create it with New, then call Run.
type Worker struct {
	js     jetstream.JetStream
	cfg    Config
	handle Handler

	pulling sync.WaitGroup // slots that have not pulled yet
	ready   chan struct{}
}

// New returns a worker. It does nothing before Run.
func New(js jetstream.JetStream, cfg Config, handle Handler) *Worker {
	if cfg.Slots <= 0 {
		cfg.Slots = DefaultSlots
	}
	if cfg.AckWait <= 0 {
		cfg.AckWait = DefaultAckWait
	}
	if cfg.HeartbeatEvery <= 0 {
		cfg.HeartbeatEvery = cfg.AckWait * 4 / 15
	}
	if cfg.Deadline == 0 {
		cfg.Deadline = DefaultDeadline
	}
	if cfg.Grace <= 0 {
		cfg.Grace = DefaultGrace
	}
	if cfg.RetryDelay == nil {
		cfg.RetryDelay = func(n int) time.Duration { return doubling(500*time.Millisecond, 30*time.Second, n) }
	}
	if cfg.OnGiveUp == nil {
		cfg.OnGiveUp = func(context.Context, Message, Failure) error { return nil }
	}
	cfg.Logger = cfg.Logger.With().Str("durable", cfg.Durable).Logger()
	w := &Worker{js: js, cfg: cfg, handle: handle, ready: make(chan struct{})}
	w.pulling.Add(cfg.Slots)
	return w
}

var (
	// ErrDeadline is the cause of a handler's context that ended at the deadline.
	ErrDeadline = errors.New("the step took longer than it may")
	// ErrStopping is the cause of a handler's context that ended because the worker
	// stops. The message is given back at once.
	ErrStopping = errors.New("the worker is stopping")
	// ErrStuck is returned by Run if handlers ignored the end of their context.
	ErrStuck = errors.New("handlers did not stop")
	// ErrClosed is returned by Run if the connection was closed for good.
	ErrClosed = errors.New("the connection to the bus is closed")
)

// Run works until ctx ends, then lets the handlers in flight go on for the grace,
// cancels what is left, gives those messages back and returns nil. A consumer
// that is missing is waited for; a bus that is away too. Call it once.
func (w *Worker) Run(ctx context.Context) error {
	work, stopWork := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stopWork(nil)
	disarm := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(w.cfg.Grace):
			stopWork(ErrStopping)
		case <-work.Done():
		}
	})
	defer disarm()

	var slots sync.WaitGroup
	errs := make([]error, w.cfg.Slots)
	for i := range errs {
		slots.Go(func() { errs[i] = w.slot(ctx, work) })
	}
	go func() {
		w.pulling.Wait()
		close(w.ready)
	}()
	ended := make(chan struct{})
	go func() {
		slots.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-work.Done(): // cancelled at the end of the grace: give them as long again to see it
		select {
		case <-ended:
		case <-time.After(w.cfg.Grace + leftoversWithin):
			return fmt.Errorf("%s: %w", w.cfg.Durable, ErrStuck)
		}
	}
	return errors.Join(errs...)
}

// Ready is closed when every slot has begun to wait for messages, or has ended.
func (w *Worker) Ready() <-chan struct{} { return w.ready }

// slot pulls and works, one message at a time, until ctx ends. It comes back from
// whatever happens to the consumer, pausing longer each time nothing came of it.
func (w *Worker) slot(ctx, work context.Context) error {
	var once sync.Once
	pulls := func() { once.Do(w.pulling.Done) }
	defer pulls()
	pause := 10 * time.Millisecond
	for ctx.Err() == nil {
		worked, err := w.pull(ctx, work, pulls)
		if ctx.Err() != nil {
			return nil
		}
		if w.js.Conn().IsClosed() {
			return fmt.Errorf("%s: %w", w.cfg.Durable, ErrClosed)
		}
		if worked {
			pause = 10 * time.Millisecond
		}
		w.cfg.Logger.Debug().Err(err).Msg("pulling interrupted, going on")
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, maxPause)
	}
	return nil
}

// pull works on the messages of one pull subscription until that fails. A pull
// for one message is sent when the slot is free and not before, so that no
// message waits behind another one's work.
func (w *Worker) pull(ctx, work context.Context, pulls func()) (worked bool, err error) {
	consumer, err := w.js.Consumer(ctx, w.cfg.Stream, w.cfg.Durable)
	if err != nil {
		return false, fmt.Errorf("look up consumer: %w", err)
	}
	it, err := consumer.Messages(
		jetstream.PullMaxMessages(1),
		jetstream.PullExpiry(pullExpiry),
		jetstream.PullHeartbeat(pullHeartbeat),
		jetstream.WithMessagesErrOnMissingHeartbeat(true),
	)
	if err != nil {
		return false, fmt.Errorf("pull: %w", err)
	}
	defer w.giveBack(it)
	pulls()
	// Next asks for a message before it looks at ctx: asked when stopping, it would
	// take the very message that was just given back.
	for ctx.Err() == nil {
		msg, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			return worked, err
		}
		worked = true
		w.work(work, msg)
	}
	return worked, ctx.Err()
}

// giveBack ends the subscription. A message that was on its way meanwhile is for
// others at once, not after AckWait.
func (w *Worker) giveBack(it jetstream.MessagesContext) {
	it.Drain()
	for {
		msg, err := it.Next(jetstream.NextMaxWait(leftoversWithin))
		if err != nil {
			it.Stop()
			return
		}
		w.answer(msg.Nak(), "give back")
	}
}

// work takes one delivery from receipt to its answer.
func (w *Worker) work(work context.Context, msg jetstream.Msg) {
	meta, err := msg.Metadata()
	if err != nil { // not a delivery of a consumer: nothing to answer to
		w.cfg.Logger.Error().Err(err).Str("subject", msg.Subject()).Msg("message without metadata dropped")
		return
	}
	m := Message{
		Subject: msg.Subject(), Data: msg.Data(), Header: msg.Headers(), Seq: meta.Sequence.Stream, Time: meta.Timestamp,
		NumDelivered: int(meta.NumDelivered), Durable: w.cfg.Durable,
	}
	log := w.cfg.Logger.With().Uint64("seq", m.Seq).Str("subject", m.Subject).Int("delivery", m.NumDelivered).Logger()
	stop := w.heartbeat(msg)
	defer stop()

	if m.NumDelivered >= MaxDelivered {
		w.giveUp(work, log, msg, m, Failure{Class: ClassCrashLoop, Err: fmt.Errorf("delivered %d times", m.NumDelivered)})
		return
	}
	ctx, cancel := limited(work, w.cfg.Deadline)
	err = w.call(ctx, log, m)
	late := errors.Is(context.Cause(ctx), ErrDeadline)
	cancel()

	switch verdict, failure := judge(err, m, late, context.Cause(work)); verdict {
	case done:
		w.answer(msg.Ack(), "acknowledge")
	case again:
		log.Info().Err(err).Msg("stopping, message given back")
		w.answer(msg.Nak(), "give back")
	case later:
		log.Info().Err(failure.Err).Str("class", failure.Class).Dur("delay", failure.delay).Msg("later")
		w.answer(msg.NakWithDelay(failure.delay), "put off")
	case retry:
		delay := w.cfg.RetryDelay(m.NumDelivered)
		log.Error().Err(err).Dur("delay", delay).Msg("failed, trying again")
		w.answer(msg.NakWithDelay(delay), "put off")
	case giveUp:
		w.giveUp(work, log, msg, m, failure)
	case leave:
		log.Info().Err(failure.Err).Msg("left to who works on it now")
	}
}

// limited ends with ErrDeadline after a time, if that is positive. It has no deadline that a request could see: servers
// that elect a leader leave some requests unanswered, and the library waits for an answer until the deadline of its
// context, or, if that has none, for a few seconds.
func limited(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if after <= 0 {
		return ctx, func() { cancel(nil) }
	}
	timer := time.AfterFunc(after, func() { cancel(ErrDeadline) })
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

// call runs the handler; a panic is an error, with its stack in the log.
func (w *Worker) call(ctx context.Context, log zerolog.Logger, m Message) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error().Interface("panic", p).Bytes("stack", debug.Stack()).Msg("handler panicked")
			err = fmt.Errorf("handler panicked: %v", p)
		}
	}()
	return w.handle(ctx, m)
}

// giveUp records the outcome, and keeps what could not be decoded, before the
// message is acknowledged. It goes on while the worker stops: half of it would
// only be done again.
func (w *Worker) giveUp(work context.Context, log zerolog.Logger, msg jetstream.Msg, m Message, f Failure) {
	log.Error().Err(f.Err).Str("class", f.Class).Msg("given up")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), giveUpWithin)
	defer cancel()
	err := w.record(ctx, m, f)
	if err != nil {
		log.Error().Err(err).Msg("outcome not recorded, message kept")
		w.answer(msg.NakWithDelay(w.cfg.RetryDelay(m.NumDelivered)), "put off")
		return
	}
	w.answer(msg.Ack(), "acknowledge")
}

func (w *Worker) record(ctx context.Context, m Message, f Failure) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panicked: %v\n%s", p, debug.Stack())
		}
	}()
	if f.Class == ClassMalformed {
		item := dead.Item{
			Reason: f.Err.Error(), Durable: m.Durable, Stream: w.cfg.Stream, StreamSeq: m.Seq, Subject: m.Subject, Data: m.Data,
		}
		if err := dead.Put(ctx, w.js, item); err != nil {
			return err
		}
	}
	return w.cfg.OnGiveUp(ctx, m, f)
}

// heartbeat tells the server that the message is being worked on, until stop is
// called. It ends by itself when the handler has overstayed its deadline by the
// grace: a handler that hangs must not hold the message for ever.
func (w *Worker) heartbeat(msg jetstream.Msg) (stop func()) {
	quit := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() {
		ticker := time.NewTicker(w.cfg.HeartbeatEvery)
		defer ticker.Stop()
		var overstayed <-chan time.Time
		if w.cfg.Deadline > 0 {
			overstayed = time.After(w.cfg.Deadline + w.cfg.Grace + giveUpWithin)
		}
		for {
			select {
			case <-quit:
				return
			case <-overstayed:
				w.cfg.Logger.Error().Str("subject", msg.Subject()).Msg("handler ignores its deadline, message given up to others")
				return
			case <-ticker.C:
				w.answer(msg.InProgress(), "heartbeat")
			}
		}
	})
	return func() {
		close(quit)
		beating.Wait()
	}
}

// answer logs an answer that could not be sent; the server then delivers the
// message again, which is harmless.
func (w *Worker) answer(err error, what string) {
	// A heartbeat may come just after the answer.
	if err != nil && !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
		w.cfg.Logger.Warn().Err(err).Msgf("could not %s, the message will come again", what)
	}
}
