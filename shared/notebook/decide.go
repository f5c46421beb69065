package notebook

import (
	"fmt"
	"time"

	"github.com/factstream/factstream/shared/event"
)

// Command is something that somebody wants of a thread.
type Command interface {
	// decide gives the events to append, nothing when there is nothing to do, and a refusal as *Refusal or *Wait.
	// Events beside a refusal are appended all the same (a Start that parks). It must not change the thread.
	decide(t *Thread, now time.Time) ([]Draft, error)
}

// Draft is an event before it has an id, a cause and a time.
type Draft struct {
	Entity string
	Run    string
	N      int
	Data   event.Data
}

// Refusal says that a command cannot be done in this state. Code is stable; Text is for people.
type Refusal struct {
	Code   string // the last segment of the problem type
	Status int    // HTTP status: 402, 404, 409, 410 or 422
	Text   string
	Fields map[string]any // figures named in the text, for programs
}

func (r *Refusal) Error() string { return r.Text }

// Wait says that a step may be done, but not before a time.
type Wait struct{ Until time.Time }

func (w *Wait) Error() string { return "not before " + w.Until.UTC().Format(time.RFC3339) }

func refuse(status int, code, format string, args ...any) *Refusal {
	return &Refusal{Status: status, Code: code, Text: fmt.Sprintf(format, args...)}
}

// Decide gives the events that a command leads to in this state, as one batch. It holds every rule of the notebook and is pure: now is the only
// clock. No events and no error mean that there is nothing to do: it was done before, or its time is over.
func Decide(t *Thread, cmd Command, now time.Time) ([]Draft, error) {
	switch c := cmd.(type) {
	case CreateThread:
		return c.decide(t, now)
	case step:
		if !t.Exists() { // a step of a thread that is gone ends quietly
			return nil, nil
		}
	}
	if t.Deleted {
		return nil, refuse(410, "thread-deleted", "The thread was deleted. Only what it cost is still known: %d credits. To ask again, open a new thread.", t.Ledger.Spent)
	}
	if !t.Exists() {
		return nil, refuse(404, "not-found", "There is no thread %q. The list of threads names those that there are.", t.ID)
	}
	drafts, err := cmd.decide(t, now)
	if len(drafts) == 0 {
		return drafts, err
	}
	return append(drafts, ready(t, drafts, now)...), err
}

// step marks the commands of workers: of a thread that is gone they are done without a word.
type step interface{ isStep() }

type worker struct{}

func (worker) isStep() {}

// ready keeps the promise of "complete": what gives a complete thread something it may do parks it idle in the same batch.
func ready(t *Thread, drafts []Draft, now time.Time) []Draft {
	if t.Standing != Complete || !mayGiveWork(drafts) {
		return nil
	}
	after := t.Clone()
	after.apply(drafts, now)
	if after.Standing != Complete || after.Unsettled() != nil {
		return nil
	}
	next, park := after.plan(planning{access: Access{Live: true, Replay: true}, byPerson: true})
	if park != nil {
		return nil
	}
	return []Draft{{Entity: "0", Data: event.ThreadParked{Status: Idle, Reason: event.Reason{Code: ReasonReady, Text: sentences(inLine(next), goOn)}}}}
}

// mayGiveWork spares the steps of a chain the copy of the thread that ready needs.
func mayGiveWork(drafts []Draft) bool {
	for _, d := range drafts {
		switch d.Data.(type) {
		case event.ThreadConfigured, event.QuestionAsked, event.QuestionMoved, event.ThreadSettled:
			return true
		}
	}
	return false
}

// apply evolves a copy by drafts, to see where they would lead.
func (t *Thread) apply(drafts []Draft, now time.Time) {
	for i, d := range drafts {
		t.Evolve(event.Event{
			ID: fmt.Sprintf("draft-%d", i), Time: now, Thread: t.ID, Run: d.Run, Entity: d.Entity, N: d.N, Data: d.Data, Seq: t.Seq + 1,
		})
	}
}
