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

	entries, err = board.Read(t.Context(), "t1")
	require.NoError(t, err)
	require.Equal(t, []Entry{{"r1", "distill", waiting}, {"1", "brief", running}}, entries)
}

func TestWritesAreRareExceptWhenTheStateChanges(t *testing.T) {
	t.Parallel()
	board, c, _ := setup(t)
	text := func() string {
		entries, err := board.Read(t.Context(), "t1")
		require.NoError(t, err)
		require.Len(t, entries, 1)
		return entries[0].Text
	}
	write := func(state, text string) {
		board.Write(t.Context(), "t1", "r1", "distill", State{State: state, Text: text})
	}
	write(Running, "1")
	write(Running, "2")
	require.Equal(t, "1", text(), "too soon")
	c.advance(every)
	write(Running, "3")
	require.Equal(t, "3", text())
	write(Waiting, "4")
	require.Equal(t, "4", text(), "another state")

	c.advance(forget)
	board.Write(t.Context(), "t2", "r1", "distill", State{State: Running})
	require.Len(t, board.last, 1, "old times are forgotten")
}

func TestWithoutABusNoStepFailsOrWaits(t *testing.T) {
	t.Parallel()
	board, c, server := setup(t)
	board.Write(t.Context(), "bad thread", "", "", State{})
	require.False(t, c.now().Before(board.resume), "a bad name is no reason to pause")

	server.Shutdown()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for range 1000 {
		board.Write(ctx, "t1", "r1", "distill", State{State: Running})
		c.advance(time.Millisecond)
	}
	require.NoError(t, ctx.Err(), "only the first may take its half second")
	require.True(t, c.now().Before(board.resume))
	c.advance(respite)
	require.True(t, board.due("t1.r1.distill", Running), "then it is tried again")
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
