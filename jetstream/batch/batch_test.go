package batch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/factstream/factstream/jetstream/batch"
	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/topology"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(bustest.Leaks(m))
}

func messages(thread string, n int) []batch.Message {
	out := make([]batch.Message, n)
	for i := range out {
		out[i] = batch.Message{Subject: topology.Subject("run", "requested", thread, "r", i), Data: []byte("{}")}
	}
	return out
}

func last(t *testing.T, js jetstream.JetStream) uint64 {
	s, err := js.Stream(t.Context(), topology.Notebook)
	require.NoError(t, err)
	return s.CachedInfo().State.LastSeq
}

func TestOneAndSeveralAreStoredUnderTheCondition(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	on := topology.ThreadFilter("a")

	seq, err := batch.Publish(t.Context(), js, messages("a", 1), batch.Expect{Filter: on})
	require.NoError(t, err)
	require.EqualValues(t, 1, seq)
	seq, err = batch.Publish(t.Context(), js, messages("b", 2), batch.Expect{Filter: topology.ThreadFilter("b")})
	require.NoError(t, err)
	require.EqualValues(t, 3, seq)
	// The other thread's events do not disturb this one's condition.
	seq, err = batch.Publish(t.Context(), js, messages("a", 3), batch.Expect{Filter: on, LastSeq: 1})
	require.NoError(t, err)
	require.EqualValues(t, 6, seq)

	for _, n := range []int{1, 3} {
		for _, stale := range []uint64{0, 1, 5, 7} {
			_, err := batch.Publish(t.Context(), js, messages("a", n), batch.Expect{Filter: on, LastSeq: stale})
			require.ErrorIs(t, err, batch.ErrConflict, "%d messages on %d", n, stale)
			require.NotErrorIs(t, err, batch.ErrUnknown)
		}
	}
	require.EqualValues(t, 6, last(t, js))
}

func TestNothingToAppendIsNoWork(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	seq, err := batch.Publish(t.Context(), js, nil, batch.Expect{Filter: "x"})
	require.NoError(t, err)
	require.Zero(t, seq)
}

func TestHeadersOfTheCallerAreSentAndStayAsTheyWere(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	msgs := messages("a", 2)
	msgs[0].Header = nats.Header{"traceparent": {"00-1"}}
	_, err := batch.Publish(t.Context(), js, msgs, batch.Expect{Filter: topology.ThreadFilter("a")})
	require.NoError(t, err)
	require.Equal(t, nats.Header{"traceparent": {"00-1"}}, msgs[0].Header)
	require.Nil(t, msgs[1].Header)
	s, err := js.Stream(t.Context(), topology.Notebook)
	require.NoError(t, err)
	m, err := s.GetMsg(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, "00-1", m.Header.Get("traceparent"))
}

func TestTooLargeSendsNothing(t *testing.T) {
	t.Parallel()
	_, nc, js := bustest.Start(t)
	big := messages("a", 3)
	big[2].Data = []byte(strings.Repeat("x", int(nc.MaxPayload())))
	_, err := batch.Publish(t.Context(), js, big, batch.Expect{Filter: topology.ThreadFilter("a")})
	require.ErrorIs(t, err, batch.ErrTooLarge)
	_, err = batch.Publish(t.Context(), js, big[2:], batch.Expect{Filter: topology.ThreadFilter("a")})
	require.ErrorIs(t, err, batch.ErrTooLarge)
	_, err = batch.Publish(t.Context(), js, messages("a", batch.MaxMessages+1), batch.Expect{})
	require.ErrorIs(t, err, batch.ErrTooLarge)
	require.Zero(t, last(t, js))
}

