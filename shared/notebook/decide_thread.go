package notebook

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/text"
)

// Limits of what a person may set.
const (
	MaxTitle  = 200 // code points
	MaxTags   = 20
	MaxTag    = 60 // code points
	MaxBudget = 1_000_000_000
	MaxDepth  = 100
	MaxBatch  = 20
)

// CreateThread opens a thread. Nothing is spent.
type CreateThread struct {
	Question string
	Title    string // empty: made from the question
	Tags     []string
	Settings event.Settings
}

func (c CreateThread) decide(t *Thread, _ time.Time) ([]Draft, error) {
	if t.Deleted {
		return nil, refuse(410, "thread-deleted", "This thread was deleted; use another Idempotency-Key for a new one.")
	}
	if t.Exists() { // the same request again
		return nil, nil
	}
	if err := text.ValidQuestion(c.Question); err != nil {
		return nil, refuse(422, "invalid-question", "%s.", upper(err.Error()))
	}
	if err := validSettings(c.Settings); err != nil {
		return nil, err
	}
	if err := validTags(c.Tags); err != nil {
		return nil, err
	}
	title := c.Title
	if title == "" {
		title = text.Truncate(text.FoldSpace(c.Question), 80) // one line, whatever the question has
	}
	if err := validTitle(title); err != nil {
		return nil, err
	}
	return []Draft{{Entity: "0", Data: event.ThreadCreated{Question: c.Question, Title: title, Tags: c.Tags, Settings: c.Settings}}}, nil
}

func validSettings(s event.Settings) error {
	switch {
	case s.Provider != event.Tabstack && s.Provider != event.Brave:
		return refuse(422, "invalid-provider", "The provider %q is not known; tabstack and brave are.", text.Truncate(s.Provider, 40))
	case s.Provider == event.Tabstack && s.Mode != event.Fast && s.Mode != event.Balanced:
		return refuse(422, "invalid-mode", "The mode %q is not known; fast and balanced are.", text.Truncate(s.Mode, 40))
	case s.Budget < 0 || s.Budget > MaxBudget:
		return refuse(422, "invalid-budget", "The budget is %d credits; it must be between 0 and %d.", s.Budget, MaxBudget)
	case s.Depth < -1 || s.Depth > MaxDepth:
		return refuse(422, "invalid-depth", "The depth is %d; it must be between 0 and %d, or -1 for no limit.", s.Depth, MaxDepth)
	case s.Batch < 1 || s.Batch > MaxBatch:
		return refuse(422, "invalid-batch", "The batch is %d; it must be between 1 and %d runs.", s.Batch, MaxBatch)
	case s.AnswerBudget != nil && *s.AnswerBudget < 0:
		return refuse(422, "invalid-answer-budget", "The answer budget is %d; it must not be negative.", *s.AnswerBudget)
	case s.Engine != "auto" && s.Engine != "ollama" && s.Engine != "extractive":
		return refuse(422, "invalid-engine", "The engine %q is not known; auto, ollama and extractive are.", text.Truncate(s.Engine, 40))
	}
	return nil
}

// validTitle refuses a title that is empty, too long, or would not stand in one line of a terminal as what it is.
func validTitle(title string) error {
	if n := utf8.RuneCountInString(title); n == 0 || n > MaxTitle {
		return refuse(422, "invalid-title", "The title has %d characters; 1 to %d are allowed.", n, MaxTitle)
	}
	if r, is := control(title); is {
		return refuse(422, "invalid-title", "The title has a control character: U+%04X.", r)
	}
	return nil
}

// control finds the first control character: one that moves a terminal's cursor, or ends a C string in a program that reads the notebook's file.
func control(s string) (r rune, is bool) {
	if i := strings.IndexFunc(s, unicode.IsControl); i >= 0 {
		r, _ = utf8.DecodeRuneInString(s[i:])
		return r, true
	}
	return 0, false
}

func validTags(tags []string) error {
	if len(tags) > MaxTags {
		return refuse(422, "invalid-tags", "There are %d tags; %d are allowed.", len(tags), MaxTags)
	}
	for _, tag := range tags {
		if n := len([]rune(tag)); n == 0 || n > MaxTag {
			return refuse(422, "invalid-tags", "The tag %q has %d characters; 1 to %d are allowed.", text.Truncate(tag, 80), n, MaxTag)
		}
		if r, is := control(tag); is {
			return refuse(422, "invalid-tags", "The tag %q has a control character: U+%04X.", tag, r)
		}
	}
	return nil
}

// Configure changes settings, title, tags and whether the thread is archived.
type Configure struct {
	Changes  event.ThreadConfigured
	Archived *bool
}

