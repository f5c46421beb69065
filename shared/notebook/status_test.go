package notebook

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/text"
)

// end is a story and what is shown after it.
type end struct {
	name   string
	set    func(*event.Settings)
	story  func(*story)
	status string
	code   string
	text   string
}

func (e end) check(t *testing.T) event.Reason {
	t.Helper()
	set := e.set
	if set == nil {
		set = func(*event.Settings) {}
	}
	s := tell(t, set)
	e.story(s)
	status, reason := s.thread.Status()
	require.Equal(t, [2]string{e.status, e.code}, [2]string{status, reason.Code}, reason.Text)
	require.Contains(t, reason.Text, e.text)
	if status != Running && s.thread.Unsettled() == nil {
		require.Zero(t, s.thread.Ledger.Held())
	}
	s.startIsTold(t)
	return reason
}

// startIsTold checks that Start is advised if and only if it would be accepted.
func (w *world) startIsTold(t testing.TB) {
	t.Helper()
	status, reason := w.thread.Status()
	if status == Running {
		_, refused := Decide(w.thread, Start{Access: Access{Live: true, Replay: true}}, w.now)
		w.refusalIsTold(t, refused)
		return
	}
	advised := strings.Contains(reason.Text, "ress Start")
	_, refused := Decide(w.thread, Start{Access: Access{Live: true, Replay: true}}, w.now)
	require.Equal(t, refused == nil, advised, "%s %s: %s\nStart: %v", status, reason.Code, reason.Text, refused)
	w.refusalIsTold(t, refused)
}

// refusalIsTold checks that what is shown beside a reason says of Start what deciding on it says.
func (w *world) refusalIsTold(t testing.TB, refused error) {
	t.Helper()
	shown := w.thread.StartRefused()
	require.Equal(t, refused == nil, shown == nil, "shown: %v\nStart: %v", shown, refused)
	var refusal *Refusal
	if !errors.As(refused, &refusal) || refusal.Code != "nothing-to-do" {
		return
	}
	require.Equal(t, refusal.Fields["reason"], shown.Code)
	require.Contains(t, refusal.Text, shown.Text)
}

// since is an end, and words that would no longer be true.
type since struct {
	end
	not string
}

func (s *story) configure(changes event.ThreadConfigured) { s.must(Configure{Changes: changes}) }

func (s *story) budget(credits int) { s.configure(event.ThreadConfigured{Budget: &credits}) }

func (s *story) archive() {
	yes := true
	s.must(Configure{Archived: &yes})
}

// failedCall is a call that fails for good, and what follows in the thread.
func (s *story) failedCall(code string) {
	s.callFails(code, false)
	s.settle()
	s.auto()
}

// ask is one run asked for by a person, in any status; the root question when no other is given.
func (s *story) ask(q string) { require.NoError(s.t, s.request(q)) }

func (s *story) askFails(q, code string) {
	s.ask(q)
	s.failedCall(code)
}

func (s *story) askCancelled(q string) {
	s.ask(q)
	s.begin()
	s.must(CancelRun{Run: s.last().ID})
	s.settle()
	s.auto()
}

func (s *story) askEndsWell(q string, followUps ...string) {
	s.ask(q)
	s.cycle(followUps...)
}

// askStageFails is a run asked for by a person whose report comes to nothing in a stage of a run.
func (s *story) askStageFails(q, stage string) {
	s.ask(q)
	s.complete()
	if stage == event.StageJudge {
		s.distil("A.")
	}
	s.fail(stage)
	s.settle()
	s.auto()
}

// askStepFails is a run asked for by a person after which one step of its closing fails.
func (s *story) askStepFails(q, failing string) {
	s.ask(q)
	s.complete()
	s.distil("A.")
	s.judge()
	s.closeWithout(failing, "And what then?")
	s.auto()
}

func (s *story) closeWithout(failing string, questions ...string) {
	var proposed []event.ProposedQuestion
	for _, q := range questions {
		proposed = append(proposed, event.ProposedQuestion{Text: q, Score: 0.5, Depth: 1})
	}
	for _, step := range s.thread.CycleOf(s.last().Requested.Cycle).Newest().Remaining() {
		switch {
		case step == failing:
			s.fail(step)
		case step == event.StageQuestions:
			s.must(ProposeQuestions{ClosingStep: s.at(), Proposed: event.QuestionsProposed{Questions: proposed}})
		case step == event.StageBrief:
			s.must(WriteBrief{ClosingStep: s.at()})
		case step == event.StageCoverage:
			s.must(MapCoverage{ClosingStep: s.at()})
		}
	}
	s.settle()
}

func (s *story) dismiss(q string) { s.must(DismissQuestion{ID: s.thread.question(q).ID}) }

