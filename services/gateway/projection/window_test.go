package projection

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
)

// alone opens a projection without a bus: what is applied is given by hand.
func alone(t testing.TB) *Projection {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notebook.db")
	p := &Projection{
		path: path, log: zerolog.Nop(), notebook: notebook.NewNotebook(), changed: make(chan struct{}), unfetched: make(chan struct{}, 1),
		prepared: statements{}, projector: projector.New(nil, projector.Config{}), newest: newWindow(0), pending: newPending(0), slow: time.Hour,
	}
	t.Cleanup(func() { require.NoError(t, p.closeFiles()) })
	var err error
	p.writer, err = openWriter(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, p.empty(t.Context()))
	p.readers, err = openReaders(t.Context(), path, 4)
	require.NoError(t, err)
	return p
}

// applied applies messages and writes them.
func applied(t testing.TB, p *Projection, messages []notebook.Message) {
	t.Helper()
	require.NoError(t, p.apply(t.Context(), messages))
	require.NoError(t, p.writeUntilDone(t.Context(), p.pending.takeAll()))
}

// story makes messages as they may stand in a stream.
type story struct {
	r    *rand.Rand
	last uint64
	told []notebook.Message
}

// next is some messages, at sequences of which now and then one was purged.
func (s *story) next(t testing.TB) (some []notebook.Message) {
	for range 1 + s.r.IntN(6) {
		s.last += uint64(1 + s.r.IntN(5)/4)
		m := s.message(t, fmt.Sprintf("t%d", s.r.IntN(3)))
		m.Seq, m.Time = s.last, time.Unix(int64(s.last), 0)
		if m.Original = s.last; s.r.IntN(4) == 0 { // restored
			m.Original += 100
		}
		some = append(some, m)
	}
	s.told = append(s.told, some...)
	return some
}

func (s *story) message(t testing.TB, thread string) notebook.Message {
	id := fmt.Sprintf("e%d", s.last)
	ours := func(d event.Data) notebook.Message {
		e := event.Event{ID: id, Time: time.Unix(1, 0), Thread: thread, Entity: "0", Data: d}
		body, err := event.Marshal(e)
		require.NoError(t, err)
		return notebook.Message{Subject: e.Subject(), Data: body}
	}
	message := func(subject, format string, args ...any) notebook.Message {
		return notebook.Message{Subject: fmt.Sprintf(subject, thread), Data: fmt.Appendf([]byte{}, format, args...)}
	}
	switch s.r.IntN(12) {
	case 0, 1:
		return ours(event.ThreadCreated{Question: "Why?", Title: "Why?"})
	case 2:
		return ours(event.ThreadDeleted{Spent: 1})
	case 3:
		if len(s.told) > 0 { // the same event once more
			return s.told[s.r.IntN(len(s.told))]
		}
		fallthrough
	case 4:
		return message("run.exploded.%s.r1.0", `{"id":"%s","type":"factstream.run.exploded.v1","thread":"%s","n":0,"data":{}}`, id, thread)
	case 5:
		return message("thread.deleted.%s.0.0", `{"id":"%s","type":"factstream.thread.deleted.v99","thread":"%s","n":0,"data":{}}`, id, thread)
	case 6: // applying it fails beyond the parser
		return message("run.requested.%s.r2.0", `{"id":"%s","type":"factstream.run.requested.v1","thread":"%s","run":"r2","n":0,"data":{"cycle":0}}`, id, thread)
	case 7:
		return message("run.failed.%s.r1.0", "\xff\xfe")
	case 8:
		return message("ext.note.%s.0.0", "")
	case 9:
		return message("ext.note.%s.0.0", `{"type":"mine\u0000\n","large":"%s"}`, strings.Repeat("x", s.r.IntN(3000)))
	}
	return message("ext.note.%s.0.0", `{"id":"%s","thread":"another"}`, id)
}

// Whatever comes, and wherever the window begins, it says what the file says.
func TestTheWindowSaysWhatTheFileSays(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			p := alone(t)
			s := &story{r: rand.New(rand.NewPCG(seed, 11))}
			narrow := func() { p.newest.most, p.newest.mostBytes = 1+s.r.IntN(30), 500+s.r.IntN(6000) }
			narrow()
			here, elsewhere, purged := 0, 0, false
			for step := range 40 {
				if step%10 == 9 { // opened again
					p.newest = newWindow(s.last)
					narrow()
				}
				some := s.next(t)
				applied(t, p, some)
				w := p.newest
				require.LessOrEqual(t, len(w.events), w.most)
				require.LessOrEqual(t, w.bytes, w.mostBytes)
				size := 0
				for _, e := range w.events {
					size += e.size()
				}
				require.Equal(t, size, w.bytes)
				purged = purged || slices.ContainsFunc(some, func(m notebook.Message) bool { return strings.HasPrefix(m.Subject, "thread.deleted") })
				for after := range s.last + 2 {
					for _, thread := range []string{"", "t0", "t1", "t2", "nobody"} {
						for _, limit := range []int{-1, 0, 1, 7} {
							events, upTo, inWindow := p.newest.after(thread, after, limit)
							if !inWindow {
								require.Less(t, after, w.behind)
								elsewhere++
								continue
							}
							here++
							require.Equal(t, s.last, upTo)
							want, _, err := p.eventsInFile(t.Context(), thread, after, limit)
							require.NoError(t, err)
							require.Equal(t, want, events, "after %d of %q, %d", after, thread, limit)
							events, _, err = p.Events(t.Context(), thread, after, limit)
							require.NoError(t, err)
							require.Equal(t, want, events)
						}
					}
				}
			}
			require.Positive(t, here)
			require.Positive(t, elsewhere)
			require.True(t, purged)
		})
	}
}

