package notebook

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/text"
)

// story drives one thread by hand, without queues: what a worker would do is called by name.
type story struct {
	*world
}

func tell(t *testing.T, change ...func(*event.Settings)) *story {
	w := &world{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), thread: NewThread("t"), pending: map[string][]uint64{}, settled: map[string]int{}, ids: map[string]bool{}, access: Access{Live: true}}
	s := event.Settings{Provider: event.Tabstack, Mode: event.Fast, Depth: 3, Batch: 1, Auto: true, Engine: "auto", Budget: 2000}
	for _, c := range change {
		c(&s)
	}
	w.must(CreateThread{Question: "Why?", Settings: s})
	return &story{w}
}

func (s *story) start()     { s.must(Start{Access: s.access}) }
func (s *story) last() *Run { return s.thread.Runs[s.thread.RunIDs[len(s.thread.RunIDs)-1]] }
func (s *story) begin() {
	s.must(StartAttempt{Run: s.last().ID, Max: 3, After: len(s.last().Attempts)})
}
func (s *story) request(q string) error {
	return s.do(RequestRun{Run: text.ID("r", strconv.Itoa(len(s.log))), Question: q, Access: s.access})
}

func (s *story) complete() {
	s.begin()
	s.must(CompleteRun{Run: s.last().ID, Completed: event.RunCompleted{Attempt: len(s.last().Attempts), Cost: s.last().Requested.Cost}})
}

func (s *story) callFails(code string, retryable bool) {
	s.begin()
	s.must(FailAttempt{Run: s.last().ID, N: len(s.last().Attempts), Code: code, Detail: "It did not work out.", Retryable: retryable, Delays: []time.Duration{time.Second, time.Minute}})
}

// byHand asks a question of a person while the run of the first cycle is under way, lets things happen to both, and settles what there is.
func (s *story) byHand(happens func(first, second string)) {
	s.start()
	s.begin()
	require.NoError(s.t, s.request("By hand?"))
	happens(s.thread.RunIDs[0], s.thread.RunIDs[1])
	for _, c := range s.thread.Cycles {
		for _, step := range c.Newest().Remaining() {
			s.must(FailStage{Stage: step, Entity: strconv.Itoa(c.ID), Class: event.ClassModelAway, Reason: "The model is away"})
		}
		s.must(Settle{ClosingStep{Cycle: c.ID}})
	}
	s.auto()
}

func (s *story) breaks(run string) {
	s.must(FailAttempt{Run: run, N: 1, Code: "task_error", Detail: "It did not work out."})
}

func (s *story) endsWell(run string) {
	s.must(StartAttempt{Run: run, Max: 3})
	s.must(CompleteRun{Run: run, Completed: event.RunCompleted{Attempt: 1, Cost: 250}})
	s.must(Distil{Run: run, Engine: "extractive"})
	s.must(Judge{Run: run, Engine: "extractive"})
}

func fact(statement string) event.Fact {
	print := text.Fingerprint(statement)
	return event.Fact{ID: FactID("t", print), Fingerprint: print, Statement: statement, Confidence: 0.9}
}

func (s *story) distil(facts ...string) {
	var list []event.Fact
	for _, f := range facts {
		list = append(list, fact(f))
	}
	s.must(Distil{Run: s.last().ID, N: s.last().Gen, Facts: list, Engine: "extractive"})
}

// distilled is the newest outcome of a distillation.
func (s *story) distilled() event.FactsDistilled {
	for _, e := range slices.Backward(s.log) {
		if d, ok := e.Data.(event.FactsDistilled); ok {
			return d
		}
	}
	return event.FactsDistilled{}
}

func (s *story) judge(verdicts ...event.Verdict) {
	s.must(Judge{Run: s.last().ID, N: s.last().Gen, Verdicts: verdicts, Engine: "extractive"})
}

func (s *story) at() ClosingStep {
	c := s.thread.CycleOf(s.last().Requested.Cycle)
	return ClosingStep{Cycle: c.ID, N: c.Newest().N}
}

func (s *story) entity() string { return strconv.Itoa(s.last().Requested.Cycle) }

func (s *story) close(questions ...string) {
	var proposed []event.ProposedQuestion
	for _, q := range questions {
		proposed = append(proposed, event.ProposedQuestion{Text: q, Score: 0.5, Depth: s.last().Requested.Depth + 1})
	}
	s.must(ProposeQuestions{ClosingStep: s.at(), Proposed: event.QuestionsProposed{Questions: proposed}})
	s.must(WriteBrief{ClosingStep: s.at()})
	s.must(MapCoverage{ClosingStep: s.at()})
	s.must(Settle{s.at()})
}

