package notebook

import (
	"fmt"
	"slices"
	"strings"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/ledger"
	"github.com/factstream/factstream/shared/text"
)

// Status is what is shown: running while the standing status is running, or while it is new, idle or complete and a cycle is not settled; else the
// standing status. The reason is what a person is told about it now: the standing reason with what has happened since it was given, and what Start would
// do. It is only shown: who decides reads Standing and Reason, as the events left them.
func (t *Thread) Status() (string, event.Reason) {
	c := t.Unsettled()
	switch {
	case t.Standing == Running && c == nil, !t.Exists():
		return t.Standing, t.Reason
	case t.Standing == Paused:
		return Paused, t.paused(c)
	case c != nil:
		return Running, t.activity(c)
	case t.Standing == Complete:
		return Complete, t.exhausted()
	case t.Standing == New && t.LastSettled == 0:
		return New, t.unasked()
	}
	return t.Standing, t.waiting()
}

func (t *Thread) activity(c *Cycle) event.Reason {
	if newest := c.Newest(); c.retried || (newest != nil && newest.Retry) {
		return event.Reason{Code: ReasonRetry, Text: fmt.Sprintf("A stage of cycle %d is done again.", c.ID)}
	}
	switch c.Kind {
	case event.KindManual:
		return event.Reason{Code: ReasonManual, Text: fmt.Sprintf("A run that you asked for is under way (cycle %d).", c.ID)}
	case event.KindWatch:
		return event.Reason{Code: ReasonWatch, Text: fmt.Sprintf("A watch is looking again (cycle %d).", c.ID)}
	}
	return event.Reason{Code: ReasonCycle, Text: fmt.Sprintf("Cycle %d is under way: %d of its %d runs have ended.", c.ID, t.ended(c), c.Size)}
}

func (t *Thread) ended(c *Cycle) int {
	n := 0
	for _, id := range c.Runs {
		if t.Runs[id].Terminal() {
			n++
		}
	}
	return n
}

// Advice with which a reason ends while Start has something it may do.
const (
	goOn     = "Press Start to go on."
	askAgain = "Press Start to ask again."
	tryAgain = "Press Start to try again."
)

// said is a reason's text without its advice, which was right when it was written.
func said(reason event.Reason) string {
	words := reason.Text
	for _, advice := range []string{goOn, askAgain, tryAgain} {
		words = strings.TrimSuffix(words, advice)
	}
	return strings.TrimSpace(words)
}

// outlook is what Start would do at this moment with a usable key: the state does not know whether there is one.
type outlook struct {
	thread  *Thread
	next    []event.RunRequested
	blocked *event.Reason // why Start would be refused; without a code when that is because the thread is archived
}

func (t *Thread) outlook() outlook {
	o := outlook{thread: t}
	if t.Unsettled() == nil { // else it is started alone
		next, park := t.plan(planning{access: Access{Live: true, Replay: true}, byPerson: true})
		if park != nil {
			o.blocked = &park.Reason
			return o
		}
		o.next = next
	}
	if t.Archived {
		o.blocked = &event.Reason{Text: "The thread is archived: take it out of the archive to go on."}
	}
	return o
}

// advice is what to do: press Start, or what would have to change before.
func (o outlook) advice() string {
	if o.blocked != nil {
		return o.blocked.Text
	}
	return goOn
}

// after is the advice after a run that failed. What was answered before is not pending, so that Start does not ask it again.
func (o outlook) after(r *Run) string {
	switch {
	case o.blocked == nil && slices.ContainsFunc(o.next, func(next event.RunRequested) bool { return next.Question == r.Requested.Question }):
		return askAgain
	case o.blocked != nil && o.blocked.Code == ReasonNoQuestions && o.repeats(r):
		return "No question is open besides: ask it again, or put one of your own."
	}
	return o.advice()
}

// repeats says whether a person may ask a run's question once more although it has an answer.
func (o outlook) repeats(r *Run) bool {
	q := o.thread.Questions[r.Requested.Question]
	cost, err := ledger.Cost(r.Requested.Provider, r.Requested.Mode)
	return err == nil && q != nil && o.thread.QuestionStatus(q) == QuestionAnswered && !o.thread.Archived && o.thread.Ledger.Allows(r.Requested.Provider, cost) == nil
}

// open is the reason of a thread that nothing but a person's Start is missing: ready, or what keeps Start from going on.
func (o outlook) open(words string) event.Reason {
	if o.blocked != nil && o.blocked.Code != "" {
		return event.Reason{Code: o.blocked.Code, Text: sentences(words, o.blocked.Text)}
	}
	return event.Reason{Code: ReasonReady, Text: sentences(words, o.advice())}
}

func sentences(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}

// unasked is the reason of a new thread.
func (t *Thread) unasked() event.Reason {
	if o := t.outlook(); o.blocked != nil {
		return event.Reason{Code: t.Reason.Code, Text: sentences("Nothing has been asked yet.", o.blocked.Text)}
	}
	return t.Reason
}

