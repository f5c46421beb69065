package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
)

func TestAThreadIsStuckWhenItsNextStepIsDueAndNothingIsHeard(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	thread := notebook.NewThread("t")
	seq := uint64(0)
	apply := func(entity string, n int, data event.Data) {
		seq++
		thread.Evolve(event.Event{ID: entity, Time: at, Thread: "t", Entity: entity, N: n, Data: data, Seq: seq})
	}
	apply("0", 0, event.ThreadCreated{Question: "Why?"})
	require.False(t, isStuck(thread, at.Add(time.Hour)), "it waits for a person")
	apply("r", 0, event.RunRequested{Cycle: 1, CycleSize: 1})
	require.False(t, isStuck(thread, at.Add(time.Hour)), "it may wait for the provider as long as it takes")
	apply("r", 1, event.AttemptStarted{})
	apply("r", 0, event.RunCompleted{Attempt: 1})
	require.False(t, isStuck(thread, at.Add(stuckAfter-time.Second)))
	require.True(t, isStuck(thread, at.Add(stuckAfter+time.Second)))
}
