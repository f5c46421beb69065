package notebook

import (
	"fmt"
	"slices"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/text"
)

// What has failed and nothing has made up for, as a person is told about it: runs here, and stages below.

// failedReason is the reason of a thread that waits because a run failed.
func failedReason(r *Run, o outlook) event.Reason {
	return event.Reason{Code: ReasonProvider, Text: sentences(upper(failure(r)), o.after(r))}
}

// failure is a sentence's beginning and all that is known: which run failed, by what code, and what was kept.
func failure(r *Run) string {
	code, detail := r.Failure.Code, r.Failure.Detail
	if a := r.failedCall(); a != nil { // withdrawn, since the thread was paused
		code, detail = a.Code, a.Detail
	}
	return sentences(fmt.Sprintf("the run %q failed (%s): %s", text.Truncate(r.Requested.Text, 80), code, sentence(detail)), perhapsCured(code))
}

// perhapsCured says of a failure that a person may have done something about outside the notebook, which does not know of it, what will show it; nothing of
// any other.
func perhapsCured(code string) string {
	switch code {
	case event.CodeAuth, event.CodeNoKey:
		return "If another key was saved since, the next run shows whether it works."
	case event.CodePaymentRequired:
		return "If the account was topped up since, the next run shows it."
	}
	return ""
}

// failedCall gives the attempt that failed at the moment in which its run was withdrawn, nil when there is none.
func (r *Run) failedCall() *Attempt {
	if r.Status != "withdrawn" || len(r.Attempts) == 0 {
		return nil
	}
	if last := &r.Attempts[len(r.Attempts)-1]; last.Code != "" && last.Ended.Equal(r.Ended) {
		return last
	}
	return nil
}

// failedSince gives the newest run that failed, or was cancelled, after a sequence, and that no run of another cycle has made up for by ending well later.
// One that a person cancelled says nothing about the provider: it is given when there is no other.
func (t *Thread) failedSince(seq uint64) (found *Run) {
	cancelled := func(r *Run) bool { return r.Failure.Code == event.CodeCancelled }
	for _, id := range t.RunIDs {
		r := t.Runs[id]
		switch {
		case r.EndSeq <= seq, r.Failure == nil, r.Status != "failed" && r.failedCall() == nil:
		case found != nil && cancelled(r) && !cancelled(found):
		case found != nil && r.EndSeq < found.EndSeq && cancelled(r) == cancelled(found):
		case t.madeUpFor(r):
		default:
			found = r
		}
	}
	return found
}

// madeUpFor says that a run of another cycle ended well after a failed one.
func (t *Thread) madeUpFor(failed *Run) bool {
	return slices.ContainsFunc(t.RunIDs, func(id string) bool {
		r := t.Runs[id]
		return r.Completed != nil && r.EndSeq > failed.EndSeq && r.Requested.Cycle != failed.Requested.Cycle
	})
}

// completedSince says that a run ended well after a sequence.
func (t *Thread) completedSince(seq uint64) bool {
	return slices.ContainsFunc(t.RunIDs, func(id string) bool { r := t.Runs[id]; return r.Completed != nil && r.EndSeq > seq })
}

// parkedBy gives the run for whose failure the thread was parked: the first that failed of the newest cycle at that time.
func (t *Thread) parkedBy() *Run {
	for _, c := range slices.Backward(t.Cycles) {
		for _, id := range c.Runs {
			if r := t.Runs[id]; r.Status == "failed" && r.EndSeq < t.reasonSeq {
				return r
			}
		}
	}
	return nil
}

// fault is what a chain lacks so that autopilot would not go on.
type fault struct {
	stage string
	Failed
	run *Run // nil when it is a step of a closing
}

// fault gives the newest stage that failed after a sequence and has not been made up for: by its retry, or by a later cycle of which nothing failed.
func (t *Thread) fault(seq uint64) (found *fault) {
	take := func(stage string, f Failed, r *Run, cycle *Cycle) {
		if f.Seq > seq && (found == nil || f.Seq > found.Seq) && !t.passed(cycle, f.Seq) {
			found = &fault{stage: stage, Failed: f, run: r}
		}
	}
	for i, c := range t.Cycles {
		for _, id := range c.Runs {
			r := t.Runs[id]
			for _, stage := range []string{event.StageDistill, event.StageJudge} {
				if f, failed := r.Failed[stage]; failed {
					take(stage, f, r, c)
				}
			}
		}
		closing := c.Newest()
		if closing == nil {
			continue
		}
		if f, failed := closing.Failed[event.StageQuestions]; failed && f.Seq > seq && len(t.Pending()) == 0 {
			take(event.StageQuestions, f, nil, c)
		}
		if f, failed := closing.Failed[event.StageAutopilot]; failed && i == len(t.Cycles)-1 {
			take(event.StageAutopilot, f, nil, c)
		}
	}
	return found
}

// passed says that another cycle brought a report and was settled without a failure after a sequence.
func (t *Thread) passed(failing *Cycle, seq uint64) bool {
	return slices.ContainsFunc(t.Cycles, func(c *Cycle) bool {
		closing := c.Newest()
		return c != failing && closing != nil && closing.Settled && closing.SettledSeq > seq && len(closing.Failed) == 0 && !t.stillFailing(c) &&
			slices.ContainsFunc(c.Runs, func(id string) bool { return t.Runs[id].Completed != nil })
	})
}

// what is a sentence's beginning.
func (f *fault) what() string {
	if f.stage == event.StageAutopilot {
		return "autopilot could not decide what comes next: " + sentence(f.Reason)
	}
	return fmt.Sprintf("the stage %s failed: %s", f.stage, sentence(f.Reason))
}

// kept says what is still there, without a full stop.
func (f *fault) kept() string {
	switch {
	case f.deleted():
		return "Its report was deleted"
	case f.run == nil || f.run.Deleted: // a step of a closing has no report of its own
		return "What was found is kept; retry the stage"
	}
	return "Its report is kept; retry the stage"
}

// deleted says that there is nothing left to retry the stage with.
func (f *fault) deleted() bool { return f.run != nil && f.run.Deleted && f.stage == event.StageDistill } // judging needs no report

// reason is that of a thread that waits because a stage failed.
func (f *fault) reason(o outlook) event.Reason {
	words := []string{upper(f.what())}
	switch {
	case f.stage == event.StageAutopilot && o.blocked == nil:
		words = append(words, tryAgain)
	case f.stage == event.StageAutopilot:
		words = append(words, o.blocked.Text)
	case o.blocked != nil:
		words = append(words, f.kept()+".", o.blocked.Text)
	case f.deleted():
		words = append(words, f.kept()+".", "Press Start to go on without it.")
	default:
		words = append(words, f.kept()+", or press Start to go on without it.")
	}
	return event.Reason{Code: ReasonStage, Text: sentences(words...)}
}