func (s *story) settle() { s.must(Settle{s.at()}) }
func (s *story) auto()   { s.must(Autopilot{Access: s.access, Trigger: s.thread.LastSettled}) }

func (s *story) fail(stage string) {
	entity, n := s.last().ID, s.last().Gen
	if stage != event.StageDistill && stage != event.StageJudge {
		entity, n = s.entity(), s.at().N
	}
	s.must(FailStage{Stage: stage, Entity: entity, N: n, Class: event.ClassModelAway, Reason: "The model is away"})
}

// cycle is one whole good cycle of autopilot.
func (s *story) cycle(questions ...string) {
	s.complete()
	s.distil("A fact of " + s.last().ID + ".")
	s.judge()
	s.close(questions...)
	s.auto()
}

// Every way in which a run, a stage or a cycle can end leads to one status, one code and a text that names it.
func TestStatusAfterEveryEnd(t *testing.T) {
	t.Parallel()
	cases := []end{
		{"nothing was asked", nil, func(*story) {}, New, ReasonNew, "Nothing has been asked"},
		{"started", nil, func(s *story) { s.start() }, Running, ReasonCycle, "Cycle 1"},
		{"one run asked for by a person", nil, func(s *story) { require.NoError(s.t, s.request("")) }, Running, ReasonManual, "cycle 1"},
		{"and settled, never started", nil, func(s *story) { _ = s.request(""); s.cycle() }, Idle, ReasonAutoOff, "Autopilot is off"},
		{"settled with a follow-up", nil, func(s *story) { s.start(); s.cycle("And how?") }, Running, ReasonCycle, "Cycle 2"},
		{"settled, autopilot off", func(x *event.Settings) { x.Auto = false }, func(s *story) { s.start(); s.cycle("And how?") }, Idle, ReasonAutoOff, "Autopilot is off"},
		{"no question left", nil, func(s *story) { s.start(); s.cycle() }, Complete, ReasonNoQuestions, "no open question"},
		{"nothing but repeats", nil, func(s *story) { s.start(); s.cycle("WHY? ") }, Complete, ReasonNoQuestions, "asked before"},
		{"too deep", func(x *event.Settings) { x.Depth = 0 }, func(s *story) { s.start(); s.cycle("And how?") }, Complete, ReasonDepth, "limit of 0"},
		{"no budget", func(x *event.Settings) { x.Budget = 300 }, func(s *story) { s.start(); s.cycle("And how?") }, Complete, ReasonBudget, "250 credits spent, 0 reserved, 250 for the run, 300 in the budget"},
		{"no answers left", func(x *event.Settings) { x.Provider, x.Mode, x.AnswerBudget = event.Brave, "", new(int) }, func(s *story) {
			_ = s.do(Start{Access: s.access})
		}, Complete, ReasonAnswerBudget, "limit of 0 answers"},
		{"the provider failed", nil, func(s *story) { s.start(); s.callFails("task_error", false); s.settle(); s.auto() }, Idle, ReasonProvider, "task_error"},
		{"the provider failed while a run by hand waited, which was withdrawn", nil, func(s *story) {
			s.byHand(func(first, _ string) { s.breaks(first) })
		}, Idle, ReasonProvider, "task_error"},
		{"a run was cancelled while one by hand waited", nil, func(s *story) {
			s.byHand(func(first, _ string) { s.must(CancelRun{Run: first}) })
		}, Idle, ReasonProvider, event.CodeCancelled},
		{"the provider failed after a run by hand had ended well", nil, func(s *story) {
			s.byHand(func(first, second string) { s.endsWell(second); s.breaks(first) })
		}, Idle, ReasonProvider, "task_error"},
		{"the provider failed and a run by hand ended well after it", nil, func(s *story) {
			s.byHand(func(first, second string) {
				s.must(StartAttempt{Run: second, Max: 3})
				s.breaks(first)
				s.endsWell(second)
			})
		}, Running, ReasonCycle, "Cycle 3"},
		{"started again after that, and what it asked was withdrawn", nil, func(s *story) {
			s.byHand(func(first, _ string) { s.breaks(first) })
			s.start()
			zero := 0
			s.must(Configure{Changes: event.ThreadConfigured{Budget: &zero}})
			s.settle()
			s.auto()
		}, Complete, ReasonBudget, "0 in the budget"},
		{"the provider failed between tries", nil, func(s *story) { s.start(); s.callFails("stall", true) }, Running, ReasonCycle, "Cycle 1"},
		{"the attempts are used up", nil, func(s *story) {
			s.start()
			for range 3 {
				s.now = s.now.Add(time.Hour)
				s.callFails("stall", true)
			}
			s.settle()
			s.auto()
		}, Idle, ReasonProvider, "stall"},
		{"lost three times", nil, func(s *story) {
			s.start()
			for range 4 {
				s.begin()
			}
			s.settle()
			s.auto()
		}, Idle, ReasonProvider, event.CodeAttemptsExhausted},
		{"cancelled", nil, func(s *story) {
			s.start()
			s.begin()
			s.must(CancelRun{Run: s.last().ID})
			s.settle()
			s.auto()
		}, Idle, ReasonProvider, "the provider may still bill"},
		{"crash loop of the call", nil, func(s *story) {
			s.start()
			s.must(FailRun{Run: s.last().ID, Code: event.CodeCrashLoop, Detail: "It fell over 20 times."})
			s.settle()
			s.auto()
		}, Idle, ReasonProvider, "crash_loop"},
		{"the key went away", nil, func(s *story) { s.start(); s.access = Access{Replay: true}; s.cycle("And how?") }, Idle, ReasonNoKey, "no usable key for tabstack"},
		{"distill failed", nil, func(s *story) { s.start(); s.complete(); s.fail(event.StageDistill); s.settle(); s.auto() }, Idle, ReasonStage, "distill failed: The model is away. Its report is kept"},
		{"judge failed", nil, func(s *story) {
			s.start()
			s.complete()
			s.distil("A.")
			s.fail(event.StageJudge)
			s.settle()
			s.auto()
		}, Idle, ReasonStage, "judge failed"},
		{"questions failed and none is pending", nil, func(s *story) {
			s.start()
			s.complete()
			s.distil("A.")
			s.judge()
			s.fail(event.StageQuestions)
			s.must(WriteBrief{ClosingStep: s.at()})
			s.must(MapCoverage{ClosingStep: s.at()})
			s.settle()
			s.auto()
		}, Idle, ReasonStage, "questions failed"},
		{"questions failed and a person's is pending", nil, func(s *story) {
			s.start()
			s.must(AskQuestion{ID: "q1", Text: "What else?"})
			s.complete()
			s.distil("A.")
			s.judge()
			s.fail(event.StageQuestions)
			s.must(WriteBrief{ClosingStep: s.at()})
			s.must(MapCoverage{ClosingStep: s.at()})
			s.settle()
			s.auto()
		}, Running, ReasonCycle, "Cycle 2"},
		{"brief and coverage failed: parks nothing", nil, func(s *story) {
			s.start()
			s.complete()
			s.distil("A.")
			s.judge()
			s.must(ProposeQuestions{ClosingStep: s.at(), Proposed: event.QuestionsProposed{Questions: []event.ProposedQuestion{{Text: "And how?", Depth: 1}}}})
			s.fail(event.StageBrief)
			s.fail(event.StageCoverage)
			s.settle()
			s.auto()
		}, Running, ReasonCycle, "Cycle 2"},
		{"autopilot itself fell over", nil, func(s *story) {
			s.start()
			s.complete()
			s.distil()
			s.judge()
			s.close("And how?")
			s.must(FailStage{Stage: event.StageAutopilot, Entity: "1", Class: event.ClassCrashLoop, Reason: "it fell over"})
		}, Idle, ReasonStage, "Autopilot could not decide"},
		{"paused while a call is under way", nil, func(s *story) { s.start(); s.begin(); s.must(Pause{}) }, Paused, ReasonPaused, "You paused"},
		{"paused, and the call came home", nil, func(s *story) {
			s.start()
			s.begin()
			s.must(Pause{})
			s.must(CompleteRun{Run: s.last().ID, Completed: event.RunCompleted{Attempt: 1, Cost: 250}})
			s.distil()
			s.judge()
			s.close("And how?")
			s.auto()
		}, Paused, ReasonPaused, "You paused"},
		{"paused with a run requested", nil, func(s *story) { s.start(); s.must(Pause{}); s.settle(); s.auto() }, Paused, ReasonPaused, "You paused"},
		{"started again after Pause", nil, func(s *story) { s.start(); s.must(Pause{}); s.settle(); s.start() }, Running, ReasonCycle, "Cycle 2"},
		{"a stage of a complete thread is done again", nil, func(s *story) {
			s.start()
			s.cycle()
			s.must(RetryStage{Stage: event.StageBrief, Entity: "1"})
		}, Running, ReasonRetry, "cycle 1"},
		{"and is settled", nil, func(s *story) {
			s.start()
			s.cycle()
			s.must(RetryStage{Stage: event.StageBrief, Entity: "1"})
			s.must(WriteBrief{ClosingStep: s.at()})
			s.settle()
			s.auto()
		}, Complete, ReasonNoQuestions, "no open question"},
		{"a question for a complete thread", nil, func(s *story) { s.start(); s.cycle(); s.must(AskQuestion{ID: "q1", Text: "What else?"}) }, Idle, ReasonReady, "Start"},
		{"more budget for a complete thread", func(x *event.Settings) { x.Budget = 300 }, func(s *story) {
			s.start()
			s.cycle("And how?")
			budget := 600
			s.must(Configure{Changes: event.ThreadConfigured{Budget: &budget}})
		}, Idle, ReasonReady, "Start"},
		{"not enough more", func(x *event.Settings) { x.Budget = 300 }, func(s *story) {
			s.start()
			s.cycle("And how?")
			budget := 400
			s.must(Configure{Changes: event.ThreadConfigured{Budget: &budget}})
		}, Complete, ReasonBudget, "400 in the budget"},
		{"more depth for a complete thread", func(x *event.Settings) { x.Depth = 0 }, func(s *story) {
			s.start()
			s.cycle("And how?")
			depth := 1
			s.must(Configure{Changes: event.ThreadConfigured{Depth: &depth}})
		}, Idle, ReasonReady, "Start"},
		{"a failed stage was made up for by hand", nil, func(s *story) {
			s.start()
			s.complete()
			s.fail(event.StageDistill)
			s.settle()
			s.auto()
			s.must(RetryStage{Stage: event.StageDistill, Entity: s.last().ID})
			s.distil()
			s.judge()
			s.close("And how?")
			s.auto()
		}, Idle, ReasonReady, "settled without a failure"},
		{"a failed stage was made up for since the model is back", nil, func(s *story) {
			s.start()
			s.complete()
			s.fail(event.StageDistill)
			s.settle()
			s.auto()
			s.must(RetryStage{Stage: event.StageDistill, Entity: s.last().ID, By: ByModel})
			s.distil()
			s.judge()
			s.close("And how?")
			s.auto()
		}, Running, ReasonCycle, "Cycle 2"},
		{"budget lowered under what is reserved", func(x *event.Settings) { x.Batch = 1 }, func(s *story) {
			s.start()
			zero := 0
			s.must(Configure{Changes: event.ThreadConfigured{Budget: &zero}})
			s.settle()
			s.auto()
		}, Complete, ReasonBudget, "0 in the budget"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
	for _, c := range whatHappenedSince() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			reason := c.check(t)
			if c.not != "" {
				require.NotContains(t, reason.Text, c.not)
			}
		})
	}
}

