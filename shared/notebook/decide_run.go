package notebook

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/ledger"
	"github.com/factstream/factstream/shared/text"
)

// RequestRun asks one question once, in any status. Without a question it asks question 0.
type RequestRun struct {
	Run      string // id, a function of the request
	Question string // text; empty asks question 0
	Mode     string // empty: the thread's
	Nocache  bool
	Access   Access
}

func (c RequestRun) decide(t *Thread, _ time.Time) ([]Draft, error) {
	if t.Runs[c.Run] != nil {
		return nil, nil
	}
	if t.Archived {
		return nil, refuse(409, "thread-archived", "The thread is archived. Take it out of the archive before something is asked.")
	}
	var drafts []Draft
	question := t.Questions[RootQuestionID(t.ID)]
	if strings.TrimSpace(c.Question) != "" {
		if err := text.ValidQuestion(c.Question); err != nil {
			return nil, refuse(422, "invalid-question", "%s.", upper(err.Error()))
		}
		question = t.question(c.Question)
		if question == nil {
			question = &Question{ID: questionID(t.ID, text.Fingerprint(c.Question)), Text: c.Question}
			drafts = append(drafts, Draft{Entity: question.ID, Data: event.QuestionAsked{Text: c.Question, Origin: "human"}})
		}
	}
	mode := t.Settings.Mode
	if c.Mode != "" {
		mode = c.Mode
	}
	cost, err := ledger.Cost(t.Settings.Provider, mode)
	if err != nil {
		return nil, refuse(422, "invalid-mode", "The mode %q is not known; fast and balanced are.", text.Truncate(mode, 40))
	}
	replay, possible := t.replays(c.Access)
	if !possible {
		return nil, refuse(409, "no-key", "There is no usable key for %s. Save one in the settings; nothing was spent.", t.Settings.Provider)
	}
	if err := t.Ledger.Allows(t.Settings.Provider, cost); err != nil {
		return nil, budgetRefusal(err)
	}
	return append(drafts, Draft{Entity: c.Run, Run: c.Run, Data: event.RunRequested{
		Question: question.ID, Text: question.Text, Provider: t.Settings.Provider, Mode: mode, Depth: question.Depth,
		Cycle: len(t.Cycles) + 1, CycleSize: 1, RunKind: event.KindManual, Cost: cost, Nocache: c.Nocache, Replay: replay,
	}}), nil
}