func (s *story) retry(stage string) { s.must(RetryStage{Stage: stage, Entity: s.last().ID}) }

// Stories that lead to a standing reason, which what happens after them may make untrue.

func providerFailed(s *story) { s.start(); s.failedCall("auth_error") }

func distillFailed(s *story) {
	s.start()
	s.complete()
	s.fail(event.StageDistill)
	s.settle()
	s.auto()
}

func autopilotOff(s *story) { s.askEndsWell("", "And how?") } // once, never started

func keyWentAway(s *story) {
	s.start()
	s.access = Access{Replay: true}
	s.cycle("And how?")
	s.access = Access{Live: true}
}

func readyAgain(s *story) { s.start(); s.cycle(); s.must(AskQuestion{ID: "q1", Text: "What else?"}) }

func off(x *event.Settings) { x.Auto = false }

func poor(x *event.Settings) { x.Budget = 500 } // two fast runs

// whatHappenedSince is every standing reason with every later event that changes what is true of it.
func whatHappenedSince() []since {
	cases := []since{
		// provider
		{end{"provider, and a run ended well", nil, func(s *story) { providerFailed(s); s.askEndsWell("", "And how?") },
			Idle, ReasonReady, "The provider had failed; a run since then ended well. Press Start to go on."}, "auth_error"},
		{end{"provider, and a run ended well that leaves nothing to ask", nil, func(s *story) { providerFailed(s); s.askEndsWell("") },
			Idle, ReasonNoQuestions, "ended well. There is no open question left."}, "auth_error"},
		{end{"provider, and a run ended well that leaves no budget", poor, func(s *story) { providerFailed(s); s.askEndsWell("", "And how?"); s.budget(300) },
			Idle, ReasonBudget, "ended well. The budget does not allow the next run: 250 credits spent, 0 reserved, 250 for the run, 300 in the budget."}, "auth_error"},
		{end{"provider, and a watch's run ended well", nil, func(s *story) {
			providerFailed(s)
			s.append("watch", Draft{Entity: "w", Run: "w", Data: event.RunRequested{
				Question: RootQuestionID("t"), Text: "Why?", Provider: event.Tabstack, Mode: event.Fast, Cycle: 2, CycleSize: 1, RunKind: event.KindWatch, Cost: 250,
			}})
			s.complete()
			s.distil("A.")
			s.judge()
			s.append("digest", Draft{Entity: "2", Data: event.StageFailed{Stage: event.StageDigest}})
			s.close("And how?")
		}, Idle, ReasonReady, "a run since then ended well"}, "auth_error"},
		{end{"provider, and a run failed otherwise", nil, func(s *story) { providerFailed(s); s.askFails("", "payment_required") },
			Idle, ReasonProvider, `The run "Why?" failed (payment_required): It did not work out. If the account was topped up since, the next run shows it. Press Start to ask again.`}, "auth_error"},
		{end{"provider, and a run failed after one that ended well", nil, func(s *story) { providerFailed(s); s.askEndsWell("", "And how?"); s.askFails("And how?", "stall") },
			Idle, ReasonProvider, `The run "And how?" failed (stall)`}, "auth_error"},
		{end{"provider, and a run ended well after one that failed", nil, func(s *story) { providerFailed(s); s.askFails("", "stall"); s.askEndsWell("", "And how?") },
			Idle, ReasonReady, "a run since then ended well"}, "stall"},
		{end{"provider, and a run was cancelled", nil, func(s *story) { providerFailed(s); s.askCancelled("") }, Idle, ReasonProvider, "auth_error"}, "cancelled"},
		{end{"provider, and a report was not read", nil, func(s *story) { providerFailed(s); s.askStageFails("", event.StageDistill) },
			Idle, ReasonStage, "The stage distill failed: The model is away. Its report is kept; retry the stage."}, "auth_error"},
		{end{"provider, and the budget is too low", nil, func(s *story) { providerFailed(s); s.budget(200) },
			Idle, ReasonProvider, "(auth_error): It did not work out. If another key was saved since, the next run shows whether it works. The budget does not allow the next run: 0 credits spent, 0 reserved, 250 for the run, 200 in the budget."}, "Press"},
		{end{"provider, and its question was dismissed", nil, func(s *story) { providerFailed(s); s.dismiss("Why?") },
			Idle, ReasonProvider, "(auth_error): It did not work out. If another key was saved since, the next run shows whether it works. There is no open question left."}, "Press"},
		{end{"provider, and another question is asked instead", nil, func(s *story) {
			providerFailed(s)
			s.dismiss("Why?")
			s.must(AskQuestion{ID: "q1", Text: "What else?"})
		}, Idle, ReasonProvider, "(auth_error): It did not work out. If another key was saved since, the next run shows whether it works. Press Start to go on."}, "again"},
		{end{"provider, and archived", nil, func(s *story) { providerFailed(s); s.archive() }, Idle, ReasonProvider, "take it out of the archive"}, "Press"},
		{end{"provider, and started again", nil, func(s *story) { providerFailed(s); s.start(); s.cycle() }, Complete, ReasonNoQuestions, "There is no open question left."}, "auth_error"},
		{end{"provider, and Start found nothing to do", nil, func(s *story) {
			providerFailed(s)
			s.dismiss("Why?")
			_ = s.do(Start{Access: s.access})
			s.must(AskQuestion{ID: "q1", Text: "What else?"})
		}, Idle, ReasonReady, `The next question is "What else?". Press Start to go on.`}, "auth_error"},

		// auto_off
		{end{"autopilot off, and a run was cancelled", nil, func(s *story) { autopilotOff(s); s.askCancelled("And how?") },
			Idle, ReasonProvider, `The run "And how?" failed (cancelled): You cancelled the run while its call was under way.`}, ""},
		{end{"autopilot off, and a run failed before another was cancelled", nil, func(s *story) { autopilotOff(s); s.askFails("And how?", "stall"); s.askCancelled("And how?") },
			Idle, ReasonProvider, "(stall)"}, "cancelled"},
		{end{"autopilot off, and a run failed before another ended well", nil, func(s *story) { autopilotOff(s); s.askFails("", "stall"); s.askEndsWell("") },
			Idle, ReasonAutoOff, "Autopilot is off"}, "stall"},
		{end{"autopilot off, and of two runs the first failed, so that the other was withdrawn", nil, func(s *story) {
			autopilotOff(s)
			s.ask("And how?")
			first := s.last().ID
			s.ask("What else?")
			s.must(StartAttempt{Run: first, Max: 3})
			s.must(FailAttempt{Run: first, N: 1, Code: "auth_error", Detail: "No."})
			for cycle := 2; cycle <= 3; cycle++ {
				s.must(Settle{ClosingStep{Cycle: cycle}})
			}
		}, Idle, ReasonProvider, `The run "And how?" failed (auth_error): No.`}, "Autopilot"},
		{end{"autopilot off, and of two runs the first failed after the other had ended well", nil, func(s *story) {
			autopilotOff(s)
			s.ask("And how?")
			first := s.last().ID
			s.callFails("stall", true)
			s.askEndsWell("What else?")
			s.must(CancelRun{Run: first})
			s.must(Settle{ClosingStep{Cycle: 2}})
		}, Idle, ReasonProvider, `The run "And how?" failed (cancelled)`}, "Autopilot"},
		{end{"autopilot off, and a report was not read", nil, func(s *story) { autopilotOff(s); s.askStageFails("", event.StageDistill) },
			Idle, ReasonStage, "The stage distill failed: The model is away. Its report is kept; retry the stage, or press Start to go on without it."}, "Autopilot"},
		{end{"autopilot off, and facts were not judged", nil, func(s *story) { autopilotOff(s); s.askStageFails("", event.StageJudge) },
			Idle, ReasonStage, "The stage judge failed: The model is away."}, "Autopilot"},
		{end{"autopilot off, and follow-ups failed with none pending", nil, func(s *story) { autopilotOff(s); s.dismiss("And how?"); s.askStepFails("", event.StageQuestions) },
			Idle, ReasonStage, "The stage questions failed: The model is away. What was found is kept; retry the stage. There is no open question left."}, "Press"},
		{end{"autopilot off, and follow-ups failed with one pending", nil, func(s *story) { autopilotOff(s); s.askStepFails("", event.StageQuestions) },
			Idle, ReasonAutoOff, "Autopilot is off"}, "questions failed"},
		{end{"autopilot off, and a brief failed, which stops nothing", nil, func(s *story) { autopilotOff(s); s.askStepFails("", event.StageBrief) },
			Idle, ReasonAutoOff, "Autopilot is off"}, "brief failed"},
		{end{"autopilot off, and a stage failed that was made up for", nil, func(s *story) {
			autopilotOff(s)
			s.askStageFails("", event.StageDistill)
			s.retry(event.StageDistill)
			s.distil("B.")
			s.judge()
			s.close()
		}, Idle, ReasonAutoOff, "Autopilot is off"}, "distill"},
		{end{"autopilot off, and a stage failed before a cycle without failure", nil, func(s *story) {
			autopilotOff(s)
			s.askStageFails("", event.StageDistill)
			s.askEndsWell("")
		}, Idle, ReasonAutoOff, "Autopilot is off"}, "distill"},
		{end{"autopilot off, and a stage failed before a run that failed", nil, func(s *story) { autopilotOff(s); s.askStageFails("", event.StageDistill); s.askFails("", "stall") },
			Idle, ReasonProvider, "(stall)"}, ""},
		{end{"autopilot off, and set on", off, func(s *story) { autopilotOff(s); on := true; s.configure(event.ThreadConfigured{Auto: &on}) },
			Idle, ReasonAutoOff, "Autopilot is off until it is started: nothing more is asked until you say so. Press Start to go on."}, ""},
		{end{"autopilot on but never started, and set off", nil, func(s *story) { autopilotOff(s); no := false; s.configure(event.ThreadConfigured{Auto: &no}) },
			Idle, ReasonAutoOff, "Autopilot is off: nothing more is asked until you say so. Press Start to go on."}, "until it is started"},
		{end{"autopilot off, and the budget is too low", nil, func(s *story) { autopilotOff(s); s.budget(300) },
			Idle, ReasonAutoOff, "until you say so. The budget does not allow the next run: 250 credits spent, 0 reserved, 250 for the run, 300 in the budget."}, "Press"},
		{end{"autopilot off, and the depth is too low", nil, func(s *story) { autopilotOff(s); none := 0; s.configure(event.ThreadConfigured{Depth: &none}) },
			Idle, ReasonAutoOff, "until you say so. All 1 open questions lie deeper than the limit of 0."}, "Press"},
		{end{"autopilot off, and no question left", nil, func(s *story) { autopilotOff(s); s.dismiss("And how?") },
			Idle, ReasonAutoOff, "until you say so. There is no open question left."}, "Press"},
		{end{"autopilot off, and archived", nil, func(s *story) { autopilotOff(s); s.archive() }, Idle, ReasonAutoOff, "take it out of the archive"}, "Press"},

		{end{"autopilot off, and what was answered failed when it was asked again", nil, func(s *story) { s.askEndsWell(""); s.askFails("", "auth_error") },
			Idle, ReasonProvider, "(auth_error): It did not work out. If another key was saved since, the next run shows whether it works. No question is open besides: ask it again, or put one of your own."}, "Press"},
		{end{"autopilot off, what was answered failed when it was asked again, and the budget is too low", nil, func(s *story) { s.askEndsWell(""); s.askFails("", "auth_error"); s.budget(300) },
			Idle, ReasonProvider, "There is no open question left."}, "again"},

		// ready
		{end{"ready, and the budget is too low", nil, func(s *story) { readyAgain(s); s.budget(249) },
			Idle, ReasonBudget, "250 credits spent, 0 reserved, 250 for the run, 249 in the budget. Raise the budget to go on."}, "Press"},
		{end{"ready, the budget was too low and was raised", nil, func(s *story) { readyAgain(s); s.budget(249); s.budget(500) },
			Idle, ReasonReady, `The next question is "What else?". Press Start to go on.`}, ""},
		{end{"ready, and the dearer mode is over the budget", poor, func(s *story) {
			readyAgain(s)
			mode := event.Balanced
			s.configure(event.ThreadConfigured{Mode: &mode})
		},
			Idle, ReasonBudget, "250 credits spent, 0 reserved, 350 for the run, 500 in the budget."}, "Press"},
		{end{"ready, and the question was dismissed", nil, func(s *story) { readyAgain(s); s.dismiss("What else?") },
			Idle, ReasonNoQuestions, "There is no open question left."}, "something"},
		{end{"ready, and the depth was lowered again", func(x *event.Settings) { x.Depth = 0 }, func(s *story) {
			s.start()
			s.cycle("And how?")
			for _, depth := range []int{1, 0} {
				s.configure(event.ThreadConfigured{Depth: &depth})
			}
		}, Idle, ReasonDepth, "limit of 0"}, "something"},
		{end{"ready, and the answer budget was lowered again", func(x *event.Settings) { x.Provider, x.Mode, x.AnswerBudget = event.Brave, "", new(int) }, func(s *story) {
			_ = s.do(Start{Access: s.access})
			for _, answers := range []int{1, 0} {
				s.configure(event.ThreadConfigured{AnswerBudget: &answers})
			}
		}, Idle, ReasonAnswerBudget, "limit of 0 answers"}, "something"},
		{end{"ready, and the question was dismissed for another", nil, func(s *story) {
			readyAgain(s)
			s.must(AskQuestion{ID: "q2", Text: "Und warum?"})
			s.dismiss("What else?")
		}, Idle, ReasonReady, `The next question is "Und warum?". Press Start to go on.`}, "What else"},
		{end{"ready, and archived", nil, func(s *story) { readyAgain(s); s.archive() }, Idle, ReasonReady, "take it out of the archive"}, "Press"},
		{end{"ready, and a run failed", nil, func(s *story) { readyAgain(s); s.askFails("What else?", "auth_error") },
			Idle, ReasonProvider, `The run "What else?" failed (auth_error): It did not work out. If another key was saved since, the next run shows whether it works. Press Start to ask again.`}, "something"},
		{end{"ready, and a run ended well", nil, func(s *story) { readyAgain(s); s.askEndsWell("") },
			Idle, ReasonReady, `The next question is "What else?". Press Start to go on.`}, "something"},
		{end{"ready since nothing failed, and then a brief failed", nil, func(s *story) {
			distillFailed(s)
			s.retry(event.StageDistill)
			s.distil("B.")
			s.judge()
			s.close("And how?")
			s.askStepFails("", event.StageBrief)
		}, Idle, ReasonReady, `The next question is "And how?".`}, "without a failure"},

		// stage
		{end{"a stage, and its retry failed otherwise", nil, func(s *story) {
			distillFailed(s)
			s.must(AskQuestion{ID: "q1", Text: "What else?"})
			s.retry(event.StageDistill)
			s.must(FailStage{Stage: event.StageDistill, Entity: s.last().ID, N: s.last().Gen, Class: event.ClassCrashLoop, Reason: "It fell over"})
			s.settle()
		}, Idle, ReasonStage, "The stage distill failed: It fell over. Its report is kept; retry the stage, or press Start to go on without it."}, "away"},
		{end{"a stage, made up for, and a brief failed in the same closing", nil, func(s *story) {
			distillFailed(s)
			s.retry(event.StageDistill)
			s.distil("B.")
			s.judge()
			s.closeWithout(event.StageBrief, "And how?")
		}, Idle, ReasonReady, `The next question is "And how?". Press Start to go on.`}, "distill"},
		{end{"a stage, made up for, a brief failed, and nothing is left to ask", nil, func(s *story) {
			distillFailed(s)
			s.retry(event.StageDistill)
			s.distil("B.")
			s.judge()
			s.closeWithout(event.StageBrief)
		}, Idle, ReasonNoQuestions, "There is no open question left."}, "distill"},
		{end{"a stage, and its report was deleted", nil, func(s *story) {
			distillFailed(s)
			s.must(DeleteRun{Run: s.last().ID})
			s.must(AskQuestion{ID: "q1", Text: "What else?"})
		}, Idle, ReasonStage, "Its report was deleted. Press Start to go on without it."}, "retry"},
		{end{"a stage that needs no report, and its report was deleted", nil, func(s *story) { s.askStageFails("", event.StageJudge); s.must(DeleteRun{Run: s.last().ID}) },
			Idle, ReasonStage, "The stage judge failed: The model is away. What was found is kept; retry the stage. There is no open question left."}, "report"},
		{end{"a stage, and the budget is too low", nil, func(s *story) { distillFailed(s); s.must(AskQuestion{ID: "q1", Text: "What else?"}); s.budget(250) },
			Idle, ReasonStage, "Its report is kept; retry the stage. The budget does not allow the next run: 250 credits spent"}, "Press"},
		{end{"a stage of the last question", nil, distillFailed, Idle, ReasonStage, "Its report is kept; retry the stage. There is no open question left."}, "Press"},
		{end{"a stage, and a run failed", nil, func(s *story) { distillFailed(s); s.askFails("", "auth_error") }, Idle, ReasonProvider, "(auth_error)"}, "without a failure"},
		{end{"a stage, and a run was cancelled", nil, func(s *story) { distillFailed(s); s.askCancelled("") }, Idle, ReasonStage, "The stage distill failed"}, "without a failure"},
		{end{"a stage, and a run ended well", nil, func(s *story) { distillFailed(s); s.askEndsWell("", "And how?") },
			Idle, ReasonReady, "The newest cycle was settled without a failure. Press Start to go on."}, "distill"},
		{end{"autopilot fell over, and the budget is too low", nil, func(s *story) {
			s.start()
			s.complete()
			s.distil()
			s.judge()
			s.close("And how?")
			s.must(FailStage{Stage: event.StageAutopilot, Entity: "1", Class: event.ClassCrashLoop, Reason: "it fell over"})
			s.budget(250)
		}, Idle, ReasonStage, "Autopilot could not decide what comes next: it fell over. The budget does not allow"}, "Press"},

		// no_key
		{end{"no key, as it was then", nil, keyWentAway, Idle, ReasonNoKey, "When the next question was due there was no usable key for tabstack."}, "There is no"},
		{end{"no key, and a run ended well", nil, func(s *story) { keyWentAway(s); s.askEndsWell("") },
			Idle, ReasonReady, "The key was missing; a run since then ended well. Press Start to go on."}, "save one"},
		{end{"no key, and a run failed", nil, func(s *story) { keyWentAway(s); s.askFails("", "auth_error") }, Idle, ReasonProvider, "(auth_error)"}, "no usable key"},
		{end{"no key, and the budget is too low", nil, func(s *story) { keyWentAway(s); s.budget(300) },
			Idle, ReasonNoKey, "save one in the settings. The budget does not allow the next run"}, "ress Start"},

		// complete
		{end{"complete for the budget, which was changed by too little and then the question dismissed", func(x *event.Settings) { x.Budget = 300 }, func(s *story) {
			s.start()
			s.cycle("And how?")
			s.budget(400)
			s.dismiss("And how?")
		}, Complete, ReasonNoQuestions, "There is no open question left."}, "budget"},
		{end{"complete for the depth, and a question was dismissed", func(x *event.Settings) { x.Depth = 0 }, func(s *story) {
			s.start()
			s.cycle("And how?", "And where?")
			s.dismiss("And how?")
		}, Complete, ReasonDepth, "All 1 open questions lie deeper"}, "All 2"},
		{end{"complete for the depth, which was raised over the budget", func(x *event.Settings) { x.Depth, x.Budget = 0, 300 }, func(s *story) {
			s.start()
			s.cycle("And how?")
			depth := 1
			s.configure(event.ThreadConfigured{Depth: &depth})
		}, Complete, ReasonBudget, "300 in the budget"}, "deeper"},
		{end{"complete, and its question failed when it was asked again", nil, func(s *story) { s.start(); s.cycle(); s.askFails("", "auth_error") },
			Complete, ReasonNoQuestions, `The run "Why?" failed (auth_error): It did not work out. If another key was saved since, the next run shows whether it works. No question is open besides: ask it again, or put one of your own.`}, "Press"},
		{end{"complete, and a question failed that is pending since", nil, func(s *story) { s.start(); s.cycle(); s.askFails("What else?", "auth_error") },
			Idle, ReasonProvider, `The run "What else?" failed (auth_error): It did not work out. If another key was saved since, the next run shows whether it works. Press Start to ask again.`}, "something"},
		{end{"complete, and a report was not read", nil, func(s *story) { s.start(); s.cycle(); s.askStageFails("", event.StageDistill) },
			Complete, ReasonNoQuestions, "The stage distill failed: The model is away. Its report is kept; retry the stage. There is no open question left."}, "Press"},
		{end{"complete, and a run failed before another ended well", nil, func(s *story) { s.start(); s.cycle(); s.askFails("", "auth_error"); s.askEndsWell("") },
			Complete, ReasonNoQuestions, "There is no open question left."}, "auth_error"},

		// paused
		{end{"paused, and the call under way failed", nil, func(s *story) { s.start(); s.begin(); s.must(Pause{}); s.must(failNow(s, false)); s.settle() },
			Paused, ReasonPaused, `is kept. Since then the run "Why?" failed (stall): Nothing came. Press Start to go on.`}, ""},
		{end{"paused, and the call under way failed so that it would have been tried again", nil, func(s *story) { s.start(); s.begin(); s.must(Pause{}); s.must(failNow(s, true)); s.settle() },
			Paused, ReasonPaused, `Since then the run "Why?" failed (stall): Nothing came. Press Start to go on.`}, ""},
		{end{"paused between two tries", nil, func(s *story) {
			s.start()
			s.callFails("stall", true)
			s.now = s.now.Add(time.Second)
			s.must(Pause{})
			s.settle()
		}, Paused, ReasonPaused, "Press Start to go on."}, "Since then"},
		{end{"paused, and a run was asked for", nil, func(s *story) { s.start(); s.must(Pause{}); s.settle(); s.ask("") },
			Paused, ReasonPaused, "You paused this thread. A run that you asked for is under way (cycle 2). Press Start to go on."}, "call"},
		{end{"paused, and that run failed", nil, func(s *story) { s.start(); s.must(Pause{}); s.settle(); s.askFails("", "auth_error") },
			Paused, ReasonPaused, `Since then the run "Why?" failed (auth_error)`}, "under way ("},
		{end{"paused, and its report was not read", nil, func(s *story) { s.start(); s.must(Pause{}); s.settle(); s.askStageFails("", event.StageDistill) },
			Paused, ReasonPaused, "Since then the stage distill failed: The model is away. There is no open question left."}, "Press"},
		{end{"paused, and the budget is too low", nil, func(s *story) { s.start(); s.must(Pause{}); s.settle(); s.budget(0) },
			Paused, ReasonPaused, "You paused this thread. The budget does not allow the next run"}, "Press"},
		{end{"paused, and archived", nil, func(s *story) { s.start(); s.must(Pause{}); s.settle(); s.archive() }, Paused, ReasonPaused, "take it out of the archive"}, "Press"},

		{end{"paused with a call under way", nil, func(s *story) { s.start(); s.begin(); s.must(Pause{}) },
			Paused, ReasonPaused, "You paused this thread. A call that was under way finishes and is kept. Press Start to go on."}, ""},
		{end{"paused with a call under way that ended well", nil, func(s *story) {
			s.start()
			s.begin()
			s.must(Pause{})
			s.endCall()
			s.distil()
			s.judge()
			s.close("And how?")
		},
			Paused, ReasonPaused, "A call that was under way finishes and is kept. Press Start to go on."}, "Since"},
		{end{"paused with a call under way that was cancelled", nil, func(s *story) {
			s.start()
			s.begin()
			s.must(Pause{})
			s.must(CancelRun{Run: s.last().ID})
			s.settle()
		}, Paused, ReasonPaused, `is kept. Since then the run "Why?" failed (cancelled)`}, ""},
		{end{"paused before the first call", nil, func(s *story) { s.start(); s.must(Pause{}); s.settle() },
			Paused, ReasonPaused, "You paused this thread. Press Start to go on."}, "call"},
		{end{"paused while a report is read", nil, func(s *story) {
			s.start()
			s.complete()
			s.must(Pause{})
			s.distil()
			s.judge()
			s.close("And how?")
		},
			Paused, ReasonPaused, "You paused this thread. Press Start to go on."}, "call"},
		{end{"paused when it was complete", nil, func(s *story) { s.start(); s.cycle(); s.must(Pause{}) },
			Paused, ReasonPaused, "You paused this thread. There is no open question left."}, "call"},
		{end{"paused when it waited", nil, func(s *story) { autopilotOff(s); s.must(Pause{}) },
			Paused, ReasonPaused, "You paused this thread. Press Start to go on."}, "call"},
		{end{"paused on another's word when it waited", nil, func(s *story) { autopilotOff(s); s.must(Pause{Why: "It was restored from a backup with --paused."}) },
			Paused, ReasonPaused, "It was restored from a backup with --paused. Press Start to go on."}, "call"},

		// new
		{end{"new, and the budget is too low", nil, func(s *story) { s.budget(200) }, New, ReasonNew, "Nothing has been asked yet. The budget does not allow"}, "Ask now"},
		{end{"new, and archived", nil, func(s *story) { s.archive() }, New, ReasonNew, "take it out of the archive"}, "Ask now"},
		{end{"new, and its first run has just failed", nil, func(s *story) { s.ask(""); s.callFails("auth_error", false); s.settle() }, New, ReasonProvider, "(auth_error)"}, "Nothing"},
		{end{"new, and its first cycle was just settled", nil, func(s *story) { s.ask(""); s.complete(); s.distil(); s.judge(); s.close() }, New, ReasonAutoOff, "Autopilot is off"}, "Nothing"},
	}
	for _, code := range []string{ // every way in which the provider fails for good
		"auth_error", "payment_required", "bad_request", "rate_limited", "server_error", "task_error", "truncated", "stall", "protocol_error", "empty",
	} {
		cured := map[string]string{"auth_error": "If another key was saved since, the next run shows whether it works. ", "payment_required": "If the account was topped up since, the next run shows it. "}[code]
		cases = append(cases, since{end{"autopilot off, and a run failed: " + code, nil, func(s *story) { autopilotOff(s); s.askFails("And how?", code) },
			Idle, ReasonProvider, `The run "And how?" failed (` + code + "): It did not work out. " + cured + "Press Start to ask again."}, "Autopilot"})
	}
	return cases
}