func refusal(t *testing.T, err error) *Refusal {
	t.Helper()
	var r *Refusal
	require.ErrorAs(t, err, &r)
	return r
}

// What may not be done says so with a status, a code and the figures, and leaves nothing behind.
func TestRefusals(t *testing.T) {
	t.Parallel()
	bad := -5
	cases := []struct {
		name   string
		story  func(*story) error
		status int
		code   string
		text   string
	}{
		{"unknown thread", func(s *story) error { s.thread = NewThread("x"); return s.do(Pause{}) }, 404, "not-found", "x"},
		{"deleted thread", func(s *story) error { s.must(DeleteThread{}); return s.request("") }, 410, "thread-deleted", "deleted"},
		{"the same thread after deletion", func(s *story) error { s.must(DeleteThread{}); return s.do(CreateThread{Question: "Why?"}) }, 410, "thread-deleted", "Idempotency-Key"},
		{"negative budget", func(s *story) error { return s.do(Configure{Changes: event.ThreadConfigured{Budget: &bad}}) }, 422, "invalid-budget", "-5"},
		{"empty question", func(s *story) error { return s.do(AskQuestion{ID: "q", Text: " \n "}) }, 422, "invalid-question", ""},
		{"10,001 code points", func(s *story) error { return s.request(strings.Repeat("я", 10_001)) }, 422, "invalid-question", "10001"},
		{"invalid UTF-8", func(s *story) error { return s.request("a\xffb") }, 422, "invalid-question", "UTF-8"},
		{"over the budget", func(s *story) error {
			for range 8 {
				require.NoError(s.t, s.request(""))
			}
			return s.request("")
		}, 402, "budget-exceeded", "0 are spent and 2000 are reserved"},
		{"no key for a live thread", func(s *story) error {
			require.NoError(s.t, s.request(""))
			s.access = Access{Replay: true}
			return s.request("")
		}, 409, "no-key", "nothing was spent"},
		{"start without anything to do", func(s *story) error { s.start(); s.cycle(); return s.do(Start{Access: s.access}) }, 409, "nothing-to-do", "no open question"},
		{"cancel what is complete", func(s *story) error { s.start(); s.complete(); return s.do(CancelRun{Run: s.last().ID}) }, 409, "run-completed", "250 credits"},
		{"delete a run at work", func(s *story) error { s.start(); s.complete(); return s.do(DeleteRun{Run: s.last().ID}) }, 409, "run-active", ""},
		{"retry a stage at work", func(s *story) error {
			s.start()
			s.complete()
			return s.do(RetryStage{Stage: event.StageDistill, Entity: s.last().ID})
		}, 409, "run-active", ""},
		{"retry an unknown stage", func(s *story) error { return s.do(RetryStage{Stage: "cook", Entity: "1"}) }, 422, "invalid-stage", "cook"},
		{"rebuild without a report", func(s *story) error { return s.do(RebuildThread{}) }, 409, "no-report", ""},
		{"another provider after the first run", func(s *story) error {
			s.start()
			brave := event.Brave
			return s.do(Configure{Changes: event.ThreadConfigured{Provider: &brave}})
		}, 409, "provider-fixed", "tabstack"},
		{"start an archived thread", func(s *story) error {
			yes := true
			s.must(Configure{Archived: &yes})
			return s.do(Start{Access: s.access})
		}, 409, "thread-archived", "archive"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := tell(t)
			r := refusal(t, c.story(s))
			require.Equal(t, c.status, r.Status, r.Text)
			require.Equal(t, c.code, r.Code)
			require.Contains(t, r.Text, c.text)
		})
	}
}

