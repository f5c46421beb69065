package notebook

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/factstream/factstream/shared/event"
)

// Who asks for a stage once more.
const (
	ByPerson  = "person"
	BySweeper = "sweeper" // the message of the step was lost
	ByModel   = "model"   // the model was away and answers again
)

// MaxLost is how often the sweeper asks for a lost step again before it fails.
const MaxLost = 3

// MaxFacts of one run; the rest is counted and shown.
const MaxFacts = 20

// Distil records what the report of a run gave. Facts are candidates in order of preference; what the thread knows joins its support.
type Distil struct {
	worker
	Run               string
	N                 int
	Facts             []event.Fact
	Dropped           map[string]int
	LeftOut           int
	UnresolvedMarkers int
	Engine, Model     string
}

func (c Distil) decide(t *Thread, _ time.Time) ([]Draft, error) {
	r := t.Runs[c.Run]
	if r == nil || r.Awaits() != event.StageDistill || c.N != r.Gen {
		return nil, nil
	}
	out := event.FactsDistilled{
		Facts: []event.Fact{}, Dropped: c.Dropped, LeftOut: c.LeftOut, UnresolvedMarkers: c.UnresolvedMarkers,
		Engine: c.Engine, Model: c.Model, Replayed: r.Requested.Replay,
	}
	named := map[string]bool{}
	for _, f := range c.Facts {
		id, known := t.ByFingerprint[f.Fingerprint]
		if !known {
			id = f.ID
		}
		switch {
		case known && t.Facts[id].Run == r.ID && !named[id]: // a rebuild found it again
			out.Kept = append(out.Kept, id)
			out.Support = append(out.Support, event.Support{Fact: id, Source: f.Source, Excerpt: f.Excerpt})
		case known || named[id]:
			out.Support = append(out.Support, event.Support{Fact: id, Source: f.Source, Excerpt: f.Excerpt})
		default:
			out.Facts = append(out.Facts, f)
		}
		named[id] = true
	}
	out.Removed = t.unsupported(r.ID, named)
	return []Draft{{Entity: r.ID, Run: r.ID, N: c.N, Data: out}}, nil
}

// unsupported lists the facts that nothing stands for any more when a run's report gives those that are named: what the run gave before does not count. A fact
// stands by what was dropped into it too, since that would count nowhere without it, and goes with all of it. Facts that a person added or judged stay.
func (t *Thread) unsupported(run string, named map[string]bool) (removed []string) {
	lost, stands := map[string]bool{}, map[string]bool{}
	for _, id := range t.FactIDs {
		f := t.Facts[id]
		root := t.Root(id)
		for _, s := range f.Support {
			lost[id], lost[root] = lost[id] || s.Run == run, lost[root] || s.Run == run
			stands[id], stands[root] = stands[id] || s.Run != run, stands[root] || s.Run != run
		}
		if named[id] || f.Run == "" || f.Curated() {
			stands[id], stands[root] = true, true
		}
	}
	gone := func(id string) bool { f := t.Facts[id]; return f != nil && lost[id] && !stands[id] && !f.Removed }
	for _, id := range t.FactIDs {
		if !t.Facts[id].Removed && (gone(id) || gone(t.Root(id))) {
			removed = append(removed, id)
		}
	}
	return removed
}

// Judge records the verdicts on the facts of a run. Verdicts come most important first; those about a text that has changed or gone are skipped and counted.
type Judge struct {
	worker
	Run           string
	N             int
	Verdicts      []event.Verdict
	LeftOut       int
	Dropped       map[string]int
	Engine, Model string
}