// endCall ends the call under way well.
func (s *story) endCall() {
	s.must(CompleteRun{Run: s.last().ID, Completed: event.RunCompleted{Attempt: len(s.last().Attempts), Cost: s.last().Requested.Cost}})
}

// failNow ends the call under way.
func failNow(s *story, retryable bool) FailAttempt {
	return FailAttempt{Run: s.last().ID, N: len(s.last().Attempts), Code: "stall", Detail: "Nothing came", Retryable: retryable, Delays: []time.Duration{time.Second}}
}

// Threads with random fates: at every moment Start is advised if and only if it goes on, a failure that nothing has made up for is named, and what is
// shown changes nothing of what is decided on.
func TestWhatIsShownIsTrueAtEveryMoment(t *testing.T) {
	t.Parallel()
	named := 0
	for seed := range uint64(min(fates, 1500)) {
		w := newWorld(t, seed)
		w.batch = func() {
			if !w.thread.Exists() {
				return
			}
			w.startIsTold(t)
			standing, reason := w.thread.Standing, w.thread.Reason
			status, shown := w.thread.Status()
			require.NotEmpty(t, shown.Text)
			require.Equal(t, reason, w.thread.Reason)
			require.Equal(t, standing, w.thread.Standing)
			if r := w.thread.newestEnd(); status != Running && r != nil && r.Status == "failed" && r.EndSeq > w.thread.heard.seq && r.Failure.Code != event.CodeCancelled {
				require.Contains(t, shown.Text, "failed ("+r.Failure.Code+")", "seed %d: %s %+v\n%s", seed, status, shown, w.history())
				named++
			}
		}
		w.live(20 + int(seed%120))
	}
	require.Greater(t, named, 100)
}