func TestPauseWithdrawsWhatWaits(t *testing.T) {
	t.Parallel()
	s := tell(t)
	require.NoError(t, s.request("One?"))
	require.NoError(t, s.request("Two?"))
	s.callFails("stall", true) // two waits for its next attempt
	require.NoError(t, s.request("Three?"))
	s.begin() // three is under way
	s.must(Pause{})
	var statuses []string
	for _, id := range s.thread.RunIDs {
		statuses = append(statuses, s.thread.Runs[id].Status)
	}
	require.Equal(t, []string{"withdrawn", "withdrawn", "running"}, statuses)
	require.Equal(t, 250, s.thread.Ledger.Held())
	require.NoError(t, s.do(Pause{}), "Pause again is no error")
}

func TestAFailedRunWithdrawsItsSiblings(t *testing.T) {
	t.Parallel()
	s := tell(t, func(x *event.Settings) { x.Batch = 3 })
	s.must(AskQuestion{ID: "q1", Text: "One?"})
	s.must(AskQuestion{ID: "q2", Text: "Two?"})
	s.start()
	require.Len(t, s.thread.Cycles[0].Runs, 3)
	first := s.thread.RunIDs[0]
	s.must(StartAttempt{Run: first, Max: 3})
	s.must(FailAttempt{Run: first, N: 1, Code: "auth_error", Detail: "No."})
	require.Len(t, s.thread.Cycles[0].Closings, 1, "closed once, by the last of them")
	require.Zero(t, s.thread.Ledger.Held())
	s.must(Settle{ClosingStep{Cycle: 1}})
	s.auto()
	status, reason := s.thread.Status()
	require.Equal(t, Idle, status)
	require.Contains(t, reason.Text, "auth_error")
	require.Equal(t, RootQuestionID("t"), s.thread.Pending()[0].ID, "its question is first in line again")
}