func TestWhateverIsNoConflictIsUnknown(t *testing.T) {
	t.Parallel()
	srv, nc, js := bustest.Start(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, n := range []int{1, 2} {
		_, err := batch.Publish(ended, js, messages("a", n), batch.Expect{})
		require.ErrorIs(t, err, batch.ErrUnknown)
		require.ErrorIs(t, err, context.Canceled)

		nowhere := messages("a", n)
		for i := range nowhere {
			nowhere[i].Subject = "no.stream.listens.here"
		}
		_, err = batch.Publish(t.Context(), js, nowhere, batch.Expect{})
		require.ErrorIs(t, err, batch.ErrUnknown)
	}
	srv.Shutdown()
	require.Eventually(t, func() bool { return !nc.IsConnected() }, bustest.Patience, time.Millisecond)
	for _, n := range []int{1, 2} {
		_, err := batch.Publish(t.Context(), js, messages("a", n), batch.Expect{})
		require.ErrorIs(t, err, batch.ErrUnknown)
	}
}

// Eight writers, half of them with batches of three, append under one condition.
// Each append holds the sequence that it believed to be the last; afterwards that
// must be true of every one of them.
func TestWritersUnderOneConditionAreOrdered(t *testing.T) {
	t.Parallel()
	srv, _, js := bustest.Start(t)
	const writers, appends = 8, 20
	filter := topology.ThreadFilter("a")
	var wg sync.WaitGroup
	failed := make(chan error, writers)
	conflicts := make([]int, writers)
	for w := range writers {
		_, js := bustest.Dial(t, srv)
		size := 1 + 2*(w%2)
		wg.Go(func() {
			var position uint64
			for done := 0; done < appends; {
				msgs := make([]batch.Message, size)
				for i := range msgs {
					msgs[i] = batch.Message{
						Subject: topology.Subject("run", "requested", "a", fmt.Sprintf("w%d", w), done*size+i),
						Data:    fmt.Appendf(nil, "%d %d %d", position, i, size),
					}
				}
				seq, err := batch.Publish(t.Context(), js, msgs, batch.Expect{Filter: filter, LastSeq: position})
				switch {
				case err == nil:
					position, done = seq, done+1
				case errors.Is(err, batch.ErrConflict):
					conflicts[w]++
					s, err := js.Stream(t.Context(), topology.Notebook)
					if err != nil {
						failed <- err
						return
					}
					position = s.CachedInfo().State.LastSeq
				default:
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(failed)
	require.NoError(t, <-failed)

	s, err := js.Stream(t.Context(), topology.Notebook)
	require.NoError(t, err)
	end := s.CachedInfo().State.LastSeq
	require.EqualValues(t, writers/2*appends*(1+3), end)
	next := map[string]int{} // each writer's numbers come in order, none twice
	for seq := uint64(1); seq <= end; {
		var size int
		start := seq
		for i := 0; ; i++ {
			m, err := s.GetMsg(t.Context(), seq)
			require.NoError(t, err)
			var believed uint64
			var at int
			_, err = fmt.Sscanf(string(m.Data), "%d %d %d", &believed, &at, &size)
			require.NoError(t, err)
			require.Equal(t, i, at, "a batch was torn apart")
			require.Equal(t, start-1, believed, "an append did not follow what it was decided on")
			p, err := topology.Parse(m.Subject)
			require.NoError(t, err)
			require.Equal(t, next[p.ID], p.N)
			next[p.ID]++
			seq++
			if i == size-1 {
				break
			}
		}
	}
	t.Logf("conflicts: %v", conflicts)
}

func TestWhatIsSentAheadIsStoredBehindTheOneBeforeItOrNotAtAll(t *testing.T) {
	t.Parallel()
	_, nc, js := bustest.Start(t)
	require.True(t, batch.AheadPossible(nc))
	stored := func(s *batch.Sent) uint64 {
		t.Helper()
		seq, err := s.Stored(t.Context())
		require.NoError(t, err)
		return seq
	}
	send := func(a *batch.Ahead, thread string, last uint64) *batch.Sent {
		t.Helper()
		sent, err := a.Send(messages(thread, 1)[0], batch.Expect{Filter: topology.ThreadFilter(thread), LastSeq: last})
		require.NoError(t, err)
		return sent
	}
	a := batch.NewAhead(js)
	one, two := send(a, "a", 0), send(a, "a", 0)
	require.EqualValues(t, 1, stored(one))
	require.EqualValues(t, 2, stored(two), "of the same subject and with the condition of the first, which counts for that one only")

	_, err := js.Publish(t.Context(), topology.Subject("run", "requested", "b", "r", 0), []byte("{}"))
	require.NoError(t, err)
	three, four := send(a, "a", 2), send(a, "a", 2)
	for _, sent := range []*batch.Sent{three, four} {
		_, err := sent.Stored(t.Context())
		require.ErrorIs(t, err, batch.ErrConflict)
	}

	refused := batch.NewAhead(js)
	one, two = send(refused, "a", 7), send(refused, "a", 7)
	for _, sent := range []*batch.Sent{one, two} {
		_, err := sent.Stored(t.Context())
		require.ErrorIs(t, err, batch.ErrConflict, "nothing is stored behind what was refused")
	}
	_, err = batch.NewAhead(js).Send(batch.Message{Subject: "run.requested.a.r.0", Data: make([]byte, 2<<20)}, batch.Expect{})
	require.ErrorIs(t, err, batch.ErrTooLarge)
}

// What comes between two that are sent ahead may be several messages, or nothing that is stored: a purge, or another start of the server.
func TestWhatIsSentAheadEndsAtABatchAndOutlivesTheServer(t *testing.T) {
	t.Parallel()
	srv, nc, js := bustest.Start(t)
	send := func(a *batch.Ahead, thread string, last uint64) error {
		t.Helper()
		sent, err := a.Send(messages(thread, 1)[0], batch.Expect{Filter: topology.ThreadFilter(thread), LastSeq: last})
		require.NoError(t, err)
		_, err = sent.Stored(t.Context())
		return err
	}
	restart := func() {
		t.Helper()
		srv = bustest.Restart(t, srv, func() {
			require.Eventually(t, func() bool { return !nc.IsConnected() }, bustest.Patience, time.Millisecond)
		})
		require.Eventually(t, nc.IsConnected, bustest.Patience, time.Millisecond)
	}
	a := batch.NewAhead(js)
	require.NoError(t, send(a, "a", 0))
	_, err := batch.Publish(t.Context(), js, messages("b", 3), batch.Expect{Filter: topology.ThreadFilter("b")})
	require.NoError(t, err)
	require.ErrorIs(t, send(a, "a", 1), batch.ErrConflict, "behind a batch")

	a = batch.NewAhead(js)
	require.NoError(t, send(a, "a", 1))
	restart()
	require.NoError(t, send(a, "a", 0), "behind a restart")
	stream, err := js.Stream(t.Context(), topology.Notebook)
	require.NoError(t, err)
	require.NoError(t, stream.Purge(t.Context(), jetstream.WithPurgeSubject(topology.ThreadFilter("b"))))
	require.NoError(t, send(a, "a", 0), "behind a purge")
	restart()
	_, err = js.Publish(t.Context(), topology.Subject("run", "requested", "c", "r", 0), []byte("{}"))
	require.NoError(t, err)
	require.ErrorIs(t, send(a, "a", 0), batch.ErrConflict, "behind another's after a restart")
	require.EqualValues(t, 8, last(t, js))
}