func (c Configure) decide(t *Thread, _ time.Time) ([]Draft, error) {
	var drafts []Draft
	if c.Archived != nil && *c.Archived != t.Archived {
		if status, _ := t.Status(); *c.Archived && status == Running {
			return nil, refuse(409, "thread-running", "The thread is running. Pause it before it is archived.")
		}
		drafts = append(drafts, Draft{Entity: "0", Data: event.ThreadArchived{Archived: *c.Archived}})
	}
	if c.Changes == (event.ThreadConfigured{}) {
		return drafts, nil
	}
	after := t.Clone()
	after.configured(c.Changes)
	if c.Changes.AnswerBudget != nil && *c.Changes.AnswerBudget < -1 {
		return nil, refuse(422, "invalid-answer-budget", "The answer budget is %d; it must not be negative (-1 takes the limit away).", *c.Changes.AnswerBudget)
	}
	if err := validSettings(after.Settings); err != nil {
		return nil, err
	}
	if err := validTags(after.Tags); err != nil {
		return nil, err
	}
	if c.Changes.Title != nil {
		if err := validTitle(after.Title); err != nil {
			return nil, err
		}
	}
	if after.Settings.Provider != t.Settings.Provider && len(t.RunIDs) > 0 {
		return nil, refuse(409, "provider-fixed", "The provider was fixed by the thread's first run (%s). Ask the question in a new thread.", t.Settings.Provider)
	}
	drafts = append(drafts, Draft{Entity: "0", Data: c.Changes})
	if after.Settings.Budget < t.Settings.Budget {
		drafts = append(drafts, after.withdrawOver("The budget was lowered below what was reserved.")...)
	}
	return drafts, nil
}

// withdrawOver withdraws runs that were not started, newest first, until reserved + spent is within the budget.
func (t *Thread) withdrawOver(why string) []Draft {
	over := t.Ledger.Held() + t.Ledger.Spent - t.Ledger.Budget
	var drafts []Draft
	for _, id := range slices.Backward(t.RunIDs) {
		r := t.Runs[id]
		if over <= 0 {
			break
		}
		if r.Terminal() || r.Requested.Cost == 0 {
			continue
		}
		if _, open := r.OpenAttempt(); open {
			continue
		}
		over -= r.Requested.Cost
		drafts = append(drafts, withdraw(r, why))
	}
	return drafts
}

func withdraw(r *Run, why string) Draft {
	return Draft{Entity: r.ID, Run: r.ID, Data: event.RunFailed{
		Code: event.CodeWithdrawn, Detail: why + " Nothing was spent; the question is first in line again.", Attempt: len(r.Attempts),
	}}
}

// withdrawAll withdraws every run without an open attempt, except one.
func (t *Thread) withdrawAll(except, why string) []Draft {
	var drafts []Draft
	for _, id := range t.RunIDs {
		r := t.Runs[id]
		if id == except || r.Terminal() {
			continue
		}
		if _, open := r.OpenAttempt(); open {
			continue
		}
		drafts = append(drafts, withdraw(r, why))
	}
	return drafts
}

// DeleteThread puts the tombstone of a thread. Purging the rest is the caller's.
type DeleteThread struct{}

func (DeleteThread) decide(t *Thread, _ time.Time) ([]Draft, error) {
	return []Draft{{Entity: "0", Data: event.ThreadDeleted{Spent: t.Ledger.Spent, Dollars: t.Ledger.Dollars, Runs: len(t.RunIDs)}}}, nil
}

// Start lets autopilot act: with the first runs in the same batch, or alone while a cycle is not settled. A thread that has nothing it may do is parked
// with the reason and refused (409).
type Start struct {
	Access Access
}

func (c Start) decide(t *Thread, now time.Time) ([]Draft, error) {
	if t.Archived {
		return nil, refuse(409, "thread-archived", "The thread is archived. Take it out of the archive before it is started.")
	}
	if t.Standing == Running {
		return nil, nil
	}
	started := Draft{Entity: "0", Data: event.ThreadStarted{Reason: event.Reason{Code: ReasonCycle, Text: "Autopilot asks the next question when the last one is settled."}}}
	if t.Unsettled() != nil {
		return []Draft{started}, nil
	}
	runs, park := t.plan(planning{access: c.Access, byPerson: true})
	if park != nil {
		refusal := refuse(409, "nothing-to-do", "Start has nothing it may do: %s", park.Reason.Text)
		refusal.Fields = map[string]any{"reason": park.Reason.Code}
		if t.Standing == park.Status && t.Reason == park.Reason {
			return nil, refusal
		}
		return []Draft{{Entity: "0", Data: *park}}, refusal
	}
	return append([]Draft{started}, t.request(runs)...), nil
}

// request makes the drafts of a cycle's runs. The ids are a function of the thread, the cycle and the place in it, so that a repeated decision names the same run.
func (t *Thread) request(runs []event.RunRequested) []Draft {
	drafts := make([]Draft, len(runs))
	for i, run := range runs {
		id := text.ID("run", t.ID, strconv.Itoa(run.Cycle), strconv.Itoa(i))
		drafts[i] = Draft{Entity: id, Run: id, Data: run}
	}
	return drafts
}

// Pause withdraws every run without an open attempt; the call under way finishes and is saved, and local stages go on.
type Pause struct {
	Why string // a sentence when it was not the button: on whose word. Empty: "You paused this thread."
}

