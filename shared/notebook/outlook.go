package notebook

import (
	"fmt"
	"slices"
	"strings"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/ledger"
	"github.com/factstream/factstream/shared/text"
)

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

// outlook asks the rules that Start asks: what is advised is what would be done.
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

// left names what Start would ask, where there is nothing else to say.
func (o outlook) left() string {
	if o.blocked != nil && o.blocked.Code != "" {
		return ""
	}
	return inLine(o.next)
}

// inLine names the first of the runs that Start would ask for, at least one.
func inLine(next []event.RunRequested) string {
	return fmt.Sprintf("The next question is %q.", text.Truncate(next[0].Text, 80))
}

// ReasonArchived is a code of StartRefused alone: being archived is no reason of a status.
const ReasonArchived = "archived"

// StartRefused says why Start would be refused at this moment, given a key; nil when it would go on. Its code is that of the reason by which the thread
// would be parked, or "archived".
func (t *Thread) StartRefused() *event.Reason {
	if t.Standing == Running { // it is no second start, and an archived thread is never running
		return nil
	}
	refused := t.outlook().blocked
	if refused != nil && refused.Code == "" {
		return &event.Reason{Code: ReasonArchived, Text: refused.Text}
	}
	return refused
}

// sentences joins what there is of them.
func sentences(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}
