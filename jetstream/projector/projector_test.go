package projector_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/factstream/factstream/jetstream/batch"
	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/jetstream/topology"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(bustest.Leaks(m))
}

// seen collects what a handler got.
type seen struct {
	mu      sync.Mutex
	seqs    []uint64
	largest int
	ids     []string
}

func (s *seen) handle(_ context.Context, messages []projector.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.largest = max(s.largest, len(messages))
	for _, m := range messages {
		s.seqs = append(s.seqs, m.Seq)
		s.ids = append(s.ids, string(m.Data))
	}
	return nil
}

func (s *seen) all() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]uint64(nil), s.seqs...)
}

func publish(t *testing.T, js jetstream.JetStream, n int) (last uint64) {
	t.Helper()
	for i := range n {
		ack, err := js.Publish(t.Context(), topology.Subject("run", "requested", "t", "r", i), fmt.Appendf(nil, "%d", i))
		require.NoError(t, err)
		last = ack.Sequence
	}
	return last
}

// run starts a projector and returns it with a way to end it and get Run's error.
func run(t *testing.T, js jetstream.JetStream, cfg projector.Config) (*projector.Projector, func() error) {
	t.Helper()
	cfg.Stream = topology.Notebook
	p := projector.New(js, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	var once sync.Once
	var err error
	end := func() error {
		once.Do(func() {
			cancel()
			err = <-done
		})
		return err
	}
	t.Cleanup(func() { _ = end() })
	return p, end
}

func ascending(from, to uint64) []uint64 {
	var out []uint64
	for s := from; s <= to; s++ {
		out = append(out, s)
	}
	return out
}

func waitFor(t *testing.T, p *projector.Projector, seq uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bustest.Patience)
	defer cancel()
	require.NoError(t, p.WaitFor(ctx, seq))
}

func TestAppliesEverythingOnceInOrderInBatches(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	last := publish(t, js, 500)
	var got seen
	p, end := run(t, js, projector.Config{Handler: got.handle, Batch: 50})
	waitFor(t, p, last)
	live := publish(t, js, 3)
	waitFor(t, p, live)
	require.NoError(t, end())
	require.Equal(t, ascending(1, live), got.all())
	require.Greater(t, got.largest, 1)
	require.LessOrEqual(t, got.largest, 50)
	require.Equal(t, live, p.Position())
}

func TestGoesOnFromTheCursor(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	last := publish(t, js, 10)
	var got seen
	p, _ := run(t, js, projector.Config{Handler: got.handle, From: 7})
	waitFor(t, p, last)
	require.Equal(t, []uint64{8, 9, 10}, got.all())
}

func TestCatchUpSeesWhatTheStreamHeld(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	var got seen
	p, _ := run(t, js, projector.Config{Handler: got.handle})
	for range 20 {
		last := publish(t, js, 5)
		seq, err := p.CatchUp(t.Context())
		require.NoError(t, err)
		require.Equal(t, last, seq)
		require.Len(t, got.all(), int(last))
	}
}

// With a consumer that is never heard of, waiting still ends, by direct reading.
func TestWaiterReadsOnDirectly(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	var got seen
	p, _ := run(t, mute{js}, projector.Config{Handler: got.handle, Batch: 10})
	last := publish(t, js, 95)
	started := time.Now()
	waitFor(t, p, last)
	require.GreaterOrEqual(t, time.Since(started), projector.DefaultPatience/2)
	require.Equal(t, ascending(1, last), got.all())
}