// paused is the reason of a pause, with what became of the calls that were under way or were asked for since; c is a cycle that is not settled, or nil.
func (t *Thread) paused(c *Cycle) event.Reason {
	words := said(t.Reason)
	if r := t.failedSince(t.reasonSeq); r != nil {
		words = sentences(words, "Since then "+failure(r))
	}
	if f := t.fault(t.reasonSeq); f != nil {
		words = sentences(words, "Since then "+f.what())
	}
	if c != nil && c.Kind != event.KindCycle {
		words = sentences(words, t.activity(c).Text)
	}
	return event.Reason{Code: t.Reason.Code, Text: sentences(words, t.outlook().advice())}
}

// exhausted is the reason of a complete thread, with the figures of now: they may have changed without giving it anything to do.
func (t *Thread) exhausted() event.Reason {
	o := t.outlook()
	if o.blocked == nil { // between two events of one batch
		return t.Reason
	}
	var words string
	if f := t.fault(t.reasonSeq); f != nil {
		words = sentences(upper(f.what()), f.kept()+".")
	}
	if r := t.failedSince(t.reasonSeq); r != nil {
		return event.Reason{Code: o.blocked.Code, Text: sentences(words, upper(failure(r)), o.after(r))}
	}
	return event.Reason{Code: o.blocked.Code, Text: sentences(words, o.advice())}
}

// waiting is the reason of a thread that waits for a person: by the order in which autopilot parks, the first that fits what has happened since the standing
// reason was given, else the standing reason if its cause is still there, else what Start may do.
func (t *Thread) waiting() event.Reason {
	o := t.outlook()
	failed, faultAfter := t.failedSince(t.heard.seq), t.heard.seq
	if t.heard.code == ReasonStage { // its cause is older than it
		faultAfter = 0
	}
	if failed != nil && failed.Failure.Code != event.CodeCancelled {
		return failedReason(failed, o)
	}
	if f := t.fault(faultAfter); f != nil {
		return f.reason(o)
	}
	worked := t.completedSince(t.reasonSeq)
	switch t.Reason.Code {
	case ReasonProvider:
		if worked {
			return o.open("The provider had failed; a run since then ended well.")
		}
		if r := t.parkedBy(); r != nil {
			return failedReason(r, o)
		}
		return event.Reason{Code: ReasonProvider, Text: sentences(said(t.Reason), o.advice())}
	case ReasonNoKey:
		if worked {
			return o.open("The key was missing; a run since then ended well.")
		}
		return t.keyless(o)
	}
	if failed != nil { // cancelled by a person: less than all of the above
		return failedReason(failed, o)
	}
	switch t.Reason.Code {
	case ReasonReady:
		if t.LastSettled < t.reasonSeq && o.blocked == nil {
			return o.open(said(t.Reason))
		}
		return o.open(o.left())
	case ReasonStage:
		return o.open(o.left())
	case ReasonAutoOff, ReasonNew:
		return t.unpiloted(o)
	}
	return event.Reason{Code: t.Reason.Code, Text: sentences(said(t.Reason), o.advice())}
}

// left says that there is something, where nothing more than that can be said.
func (o outlook) left() string {
	if o.blocked != nil && o.blocked.Code != "" {
		return ""
	}
	return "There is something left to ask."
}

// unpiloted is the reason of a thread whose autopilot is off, or was never started.
func (t *Thread) unpiloted(o outlook) event.Reason {
	words := "Autopilot is off: nothing more is asked until you say so."
	if t.Settings.Auto {
		words = "Autopilot is off until it is started: nothing more is asked until you say so."
	}
	return event.Reason{Code: ReasonAutoOff, Text: sentences(words, o.advice())}
}

// keyless says what was, since a key may have been saved meanwhile.
func (t *Thread) keyless(o outlook) event.Reason {
	words := fmt.Sprintf("When the next question was due there was no usable key for %s. ", t.Settings.Provider)
	if o.blocked == nil {
		words += "If none has been saved since, save one in the settings; then press Start."
	} else {
		words += "If none has been saved since, save one in the settings. " + o.blocked.Text
	}
	return event.Reason{Code: ReasonNoKey, Text: words}
}

func failedReason(r *Run, o outlook) event.Reason {
	return event.Reason{Code: ReasonProvider, Text: sentences(upper(failure(r)), o.after(r))}
}

// failure is a sentence's beginning and all that is known: which run failed, by what code, and what was kept.
func failure(r *Run) string {
	code, detail := r.Failure.Code, r.Failure.Detail
	if a := r.failedCall(); a != nil { // withdrawn, since the thread was paused
		code, detail = a.Code, a.Detail
	}
	return fmt.Sprintf("the run %q failed (%s): %s", text.Truncate(r.Requested.Text, 80), code, sentence(detail))
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

func (t *Thread) madeUpFor(failed *Run) bool {
	return slices.ContainsFunc(t.RunIDs, func(id string) bool {
		r := t.Runs[id]
		return r.Completed != nil && r.EndSeq > failed.EndSeq && r.Requested.Cycle != failed.Requested.Cycle
	})
}

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
	if f.deleted() {
		return "Its report was deleted"
	}
	return "Its report is kept; retry the stage"
}

func (f *fault) deleted() bool { return f.run != nil && f.run.Deleted && f.stage == event.StageDistill } // judging needs no report

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
