package projection

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
)

func some(last uint64, messages, size int) *batch {
	return &batch{last: last, messages: messages, size: size}
}

// What is folded waits for more, at most for so long.
func TestChangesLingerUnlessSomebodyAsks(t *testing.T) {
	t.Parallel()
	impatient := func(ctx context.Context, q *pending) { _ = q.catchUp(ctx, math.MaxUint64, false) }
	cases := map[string]struct {
		first  *batch
		beside func(ctx context.Context, q *pending)
		want   time.Duration
	}{
		"nobody asks":                {first: some(1, 1, 100), want: linger},
		"somebody reads":             {first: some(1, 1, 100), beside: impatient, want: 0},
		"somebody waits for a write": {first: some(1, 1, 100), beside: func(_ context.Context, q *pending) { q.hurry() }, want: 0},
		"a transaction's worth":      {first: some(300, projector.DefaultBatch, 100), want: 0},
		"many bytes":                 {first: some(2, 2, pendingBytes/2), want: 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newPending(0)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				began := time.Now()
				q.add(c.first)
				if c.beside != nil {
					go c.beside(ctx, q)
					synctest.Wait()
				}
				require.Equal(t, []*batch{c.first}, q.take(ctx))
				require.Equal(t, c.want, time.Since(began))
			})
		})
	}
}

// What comes while another lingers goes with it, and does not put it off.
func TestWhatLingersIsTakenTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newPending(0)
		began := time.Now()
		for i := range 3 {
			time.AfterFunc(time.Duration(i)*linger*2/5, func() { q.add(some(uint64(i+1), 1, 1)) })
		}
		require.Len(t, q.take(t.Context()), 3)
		require.Equal(t, linger, time.Since(began))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.Nil(t, q.take(ctx))
	})
}

func TestNoMoreIsFoldedAheadThanIsAllowed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ messages, size int }{"events": {pendingEvents / 2, 1}, "bytes": {1, pendingBytes / 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newPending(0)
				room := make(chan error, 1)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				wait := func() {
					go func() { room <- q.room(ctx) }()
					synctest.Wait()
				}
				for seq := range uint64(2) {
					require.NoError(t, q.room(ctx))
					q.add(some(seq+1, c.messages, c.size))
				}
				wait()
				require.Empty(t, room)
				require.Len(t, q.takeAll(), 2)
				synctest.Wait()
				require.Empty(t, room, "what is taken is not in the file yet")
				q.advance(1)
				q.advance(2)
				require.NoError(t, <-room)
				q.add(some(4, c.messages*9, c.size*9)) // one that is larger than all is taken, too
				wait()
				require.Empty(t, room)
				cancel()
				require.ErrorIs(t, <-room, context.Canceled)
			})
		})
	}
}

func TestWhoWaitsForTheFile(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left")
	cases := map[string]struct {
		happens           func(q *pending)
		patient, readable error // what the two kinds of waiters get; errWaits: they still wait
	}{
		"nothing yet":                     {happens: func(*pending) {}, patient: errWaits, readable: errWaits},
		"a part is written":               {happens: func(q *pending) { q.advance(1) }, patient: errWaits, readable: errWaits},
		"it is written":                   {happens: func(q *pending) { q.advance(2) }},
		"it cannot be written":            {happens: func(q *pending) { q.stuck(full) }, patient: errWaits, readable: full},
		"then it can":                     {happens: func(q *pending) { q.stuck(full); q.advance(2) }, readable: nil},
		"it takes long":                   {happens: func(q *pending) { q.slower(2) }, patient: errWaits, readable: errSlow},
		"it took long":                    {happens: func(q *pending) { q.advance(2); q.slower(2) }},
		"a part is written after trouble": {happens: func(q *pending) { q.stuck(full); q.advance(1) }, patient: errWaits, readable: errWaits},
		"nothing is written":              {happens: func(q *pending) { q.close() }, patient: projector.ErrStopped, readable: projector.ErrStopped},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				q := newPending(0)
				require.NoError(t, q.catchUp(ctx, math.MaxUint64, true), "there is nothing to wait for")
				q.add(some(2, 1, 1))
				early, late := map[bool]chan error{}, map[bool]chan error{}
				wait := func(of map[bool]chan error) {
					for _, patient := range []bool{true, false} {
						ended := make(chan error, 1)
						of[patient] = ended
						go func() { ended <- q.catchUp(ctx, math.MaxUint64, patient) }()
					}
					synctest.Wait()
				}
				wait(early)
				c.happens(q)
				synctest.Wait()
				wait(late)
				for _, of := range []map[bool]chan error{early, late} {
					for patient, want := range map[bool]error{true: c.patient, false: c.readable} {
						got := errWaits
						select {
						case got = <-of[patient]:
						default:
						}
						if name == "then it can" && !patient { // the first was told so, or not any more
							continue
						}
						require.ErrorIs(t, got, want, "patient: %v", patient)
					}
				}
				cancel()
				synctest.Wait()
				require.Empty(t, q.waiters)
			})
		})
	}
}