func (c Judge) decide(t *Thread, _ time.Time) ([]Draft, error) {
	r := t.Runs[c.Run]
	if r == nil || r.Awaits() != event.StageJudge || c.N != r.Gen {
		return nil, nil
	}
	out := event.ContradictionsFound{Verdicts: []event.Verdict{}, LeftOut: c.LeftOut, Dropped: c.Dropped, Engine: c.Engine, Model: c.Model}
	dropped := map[string]string{} // by this batch
	root := func(id string) string {
		id = t.Root(id)
		for range dropped {
			next, ok := dropped[id]
			if !ok {
				break
			}
			id = t.Root(next)
		}
		return id
	}
	counts := func(id string) bool { return t.Facts[id] != nil && t.Facts[id].Active() && dropped[id] == "" }
	for _, v := range c.Verdicts {
		newer := t.Facts[v.Newer]
		if newer == nil || !counts(v.Newer) || newer.Fingerprint != v.NewerFingerprint {
			out.Skipped++
			continue
		}
		v.Pair = PairID(v.Elder, v.Newer)
		if v.ElderThread != "" && v.ElderThread != t.ID {
			if v.Relation != event.Distinct {
				out.Links = append(out.Links, event.Link{Fact: v.Newer, Other: v.Elder, OtherThread: v.ElderThread, Relation: v.Relation})
			}
			out.Verdicts = append(out.Verdicts, v)
			continue
		}
		v.ElderThread = ""
		elder := t.Facts[v.Elder]
		if elder == nil || elder.Removed || elder.Fingerprint != v.ElderFingerprint || v.Elder == v.Newer || dropped[v.Elder] != "" {
			out.Skipped++
			continue
		}
		out.Verdicts = append(out.Verdicts, v)
		if v.Relation != event.Duplicate || newer.Curated() {
			continue
		}
		into := t.Facts[root(v.Elder)]
		if into == nil || into.ID == v.Newer || into.Removed {
			continue
		}
		dropped[v.Newer] = into.ID
		out.Drops = append(out.Drops, event.Drop{Fact: v.Newer, Root: into.ID, Dismissed: into.Dismissed})
	}
	return []Draft{{Entity: r.ID, Run: r.ID, N: c.N, Data: out}}, nil
}

// FailStage ends a stage without an outcome. The entity is a run for distill and judge, a cycle for the steps of a closing and for autopilot.
type FailStage struct {
	worker
	Stage  string
	Entity string
	N      int
	Class  string
	Reason string
}

func (c FailStage) decide(t *Thread, _ time.Time) ([]Draft, error) {
	failed := Draft{Entity: c.Entity, N: c.N, Data: event.StageFailed{Stage: c.Stage, Class: c.Class, Reason: c.Reason}}
	if r := t.Runs[c.Entity]; r != nil {
		failed.Run = r.ID
		if r.Awaits() != c.Stage || c.N != r.Gen {
			return nil, nil
		}
		return []Draft{failed}, nil
	}
	c_, closing := t.closing(c.Entity, c.N)
	if c_ == nil {
		return nil, nil
	}
	if c.Stage == event.StageAutopilot {
		if t.Unsettled() != nil || t.Standing != Running && t.Standing != New {
			return nil, nil
		}
		return []Draft{failed, {Entity: "0", Data: event.ThreadParked{Status: Idle, Reason: event.Reason{
			Code: ReasonStage, Text: fmt.Sprintf("Autopilot could not decide what comes next: %s Press Start to try again.", sentence(c.Reason)),
		}}}}, nil
	}
	if closing == nil || closing != c_.Newest() || closing.Settled {
		return nil, nil
	}
	if c.Stage == event.StageClose { // the briefer gave the whole closing up: what it still lacks has failed, and it is settled
		var drafts []Draft
		settled := closing.failures()
		for _, step := range closing.Remaining() {
			failed.Data = event.StageFailed{Stage: step, Class: c.Class, Reason: c.Reason}
			drafts = append(drafts, failed)
			settled = append(settled, event.StageFailure{Stage: step, Class: c.Class, Reason: c.Reason})
		}
		return append(drafts, Draft{Entity: c.Entity, N: c.N, Data: event.ThreadSettled{Failures: settled}}), nil
	}
	if !slices.Contains(closing.Remaining(), c.Stage) {
		return nil, nil
	}
	return []Draft{failed}, nil
}

// closing finds the cycle that an entity names, and its closing n.
func (t *Thread) closing(entity string, n int) (*Cycle, *Closing) {
	id, err := strconv.Atoi(entity)
	if err != nil {
		return nil, nil
	}
	c := t.CycleOf(id)
	if c == nil || n < 0 || n >= len(c.Closings) {
		return c, nil
	}
	return c, c.Closings[n]
}

func (c *Closing) failures() []event.StageFailure {
	var failures []event.StageFailure
	for stage, f := range c.Failed {
		failures = append(failures, event.StageFailure{Stage: stage, Class: f.Class, Reason: f.Reason})
	}
	sort.Slice(failures, func(i, j int) bool { return failures[i].Stage < failures[j].Stage })
	return failures
}

// RetryStage does a stage once more because a person wants it, or because the model answers again.
type RetryStage struct {
	Stage  string
	Entity string // run or cycle
	By     string
	Reason string
}