func TestOnlyTheLatestAttemptSettles(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.start()
	s.begin()
	s.begin() // another holder found the first one open, without a whole answer
	require.Equal(t, event.CodeLost, s.last().Attempts[0].Code)
	stale, err := Decide(s.thread, CompleteRun{Run: s.last().ID, Completed: event.RunCompleted{Attempt: 1, Cost: 250}}, s.now)
	require.NoError(t, err)
	require.Empty(t, stale)
	s.must(CompleteRun{Run: s.last().ID, Completed: event.RunCompleted{Attempt: 2, Cost: 250}})
	require.Equal(t, 250, s.thread.Ledger.Spent)
}

func TestAnOutcomeOfAnOlderClosingOrGenerationIsNotAppended(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.start()
	s.cycle()
	run := s.last().ID
	s.must(RetryStage{Stage: event.StageBrief, Entity: "1"})
	for _, cmd := range []Command{
		WriteBrief{ClosingStep: ClosingStep{Cycle: 1, N: 0}}, MapCoverage{ClosingStep: ClosingStep{Cycle: 1, N: 1}}, Settle{ClosingStep{Cycle: 1, N: 1}}, Settle{ClosingStep{Cycle: 1, N: 0}},
		Distil{Run: run}, Judge{Run: run}, FailStage{Stage: event.StageDistill, Entity: run}, ProposeQuestions{ClosingStep: ClosingStep{Cycle: 1, N: 1}},
	} {
		drafts, err := Decide(s.thread, cmd, s.now)
		require.NoError(t, err)
		require.Empty(t, drafts, "%T", cmd)
	}
}