var errWaits = errors.New("it waits")

// Who watches is told of an event before the file has it. Who then asks the file waits for it, unless the file cannot be written.
func TestWhoIsToldFindsItInTheFile(t *testing.T) {
	t.Parallel()
	p := alone(t)
	other, err := openWriter(t.Context(), p.path)
	require.NoError(t, err)
	defer other.Close() //nolint:errcheck // the test would notice
	holds, err := other.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	body, err := event.Marshal(event.Event{ID: "e1", Time: time.Unix(1, 0), Thread: "one", Cause: "asked", Data: event.ThreadCreated{Question: "Why?"}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		if err := p.follow(ctx); err != nil {
			t.Error(err)
		}
	})
	defer writing.Wait()
	defer cancel()

	changed := p.Changed()
	require.NoError(t, p.apply(ctx, []notebook.Message{{Seq: 1, Original: 1, Subject: "thread.created.one.0.0", Data: body}}))
	<-changed
	events, upTo, err := p.Events(ctx, "one", 0, 10)
	require.NoError(t, err)
	require.Len(t, events, 1)
	require.EqualValues(t, 1, upTo)
	require.Zero(t, p.Position(), "another holds the file")

	found := make(chan error, 1)
	go func() {
		_, err := p.FirstOfCause(ctx, "one", "asked")
		found <- err
	}()
	select {
	case err := <-found:
		t.Fatal("the file was asked before it had the event", err)
	case <-time.After(2 * linger):
	}
	require.NoError(t, holds.Rollback())
	require.NoError(t, <-found)
	require.EqualValues(t, 1, p.Position())
}