func (c Pause) decide(t *Thread, _ time.Time) ([]Draft, error) {
	withdrawn := t.withdrawAll("", "The thread was paused.")
	if t.Standing == Paused {
		return withdrawn, nil
	}
	why := cmp.Or(c.Why, "You paused this thread.")
	if t.calling() {
		why = sentences(why, callKept)
	}
	return append([]Draft{{Entity: "0", Data: event.ThreadPaused{Reason: event.Reason{Code: ReasonPaused, Text: sentences(why, goOn)}}}}, withdrawn...), nil
}

// calling says whether a call is under way.
func (t *Thread) calling() bool {
	return slices.ContainsFunc(t.RunIDs, func(id string) bool {
		_, open := t.Runs[id].OpenAttempt()
		return open && !t.Runs[id].Terminal()
	})
}

// Autopilot acts on a settled cycle: the runs of the next one, or the reason to park. A message that comes again after a newer one, which asks for the same,
// leads to nothing: its second decision would be an event with the id of its first, and readers drop that.
type Autopilot struct {
	worker
	Access  Access
	Trigger uint64 // sequence of the message that asks for it
}

func (c Autopilot) decide(t *Thread, _ time.Time) ([]Draft, error) {
	if t.Standing != Running && t.Standing != New || t.Unsettled() != nil || len(t.Cycles) == 0 || c.Trigger != t.LastSettled {
		return nil, nil
	}
	runs, park := t.plan(planning{access: c.Access})
	if park != nil {
		return []Draft{{Entity: "0", Data: *park}}, nil
	}
	return t.request(runs), nil
}

// SetEngine records the engine that auto picked, before the first outcome that was made with it.
type SetEngine struct {
	worker
	Engine string
}

func (c SetEngine) decide(t *Thread, _ time.Time) ([]Draft, error) {
	if t.Settings.Engine != "auto" {
		return nil, nil
	}
	return []Draft{{Entity: "0", Data: event.ThreadConfigured{Engine: &c.Engine}}}, nil
}

// AskQuestion adds a person's question. It goes before those of the model.
type AskQuestion struct {
	ID   string
	Text string
}

func (c AskQuestion) decide(t *Thread, _ time.Time) ([]Draft, error) {
	if t.Questions[c.ID] != nil {
		return nil, nil
	}
	if err := text.ValidQuestion(c.Text); err != nil {
		return nil, refuse(422, "invalid-question", "%s.", upper(err.Error()))
	}
	if q := t.question(c.Text); q != nil && t.QuestionStatus(q) != QuestionDismissed {
		return nil, refuse(409, "question-known", "The thread has this question already (%s, %s).", q.ID, t.QuestionStatus(q))
	}
	return []Draft{{Entity: c.ID, Data: event.QuestionAsked{Text: c.Text, Origin: "human"}}}, nil
}

// question finds a question by its text, whatever its case and spacing. Of one that was dismissed and asked again it finds the latter.
func (t *Thread) question(words string) (found *Question) {
	print := text.Fingerprint(words)
	for _, id := range t.QIDs {
		q := t.Questions[id]
		if text.Fingerprint(q.Text) != print {
			continue
		}
		if t.QuestionStatus(q) != QuestionDismissed {
			return q
		}
		found = q
	}
	return found
}

// MoveQuestion puts a pending question at a place in the line, 0 first.
type MoveQuestion struct {
	ID       string
	Position int
}

func (c MoveQuestion) decide(t *Thread, _ time.Time) ([]Draft, error) {
	q := t.Questions[c.ID]
	if q == nil {
		return nil, refuse(404, "not-found", "There is no question %q in this thread.", c.ID)
	}
	if status := t.QuestionStatus(q); status != QuestionPending {
		return nil, refuse(409, "question-not-pending", "The question is %s; only a pending one has a place in the line.", status)
	}
	if c.Position < 0 {
		return nil, refuse(422, "invalid-position", "The position is %d; the first is 0.", c.Position)
	}
	// Those whose run came to nothing stand before all others, so that a question moves among its like only.
	var others []*Question
	ahead := 0
	for _, p := range t.Pending() {
		switch again := len(p.Runs) > 0; {
		case p == q:
		case again == (len(q.Runs) > 0):
			others = append(others, p)
		case again:
			ahead++
		}
	}
	at := min(max(c.Position-ahead, 0), len(others))
	var rank float64
	switch {
	case len(others) == 0:
		return nil, nil
	case at == 0:
		rank = others[0].Rank - 1
	case at == len(others):
		rank = others[at-1].Rank + 1
	default:
		rank = (others[at-1].Rank + others[at].Rank) / 2
	}
	if rank == q.Rank {
		return nil, nil
	}
	return []Draft{{Entity: c.ID, Data: event.QuestionMoved{Rank: rank}}}, nil
}

// DismissQuestion takes a pending question out of the line.
type DismissQuestion struct{ ID string }

func (c DismissQuestion) decide(t *Thread, _ time.Time) ([]Draft, error) {
	q := t.Questions[c.ID]
	if q == nil {
		return nil, refuse(404, "not-found", "There is no question %q in this thread.", c.ID)
	}
	if q.Dismissed {
		return nil, nil
	}
	return []Draft{{Entity: c.ID, Data: event.QuestionDismissed{}}}, nil
}
