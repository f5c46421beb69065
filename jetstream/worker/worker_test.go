package worker_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/dead"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/jetstream/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(bustest.Leaks(m)) }

type givenUp struct {
	m worker.Message
	f worker.Failure
}

type setup struct {
	js      jetstream.JetStream
	w       *worker.Worker
	givenUp chan givenUp
	stop    func()       // tells the worker to stop, and does not wait
	end     func() error // stops the worker and returns Run's error
}

// start runs a worker on the judge's durable, with short times.
func start(t *testing.T, js jetstream.JetStream, cfg worker.Config, h worker.Handler) *setup {
	t.Helper()
	s := &setup{js: js, givenUp: make(chan givenUp, 100)}
	cfg.Stream, cfg.Durable, cfg.AckWait = topology.Notebook, topology.Judge, cmp.Or(cfg.AckWait, bustest.AckWait)
	if cfg.RetryDelay == nil {
		cfg.RetryDelay = func(int) time.Duration { return 20 * time.Millisecond }
	}
	if cfg.OnGiveUp == nil {
		cfg.OnGiveUp = func(_ context.Context, m worker.Message, f worker.Failure) error {
			s.givenUp <- givenUp{m, f}
			return nil
		}
	}
	s.w = worker.New(js, cfg, h)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.w.Run(ctx) }()
	s.stop = cancel
	s.end = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { _ = s.end() })
	<-s.w.Ready()
	return s
}

func publish(t *testing.T, js jetstream.JetStream, n int) {
	t.Helper()
	for i := range n {
		_, err := js.Publish(t.Context(), topology.Subject("facts", "distilled", "t", "r", i), fmt.Appendf(nil, "%d", i))
		require.NoError(t, err)
	}
}

// settled waits until the worker has done all that is published.
func settled(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	judge := topology.Durable{Name: topology.Judge, Filters: []string{"facts.distilled.>"}}
	require.Eventually(t, func() bool { return judge.Drained(t.Context(), js) == nil }, bustest.Patience, 5*time.Millisecond)
}

func TestEveryMessageIsWorkedOnOnce(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	got := make(chan worker.Message, 100)
	s := start(t, js, worker.Config{Slots: 4}, func(_ context.Context, m worker.Message) error {
		got <- m
		return nil
	})
	publish(t, js, 30)
	settled(t, js)
	require.NoError(t, s.end())
	require.Len(t, got, 30)
	first := <-got
	require.Equal(t, topology.Judge, first.Durable)
	require.Equal(t, 1, first.NumDelivered)
	require.NotZero(t, first.Seq)
	require.False(t, first.Time.IsZero())
}

func TestNoMessageWaitsBehindAnothersWork(t *testing.T) {
	t.Parallel()
	srv, _, js := bustest.Start(t)
	release := make(chan struct{})
	taken := make(chan string, 10)
	busy := func(name string) worker.Handler {
		return func(ctx context.Context, m worker.Message) error {
			taken <- name
			<-release
			return nil
		}
	}
	start(t, js, worker.Config{Slots: 2}, busy("a"))
	publish(t, js, 3)
	require.Equal(t, "a", <-taken)
	require.Equal(t, "a", <-taken)
	// Both slots of a are busy; the third message is still there for b.
	_, jsb := bustest.Dial(t, srv)
	start(t, jsb, worker.Config{}, busy("b"))
	require.Equal(t, "b", <-taken)
	close(release)
	settled(t, js)
}

func TestHeartbeatKeepsAMessageBeyondAckWait(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t, bustest.Mortal)
	var calls atomic.Int32
	start(t, js, worker.Config{Slots: 2, AckWait: bustest.Short}, func(ctx context.Context, _ worker.Message) error {
		calls.Add(1)
		select {
		case <-time.After(2 * bustest.Short):
		case <-ctx.Done():
		}
		return nil
	})
	publish(t, js, 1)
	require.Eventually(t, func() bool { return calls.Load() == 1 }, bustest.Patience, time.Millisecond)
	settled(t, js)
	require.EqualValues(t, 1, calls.Load())
}