func TestDirectReadingAndConsumerNeverApplyTwice(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	var got seen
	p, _ := run(t, js, projector.Config{Handler: got.handle, Batch: 3, Patience: time.Nanosecond})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 50 {
				ack, err := js.Publish(t.Context(), topology.Subject("run", "requested", "t", fmt.Sprint("w", w), i), nil)
				if err == nil {
					err = p.WaitFor(t.Context(), ack.Sequence)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, ascending(1, 200), got.all())
}

func TestPurgedSequencesArePassed(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	last := publish(t, js, 10)
	nb, err := js.Stream(t.Context(), topology.Notebook)
	require.NoError(t, err)
	for _, seq := range []uint64{4, 5} {
		require.NoError(t, nb.DeleteMsg(t.Context(), seq))
	}
	require.NoError(t, nb.Purge(t.Context(), jetstream.WithPurgeSequence(3)))
	require.NoError(t, nb.DeleteMsg(t.Context(), last)) // the end itself
	var got seen
	p, _ := run(t, js, projector.Config{Handler: got.handle})
	waitFor(t, p, last)
	require.Equal(t, []uint64{3, 6, 7, 8, 9}, got.all())

	require.NoError(t, nb.Purge(t.Context()))
	next := publish(t, js, 1)
	waitFor(t, p, next)
	require.Equal(t, []uint64{3, 6, 7, 8, 9, 11}, got.all())
}

func TestFilterAppliesOnlyItsSubjects(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	publish(t, js, 3)
	other, err := js.Publish(t.Context(), topology.Subject("run", "requested", "other", "r", 0), nil)
	require.NoError(t, err)
	publish(t, js, 2)
	var got seen
	p, _ := run(t, js, projector.Config{Handler: got.handle, Filter: topology.ThreadFilter("other")})
	_, err = p.CatchUp(t.Context())
	require.NoError(t, err)
	require.Equal(t, []uint64{other.Sequence}, got.all())
}

func TestHandlerErrorEndsRunBeforeTheBatch(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	publish(t, js, 3)
	broken := errors.New("disk on fire")
	p := projector.New(js, projector.Config{Stream: topology.Notebook, Batch: 1, Handler: func(_ context.Context, m []projector.Message) error {
		if m[0].Seq == 2 {
			return broken
		}
		return nil
	}})
	waiting := make(chan error, 1)
	go func() { waiting <- p.WaitFor(t.Context(), 3) }()
	require.ErrorIs(t, p.Run(t.Context()), broken)
	require.EqualValues(t, 1, p.Position())
	err := <-waiting
	require.ErrorIs(t, err, projector.ErrStopped)
	require.ErrorIs(t, err, broken)
	require.ErrorIs(t, p.WaitFor(t.Context(), 2), projector.ErrStopped)
	require.NoError(t, p.WaitFor(t.Context(), 1))
}

func TestWaitForEndsWithItsContext(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	var got seen
	p, _ := run(t, js, projector.Config{Handler: got.handle})
	ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, p.WaitFor(ctx, 1), context.DeadlineExceeded)
}

func TestAnotherStreamUnderTheNameIsDetected(t *testing.T) {
	t.Parallel()
	recreate := func(t *testing.T, js jetstream.JetStream) {
		require.NoError(t, js.DeleteStream(t.Context(), topology.Notebook))
		require.NoError(t, topology.Declare(t.Context(), js, bustest.Options()))
	}
	t.Run("at start", func(t *testing.T) {
		t.Parallel()
		_, _, js := bustest.Start(t)
		last := publish(t, js, 2)
		var got seen
		p, end := run(t, js, projector.Config{Handler: got.handle})
		waitFor(t, p, last)
		created := p.Created()
		require.NoError(t, end())
		recreate(t, js)
		publish(t, js, 9)
		p = projector.New(js, projector.Config{Stream: topology.Notebook, Handler: got.handle, From: last, Created: created})
		require.ErrorIs(t, p.Run(t.Context()), projector.ErrStreamChanged)
	})
	t.Run("while running", func(t *testing.T) {
		t.Parallel()
		_, _, js := bustest.Start(t)
		last := publish(t, js, 2)
		var got seen
		p := projector.New(js, projector.Config{Stream: topology.Notebook, Handler: got.handle})
		done := make(chan error, 1)
		go func() { done <- p.Run(t.Context()) }()
		waitFor(t, p, last)
		recreate(t, js)
		require.ErrorIs(t, <-done, projector.ErrStreamChanged)
	})
	t.Run("that ends before the cursor", func(t *testing.T) {
		t.Parallel()
		_, _, js := bustest.Start(t)
		publish(t, js, 2)
		p := projector.New(js, projector.Config{Stream: topology.Notebook, Handler: new(seen).handle, From: 3})
		require.ErrorIs(t, p.Run(t.Context()), projector.ErrStreamChanged)
	})
}