// What cannot be queued for the file yet is not folded yet: nobody is told of it, and nobody sees it, who would not find it in the file.
func TestNothingIsToldBeforeThereIsRoomForIt(t *testing.T) {
	t.Parallel()
	p := alone(t)
	body, err := event.Marshal(event.Event{ID: "e1", Time: time.Unix(1, 0), Thread: "one", Data: event.ThreadCreated{Question: "Why?"}})
	require.NoError(t, err)
	message := []notebook.Message{{Seq: 1, Original: 1, Subject: "thread.created.one.0.0", Data: body}}
	p.pending.add(some(0, pendingEvents, 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	changed := p.Changed()
	require.ErrorIs(t, p.apply(ctx, message), context.Canceled)
	seen := func() (exists bool) {
		p.View("one", func(th *notebook.Thread) { exists = th.Exists() })
		return exists
	}
	require.False(t, seen())
	require.Zero(t, p.Seen())
	select {
	case <-changed:
		t.Fatal("told, and not queued")
	default:
	}
	p.pending.takeAll()
	p.pending.advance(0)
	require.NoError(t, p.apply(t.Context(), message))
	<-changed
	require.True(t, seen())
	require.EqualValues(t, 1, p.Seen())
}

// While the file cannot be written it is read as it is, those who watch are told, and what is missing comes when it can be written again. Who watches from
// before what is in memory goes on then.
func TestAFileThatCannotBeWrittenForAWhileHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	p := alone(t)
	p.newest.most = 1
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := p.writer.ExecContext(ctx, `PRAGMA query_only = on`)
	require.NoError(t, err)
	apply := func(seq uint64) {
		require.NoError(t, p.apply(ctx, []notebook.Message{{Seq: seq, Original: seq, Subject: "ext.note.t0.0.0", Data: []byte(`{}`)}}))
	}
	apply(1)
	apply(2)
	following := make(chan error, 1)
	go func() { following <- p.follow(ctx) }()
	require.Eventually(t, func() bool { return p.Trouble() != nil }, 10*time.Second, time.Millisecond)
	events, _, err := p.Events(ctx, "", 1, 10)
	require.NoError(t, err)
	require.Len(t, events, 1)
	events, upTo, err := p.Events(ctx, "", 0, 10)
	require.NoError(t, err)
	require.Empty(t, events, "it is neither in memory nor in the file")
	require.Zero(t, upTo, "who watches must not go past it")
	changed := p.Changed()
	_, err = p.writer.ExecContext(ctx, `PRAGMA query_only = off`)
	require.NoError(t, err)
	<-changed
	require.NoError(t, p.Trouble())
	events, upTo, err = p.Events(ctx, "", 0, 10)
	require.NoError(t, err)
	require.Len(t, events, 2)
	require.EqualValues(t, 2, upTo)
	cancel()
	require.NoError(t, <-following)
}

// What lingers when the gateway stops is written before it ends.
func TestWhatLingersAtTheEndIsWritten(t *testing.T) {
	t.Parallel()
	p := alone(t)
	require.NoError(t, p.apply(t.Context(), []notebook.Message{{Seq: 1, Original: 1, Subject: "ext.note.t0.0.0", Data: []byte(`{}`)}}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, p.follow(ctx))
	require.EqualValues(t, 1, p.Position())
}

// Nobody who reads waits for long for a write that does not come back: another program holds the file, or the disk hangs. What was not there then is told
// of again when it is.
func TestAWriteThatHangsHoldsNoReaderUp(t *testing.T) {
	t.Parallel()
	p := alone(t)
	p.slow = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	holds, err := p.writer.Conn(ctx) // the one connection: the write waits, and there is no error
	require.NoError(t, err)
	var writing sync.WaitGroup
	writing.Go(func() {
		if err := p.follow(ctx); err != nil {
			t.Error(err)
		}
	})
	defer writing.Wait()
	defer cancel()
	require.NoError(t, p.apply(ctx, []notebook.Message{created(t, 1)}))
	_, _, err = p.BadEvents(context.WithoutCancel(ctx), nil, 1) // as for /readyz
	require.NoError(t, err)
	_, err = p.FirstOfCause(context.WithoutCancel(ctx), "t1", "asked")
	require.ErrorIs(t, err, ErrNotFound)
	require.NoError(t, p.Trouble())
	changed := p.Changed()
	require.NoError(t, holds.Close())
	<-changed
	_, err = p.FirstOfCause(ctx, "t1", "asked")
	require.NoError(t, err)
}

// Who watches and asks at once, while events come one by one, finds each.
func TestAWatcherThatAsksAtOnceFindsEveryEvent(t *testing.T) {
	t.Parallel()
	p := alone(t)
	ctx, cancel := context.WithCancel(t.Context())
	var going sync.WaitGroup
	defer going.Wait()
	defer cancel()
	going.Go(func() {
		if err := p.follow(ctx); err != nil {
			t.Error(err)
		}
	})
	const all = 1500
	going.Go(func() {
		for seq := uint64(1); seq <= all; seq++ {
			if err := p.apply(ctx, []notebook.Message{created(t, seq)}); err != nil {
				t.Error(err)
			}
		}
	})
	for after := uint64(0); after < all; {
		changed := p.Changed()
		events, _, err := p.Events(ctx, "", after, 256)
		require.NoError(t, err)
		if len(events) == 0 {
			<-changed
			continue
		}
		newest := events[len(events)-1]
		after = newest.Seq
		_, err = p.FirstOfCause(ctx, newest.Thread, "asked")
		require.NoError(t, err, after)
	}
}

// While there is no room, what is in memory can be read, and no more than the bound is ahead of the file.
func TestWhatIsInMemoryIsReadWhileThereIsNoRoom(t *testing.T) {
	t.Parallel()
	p := alone(t)
	ctx, cancel := context.WithCancel(t.Context())
	applied := make(chan uint64)
	ended := make(chan struct{})
	go func() { // nobody writes
		defer close(ended)
		for seq := uint64(0); ; applied <- seq {
			var some []notebook.Message
			for range projector.DefaultBatch {
				seq++
				some = append(some, notebook.Message{Seq: seq, Original: seq, Subject: fmt.Sprintf("ext.note.t%d.0.0", seq%10), Data: []byte(`{}`)})
			}
			if p.apply(ctx, some) != nil {
				return
			}
		}
	}()
	for seq := uint64(0); seq < pendingEvents; {
		seq = <-applied
	}
	select {
	case <-applied:
		t.Error("there was no room for it")
	case <-time.After(20 * time.Millisecond): // it waits, whoever reads
	}
	p.View("t1", func(*notebook.Thread) {})
	require.EqualValues(t, pendingEvents, p.Seen())
	cancel()
	<-ended
}

// created is a thread's first event, at a sequence.
func created(t testing.TB, seq uint64) notebook.Message {
	thread := fmt.Sprintf("t%d", seq)
	body, err := event.Marshal(event.Event{ID: fmt.Sprintf("e%d", seq), Time: time.Unix(1, 0), Thread: thread, Cause: "asked", Data: event.ThreadCreated{Question: "Why?"}})
	if err != nil {
		t.Error(err)
	}
	return notebook.Message{Seq: seq, Original: seq, Subject: "thread.created." + thread + ".0.0", Data: body}
}
