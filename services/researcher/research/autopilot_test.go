package research

import (
	"encoding/json"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service"
	"github.com/factstream/factstream/shared/service/servicetest"
	"github.com/factstream/factstream/shared/settings"
)

// chain does for a run what the other services would: facts, verdicts, and the closing with a question to ask next.
func chain(t *testing.T, s *service.Service, thread, run string, ask string) {
	t.Helper()
	awaitRun(t, s, thread, run)
	servicetest.Append(t, s, thread, notebook.Distil{Run: run, Engine: "extractive"})
	servicetest.Append(t, s, thread, notebook.Judge{Run: run, Engine: "extractive"})
	cycle := runOf(s, thread, run).Requested.Cycle
	step := notebook.ClosingStep{Cycle: cycle}
	proposed := event.QuestionsProposed{Engine: "extractive"}
	if ask != "" {
		proposed.Questions = []event.ProposedQuestion{{Text: ask, Score: .5, Depth: cycle, ParentRun: run}}
	}
	servicetest.Append(t, s, thread, notebook.ProposeQuestions{ClosingStep: step, Proposed: proposed})
	servicetest.Append(t, s, thread, notebook.WriteBrief{ClosingStep: step, Brief: event.BriefWritten{Engine: "extractive"}})
	servicetest.Append(t, s, thread, notebook.MapCoverage{ClosingStep: step, Coverage: event.CoverageMapped{Engine: "extractive"}})
	servicetest.Append(t, s, thread, notebook.Settle{ClosingStep: step})
}

func TestAutopilotAsksUntilTheBudgetIsSpentAndSaysSo(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	r, _ := start(t, bus, Options{})
	thread := newThread(t, r.Service, func(s *event.Settings) { s.Auto, s.Budget, s.Depth = true, 800, 10 })
	servicetest.Append(t, r.Service, thread, notebook.Start{Access: servicetest.Access})
	for cycle := 1; cycle <= 3; cycle++ {
		servicetest.Until(t, r.Service, thread, func(th *notebook.Thread) bool { return len(th.RunIDs) == cycle })
		chain(t, r.Service, thread, stateOf(r.Service, thread).RunIDs[cycle-1], "And what of "+strconv.Itoa(cycle)+"?")
	}
	servicetest.Until(t, r.Service, thread, func(th *notebook.Thread) bool { return th.Standing == notebook.Complete })
	th := stateOf(r.Service, thread)
	require.Equal(t, notebook.ReasonBudget, th.Reason.Code)
	require.Contains(t, th.Reason.Text, "750 credits spent")
	requireLedger(t, r.Service, thread, 750, 0)
}

func TestAThreadThatRanOnceIsParked(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	r, _ := start(t, bus, Options{})
	thread := newThread(t, r.Service)
	chain(t, r.Service, thread, request(t, r.Service, thread, servicetest.Access), "And then?")
	servicetest.Until(t, r.Service, thread, func(th *notebook.Thread) bool { return th.Standing == notebook.Idle })
	require.Equal(t, notebook.ReasonAutoOff, stateOf(r.Service, thread).Reason.Code)
}

func TestALiveThreadWhoseKeyIsGoneIsParked(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	other := idle(t, bus)
	thread := newThread(t, other, func(s *event.Settings) { s.Auto = true })
	servicetest.Append(t, other, thread, notebook.Start{Access: liveAccess})
	run := stateOf(other, thread).RunIDs[0]
	servicetest.Append(t, other, thread, notebook.StartAttempt{Run: run, Max: 3})
	servicetest.Append(t, other, thread, notebook.CompleteRun{Run: run, Completed: event.RunCompleted{Attempt: 1, Cost: 250, Report: event.Blob{Text: "It is so."}}})
	start(t, bus, Options{})
	chain(t, other, thread, run, "And then?")
	servicetest.Until(t, other, thread, func(th *notebook.Thread) bool { return th.Standing == notebook.Idle })
	require.Equal(t, notebook.ReasonNoKey, stateOf(other, thread).Reason.Code)
}

// A key that cannot be read is said, and is neither "no key" nor a reason to play a recorded stream.
func TestAKeyThatCannotBeReadIsAnErrorOfItsOwn(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	change := func(c *config.Config) { c.Tabstack.BaseURL = "http://127.0.0.1:9" }
	r := open(t, bus, Options{}, change)
	var patch settings.Patch
	require.NoError(t, json.Unmarshal([]byte(`{"tabstack_key":"saved-key"}`), &patch))
	require.NoError(t, r.Settings.Save(t.Context(), patch))
	require.NoError(t, os.Remove(r.Config.KeyFile))

	servicetest.Run(t, r.Service, r.Parts()...)
	thread := newThread(t, r.Service, func(s *event.Settings) { s.Auto = true })
	servicetest.Append(t, r.Service, thread, notebook.Start{Access: liveAccess})
	run := awaitRun(t, r.Service, thread, stateOf(r.Service, thread).RunIDs[0])
	require.Equal(t, codeKeyUnreadable, run.Failure.Code)
	require.Contains(t, run.Failure.Detail, "bring that key file back")
	require.NotContains(t, run.Failure.Detail, "saved-key")

	servicetest.Append(t, r.Service, thread, notebook.Settle{ClosingStep: notebook.ClosingStep{Cycle: 1}})
	servicetest.Until(t, r.Service, thread, func(th *notebook.Thread) bool { return th.Standing == notebook.Idle })
	reason := stateOf(r.Service, thread).Reason
	require.Equal(t, notebook.ReasonStage, reason.Code)
	require.Contains(t, reason.Text, "bring that key file back")
}

func TestTheKeySavedAMomentAgoIsUsedByTheNextRun(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	provider := newProvider(t, "second-key")
	r, _ := start(t, bus, Options{}, live(provider))
	var patch settings.Patch
	require.NoError(t, json.Unmarshal([]byte(`{"tabstack_key":"second-key"}`), &patch))
	require.NoError(t, r.Settings.Save(t.Context(), patch))
	thread := newThread(t, r.Service)
	require.Equal(t, "completed", awaitRun(t, r.Service, thread, request(t, r.Service, thread, liveAccess)).Status)
}
