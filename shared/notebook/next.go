package notebook

import (
	"strconv"
	"time"

	"github.com/factstream/factstream/shared/event"
)

// Step is something that must happen next in a thread.
type Step struct {
	Stage     string
	Entity    string    // run or cycle
	N         int       // generation or closing of its outcome
	Trigger   uint64    // sequence of the message that asks for it
	NotBefore time.Time // zero: now
}

// Next names everything that must happen next in a thread, whoever has to do it. A thread whose Next is empty waits for a person.
func Next(t *Thread) []Step {
	if !t.Exists() {
		return nil
	}
	var steps []Step
	for _, id := range t.RunIDs {
		r := t.Runs[id]
		switch r.Awaits() {
		case event.StageRun:
			steps = append(steps, Step{Stage: event.StageRun, Entity: id, Trigger: r.Seq, NotBefore: r.RetryAt()})
		case event.StageDistill:
			steps = append(steps, Step{Stage: event.StageDistill, Entity: id, N: r.Gen, Trigger: r.DistillSeq})
		case event.StageJudge:
			steps = append(steps, Step{Stage: event.StageJudge, Entity: id, N: r.Gen, Trigger: r.JudgeSeq})
		}
	}
	for _, c := range t.Cycles {
		if newest := c.Newest(); newest != nil && !newest.Settled && !t.RunOpen(c) {
			steps = append(steps, Step{Stage: event.StageClose, Entity: strconv.Itoa(c.ID), N: newest.N, Trigger: newest.Seq})
		}
	}
	if t.LastSettled != 0 && (t.Standing == Running || t.Standing == New) && t.Unsettled() == nil {
		steps = append(steps, Step{Stage: event.StageAutopilot, Entity: strconv.Itoa(len(t.Cycles)), Trigger: t.LastSettled})
	}
	return steps
}
