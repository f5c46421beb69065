package lost

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/config/testenv"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service/servicetest"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// fold makes a notebook of events, with sequences 1, 2, 3.
func fold(t *testing.T, events ...event.Event) *notebook.Notebook {
	t.Helper()
	n := notebook.NewNotebook()
	for i, e := range events {
		e.ID, e.Thread, e.Type = string(rune('a'+i)), "t", event.TypeOf(e.Data)
		body, err := event.Marshal(e)
		require.NoError(t, err)
		_, ok := n.Apply(notebook.Message{Subject: e.Subject(), Data: body, Seq: uint64(i + 1)})
		require.True(t, ok)
	}
	return n
}

func TestAStepIsLostWhenItsMessageIsDoneAndItIsNot(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	later := now.Add(time.Minute)
	created := event.Event{Entity: "0", Data: event.ThreadCreated{Question: "q", Settings: servicetest.Settings()}}
	requested := func(provider string) event.Event {
		return event.Event{Entity: "r", Run: "r", Data: event.RunRequested{Provider: provider, Mode: event.Fast, Cycle: 1, CycleSize: 1, RunKind: event.KindManual, Cost: 250}}
	}
	started := event.Event{Entity: "r", Run: "r", N: 1, Data: event.AttemptStarted{}}
	failed := event.Event{Entity: "r", Run: "r", N: 1, Data: event.AttemptFailed{Code: "stall", RetryAt: &later}}
	completed := event.Event{Entity: "r", Run: "r", Data: event.RunCompleted{Attempt: 1, Cost: 250}}
	distilled := event.Event{Entity: "r", Run: "r", Data: event.FactsDistilled{}}
	judged := event.Event{Entity: "r", Run: "r", Data: event.ContradictionsFound{}}
	settled := event.Event{Entity: "1", Data: event.ThreadSettled{}}
	tabstack := requested(event.Tabstack)

	cases := map[string]struct {
		events  []event.Event
		durable string
		floor   uint64
		at      time.Time
		want    string
	}{
		"its message is on its way":         {events: []event.Event{created, tabstack}, durable: topology.RunsTabstack, floor: 1},
		"a run":                             {events: []event.Event{created, tabstack}, durable: topology.RunsTabstack, floor: 2, want: event.StageRun},
		"a run of a provider without queue": {events: []event.Event{created, requested(event.Brave)}, durable: topology.RunsTabstack, floor: 9},
		"another worker's floor":            {events: []event.Event{created, tabstack}, durable: topology.Distil, floor: 9},
		"a run that waits for its time":     {events: []event.Event{created, tabstack, started, failed}, durable: topology.RunsTabstack, floor: 9},
		"a run whose time has come":         {events: []event.Event{created, tabstack, started, failed}, durable: topology.RunsTabstack, floor: 9, at: later, want: event.StageRun},
		"distill":                           {events: []event.Event{created, tabstack, started, completed}, durable: topology.Distil, floor: 4, want: event.StageDistill},
		"judge":                             {events: []event.Event{created, tabstack, started, completed, distilled}, durable: topology.Judge, floor: 5, want: event.StageJudge},
		"a closing":                         {events: []event.Event{created, tabstack, started, completed, distilled, judged}, durable: topology.Brief, floor: 6, want: event.StageClose},
		"autopilot":                         {events: []event.Event{created, tabstack, started, completed, distilled, judged, settled}, durable: topology.Autopilot, floor: 7, want: event.StageAutopilot},
	}
	for name, c := range cases {
		at := c.at
		if at.IsZero() {
			at = now
		}
		steps := Steps(fold(t, c.events...), map[string]uint64{c.durable: c.floor}, at)
		if c.want == "" {
			require.Empty(t, steps, name)
			continue
		}
		require.Len(t, steps, 1, name)
		require.Equal(t, c.want, steps[0].Stage, name)
		require.Equal(t, "t", steps[0].Thread, name)
	}
}

func TestWhatLiesBelowAFloorIsInTheTailBeforeItIsJudged(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	s := bus.Open("sweeper")
	servicetest.Run(t, s)
	servicetest.Append(t, s, "t", notebook.CreateThread{Question: "q", Settings: servicetest.Settings()})
	servicetest.Append(t, s, "t", notebook.RequestRun{Run: "r", Access: servicetest.Access})
	steps, err := Find(t.Context(), s.JS, s.Tail, time.Now())
	require.NoError(t, err)
	require.Empty(t, steps)
	consumer, err := s.JS.Consumer(t.Context(), topology.Notebook, topology.RunsTabstack)
	require.NoError(t, err)
	m, err := consumer.Next()
	require.NoError(t, err)
	require.NoError(t, m.DoubleAck(t.Context()))
	steps, err = Find(t.Context(), s.JS, s.Tail, time.Now())
	require.NoError(t, err)
	require.Len(t, steps, 1)
	require.Equal(t, event.StageRun, steps[0].Stage)
}
