package research

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/fixtures/standin"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service"
	"github.com/factstream/factstream/shared/service/servicetest"
)

func newProvider(t *testing.T, key string) *standin.Server {
	t.Helper()
	return standin.Start(t, standin.Options{Key: key})
}

// swallow acknowledges messages of a durable without doing anything, until the test ends.
func swallow(t *testing.T, s *service.Service, durable string, count int) {
	t.Helper()
	consumer, err := s.JS.Consumer(withinWait(t), topology.Notebook, durable)
	require.NoError(t, err)
	for range count {
		m, err := consumer.Next(jetstream.FetchMaxWait(servicetest.Wait))
		require.NoError(t, err)
		require.NoError(t, m.DoubleAck(withinWait(t)))
	}
}

func TestALostRunIsAskedForAgainAndDone(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	other := idle(t, bus)
	thread := newThread(t, other)
	run := request(t, other, thread, servicetest.Access)
	swallow(t, other, topology.RunsTabstack, 1)
	r, _ := start(t, bus, Options{Sweep: 50 * time.Millisecond})
	require.Equal(t, "completed", awaitRun(t, r.Service, thread, run).Status)
	requireLedger(t, r.Service, thread, 250, 0)
}

func TestALostRunFailsWhenItWasAskedForThreeTimes(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	r := open(t, bus, Options{})
	servicetest.Run(t, r.Service)
	thread := newThread(t, r.Service)
	run := request(t, r.Service, thread, servicetest.Access)
	for i := range notebook.MaxLost {
		swallow(t, r.Service, topology.RunsTabstack, 1)
		require.NoError(t, r.retryLost(withinWait(t)))
		require.Equal(t, i+1, runOf(r.Service, thread, run).Lost[event.StageRun])
		require.Equal(t, 1.0, testutil.ToFloat64(r.stuck))
		require.NoError(t, r.retryLost(withinWait(t)), "its message is on its way again")
		require.Equal(t, i+1, runOf(r.Service, thread, run).Lost[event.StageRun])
		require.Equal(t, 0.0, testutil.ToFloat64(r.stuck))
	}
	swallow(t, r.Service, topology.RunsTabstack, 1)
	require.NoError(t, r.retryLost(withinWait(t)))
	require.Equal(t, event.CodeLost, awaitRun(t, r.Service, thread, run).Failure.Code)
	requireLedger(t, r.Service, thread, 0, 0)
}

func TestEveryLostStepIsAskedForAgain(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	r, _ := start(t, bus, Options{Sweep: time.Hour})
	thread := newThread(t, r.Service)
	run := request(t, r.Service, thread, servicetest.Access)
	awaitRun(t, r.Service, thread, run)
	retried := func(stage string) {
		t.Helper()
		require.NoError(t, r.retryLost(withinWait(t)))
		last, err := r.JS.Stream(withinWait(t), topology.Notebook)
		require.NoError(t, err)
		m, err := last.GetMsg(withinWait(t), stateOf(r.Service, thread).Seq)
		require.NoError(t, err)
		e, err := event.Parse(m.Subject, m.Data)
		require.NoError(t, err)
		require.Equal(t, event.StageRetried{Stage: stage, By: notebook.BySweeper, Reason: "its message was lost"}, e.Data)
	}
	swallow(t, r.Service, topology.Distil, 1)
	retried(event.StageDistill)
	servicetest.Append(t, r.Service, thread, notebook.Distil{Run: run, N: runOf(r.Service, thread, run).Gen, Engine: "extractive"})
	swallow(t, r.Service, topology.Judge, 2) // the retry of distill is not its own
	retried(event.StageJudge)
	servicetest.Append(t, r.Service, thread, notebook.Judge{Run: run, N: runOf(r.Service, thread, run).Gen, Engine: "extractive"})
	swallow(t, r.Service, topology.Brief, 3)
	retried(event.StageClose)
}

