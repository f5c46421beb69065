package notebook

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/ledger"
	"github.com/factstream/factstream/shared/text"
)

// Access says what a call of the thread's provider would be at this moment.
type Access struct {
	Live   bool // a usable key, and calls are allowed
	Replay bool // without one a recorded stream is played; never for a thread that has asked for real
}

// replays gives the kind of the thread's next run, and whether one is possible at all.
func (t *Thread) replays(a Access) (replay, possible bool) {
	if t.Replay != nil {
		if *t.Replay {
			return true, true
		}
		return false, a.Live
	}
	if a.Live {
		return false, true
	}
	return true, a.Replay
}

type planning struct {
	access   Access
	byPerson bool // Start: what parked the thread before is no reason to park it again
}

// plan gives the runs of the next cycle, or the reason to park: the first that fits, in the order of docs/architecture.md.
func (t *Thread) plan(p planning) ([]event.RunRequested, *event.ThreadParked) {
	idle := func(code, format string, args ...any) ([]event.RunRequested, *event.ThreadParked) {
		return nil, &event.ThreadParked{Status: Idle, Reason: event.Reason{Code: code, Text: fmt.Sprintf(format, args...)}}
	}
	complete := func(code, format string, args ...any) ([]event.RunRequested, *event.ThreadParked) {
		return nil, &event.ThreadParked{Status: Complete, Reason: event.Reason{Code: code, Text: fmt.Sprintf(format, args...)}}
	}
	pending := t.Pending()
	if !p.byPerson {
		if r := t.providerFailure(); r != nil {
			return idle(ReasonProvider, "The run %q failed (%s): %s Press Start to ask again.", text.Truncate(r.Requested.Text, 80), r.Failure.Code, r.Failure.Detail)
		}
		if stage, reason := t.stageFailure(len(pending) > 0); stage != "" {
			cure := "Its report is kept; retry the stage, or press Start to go on without it."
			if stage == event.StageQuestions { // nothing is left that Start could ask
				cure = "What was found is kept; retry the stage, or put a question of your own."
			}
			return idle(ReasonStage, "The stage %s failed: %s %s", stage, reason, cure)
		}
	}
	replay, possible := t.replays(p.access)
	if !possible {
		return idle(ReasonNoKey, "There is no usable key for %s. Save one in the settings, then press Start.", t.Settings.Provider)
	}
	if !p.byPerson && (!t.Settings.Auto || t.Standing == New) {
		return idle(ReasonAutoOff, "Autopilot is off: nothing more is asked until you say so.")
	}
	if len(pending) == 0 {
		if t.LastPlan {
			return complete(ReasonNoQuestions, "Every follow-up that was proposed had been asked before: there is nothing left to ask. Put a question of your own to go on.")
		}
		return complete(ReasonNoQuestions, "There is no open question left. Put a question of your own to go on.")
	}
	var within []*Question
	for _, q := range pending {
		if t.Settings.Depth < 0 || q.Depth <= t.Settings.Depth {
			within = append(within, q)
		}
	}
	if len(within) == 0 {
		return complete(ReasonDepth, "All %d open questions lie deeper than the limit of %d. Raise the depth to go on.", len(pending), t.Settings.Depth)
	}
	cost, err := ledger.Cost(t.Settings.Provider, t.Settings.Mode)
	if err != nil {
		return idle(ReasonProvider, "%s. Change the settings of the thread.", err)
	}
	account := t.Ledger.Clone()
	var runs []event.RunRequested
	for _, q := range within {
		if len(runs) == max(1, t.Settings.Batch) {
			break
		}
		if err := account.Allows(t.Settings.Provider, cost); err != nil {
			if len(runs) > 0 {
				break
			}
			var answers *ledger.AnswersExceeded
			if errors.As(err, &answers) {
				return complete(ReasonAnswerBudget, "The limit of %d answers is reached (%d saved, %d requested). Raise the answer budget to go on.", answers.Limit, answers.Saved, answers.Requested)
			}
			return complete(ReasonBudget, "The budget does not allow the next run: %d credits spent, %d reserved, %d for the run, %d in the budget. Raise the budget to go on.",
				account.Spent, account.Held(), cost, account.Budget)
		}
		account.Reserve(q.ID, t.Settings.Provider, cost)
		runs = append(runs, event.RunRequested{
			Question: q.ID, Text: q.Text, Provider: t.Settings.Provider, Mode: t.Settings.Mode, Depth: q.Depth,
			Cycle: len(t.Cycles) + 1, RunKind: event.KindCycle, Cost: cost, Replay: replay,
		})
	}
	for i := range runs {
		runs[i].CycleSize = len(runs)
	}
	return runs, nil
}