// newestEnd is the run that ended last, by an answer or a failure.
func (t *Thread) newestEnd() (newest *Run) {
	for _, r := range t.Runs {
		if (r.Status == "failed" || r.Status == "completed") && (newest == nil || r.EndSeq > newest.EndSeq) {
			newest = r
		}
	}
	return newest
}

func BenchmarkStatus(b *testing.B) {
	w := &world{t: b, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), thread: NewThread("t"), pending: map[string][]uint64{}, settled: map[string]int{}, ids: map[string]bool{}, access: Access{Live: true}}
	w.must(CreateThread{Question: "Why?", Settings: event.Settings{Provider: event.Tabstack, Mode: event.Fast, Depth: 3, Batch: 1, Engine: "auto", Budget: 1_000_000}})
	s := &story{w}
	for i := range 200 { // runs that follow one another, each with two follow-ups
		s.ask("Why " + strconv.Itoa(i) + "?")
		s.cycle("And how "+text.ID(strconv.Itoa(i))+"?", "And where "+strconv.Itoa(i)+"?")
	}
	b.ReportAllocs()
	for b.Loop() {
		s.thread.Status()
	}
}

// What the event says, which readers of the stream take as it is.
func TestAReasonInAnEventIsTrueByItself(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		happens func(s *story)
		want    string
	}{
		"paused before anything":   {func(s *story) { s.must(Pause{}) }, "You paused this thread. Press Start to go on."},
		"paused with a run asked":  {func(s *story) { s.start(); s.must(Pause{}) }, "You paused this thread. Press Start to go on."},
		"paused in a call":         {func(s *story) { s.start(); s.begin(); s.must(Pause{}) }, "You paused this thread. A call that was under way finishes and is kept. Press Start to go on."},
		"paused between two tries": {func(s *story) { s.start(); s.callFails("stall", true); s.must(Pause{}) }, "You paused this thread. Press Start to go on."},
		"paused behind a cycle":    {func(s *story) { s.start(); s.cycle(); s.must(Pause{Why: "It waits for you."}) }, "It waits for you. Press Start to go on."},
		"the follow-ups failed": {func(s *story) {
			s.start()
			s.complete()
			s.distil("A.")
			s.judge()
			s.closeWithout(event.StageQuestions)
			s.auto()
		}, "The stage questions failed: The model is away. What was found is kept; retry the stage, or put a question of your own."},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tell(t)
			c.happens(s)
			require.Equal(t, c.want, s.thread.Reason.Text)
		})
	}
}

