//go:build threeservers

package batch_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/batch"
	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/jetstream/topology"
)

var orderFor = flag.Duration("order", 30*time.Second, "how long the writers of the order test write")

const (
	writers = 8
	threads = 2
	// patience is for what may need several elections on a busy machine.
	patience = 2 * time.Minute
)

// Eight writers on connections to three servers, half of them with batches of three, append to two threads under the one condition, while the stream's leader steps down
// every second and servers are killed and started again. Whatever a writer is told, or finds out when it is told nothing, must be true of the stream at the end.
func TestAppendsUnderOneConditionAreOrderedOnThreeServers(t *testing.T) {
	c := bustest.StartCluster(t, nil)
	c.Declare(t)
	nc, _ := c.Dial(t, 0)
	require.False(t, batch.AheadPossible(nc), "servers with replicas take nothing ahead")
	ctx, stop := context.WithTimeout(t.Context(), *orderFor)
	defer stop()
	var working sync.WaitGroup
	all := make([]*writer, writers)
	for i := range all {
		w := newWriter(t, c, i)
		all[i] = w
		working.Go(func() { w.err = w.write(ctx) })
	}
	downs, kills := disturb(ctx, t, c)
	working.Wait()

	var sum tally
	accepted := map[string]uint64{}
	for _, w := range all {
		require.NoError(t, w.err)
		maps.Copy(accepted, w.accepted)
		sum.add(w.tally)
	}
	nc, js := c.Dial(t, 0)
	streams := readFromEachLeader(t, c, nc, js)
	t.Logf("%v: %d appends, %d messages, %d conflicts, %d unknown (of them %d were stored), at most %d tries; %d step-downs, %d kills",
		*orderFor, len(accepted), len(streams[0]), sum.conflicts, sum.unknown, sum.foundStored, sum.mostTries, downs, kills)
	for leader, stream := range streams {
		require.Empty(t, audit(stream, accepted), "as the leader on server %d has it", leader)
		require.Equal(t, streams[0], stream, "the servers differ")
	}
	require.Greater(t, len(accepted), writers)
	require.Positive(t, downs)
	require.Positive(t, kills)
}

// disturb lets leaders step down and kills servers until ctx ends; then every server is there again.
func disturb(ctx context.Context, t *testing.T, c *bustest.Cluster) (downs, kills int) {
	nc, js := c.Dial(t, 0)
	try := func(f func(ctx context.Context)) {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		f(ctx)
	}
	stepDown, kill := time.NewTicker(time.Second), time.NewTicker(4*time.Second)
	defer stepDown.Stop()
	defer kill.Stop()
	for {
		select {
		case <-ctx.Done():
			return downs, kills
		case <-stepDown.C:
			try(func(ctx context.Context) {
				if c.StepDown(ctx, nc, topology.Notebook) == nil {
					downs++
				}
			})
		case <-kill.C:
			victim := rand.IntN(bustest.Servers)
			try(func(ctx context.Context) {
				if leader, known := c.Leader(ctx, js, topology.Notebook); known && kills%2 == 0 {
					victim = leader
				}
			})
			c.Kill(victim)
			kills++
			select {
			case <-ctx.Done():
			case <-time.After(time.Second + rand.N(2*time.Second)):
			}
			c.Run(t, victim)
			mended, cancel := context.WithTimeout(t.Context(), patience)
			require.NoError(t, c.AwaitWhole(mended, js, topology.Notebook))
			cancel()
		}
	}
}

type tally struct{ conflicts, unknown, foundStored, mostTries int }

func (s *tally) add(t tally) {
	s.conflicts += t.conflicts
	s.unknown += t.unknown
	s.foundStored += t.foundStored
	s.mostTries = max(s.mostTries, t.mostTries)
}

// writer appends as a service does: it decides on what its tail has folded, and looks there for what became of an append.
type writer struct {
	name string
	size int // messages of each append
	js   jetstream.JetStream
	tail *projector.Projector

	mu   sync.Mutex
	last map[string]uint64 // of each thread
	ends map[string]uint64 // of each append that the tail has

	accepted map[string]uint64
	tally
	err error
}

func newWriter(t *testing.T, c *bustest.Cluster, i int) *writer {
	_, js := c.Dial(t, i%bustest.Servers)
	w := &writer{name: fmt.Sprint("w", i), size: 1 + 2*(i%2), js: js, last: map[string]uint64{}, ends: map[string]uint64{}, accepted: map[string]uint64{}}
	w.tail = projector.New(js, projector.Config{Stream: topology.Notebook, Handler: w.fold, Logger: zerolog.Nop()})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.tail.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return w
}

func (w *writer) fold(_ context.Context, messages []projector.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range messages {
		var c claim
		if err := json.Unmarshal(m.Data, &c); err != nil {
			return err
		}
		w.last[c.Thread], w.ends[c.ID] = m.Seq, m.Seq
	}
	return nil
}