func TestLaterComesAgainAndIsGivenUpAfterTen(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	away := errors.New("model away")
	var calls atomic.Int32
	s := start(t, js, worker.Config{}, func(context.Context, worker.Message) error {
		calls.Add(1)
		return worker.Later("model_away", time.Millisecond, away)
	})
	publish(t, js, 1)
	g := <-s.givenUp
	require.Equal(t, "model_away", g.f.Class)
	require.ErrorIs(t, g.f.Err, away)
	require.EqualValues(t, worker.MaxLater+1, calls.Load())
	settled(t, js)
}

// What is left is neither done nor given back: it is another's until AckWait is over.
func TestWhatIsLeftComesAgainAfterAckWait(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t, bustest.Mortal)
	var left time.Time
	again := make(chan time.Duration, 1)
	s := start(t, js, worker.Config{AckWait: bustest.Short}, func(_ context.Context, m worker.Message) error {
		if m.NumDelivered == 1 {
			left = time.Now()
			return worker.Leave(errors.New("another works on it"))
		}
		again <- time.Since(left)
		return nil
	})
	publish(t, js, 1)
	// Less a heartbeat that may have gone out before it was left: the time counts from the last one.
	require.GreaterOrEqual(t, <-again, bustest.Short/2)
	settled(t, js)
	require.Empty(t, s.givenUp)
}

func TestErrorsAndPanicsComeAgain(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	var deliveries []int
	s := start(t, js, worker.Config{}, func(_ context.Context, m worker.Message) error {
		deliveries = append(deliveries, m.NumDelivered)
		switch len(deliveries) {
		case 1:
			return errors.New("bus away")
		case 2:
			panic("nil map")
		}
		return nil
	})
	publish(t, js, 1)
	settled(t, js)
	require.NoError(t, s.end())
	require.Equal(t, []int{1, 2, 3}, deliveries)
	require.Empty(t, s.givenUp)
}

func TestTwentyDeliveriesAreACrashLoop(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	var calls atomic.Int32
	s := start(t, js, worker.Config{RetryDelay: func(int) time.Duration { return time.Millisecond }},
		func(context.Context, worker.Message) error {
			calls.Add(1)
			return errors.New("again")
		})
	publish(t, js, 1)
	g := <-s.givenUp
	require.Equal(t, worker.ClassCrashLoop, g.f.Class)
	require.EqualValues(t, worker.MaxDelivered-1, calls.Load())
	settled(t, js)
}

func TestMalformedIsKeptWithItsReason(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	s := start(t, js, worker.Config{}, func(_ context.Context, m worker.Message) error {
		return worker.Malformed(errors.New("not JSON"))
	})
	publish(t, js, 1)
	g := <-s.givenUp
	require.Equal(t, worker.ClassMalformed, g.f.Class)
	settled(t, js)
	items, _, err := dead.List(t.Context(), js, 0, 10)
	require.NoError(t, err)
	require.Len(t, items, 1)
	require.Equal(t, "not JSON", items[0].Reason)
	require.Equal(t, "facts.distilled.t.r.0", items[0].Subject)
	require.Equal(t, []byte("0"), items[0].Data)
	require.EqualValues(t, 1, items[0].StreamSeq)
}

func TestMessageStaysUntilItsOutcomeIsRecorded(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	var tries atomic.Int32
	start(t, js, worker.Config{OnGiveUp: func(context.Context, worker.Message, worker.Failure) error {
		switch tries.Add(1) {
		case 1:
			return errors.New("append failed")
		case 2:
			panic("worse")
		}
		return nil
	}}, func(context.Context, worker.Message) error { return worker.GiveUp("bad_output", errors.New("no")) })
	publish(t, js, 1)
	settled(t, js)
	require.EqualValues(t, 3, tries.Load())
}

func TestDeadlineEndsTheStep(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	s := start(t, js, worker.Config{Deadline: 50 * time.Millisecond}, func(ctx context.Context, _ worker.Message) error {
		<-ctx.Done()
		assert.ErrorIs(t, context.Cause(ctx), worker.ErrDeadline)
		return ctx.Err()
	})
	publish(t, js, 1)
	g := <-s.givenUp
	require.Equal(t, worker.ClassTimeout, g.f.Class)
	require.ErrorIs(t, g.f.Err, worker.ErrDeadline)
	settled(t, js)
}

// immortal is the option of a bus on which nobody passes for dead while the test runs.
func immortal(o *topology.Options) { o.AckWait = time.Hour }

