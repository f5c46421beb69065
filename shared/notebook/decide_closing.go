package notebook

import (
	"slices"
	"strconv"
	"time"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/text"
)

// ClosingStep says which closing an outcome belongs to: only the newest one of a cycle takes outcomes, and each of them once.
type ClosingStep struct {
	worker
	Cycle, N int
}

// takes gives the closing when the step is still to be done in it.
func (c ClosingStep) takes(t *Thread, stage string) *Closing {
	cycle := t.CycleOf(c.Cycle)
	if cycle == nil || t.RunOpen(cycle) {
		return nil
	}
	newest := cycle.Newest()
	if newest == nil || newest.N != c.N || newest.Settled || !slices.Contains(newest.Remaining(), stage) {
		return nil
	}
	return newest
}

func (c ClosingStep) draft(data event.Data) []Draft {
	return []Draft{{Entity: strconv.Itoa(c.Cycle), N: c.N, Data: data}}
}

// MaxQuestions of one proposal.
const MaxQuestions = 5

// ProposeQuestions records the follow-ups of a cycle. Those that the thread has already are dropped and counted as repeats.
type ProposeQuestions struct {
	ClosingStep
	Proposed event.QuestionsProposed
}

func (c ProposeQuestions) decide(t *Thread, _ time.Time) ([]Draft, error) {
	if c.takes(t, event.StageQuestions) == nil {
		return nil, nil
	}
	out := c.Proposed
	out.Questions = []event.ProposedQuestion{}
	out.Dropped = map[string]int{}
	for cause, n := range c.Proposed.Dropped {
		out.Dropped[cause] = n
	}
	known := map[string]bool{}
	for _, id := range t.QIDs {
		known[text.Fingerprint(t.Questions[id].Text)] = true
	}
	for _, q := range c.Proposed.Questions {
		print := text.Fingerprint(q.Text)
		switch {
		case known[print]:
			out.Dropped["repeat"]++
		case len(out.Questions) == MaxQuestions:
			out.Dropped["over_limit"]++
		default:
			known[print] = true
			q.ID = questionID(t.ID, print)
			out.Questions = append(out.Questions, q)
		}
	}
	out.Repeats = len(out.Questions) == 0 && out.Dropped["repeat"] > 0
	return c.draft(out), nil
}

// WriteBrief records the brief of a closing.
type WriteBrief struct {
	ClosingStep
	Brief event.BriefWritten
}

func (c WriteBrief) decide(t *Thread, _ time.Time) ([]Draft, error) {
	if c.takes(t, event.StageBrief) == nil {
		return nil, nil
	}
	return c.draft(c.Brief), nil
}

// MapCoverage records the topics of a closing.
type MapCoverage struct {
	ClosingStep
	Coverage event.CoverageMapped
}

func (c MapCoverage) decide(t *Thread, _ time.Time) ([]Draft, error) {
	if c.takes(t, event.StageCoverage) == nil {
		return nil, nil
	}
	return c.draft(c.Coverage), nil
}

// Settle ends a closing when each of its steps has an outcome or a failure.
type Settle struct{ ClosingStep }

func (c Settle) decide(t *Thread, _ time.Time) ([]Draft, error) {
	cycle := t.CycleOf(c.Cycle)
	if cycle == nil || t.RunOpen(cycle) {
		return nil, nil
	}
	closing := cycle.Newest()
	if closing == nil || closing.N != c.N || closing.Settled || len(closing.Remaining()) > 0 {
		return nil, nil
	}
	failures := closing.failures()
	settled := Draft{Entity: strconv.Itoa(c.Cycle), N: c.N, Data: event.ThreadSettled{Failures: failures}}
	if t.Standing != Idle || t.Reason.Code != ReasonStage || len(failures) > 0 || t.stillFailing(cycle) {
		return []Draft{settled}, nil
	}
	if t.Settings.Auto && closing.Retry && cycle.retriedBy == ByModel {
		return []Draft{{Entity: "0", Data: event.ThreadStarted{Reason: event.Reason{
			Code: ReasonCycle, Text: "The model answers again: what had failed was made up for, and autopilot goes on.",
		}}}, settled}, nil
	}
	return []Draft{settled, {Entity: "0", Data: event.ThreadParked{Status: Idle, Reason: event.Reason{
		Code: ReasonReady, Text: sentences(settledWell, goOn),
	}}}}, nil
}

// stillFailing says whether a run of the cycle is without its facts or verdicts.
func (t *Thread) stillFailing(c *Cycle) bool {
	return slices.ContainsFunc(c.Runs, func(id string) bool { return len(t.Runs[id].Failed) > 0 })
}