func TestServerRestartsAreSurvived(t *testing.T) {
	t.Parallel()
	srv, _, js := bustest.Start(t)
	last := publish(t, js, 5)
	var got seen
	p, _ := run(t, js, projector.Config{Handler: got.handle, Heartbeat: 500 * time.Millisecond, Expiry: 2 * time.Second})
	waitFor(t, p, last)
	for range 2 {
		srv = bustest.Restart(t, srv, nil)
		require.Eventually(t, js.Conn().IsConnected, bustest.Patience, 5*time.Millisecond)
		last = publish(t, js, 5)
		waitFor(t, p, last)
	}
	require.Equal(t, ascending(1, last), got.all())
	// The consumer itself comes back too, without anybody waiting.
	last = publish(t, js, 1)
	require.Eventually(t, func() bool { return p.Position() == last }, bustest.Patience, 5*time.Millisecond)
}

// mute is a bus on which no consumer can be made.
type mute struct{ jetstream.JetStream }

func (m mute) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	s, err := m.JetStream.Stream(ctx, name)
	return muteStream{s}, err
}

type muteStream struct{ jetstream.Stream }

func (muteStream) CreateConsumer(context.Context, jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	return nil, errors.New("no consumers today")
}

// publishBatch appends n messages as one atomic batch and returns the sequence of the last.
func publishBatch(t *testing.T, js jetstream.JetStream, n int) uint64 {
	t.Helper()
	messages := make([]batch.Message, n)
	for i := range messages {
		messages[i] = batch.Message{Subject: topology.Subject("run", "requested", "t", "b", i), Data: []byte("{}")}
	}
	last, err := batch.Publish(t.Context(), js, messages, batch.Expect{})
	require.NoError(t, err)
	return last
}

// The consumer brings a batch in pieces of Batch messages; no piece is seen.
func TestABatchIsAppliedAsOne(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]projector.Config{"by the consumer": {Batch: 1}, "in twos": {Batch: 2}, "in fours": {Batch: 4}, "read directly": {Batch: 2, Patience: time.Nanosecond}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, js := bustest.Start(t)
			var got seen
			ends := map[uint64]bool{}
			var torn []uint64
			cfg.Handler = func(ctx context.Context, messages []projector.Message) error {
				last := messages[len(messages)-1]
				if last.Header.Get("Nats-Batch-Id") != "" && last.Header.Get("Nats-Batch-Commit") == "" {
					torn = append(torn, last.Seq)
				}
				ends[last.Seq] = true
				return got.handle(ctx, messages)
			}
			var bus jetstream.JetStream = js
			if name == "read directly" {
				bus = mute{js}
			}
			publishBatch(t, js, 3)
			publish(t, js, 2)
			publishBatch(t, js, 5)
			p, end := run(t, bus, cfg)
			for range 10 {
				last := publishBatch(t, js, 3)
				waitFor(t, p, last-2)
				require.GreaterOrEqual(t, p.Position(), last, "whoever waits for the first of a batch sees all of it")
				publish(t, js, 1)
			}
			last := publish(t, js, 1)
			waitFor(t, p, last)
			require.NoError(t, end())
			require.Equal(t, ascending(1, last), got.all())
			require.Empty(t, torn)
		})
	}
}

func TestABatchWhoseEndWasDeletedIsApplied(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	first, second := publishBatch(t, js, 3), publishBatch(t, js, 3)
	nb, err := js.Stream(t.Context(), topology.Notebook)
	require.NoError(t, err)
	for _, seq := range []uint64{first, second} { // one is followed by another message, the other ends the stream
		require.NoError(t, nb.DeleteMsg(t.Context(), seq))
	}
	var got seen
	p, _ := run(t, js, projector.Config{Handler: got.handle})
	waitFor(t, p, second)
	require.Equal(t, []uint64{1, 2, 4, 5}, got.all())
	last := publishBatch(t, js, 2)
	waitFor(t, p, last)
	require.Equal(t, []uint64{1, 2, 4, 5, 7, 8}, got.all())
}

func TestABatchLargerThanTheHandlersShareIsOne(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	publish(t, js, 1)
	last := publishBatch(t, js, batch.MaxMessages)
	var got seen
	p, _ := run(t, js, projector.Config{Handler: got.handle})
	waitFor(t, p, last)
	require.Equal(t, batch.MaxMessages, got.largest)
	require.Equal(t, ascending(1, last), got.all())
}