func TestStoppingGivesMessagesBackAtOnce(t *testing.T) {
	t.Parallel()
	srv, _, js := bustest.Start(t, immortal) // the message cannot come again because of AckWait
	began := make(chan struct{})
	s := start(t, js, worker.Config{Grace: time.Second}, func(ctx context.Context, _ worker.Message) error {
		close(began)
		<-ctx.Done()
		assert.ErrorIs(t, context.Cause(ctx), worker.ErrStopping)
		return ctx.Err()
	})
	publish(t, js, 1)
	<-began
	require.NoError(t, s.end())
	require.NoError(t, js.Conn().Flush())

	_, js2 := bustest.Dial(t, srv)
	taken := make(chan worker.Message, 1)
	start(t, js2, worker.Config{}, func(_ context.Context, m worker.Message) error {
		taken <- m
		return nil
	})
	require.Equal(t, 2, (<-taken).NumDelivered)
}

func TestStoppingLetsWorkFinishWithinTheGrace(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	began, release := make(chan struct{}), make(chan struct{})
	s := start(t, js, worker.Config{Grace: bustest.Patience}, func(ctx context.Context, _ worker.Message) error {
		close(began)
		<-release
		return ctx.Err()
	})
	publish(t, js, 2) // the second one is for others
	<-began
	s.stop()
	close(release)
	require.NoError(t, s.end())
	require.NoError(t, js.Conn().Flush())
	c, err := js.Consumer(t.Context(), topology.Notebook, topology.Judge)
	require.NoError(t, err)
	require.Eventually(t, func() bool { // the server takes acknowledgements in from a queue
		info, err := c.Info(t.Context())
		return err == nil && info.NumAckPending == 0 && info.AckFloor.Stream == 1
	}, bustest.Patience, 5*time.Millisecond)
}

func TestHandlerThatHangsDoesNotHoldTheProcess(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	began, release := make(chan struct{}), make(chan struct{})
	s := start(t, js, worker.Config{Grace: 20 * time.Millisecond}, func(context.Context, worker.Message) error {
		close(began)
		<-release
		return nil
	})
	publish(t, js, 1)
	<-began
	require.ErrorIs(t, s.end(), worker.ErrStuck)
	close(release)
}

func TestWorkGoesOnOverServerRestartsAndANewConsumer(t *testing.T) {
	t.Parallel()
	srv, _, js := bustest.Start(t)
	var got sync.Map
	count := func() (n int) {
		got.Range(func(any, any) bool { n++; return true })
		return n
	}
	start(t, js, worker.Config{Slots: 2}, func(_ context.Context, m worker.Message) error {
		got.Store(m.Seq, true)
		return nil
	})
	publish(t, js, 5)
	for i := range 2 {
		srv = bustest.Restart(t, srv, nil)
		require.Eventually(t, js.Conn().IsConnected, bustest.Patience, 5*time.Millisecond)
		publish(t, js, 5)
		require.Eventually(t, func() bool { return count() == 5*(i+2) }, bustest.Patience, 5*time.Millisecond)
	}
	require.NoError(t, js.DeleteConsumer(t.Context(), topology.Notebook, topology.Judge))
	publish(t, js, 5)
	require.NoError(t, topology.Declare(t.Context(), js, bustest.Options()))
	require.Eventually(t, func() bool { return count() == 20 }, bustest.Patience, 5*time.Millisecond)
}

func TestClosedConnectionEndsRun(t *testing.T) {
	t.Parallel()
	srv, _, _ := bustest.Start(t)
	nc, js := bustest.Dial(t, srv)
	w := worker.New(js, worker.Config{Stream: topology.Notebook, Durable: topology.Judge}, func(context.Context, worker.Message) error { return nil })
	done := make(chan error, 1)
	go func() { done <- w.Run(t.Context()) }()
	<-w.Ready()
	nc.Close()
	require.ErrorIs(t, <-done, worker.ErrClosed)
}

func TestDelaysGrowToTheirLimit(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]time.Duration{0: 10 * time.Second, 1: 10 * time.Second, 2: 20 * time.Second, 5: 160 * time.Second, 6: 5 * time.Minute, 1000: 5 * time.Minute} {
		require.Equal(t, want, worker.Backoff(n), n)
	}
}