func TestARetryWaits(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.start()
	s.callFails("stall", true)
	var wait *Wait
	require.True(t, errors.As(s.do(StartAttempt{Run: s.last().ID, Max: 3, After: 1}), &wait))
	require.Equal(t, s.now.Add(time.Second), wait.Until)
	s.now = wait.Until
	s.begin()
	require.Len(t, s.last().Attempts, 2)
}

func TestKnownStatementsJoinTheirSupport(t *testing.T) {
	t.Parallel()
	s := tell(t)
	require.NoError(t, s.request(""))
	s.complete()
	s.distil("Water boils at 100 °C.", "WATER  boils at 100 °C.")
	require.Len(t, s.thread.FactIDs, 1)
	require.Len(t, s.thread.Facts[s.thread.FactIDs[0]].Support, 2)
}

func TestDuplicatesFoldIntoTheActiveRoot(t *testing.T) {
	t.Parallel()
	s := tell(t)
	require.NoError(t, s.request(""))
	s.complete()
	s.distil("A.", "B.", "C.")
	verdict := func(elder, newer, relation string) event.Verdict {
		a, b := fact(elder), fact(newer)
		return event.Verdict{Elder: a.ID, ElderFingerprint: a.Fingerprint, Newer: b.ID, NewerFingerprint: b.Fingerprint, Relation: relation}
	}
	changed := verdict("A.", "C.", event.Contradiction)
	changed.ElderFingerprint = "of another text"
	s.judge(verdict("A.", "B.", event.Duplicate), verdict("B.", "C.", event.Duplicate), changed, verdict("A.", "C.", event.Contradiction))
	require.Equal(t, fact("A.").ID, s.thread.Facts[fact("B.").ID].Root)
	require.True(t, s.thread.Facts[fact("C.").ID].Active(), "its elder had been dropped by then, so that verdict is void")
	require.Len(t, s.thread.Contradictions(), 1)
}

func TestARebuildKeepsRemovesAndFindsAgain(t *testing.T) {
	t.Parallel()
	s := tell(t)
	require.NoError(t, s.request(""))
	s.complete()
	s.distil("A.", "B.")
	s.judge()
	s.close()
	s.auto()
	s.must(RetryStage{Stage: event.StageDistill, Entity: s.last().ID})
	s.distil("B.", "C.")
	d := s.distilled()
	require.Equal(t, []string{fact("B.").ID}, d.Kept)
	require.Equal(t, []string{fact("A.").ID}, d.Removed)
	require.False(t, s.thread.Facts[fact("A.").ID].Active())
	require.Len(t, s.thread.Facts[fact("B.").ID].Support, 1)
	s.judge()
	s.must(WriteBrief{ClosingStep: s.at()})
	s.must(MapCoverage{ClosingStep: s.at()})
	s.settle()
	require.Len(t, s.thread.Cycles[0].Closings, 2)
	require.NotContains(t, s.thread.Cycles[0].Closings[1].Steps, event.StageQuestions, "questions are made once per cycle")
}

func TestALostStepIsAskedForThreeTimes(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.start()
	s.complete()
	for range MaxLost {
		s.must(RetryLost{Step: Next(s.thread)[0]})
	}
	require.Equal(t, event.StageDistill, Next(s.thread)[0].Stage)
	s.must(RetryLost{Step: Next(s.thread)[0]})
	require.Equal(t, event.ClassLost, s.last().Failed[event.StageDistill].Class)
	require.Equal(t, event.StageDistill, s.thread.KnowledgeError.Stage)
}