func budgetRefusal(err error) *Refusal {
	refusal := refuse(402, "budget-exceeded", "%s. Nothing was spent; raise the budget to go on.", upper(err.Error()))
	var over *ledger.Exceeded
	if errors.As(err, &over) {
		refusal.Fields = map[string]any{"spent": over.Spent, "reserved": over.Reserved, "cost": over.Cost, "budget": over.Budget}
	}
	return refusal
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// StartAttempt claims the next attempt of a run, before money can be spent. Who sends it holds the provider's lease and has looked for a whole answer of
// the attempt before: an open one is therefore lost. Its events need ids of their own (a random Origin.Seed), not those of the message that asks for the
// run: of two holders that claim at once, since the first was stopped for longer than its lease, the claim of only one may be found stored.
type StartAttempt struct {
	worker
	Run    string
	Holder string
	Max    int // attempts of a run
	After  int // how many there were when it looked for a whole answer: when another was started since, nothing is claimed
}

func (c StartAttempt) decide(t *Thread, now time.Time) ([]Draft, error) {
	r := t.Runs[c.Run]
	if r == nil || r.Terminal() || len(r.Attempts) != c.After {
		return nil, nil
	}
	if t.Standing == Paused && r.Requested.RunKind == event.KindCycle {
		return []Draft{withdraw(r, "The thread was paused.")}, nil
	}
	if until := r.RetryAt(); now.Before(until) {
		return nil, &Wait{Until: until}
	}
	n := len(r.Attempts) + 1
	var drafts []Draft
	if open, ok := r.OpenAttempt(); ok {
		const lost = "The process that made the call ended before the whole answer was here."
		if r.Requested.Provider == event.Brave {
			return t.fail(r, event.RunFailed{Code: event.CodeUnknownOutcome,
				Detail: lost + " It is not bought again by itself, since the provider may have billed it.", Attempt: open.N}), nil
		}
		drafts = append(drafts, Draft{Entity: r.ID, Run: r.ID, N: open.N, Data: event.AttemptFailed{Code: event.CodeLost, Detail: lost}})
	}
	if n > c.Max {
		failed := t.fail(r, event.RunFailed{Code: event.CodeAttemptsExhausted,
			Detail: fmt.Sprintf("All %d attempts came to nothing. The reservation is released; the provider may still bill.", c.Max), Attempt: len(r.Attempts)})
		return append(drafts, failed...), nil
	}
	return append(drafts, Draft{Entity: r.ID, Run: r.ID, N: n, Data: event.AttemptStarted{Holder: c.Holder}}), nil
}

// fail ends a run and withdraws, in the same batch, all runs of the thread without an open attempt.
func (t *Thread) fail(r *Run, failure event.RunFailed) []Draft {
	drafts := []Draft{{Entity: r.ID, Run: r.ID, Data: failure}}
	return append(drafts, t.withdrawAll(r.ID, fmt.Sprintf("Another run of the thread failed (%s).", failure.Code))...)
}

// FailAttempt ends attempt N of a run. It is tried again when the failure is of that kind and attempts are left; else the run fails with it.
type FailAttempt struct {
	worker
	Run       string
	N         int
	Code      string
	Detail    string
	Retryable bool
	After     time.Duration   // as the provider told; 0: by Delays
	Delays    []time.Duration // before the second, third ... attempt; one more attempt than delays
}

func (c FailAttempt) decide(t *Thread, now time.Time) ([]Draft, error) {
	r := t.Runs[c.Run]
	if r == nil || r.Terminal() {
		return nil, nil
	}
	if open, ok := r.OpenAttempt(); !ok || open.N != c.N {
		return nil, nil // a later holder has taken over
	}
	retry := c.Retryable && c.N <= len(c.Delays)
	paused := t.Standing == Paused && r.Requested.RunKind == event.KindCycle
	failed := event.AttemptFailed{Code: c.Code, Detail: c.Detail}
	if retry && !paused {
		at := now.Add(max(c.After, c.Delays[c.N-1]))
		failed.RetryAt = &at
		return []Draft{{Entity: r.ID, Run: r.ID, N: c.N, Data: failed}}, nil
	}
	drafts := []Draft{{Entity: r.ID, Run: r.ID, N: c.N, Data: failed}}
	if retry { // the thread was paused meanwhile: it waits for its next attempt, so it is withdrawn
		return append(drafts, withdraw(r, "The thread was paused while the call was under way, and the call failed ("+c.Code+").")), nil
	}
	return append(drafts, t.fail(r, event.RunFailed{Code: c.Code, Detail: c.Detail, Attempt: c.N, Retryable: c.Retryable})...), nil
}

// CompleteRun settles a run by a whole answer of attempt N. It is void when the run has ended or a later attempt was started.
type CompleteRun struct {
	worker
	Run       string
	Completed event.RunCompleted
}

func (c CompleteRun) decide(t *Thread, _ time.Time) ([]Draft, error) {
	r := t.Runs[c.Run]
	if r == nil || r.Terminal() || len(r.Attempts) == 0 || r.Attempts[len(r.Attempts)-1].N != c.Completed.Attempt {
		return nil, nil
	}
	return []Draft{{Entity: r.ID, Run: r.ID, Data: c.Completed}}, nil
}

// FailRun ends a run that its worker gave up: crash_loop, malformed, no_key.
type FailRun struct {
	worker
	Run    string
	Code   string
	Detail string
}

func (c FailRun) decide(t *Thread, _ time.Time) ([]Draft, error) {
	r := t.Runs[c.Run]
	if r == nil || r.Terminal() {
		return nil, nil
	}
	return t.fail(r, event.RunFailed{Code: c.Code, Detail: c.Detail, Attempt: len(r.Attempts)}), nil
}

// CancelRun ends a run that a person no longer wants. A call under way is closed by whoever holds it.
type CancelRun struct{ Run string }

func (c CancelRun) decide(t *Thread, _ time.Time) ([]Draft, error) {
	r := t.Runs[c.Run]
	switch {
	case r == nil:
		return nil, refuse(404, "not-found", "There is no run %q in this thread.", c.Run)
	case r.Status == "completed":
		return nil, refuse(409, "run-completed", "The run has completed: its report is kept and its %d credits are spent.", r.Completed.Cost)
	case r.Terminal():
		return nil, nil
	}
	detail := "You cancelled the run before its call was made. Nothing was spent."
	if _, open := r.OpenAttempt(); open {
		detail = "You cancelled the run while its call was under way. The reservation is released; the provider may still bill."
	} else if len(r.Attempts) > 0 {
		detail = "You cancelled the run between two attempts. The reservation is released; the provider may still bill."
	}
	return t.fail(r, event.RunFailed{Code: event.CodeCancelled, Detail: detail, Attempt: len(r.Attempts)}), nil
}

// DeleteRun takes the receipt of an ended run away.
type DeleteRun struct{ Run string }

func (c DeleteRun) decide(t *Thread, _ time.Time) ([]Draft, error) {
	r := t.Runs[c.Run]
	switch {
	case r == nil:
		return nil, refuse(404, "not-found", "There is no run %q in this thread.", c.Run)
	case r.Deleted:
		return nil, nil
	case r.Open || t.CycleUnsettled(t.CycleOf(r.Requested.Cycle)):
		return nil, refuse(409, "run-active", "The run is still worked on. Cancel it or wait until its cycle is settled.")
	}
	return []Draft{{Entity: r.ID, Run: r.ID, Data: event.RunDeleted{}}}, nil
}