// watch reads as GET /events does, until it has seen a sequence, and gives what it saw. at is told how far it is, whenever it waits for more.
func watch(t testing.TB, p *Projection, thread string, page int, until uint64, at func(uint64)) (seen []RawEvent, inMemory int) {
	for last := uint64(0); last < until; {
		changed := p.Changed()
		if _, _, here := p.newest.after(thread, last, page); here {
			inMemory++
		}
		events, upTo, err := p.Events(t.Context(), thread, last, page)
		if err != nil {
			t.Error(err)
			return seen, inMemory
		}
		seen = append(seen, events...)
		if len(events) > 0 {
			last = events[len(events)-1].Seq
		}
		if len(events) == page {
			continue
		}
		if last = max(last, upTo); last < until {
			at(last)
			<-changed
		}
	}
	return seen, inMemory
}

// Who begins far behind goes on from the file and then from memory, while more comes: without a gap, and nothing twice.
func TestAWatcherGoesOnFromTheFileToMemory(t *testing.T) {
	t.Parallel()
	p := alone(t)
	p.newest.most = 20
	const before, all = 300, 900
	next := uint64(0)
	more := func(n int) {
		var some []notebook.Message
		for range n {
			next++
			some = append(some, notebook.Message{Seq: next, Original: next, Time: time.Unix(1, 0), Subject: fmt.Sprintf("ext.note.t%d.0.0", next%3), Data: []byte(`{}`)})
		}
		require.NoError(t, p.apply(t.Context(), some))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		if err := p.follow(ctx); err != nil {
			t.Error(err)
		}
	})
	defer writing.Wait()
	defer cancel()
	for next < before {
		more(3)
	}
	var watchers, ready sync.WaitGroup
	for i, thread := range []string{"", "t0", "t1", "", "quiet", "t2"} {
		ready.Add(1)
		watchers.Go(func() {
			once := sync.OnceFunc(ready.Done)
			caughtUp := func(at uint64) {
				if at == all-1 {
					once()
				}
			}
			seen, inMemory := watch(t, p, thread, 7+i, all, caughtUp)
			var want, got []uint64
			for seq := uint64(1); seq <= all; seq++ {
				if thread == "" || thread == fmt.Sprintf("t%d", seq%3) {
					want = append(want, seq)
				}
			}
			for _, e := range seen {
				got = append(got, e.Seq)
			}
			if !slices.Equal(want, got) || inMemory == 0 {
				t.Errorf("%q saw %v, %d times from memory", thread, got, inMemory)
			}
		})
	}
	for next < all-1 {
		more(int(min(1+next%3, all-1-next)))
	}
	ready.Wait() // what comes now is in memory for all
	more(1)
	watchers.Wait()
}

func TestAnEventLargerThanTheWindowIsStillTold(t *testing.T) {
	t.Parallel()
	p := alone(t)
	apply := func(seq uint64, body string) {
		applied(t, p, []notebook.Message{{Seq: seq, Original: seq, Subject: "ext.note.t0.0.0", Data: []byte(body)}})
	}
	apply(1, `{}`)
	apply(2, `{"x":"`+strings.Repeat("x", windowBytes)+`"}`)
	require.Empty(t, p.newest.events)
	require.Zero(t, p.newest.bytes)
	apply(3, `{}`)
	for after, want := range map[uint64][]uint64{0: {1, 2, 3}, 1: {2, 3}, 2: {3}, 3: nil} {
		events, _, err := p.Events(t.Context(), "t0", after, 10)
		require.NoError(t, err)
		var got []uint64
		for _, e := range events {
			got = append(got, e.Seq)
		}
		require.Equal(t, want, got)
	}
}

// Why an event is bad follows from the event, and not from how many were bad before it.
func TestEveryBadEventSaysWhy(t *testing.T) {
	t.Parallel()
	p := alone(t)
	const all = 300 // more than a notebook remembers
	for seq := uint64(1); seq <= all; seq++ {
		applied(t, p, []notebook.Message{{Seq: seq, Original: seq, Subject: "run.exploded.t1.r1.0",
			Data: fmt.Appendf(nil, `{"id":"e%d","type":"factstream.run.exploded.v1","thread":"t1","run":"r1","n":0,"data":{}}`, seq)}})
	}
	var problems, why int
	require.NoError(t, p.readers.QueryRowContext(t.Context(),
		`SELECT count(*), count(DISTINCT problem) FROM events WHERE problem LIKE '%does not know%'`).Scan(&problems, &why))
	require.Equal(t, all, problems)
	require.Equal(t, 1, why)
}