func TestWhatTheModelMissedIsDoneWhenItAnswersAgain(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	var answers atomic.Bool
	var asked atomic.Int64
	r := open(t, bus, Options{ModelAnswers: func(context.Context) error {
		asked.Add(1)
		if answers.Load() {
			return nil
		}
		return errors.New("connection refused")
	}})
	servicetest.Run(t, r.Service, r.Parts()...)
	thread := newThread(t, r.Service, func(s *event.Settings) { s.Engine = "ollama" })
	run := request(t, r.Service, thread, servicetest.Access)
	awaitRun(t, r.Service, thread, run)
	require.NoError(t, r.retryAway(withinWait(t)))
	require.Zero(t, asked.Load(), "the model is asked only when something waits for it")

	servicetest.Append(t, r.Service, thread, notebook.FailStage{Stage: event.StageDistill, Entity: run, Class: model.ClassAway, Reason: "Ollama does not answer"})
	servicetest.Append(t, r.Service, thread, notebook.Settle{ClosingStep: notebook.ClosingStep{Cycle: 1}})
	require.NoError(t, r.retryAway(withinWait(t)))
	require.Equal(t, int64(1), asked.Load())
	require.False(t, runOf(r.Service, thread, run).Open)
	answers.Store(true)
	require.NoError(t, r.retryAway(withinWait(t)))
	require.True(t, runOf(r.Service, thread, run).Open)
	require.Equal(t, event.StageDistill, func() string { got := runOf(r.Service, thread, run); return got.Awaits() }())
	require.NoError(t, r.retryAway(withinWait(t)))
	require.Equal(t, int64(2), asked.Load(), "what is at work does not wait")
}

func TestWhatWaitsForTheModel(t *testing.T) {
	t.Parallel()
	failed := func(class string) map[string]notebook.Failed {
		return map[string]notebook.Failed{event.StageBrief: {Class: class, Seq: 20}}
	}
	closing := func(c notebook.Closing) *notebook.Closing { c.Settled = true; return &c }
	done := map[string]notebook.Outcome{event.StageBrief: {}}
	cases := map[string]struct {
		cycles [][]*notebook.Closing
		engine string
		want   int
	}{
		"nothing failed":                    {cycles: [][]*notebook.Closing{{closing(notebook.Closing{Seq: 10, Done: done})}}},
		"a brief":                           {cycles: [][]*notebook.Closing{{closing(notebook.Closing{Seq: 10, Failed: failed(model.ClassAway)})}}, want: 1},
		"a model that was not installed":    {cycles: [][]*notebook.Closing{{closing(notebook.Closing{Seq: 10, Failed: failed(model.ClassMissing)})}}, want: 1},
		"another failure":                   {cycles: [][]*notebook.Closing{{closing(notebook.Closing{Seq: 10, Failed: failed(model.ClassBad)})}}},
		"made up for in the cycle":          {cycles: [][]*notebook.Closing{{closing(notebook.Closing{Seq: 10, Failed: failed(model.ClassAway)}), closing(notebook.Closing{Seq: 30, Done: done})}}},
		"made by a later cycle":             {cycles: [][]*notebook.Closing{{closing(notebook.Closing{Seq: 10, Failed: failed(model.ClassAway)})}, {closing(notebook.Closing{Seq: 30, Done: done})}}},
		"failed after one that was made":    {cycles: [][]*notebook.Closing{{closing(notebook.Closing{Seq: 5, Done: done})}, {closing(notebook.Closing{Seq: 10, Failed: failed(model.ClassAway)})}}, want: 1},
		"an engine that is always there":    {engine: "extractive", cycles: [][]*notebook.Closing{{closing(notebook.Closing{Seq: 10, Failed: failed(model.ClassAway)})}}},
		"a cycle that is not settled (yet)": {cycles: [][]*notebook.Closing{{{Seq: 10, Failed: failed(model.ClassAway)}}}},
	}
	for name, c := range cases {
		th := notebook.NewThread("t")
		th.Standing, th.Settings.Engine = notebook.Idle, "ollama"
		if c.engine != "" {
			th.Settings.Engine = c.engine
		}
		for i, closings := range c.cycles {
			th.Cycles = append(th.Cycles, &notebook.Cycle{ID: i + 1, Closings: closings})
		}
		require.Len(t, waitingForModel(th), c.want, name)
	}
}
