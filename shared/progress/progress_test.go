package progress

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/embedded"
)

type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func setup(t *testing.T) (*Board, *clock, *embedded.Server) {
	t.Helper()
	server, _, js := bustest.Start(t)
	c := &clock{t: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	board, err := Open(t.Context(), js, c.now)
	require.NoError(t, err)
	return board, c, server
}

func TestStepsOfAThreadAreRead(t *testing.T) {
	t.Parallel()
	board, c, _ := setup(t)
	entries, err := board.Read(t.Context(), "t1")
	require.NoError(t, err)
	require.Empty(t, entries)

	waiting := State{State: Waiting, Since: c.now(), Text: "for the model"}
	running := State{State: Running, Since: c.now(), Text: "chunk 1 of 3", Engine: "ollama"}
	board.Write(t.Context(), "t1", "r1", "distill", waiting)
	board.Write(t.Context(), "t1", "1", "brief", running)
	board.Write(t.Context(), "t11", "r1", "distill", running)

	require.Equal(t, []Entry{{"r1", "distill", waiting}, {"1", "brief", running}}, readUntil(t, board, "t1", func(entries []Entry) bool { return len(entries) == 2 }))
}

func TestWritesAreRareExceptWhenTheStateChanges(t *testing.T) {
	t.Parallel()
	board, c, _ := setup(t)
	write := func(state, text string) {
		board.Write(t.Context(), "t1", "r1", "distill", State{State: state, Text: text})
	}
	// shows waits until the board has a text, and wants it to be the n-th that was written.
	shows := func(text string, n uint64) {
		require.Equal(t, text, readUntil(t, board, "t1", func(entries []Entry) bool { return len(entries) == 1 && entries[0].Text == text })[0].Text)
		entry, err := board.bucket.Get(t.Context(), "t1.r1.distill")
		require.NoError(t, err)
		require.Equal(t, n, entry.Revision())
	}
	write(Running, "1")
	write(Running, "2") // too soon
	c.advance(every)
	write(Running, "3")
	shows("3", 2)
	write(Waiting, "4") // another state
	shows("4", 3)

	c.advance(forget)
	board.Write(t.Context(), "t2", "r1", "distill", State{State: Running})
	require.Len(t, board.last, 1, "old times are forgotten")
}

func TestWhatIsOverOrCannotStandInAKeyIsLeftOut(t *testing.T) {
	t.Parallel()
	board, _, _ := setup(t)
	for _, names := range [][3]string{{"bad thread", "r1", "distill"}, {"t1", "", "distill"}, {"t1", "r1", ">"}, {"t1", "r1.x", "distill"}} {
		board.Write(t.Context(), names[0], names[1], names[2], State{State: Running})
	}
	over, end := context.WithCancel(t.Context())
	end()
	board.Write(over, "t1", "r1", "distill", State{State: Running})
	require.Empty(t, board.last)
	board.Write(t.Context(), "t1", "r1", "distill", State{State: Running})
	readUntil(t, board, "t1", func(entries []Entry) bool { return len(entries) == 1 })
	status, err := board.bucket.Status(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, status.Values())
}

func TestWithoutABusNothingIsWritten(t *testing.T) {
	t.Parallel()
	board, _, server := setup(t)
	server.Shutdown()
	require.Eventually(t, func() bool { return !board.nc.IsConnected() }, bustest.Patience, 10*time.Millisecond)
	board.Write(t.Context(), "t1", "r1", "distill", State{State: Running})
	require.Empty(t, board.last, "it is due as soon as the bus is back")
	buffered, err := board.nc.Buffered()
	if err == nil {
		require.Zero(t, buffered, "and does not come late")
	}
}

// readUntil returns the entries of a thread once they are as they should be: a write waits for nothing.
func readUntil(t *testing.T, board *Board, thread string, right func([]Entry) bool) (entries []Entry) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		entries, err = board.Read(t.Context(), thread)
		return err == nil && right(entries)
	}, bustest.Patience, 10*time.Millisecond)
	return entries
}

func TestWhatAnotherVersionWroteIsLeftOut(t *testing.T) {
	t.Parallel()
	board, _, _ := setup(t)
	for key, value := range map[string]string{"t1.a.b.c": "{}", "t1.a.b": "nonsense"} {
		_, err := board.bucket.Put(t.Context(), key, []byte(value))
		require.NoError(t, err)
	}
	entries, err := board.Read(t.Context(), "t1")
	require.NoError(t, err)
	require.Empty(t, entries)
}

func FuzzParse(f *testing.F) {
	f.Add("t.r.s", []byte(`{"state":"running","since":"2026-01-02T03:04:05Z"}`))
	f.Add("t", []byte("x"))
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		if entry, ok := parse(key, value); !ok && entry.Entity == "" && entry.Stage == "" && entry.State != (State{}) {
			t.Fatal("a state without a step")
		}
	})
}
