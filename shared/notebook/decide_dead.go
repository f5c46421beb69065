package notebook

import (
	"slices"
	"strconv"
	"time"

	"github.com/factstream/factstream/shared/event"
)

// PutBack asks again for what a message stood for that the worker of a stage could not read. What the state still waits for is asked for by
// stage.retried, so that nothing is bought twice; a run that came to nothing is requested anew, with a reservation of its own.
type PutBack struct {
	Stage  string // what the worker does: run, autopilot, distill, judge or close
	Entity string // as the subject of the message names it: a run, or a cycle
	Run    string // id of the run that is requested anew: a function of the message, so that putting it back twice reserves once
	// What can still be read of a request that never came to be a run; empty when nothing can.
	Question, Mode string
	Access         Access
}

const putBack = "put back from the dead letters"

func (c PutBack) decide(t *Thread, now time.Time) ([]Draft, error) {
	if r := t.Runs[c.Entity]; r != nil {
		return c.ofRun(t, r, now)
	}
	if cycle, _ := t.closing(c.Entity, 0); cycle != nil {
		return c.ofCycle(t, cycle)
	}
	if c.Stage == event.StageRun && c.Question != "" {
		return RequestRun{Run: c.Run, Question: c.Question, Mode: c.Mode, Access: c.Access}.decide(t, now)
	}
	return nil, refuse(409, "nothing-to-put-back",
		"The message names neither a run nor a cycle of the thread: since nobody could read it, nothing was begun, reserved or changed by it.")
}

func (c PutBack) ofRun(t *Thread, r *Run, now time.Time) ([]Draft, error) {
	if awaited := r.Awaits(); awaited != "" { // also of another stage: what was to end it may be what could not be read
		return []Draft{{Entity: r.ID, Run: r.ID, N: r.LastN + 1, Data: retriedByPerson(awaited)}}, nil
	}
	switch c.Stage {
	case event.StageRun:
		if r.Status == "completed" {
			return nil, refuse(409, "run-completed", "The run has completed: its report is kept, and nothing is bought again.")
		}
		return RequestRun{
			Run: c.Run, Question: r.Requested.Text, Mode: r.Requested.Mode, Nocache: r.Requested.Nocache, Access: c.Access,
		}.decide(t, now)
	case event.StageDistill, event.StageJudge:
		return RetryStage{Stage: c.Stage, Entity: r.ID, Reason: putBack}.decide(t, now)
	}
	return c.ofCycle(t, t.CycleOf(r.Requested.Cycle))
}

func (c PutBack) ofCycle(t *Thread, cycle *Cycle) ([]Draft, error) {
	entity, n := strconv.Itoa(cycle.ID), len(cycle.Closings)
	newest := cycle.Newest()
	switch {
	case c.Stage != event.StageClose && c.Stage != event.StageAutopilot:
		return nil, refuse(409, "nothing-to-put-back", "The message names cycle %d, and its worker has to do with runs only.", cycle.ID)
	case newest == nil || len(cycle.Runs) < cycle.Size || t.RunOpen(cycle):
		return nil, refuse(409, "cycle-active", "A run of cycle %d is still worked on; what comes of it asks for the rest by itself.", cycle.ID)
	case !newest.Settled || c.Stage == event.StageClose && len(newest.lacking()) > 0:
		return []Draft{{Entity: entity, N: n, Data: retriedByPerson(event.StageClose)}}, nil
	case c.Stage == event.StageClose: // nothing is missing: what a person asks for all the same is the brief
		return []Draft{{Entity: entity, N: n, Data: retriedByPerson(event.StageBrief)}}, nil
	}
	next := Next(t)
	decides := slices.IndexFunc(next, func(s Step) bool { return s.Stage == event.StageAutopilot })
	if decides < 0 {
		status, reason := t.Status()
		return nil, refuse(409, "nothing-to-put-back", "Autopilot has nothing to decide: the thread is %s. %s", status, sentence(reason.Text))
	}
	return []Draft{{Entity: next[decides].Entity, N: len(t.CycleOf(len(t.Cycles)).Closings), Data: retriedByPerson(event.StageAutopilot)}}, nil
}

func retriedByPerson(stage string) event.StageRetried {
	return event.StageRetried{Stage: stage, By: ByPerson, Reason: putBack}
}