func TestQuestionsAreAskedInOrder(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.start()
	s.complete()
	s.distil()
	s.judge()
	s.must(ProposeQuestions{ClosingStep: s.at(), Proposed: event.QuestionsProposed{Questions: []event.ProposedQuestion{
		{Text: "Low?", Score: 0.2, Depth: 1}, {Text: "High?", Score: 0.9, Depth: 1},
	}}})
	s.must(AskQuestion{ID: "h1", Text: "Human one?"})
	s.must(AskQuestion{ID: "h2", Text: "Human two?"})
	order := func() (texts []string) {
		for _, q := range s.thread.Pending() {
			texts = append(texts, q.Text)
		}
		return texts
	}
	require.Equal(t, []string{"Human one?", "Human two?", "High?", "Low?"}, order())
	s.must(MoveQuestion{ID: s.thread.question("Low?").ID, Position: 1})
	require.Equal(t, []string{"Human one?", "Low?", "Human two?", "High?"}, order())
	s.must(DismissQuestion{ID: "h2"})
	require.Equal(t, []string{"Human one?", "Low?", "High?"}, order())
}

// What a fact stands for is not lost by a rebuild that finds it in other words only, those of a duplicate that was dropped into it.
func TestARebuildKeepsTheRootOfADuplicateThatItFindsAgain(t *testing.T) {
	t.Parallel()
	s := tell(t)
	require.NoError(t, s.request(""))
	s.complete()
	s.distil("A.", "Also A.", "Alone.")
	a, also := fact("A."), fact("Also A.")
	s.judge(event.Verdict{Elder: a.ID, ElderFingerprint: a.Fingerprint, Newer: also.ID, NewerFingerprint: also.Fingerprint, Relation: event.Duplicate})
	s.close()
	s.must(RetryStage{Stage: event.StageDistill, Entity: s.last().ID})
	s.distil("Also A.")
	require.True(t, s.thread.Facts[a.ID].Active())
	require.Equal(t, a.ID, s.thread.Facts[also.ID].Root)
	require.Equal(t, []string{fact("Alone.").ID}, s.distilled().Removed)
}

// A fact that two runs found goes when the second of them does not find it again either, whichever of them added it.
func TestAFactGoesWithItsLastSupport(t *testing.T) {
	t.Parallel()
	s := tell(t)
	var runs []string
	for range 2 {
		require.NoError(t, s.request(""))
		runs = append(runs, s.last().ID)
		s.complete()
		s.distil("A.")
		s.judge()
		s.close()
	}
	for i, run := range runs {
		s.must(RetryStage{Stage: event.StageDistill, Entity: run})
		s.must(Distil{Run: run, N: 1, Facts: []event.Fact{fact("B.")}, Engine: "extractive"})
		s.must(Judge{Run: run, N: 1, Engine: "extractive"})
		require.Equal(t, i == 0, s.thread.Facts[fact("A.").ID].Active())
		at := ClosingStep{Cycle: i + 1, N: 1}
		s.must(WriteBrief{ClosingStep: at})
		s.must(MapCoverage{ClosingStep: at})
		s.must(Settle{at})
	}
	require.Empty(t, s.thread.Facts[fact("A.").ID].Support)
}

// A cycle of which one run has verdicts and another none is no good chain: what failed stays said until it is made up for.
func TestAFailedStageIsSaidUntilItIsMadeUpFor(t *testing.T) {
	t.Parallel()
	s := tell(t, func(x *event.Settings) { x.Batch = 2 })
	s.must(AskQuestion{ID: "q1", Text: "And what?"})
	s.start()
	good, bad := s.thread.RunIDs[0], s.thread.RunIDs[1]
	for _, run := range []string{good, bad} {
		s.must(StartAttempt{Run: run, Max: 3})
		s.must(CompleteRun{Run: run, Completed: event.RunCompleted{Attempt: 1, Cost: 250}})
	}
	s.must(FailStage{Stage: event.StageDistill, Entity: bad, Class: event.ClassModelAway, Reason: "The model is away"})
	s.must(Distil{Run: good, Facts: []event.Fact{fact("A.")}, Engine: "extractive"})
	s.must(Judge{Run: good, Engine: "extractive"})
	s.close()
	require.NotNil(t, s.thread.KnowledgeError)
	require.Equal(t, bad, s.thread.KnowledgeError.Entity)
	s.must(RetryStage{Stage: event.StageDistill, Entity: bad})
	require.Nil(t, s.thread.KnowledgeError)
	s.must(FailStage{Stage: event.StageDistill, Entity: bad, N: 1, Class: event.ClassCrashLoop, Reason: "It fell over"})
	s.settle()
	require.NotNil(t, s.thread.KnowledgeError)
	s.must(RequestRun{Run: "next", Access: s.access})
	s.complete()
	s.distil("B.")
	s.judge()
	s.close()
	require.Nil(t, s.thread.KnowledgeError, "cleared by the next good chain")
}

