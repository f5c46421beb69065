package notebook

import (
	"fmt"
	"slices"
	"strings"

	"github.com/factstream/factstream/shared/event"
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

// activity is the reason of a thread that works on a cycle that is not settled.
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
	ended, words := t.ended(c), ""
	switch {
	case c.Size == 1 && ended == 0:
		words = "its run has not ended yet"
	case c.Size == 1:
		words = "its run has ended, and its steps go on"
	case ended == c.Size:
		words = fmt.Sprintf("its %d runs have ended, and their steps go on", c.Size)
	case ended == 1:
		words = fmt.Sprintf("1 of its %d runs has ended", c.Size)
	default:
		words = fmt.Sprintf("%d of its %d runs have ended", ended, c.Size)
	}
	return event.Reason{Code: ReasonCycle, Text: fmt.Sprintf("Cycle %d is under way: %s.", c.ID, words)}
}

// ended counts the runs of a cycle that have their terminal event.
func (t *Thread) ended(c *Cycle) int {
	n := 0
	for _, id := range c.Runs {
		if t.Runs[id].Terminal() {
			n++
		}
	}
	return n
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
	if !t.pausedInACall() {
		words = strings.TrimSpace(strings.Replace(words, callKept, "", 1))
	}
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

// callKept is what a pause says of the call under way; events of earlier versions say it also where there was none.
const callKept = "A call that was under way finishes and is kept."

// pausedInACall says whether a call was under way when the thread was paused: every other run that had not ended was withdrawn then.
func (t *Thread) pausedInACall() bool {
	return slices.ContainsFunc(t.RunIDs, func(id string) bool {
		r := t.Runs[id]
		ended := r.Terminal() && r.EndSeq < t.reasonSeq
		return r.Seq < t.reasonSeq && !ended && (r.Status != "withdrawn" || r.failedCall() != nil)
	})
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
		if words := said(t.Reason); words == settledWell && t.LastSettled < t.reasonSeq && o.blocked == nil {
			return o.open(words)
		}
		return o.open(o.left()) // also where one was named: another may be first in line by now
	case ReasonStage:
		return o.open(o.left())
	case ReasonAutoOff, ReasonNew:
		return t.unpiloted(o)
	}
	return event.Reason{Code: t.Reason.Code, Text: sentences(said(t.Reason), o.advice())}
}

// settledWell is the standing reason of a thread whose newest cycle made up for the stage that had failed.
const settledWell = "The newest cycle was settled without a failure."

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
