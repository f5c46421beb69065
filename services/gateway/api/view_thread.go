package api

import (
	"errors"
	"fmt"
	"time"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/ledger"
	"github.com/factstream/factstream/shared/notebook"
)

// Thread is a thread as the API shows it.
type Thread struct {
	ID             string          `json:"id"`
	Question       string          `json:"question"`
	Title          string          `json:"title"`
	Tags           []string        `json:"tags"`
	Status         string          `json:"status" enum:"new,running,paused,idle,complete"`
	Reason         event.Reason    `json:"reason"`
	StartRefused   *event.Reason   `json:"start_refused" doc:"Why Start would be refused now, given a key; null when it goes on"`
	RunRefused     RunRefused      `json:"run_refused" doc:"Why asking once would be refused now, given a key"`
	Autopilot      bool            `json:"autopilot" doc:"Whether autopilot is at work: when the cycle is settled it decides what to ask next"`
	Archived       bool            `json:"archived"`
	Settings       ThreadSettings  `json:"settings"`
	Replay         *bool           `json:"replay" doc:"Whether its runs play recorded streams; null before the first run decides it for ever"`
	Ledger         Ledger          `json:"ledger"`
	Counts         Counts          `json:"counts"`
	KnowledgeError *KnowledgeError `json:"knowledge_error"`
	Cycle          int             `json:"cycle" doc:"The newest; 0 before the first run"`
	CreatedAt      time.Time       `json:"created_at"`
	UpdatedAt      time.Time       `json:"updated_at"`
	Position       uint64          `json:"position" doc:"Stream sequence of the thread's last event"`
	Projected      *bool           `json:"projected,omitempty" doc:"In answers to writes: false when reads may not see the change for a moment"`
}

// RunRefused says for each mode why a run of it would be refused, given a key: by code archived, budget or answer_budget.
type RunRefused struct {
	Fast     *event.Reason `json:"fast" doc:"null when it is accepted"`
	Balanced *event.Reason `json:"balanced" doc:"null when it is accepted"`
}

// ThreadSettings are what a thread is run by.
type ThreadSettings struct {
	Provider     string `json:"provider"`
	Mode         string `json:"mode"`
	Depth        int    `json:"depth" doc:"Deepest question that autopilot may ask; -1 is no limit"`
	Batch        int    `json:"batch" doc:"Runs per cycle"`
	Auto         bool   `json:"auto" doc:"Plan and run follow-ups"`
	Engine       string `json:"engine" doc:"auto until the first model step"`
	AnswerBudget *int   `json:"answer_budget"`
}

// Ledger is a thread's account, in credits; dollars are Brave's.
type Ledger struct {
	Budget       int     `json:"budget"`
	Spent        int     `json:"spent"`
	Reserved     int     `json:"reserved"`
	Dollars      float64 `json:"dollars"`
	Answers      int     `json:"answers"`
	AnswerBudget *int    `json:"answer_budget"`
}

// Counts of what a thread has. Facts and contradictions are the active ones.
type Counts struct {
	Runs           int `json:"runs"`
	Facts          int `json:"facts"`
	Sources        int `json:"sources"`
	Questions      int `json:"questions"`
	Contradictions int `json:"contradictions"`
}

// KnowledgeError is a stage whose outcome is missing.
type KnowledgeError struct {
	Stage  string    `json:"stage"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
}

func threadView(t *notebook.Thread) Thread {
	status, reason := t.Status()
	v := Thread{
		ID: t.ID, Question: t.Question, Title: t.Title, Tags: some(t.Tags), Status: status, Reason: reason, StartRefused: t.StartRefused(),
		RunRefused: RunRefused{Fast: runRefused(t, event.Fast), Balanced: runRefused(t, event.Balanced)}, Autopilot: t.Standing == notebook.Running && t.Settings.Auto, Archived: t.Archived,
		Settings: ThreadSettings{
			Provider: t.Settings.Provider, Mode: t.Settings.Mode, Depth: t.Settings.Depth, Batch: t.Settings.Batch,
			Auto: t.Settings.Auto, Engine: t.Settings.Engine, AnswerBudget: copied(t.Settings.AnswerBudget),
		},
		Replay: copied(t.Replay),
		Ledger: Ledger{
			Budget: t.Ledger.Budget, Spent: t.Ledger.Spent, Reserved: t.Ledger.Held(), Dollars: t.Ledger.Dollars,
			Answers: t.Ledger.Answers, AnswerBudget: copied(t.Ledger.AnswerBudget),
		},
		Counts: countsOf(t), Cycle: len(t.Cycles), CreatedAt: t.Created.UTC(), UpdatedAt: t.Updated.UTC(), Position: t.Seq,
	}
	if k := t.KnowledgeError; k != nil {
		v.KnowledgeError = &KnowledgeError{Stage: k.Stage, Reason: k.Reason, Since: k.Since.UTC()}
	}
	return v
}

// runRefused asks the rules that a request of a run is decided by; only what they say is put for somebody who has not asked.
func runRefused(t *notebook.Thread, mode string) *event.Reason {
	_, err := notebook.Decide(t, notebook.RequestRun{Mode: mode, Access: notebook.Access{Live: true, Replay: true}}, t.Updated)
	var refusal *notebook.Refusal
	if !errors.As(err, &refusal) {
		return nil
	}
	cost, _ := ledger.Cost(t.Settings.Provider, mode) // it is known: else there would be no thread
	l := t.Ledger
	switch left := l.Budget - l.Spent - l.Held(); {
	case refusal.Code == "thread-archived":
		return &event.Reason{Code: notebook.ReasonArchived, Text: "The thread is archived: nothing is asked."}
	case t.Settings.Provider == event.Brave:
		return &event.Reason{Code: notebook.ReasonAnswerBudget, Text: "The limit of answers is reached: nothing is asked until it is raised."}
	case left <= 0:
		return &event.Reason{Code: notebook.ReasonBudget, Text: fmt.Sprintf("A run costs %d credits, and nothing of the budget of %d is left.", cost, l.Budget)}
	default:
		return &event.Reason{Code: notebook.ReasonBudget, Text: fmt.Sprintf("A run costs %d credits, and only %d of the budget of %d are left.", cost, left, l.Budget)}
	}
}

func countsOf(t *notebook.Thread) Counts {
	c := Counts{Runs: len(t.RunIDs), Questions: len(t.QIDs), Contradictions: len(t.Contradictions()), Sources: len(t.Sources)}
	for _, f := range t.Facts {
		if f.Active() {
			c.Facts++
		}
	}
	return c
}

// some is the slice itself, or an empty one: lists are never null.
func some[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// copied keeps a view from pointing into the notebook.
func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// utc is a copy of a time that may be absent, in the zone in which all times are told.
func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return timeOrNull(*t)
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