// write appends until ctx ends. What is begun then is brought to its end.
func (w *writer) write(ctx context.Context) error {
	for n := 0; ctx.Err() == nil; n++ {
		if err := w.append(context.WithoutCancel(ctx), fmt.Sprintf("%s-%d", w.name, n), fmt.Sprint("thread", rand.IntN(threads))); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) append(ctx context.Context, id, thread string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	unknown := false // whether an earlier try may still be stored
	for try := 1; ; try++ {
		w.mostTries = max(w.mostTries, try)
		w.mu.Lock() // of one state: what is decided on, and whether an earlier try is part of it
		decided := w.last[thread]
		seq, there := w.ends[id]
		w.mu.Unlock()
		if there {
			if !unknown {
				return fmt.Errorf("append %s was refused each time, but is stored at %d", id, seq)
			}
			w.foundStored++
			w.accepted[id] = seq
			return nil
		}
		seq, err := w.publish(ctx, id, thread, decided)
		switch {
		case err == nil:
			w.accepted[id] = seq
			return w.tail.WaitFor(ctx, seq)
		case errors.Is(err, batch.ErrConflict):
			w.conflicts++
		case errors.Is(err, batch.ErrUnknown):
			w.unknown++
			unknown = true
		default:
			return fmt.Errorf("append %s: %w", id, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("append %s: %w", id, context.Cause(ctx))
		case <-time.After(rand.N(min(time.Millisecond<<min(try, 7), 100*time.Millisecond))):
		}
		for {
			if _, err = w.tail.CatchUp(ctx); err == nil {
				break
			}
			if ctx.Err() != nil {
				return fmt.Errorf("append %s: catch up: %w", id, err)
			}
		}
	}
}

func (w *writer) publish(ctx context.Context, id, thread string, decided uint64) (uint64, error) {
	messages := make([]batch.Message, w.size)
	for i := range messages {
		messages[i] = batch.Message{
			Subject: topology.Subject("run", "requested", thread, id, i),
			Data:    claim{ID: id, Thread: thread, At: i, Size: w.size, Decided: decided}.data(),
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return batch.Publish(ctx, w.js, messages, batch.Expect{Filter: topology.ThreadFilter(thread), LastSeq: decided})
}

// readFromEachLeader returns the whole stream as each server has it when it leads.
func readFromEachLeader(t *testing.T, c *bustest.Cluster, nc *nats.Conn, js jetstream.JetStream) map[int][]stored {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	streams := map[int][]stored{}
	for len(streams) < bustest.Servers {
		require.NoError(t, c.AwaitWhole(ctx, js, topology.Notebook))
		if leader, known := c.Leader(ctx, js, topology.Notebook); known && streams[leader] == nil {
			streams[leader] = readAll(ctx, t, js)
		}
		_ = c.StepDown(ctx, nc, topology.Notebook) // to a server that is not asked for
		require.NoError(t, ctx.Err())
	}
	return streams
}

// readAll reads by a consumer with as many replicas as the stream has: its leader reads the store of its own server.
func readAll(ctx context.Context, t *testing.T, js jetstream.JetStream) (out []stored) {
	s, err := js.Stream(ctx, topology.Notebook)
	require.NoError(t, err)
	end, next := s.CachedInfo().State.LastSeq, uint64(1)
	for next <= end {
		require.NoError(t, ctx.Err())
		consumer, err := s.CreateConsumer(ctx, jetstream.ConsumerConfig{
			DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: next, AckPolicy: jetstream.AckNonePolicy, InactiveThreshold: time.Minute})
		require.NoError(t, err)
		it, err := consumer.Messages()
		require.NoError(t, err)
		for next <= end {
			m, err := it.Next(jetstream.NextContext(ctx))
			if err != nil { // on a busy machine a heartbeat may be late: go on with another consumer
				break
			}
			meta, err := m.Metadata()
			require.NoError(t, err)
			one := stored{seq: meta.Sequence.Stream}
			require.NoError(t, json.Unmarshal(m.Data(), &one.claim))
			out, next = append(out, one), one.seq+1
		}
		it.Stop()
	}
	return out
}

// Why there is one filter string: two appends that are decided on the same sequence and sent one behind the other. Under one string the second is refused; under
// two strings that select the same messages, a leader with replicas takes both, as it looks at what is stored, and the first is not stored yet.
func TestTwoFilterStringsDoNotOrderAppends(t *testing.T) {
	c := bustest.StartCluster(t, nil)
	c.Declare(t)
	_, js := c.Dial(t, 0)
	const pairs = 200
	stale := func(thread, second string) (accepted int) {
		var last uint64
		ids := map[string]uint64{}
		for n := range pairs {
			var answers [2]jetstream.PubAckFuture
			for i, filter := range []string{topology.ThreadFilter(thread), second} {
				id := fmt.Sprintf("%s-%d-%d", thread, n, i)
				msg := nats.NewMsg(topology.Subject("run", "requested", thread, id, 0))
				msg.Data = claim{ID: id, Thread: thread, Size: 1, Decided: last}.data()
				answer, err := js.PublishMsgAsync(msg, jetstream.WithExpectLastSequencePerSubject(last), jetstream.WithExpectLastSequenceForSubject(last, filter))
				require.NoError(t, err)
				answers[i] = answer
			}
			for i, answer := range answers {
				select {
				case ack := <-answer.Ok():
					last = max(last, ack.Sequence)
					ids[fmt.Sprintf("%s-%d-%d", thread, n, i)] = ack.Sequence
					accepted += i
				case err := <-answer.Err():
					require.ErrorContains(t, err, "wrong last sequence")
				case <-time.After(patience):
					t.Fatal("no answer")
				}
			}
		}
		var own []stored
		for _, m := range readAll(t.Context(), t, js) {
			if m.Thread == thread {
				own = append(own, m)
			}
		}
		said := 0
		for _, fault := range audit(own, ids) {
			if strings.Contains(fault, "is stale") {
				said++
			}
		}
		require.Equal(t, accepted, said, "the audit finds each of them")
		return accepted
	}
	one := stale("one", topology.ThreadFilter("one"))
	two := stale("two", "*.*.two.*.*")
	t.Logf("stale appends accepted: %d of %d under one filter string, %d of %d under two", one, pairs, two, pairs)
	require.Zero(t, one)
	require.Positive(t, two)
}

// data is the body of the message that claims c.
func (c claim) data() []byte {
	data, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and numbers
	}
	return data
}