// After a stage failed since its message was lost again and again, a person's retry has all tries again.
func TestARetryByAPersonMayBeLostAsOftenAgain(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.start()
	s.complete()
	for range MaxLost + 1 {
		s.must(RetryLost{Step: Next(s.thread)[0]})
	}
	s.settle()
	s.must(RetryStage{Stage: event.StageDistill, Entity: s.last().ID})
	s.must(RetryLost{Step: Next(s.thread)[0]})
	require.Empty(t, s.last().Failed)
	require.Equal(t, event.StageDistill, Next(s.thread)[0].Stage)
}

func TestADismissedQuestionThatIsAskedAgainIsFoundByItsWords(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.must(AskQuestion{ID: "q1", Text: "What else?"})
	s.must(DismissQuestion{ID: "q1"})
	s.must(AskQuestion{ID: "q2", Text: "What  ELSE?"})
	require.Equal(t, "question-known", refusal(t, s.do(AskQuestion{ID: "q3", Text: "What else?"})).Code)
	require.NoError(t, s.request("what else?"))
	require.Equal(t, "q2", s.last().Requested.Question)
}

// Questions whose run came to nothing stand first, in whatever order their ranks are. Each question comes to the place it is moved to among its like.
func TestAQuestionMovesAmongItsLike(t *testing.T) {
	t.Parallel()
	s := tell(t)
	for i, q := range []string{"One?", "Two?", "Three?", "Four?"} {
		s.must(AskQuestion{ID: "q" + strconv.Itoa(i+1), Text: q})
	}
	for _, q := range []string{"Four?", "Three?"} {
		require.NoError(t, s.request(q))
	}
	s.must(Pause{})
	order := func() (ids []string) {
		for _, q := range s.thread.Pending() {
			ids = append(ids, q.ID)
		}
		return ids
	}
	root := RootQuestionID("t")
	require.Equal(t, []string{"q3", "q4", root, "q1", "q2"}, order())
	for _, move := range []struct {
		id   string
		to   int
		want []string
	}{
		{"q2", 3, []string{"q3", "q4", root, "q2", "q1"}},
		{"q1", 0, []string{"q3", "q4", "q1", root, "q2"}},
		{"q3", 1, []string{"q4", "q3", "q1", root, "q2"}},
		{"q4", 9, []string{"q3", "q4", "q1", root, "q2"}},
		{"q1", 9, []string{"q3", "q4", root, "q2", "q1"}},
	} {
		s.must(MoveQuestion{ID: move.id, Position: move.to})
		require.Equal(t, move.want, order(), "%s to %d", move.id, move.to)
	}
}

// Who saw a thread before it was deleted and who reads the stream after the purge have the same state of it.
func TestADeletedThreadIsItsTombstone(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.start()
	s.cycle()
	s.must(DeleteThread{})
	fresh := NewThread("t")
	fresh.Evolve(s.log[len(s.log)-1])
	require.Equal(t, fresh, s.thread)
	require.Equal(t, 250, fresh.Ledger.Spent)
}

// An event that no decision of this notebook led to is shown as one that cannot be applied, and nothing of it is applied.
func TestARunOfNoPossibleCycleLeavesNoTrace(t *testing.T) {
	t.Parallel()
	for _, cycle := range []int{-1, 0, 2, 1 << 40} {
		n := NewNotebook()
		for seq, d := range []Draft{
			{Entity: "0", Data: event.ThreadCreated{Question: "Why?"}},
			{Entity: "r", Run: "r", Data: event.RunRequested{Provider: event.Tabstack, Cycle: cycle, CycleSize: 1, RunKind: event.KindManual, Cost: 250}},
		} {
			e := event.Event{ID: strconv.Itoa(seq), Thread: "t", Run: d.Run, Entity: d.Entity, Data: d.Data}
			body, err := event.Marshal(e)
			require.NoError(t, err)
			_, applied := n.Apply(Message{Subject: e.Subject(), Data: body, Seq: uint64(seq + 1)})
			require.Equal(t, seq == 0, applied)
		}
		bad, _ := n.Bad()
		require.Len(t, bad, 1)
		require.Empty(t, n.Thread("t").Runs)
		require.Zero(t, n.Thread("t").Ledger.Held())
		require.Empty(t, Next(n.Thread("t")))
	}
}