// "0 of its 1 runs have ended" was once to be read.
func TestACycleUnderWaySaysHowFarItIsInWordsThatFitItsSize(t *testing.T) {
	t.Parallel()
	ends := func(s *story, runs ...string) {
		for _, id := range runs {
			s.must(StartAttempt{Run: id, Max: 3})
			s.must(CompleteRun{Run: id, Completed: event.RunCompleted{Attempt: 1, Cost: s.thread.Runs[id].Requested.Cost}})
		}
	}
	two := func(s *story) []string { // the runs of the second cycle
		s.start()
		s.cycle("And how?", "And where?")
		return s.thread.Cycles[1].Runs
	}
	for name, c := range map[string]struct {
		happens func(s *story)
		want    string
	}{
		"one, and it is not started":  {func(s *story) { s.start() }, "Cycle 1 is under way: its run has not ended yet."},
		"one, and its call goes on":   {func(s *story) { s.start(); s.begin() }, "Cycle 1 is under way: its run has not ended yet."},
		"one, and it has ended":       {func(s *story) { s.start(); s.complete() }, "Cycle 1 is under way: its run has ended, and its steps go on."},
		"one, and it failed":          {func(s *story) { s.start(); s.callFails("stall", false) }, "Cycle 1 is under way: its run has ended, and its steps go on."},
		"two, and none is started":    {func(s *story) { two(s) }, "Cycle 2 is under way: 0 of its 2 runs have ended."},
		"two, and one of them ended":  {func(s *story) { ends(s, two(s)[:1]...) }, "Cycle 2 is under way: 1 of its 2 runs has ended."},
		"two, and both of them ended": {func(s *story) { ends(s, two(s)...) }, "Cycle 2 is under way: its 2 runs have ended, and their steps go on."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tell(t, func(x *event.Settings) { x.Batch = 2 })
			c.happens(s)
			status, reason := s.thread.Status()
			require.Equal(t, []string{Running, ReasonCycle, c.want}, []string{status, reason.Code, reason.Text})
		})
	}
}