// providerFailure gives the run that failed or was cancelled and after which nothing was asked, nil when there is none: one of the newest cycle, or
// one of an earlier cycle that ended so while the newest was waiting, which was withdrawn for it, and that nothing has made up for.
func (t *Thread) providerFailure() *Run {
	if len(t.Cycles) == 0 {
		return nil
	}
	newest := t.Cycles[len(t.Cycles)-1]
	for _, c := range slices.Backward(t.Cycles) {
		for _, id := range c.Runs {
			r := t.Runs[id]
			if r.Status == "failed" && (c == newest || t.failedBefore(newest, r) && !t.madeUpFor(r)) {
				return r
			}
		}
	}
	return nil
}

// failedBefore says whether a run ended when all of a later cycle had been asked for.
func (t *Thread) failedBefore(later *Cycle, r *Run) bool {
	return !slices.ContainsFunc(later.Runs, func(id string) bool { return t.Runs[id].Seq > r.EndSeq })
}

// stageFailure names what of the newest cycle's chain is missing so that autopilot must not go on.
func (t *Thread) stageFailure(pending bool) (stage, reason string) {
	if len(t.Cycles) == 0 {
		return "", ""
	}
	c := t.Cycles[len(t.Cycles)-1]
	for _, id := range c.Runs {
		r := t.Runs[id]
		for _, stage := range []string{event.StageDistill, event.StageJudge} {
			if f, failed := r.Failed[stage]; failed {
				return stage, sentence(f.Reason)
			}
		}
	}
	if closing := c.Newest(); closing != nil && !pending {
		if f, failed := closing.Failed[event.StageQuestions]; failed {
			return event.StageQuestions, sentence(f.Reason)
		}
	}
	return "", ""
}

func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || strings.ContainsAny(s[len(s)-1:], ".!?") {
		return s
	}
	return s + "."
}

// Status of a question.
const (
	QuestionPending   = "pending"
	QuestionAdmitted  = "admitted"
	QuestionAnswered  = "answered"
	QuestionDismissed = "dismissed"
)

// QuestionStatus is computed from the runs of the question: pending while no run of it is under way or completed.
func (t *Thread) QuestionStatus(q *Question) string {
	status := QuestionPending
	for _, id := range q.Runs {
		switch t.Runs[id].Status {
		case "completed":
			return QuestionAnswered
		case "requested", "running":
			status = QuestionAdmitted
		}
	}
	if status == QuestionPending && q.Dismissed {
		return QuestionDismissed
	}
	return status
}

// Pending lists the questions that may be asked, first in line first: those whose run came to nothing, then by rank, ties oldest first.
func (t *Thread) Pending() []*Question {
	var pending []*Question
	for _, id := range t.QIDs {
		if q := t.Questions[id]; t.QuestionStatus(q) == QuestionPending {
			pending = append(pending, q)
		}
	}
	sort.SliceStable(pending, func(i, j int) bool {
		a, b := pending[i], pending[j]
		if again := len(a.Runs) > 0; again != (len(b.Runs) > 0) {
			return again
		}
		if a.Rank != b.Rank {
			return a.Rank < b.Rank
		}
		return a.Seq < b.Seq
	})
	return pending
}