func (c RetryStage) decide(t *Thread, _ time.Time) ([]Draft, error) {
	by := c.By
	if by == "" {
		by = ByPerson
	}
	retried := event.StageRetried{Stage: c.Stage, By: by, Reason: c.Reason}
	switch c.Stage {
	case event.StageDistill, event.StageJudge:
		r := t.Runs[c.Entity]
		switch {
		case r == nil:
			return nil, refuse(404, "not-found", "There is no run %q in this thread.", c.Entity)
		case r.Status != "completed":
			return nil, refuse(409, "no-report", "The run has no report: it is %s.", r.Status)
		case r.Deleted && c.Stage == event.StageDistill:
			return nil, refuse(410, "run-deleted", "The report of the run was deleted; there is nothing to distil again.")
		case r.Open || t.CycleUnsettled(t.CycleOf(r.Requested.Cycle)):
			return nil, refuse(409, "run-active", "The run is still worked on; wait until its cycle is settled.")
		case c.Stage == event.StageJudge && r.Distilled == nil:
			return nil, refuse(409, "no-facts", "The run has no facts to judge yet; retry the stage distill.")
		}
		return []Draft{{Entity: r.ID, Run: r.ID, N: r.LastN + 1, Data: retried}}, nil
	case event.StageQuestions, event.StageBrief, event.StageCoverage, event.StageDigest:
		cycle, _ := t.closing(c.Entity, 0)
		switch {
		case cycle == nil:
			return nil, refuse(404, "not-found", "There is no cycle %q in this thread.", c.Entity)
		case t.CycleUnsettled(cycle):
			return nil, refuse(409, "cycle-active", "Cycle %d is still worked on; wait until it is settled.", cycle.ID)
		case c.Stage == event.StageDigest && cycle.Kind != event.KindWatch:
			return nil, refuse(409, "no-watch", "Cycle %d is not of a watch and has no digest.", cycle.ID)
		}
		return []Draft{{Entity: c.Entity, N: len(cycle.Closings), Data: retried}}, nil
	}
	return nil, refuse(422, "invalid-stage", "The stage %q cannot be retried; distill, judge, questions, brief, coverage and digest can.", c.Stage)
}

// RebuildThread derives all facts of the thread again from the reports that are kept.
type RebuildThread struct{}

func (RebuildThread) decide(t *Thread, _ time.Time) ([]Draft, error) {
	if c := t.Unsettled(); c != nil {
		return nil, refuse(409, "cycle-active", "Cycle %d is still worked on; wait until it is settled.", c.ID)
	}
	var drafts []Draft
	for _, id := range t.RunIDs {
		if r := t.Runs[id]; r.Status == "completed" && !r.Deleted {
			drafts = append(drafts, Draft{Entity: id, Run: id, N: r.LastN + 1, Data: event.StageRetried{Stage: event.StageDistill, By: ByPerson, Reason: "rebuild"}})
		}
	}
	if len(drafts) == 0 {
		return nil, refuse(409, "no-report", "The thread has no report to derive facts from.")
	}
	return drafts, nil
}

// RetryLost asks once more for a step whose message is gone: acknowledged, and yet without outcome. At most MaxLost times, then the step fails.
type RetryLost struct {
	worker
	Step Step
}

func (c RetryLost) decide(t *Thread, now time.Time) ([]Draft, error) {
	if !slices.ContainsFunc(Next(t), func(s Step) bool { return s == c.Step }) {
		return nil, nil
	}
	const reason = "Its message was lost; the step was asked for again several times and never ended."
	retried := event.StageRetried{Stage: c.Step.Stage, By: BySweeper, Reason: "its message was lost"}
	if r := t.Runs[c.Step.Entity]; r != nil {
		if r.Lost[c.Step.Stage] < MaxLost {
			return []Draft{{Entity: r.ID, Run: r.ID, N: r.LastN + 1, Data: retried}}, nil
		}
		if c.Step.Stage == event.StageRun {
			return FailRun{Run: r.ID, Code: event.CodeLost, Detail: reason}.decide(t, now)
		}
		return FailStage{Stage: c.Step.Stage, Entity: r.ID, N: c.Step.N, Class: event.ClassLost, Reason: reason}.decide(t, now)
	}
	cycle, _ := t.closing(c.Step.Entity, 0)
	if cycle == nil {
		return nil, nil
	}
	if cycle.Lost[c.Step.Stage] < MaxLost {
		n := len(cycle.Closings)
		return []Draft{{Entity: c.Step.Entity, N: n, Data: retried}}, nil
	}
	return FailStage{Stage: c.Step.Stage, Entity: c.Step.Entity, N: c.Step.N, Class: event.ClassLost, Reason: reason}.decide(t, now)
}
