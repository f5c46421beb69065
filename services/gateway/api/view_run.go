package api

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/progress"
)

// Run is a run as the API shows it.
type Run struct {
	ID                string          `json:"id"`
	Thread            string          `json:"thread"`
	Question          string          `json:"question" doc:"What was asked, verbatim"`
	QuestionID        string          `json:"question_id"`
	Kind              string          `json:"kind" enum:"cycle,manual,watch"`
	Status            string          `json:"status" enum:"requested,running,completed,failed,withdrawn"`
	Waiting           *Waiting        `json:"waiting"`
	Phase             string          `json:"phase" doc:"The provider's own word for what it is doing; empty when it is not under way"`
	Provider          string          `json:"provider"`
	Replayed          bool            `json:"replayed"`
	Mode              string          `json:"mode"`
	Depth             int             `json:"depth"`
	Cycle             int             `json:"cycle"`
	Attempts          []Attempt       `json:"attempts"`
	Cost              int             `json:"cost" doc:"Credits: reserved until the run has ended, then spent"`
	Dollars           float64         `json:"dollars"`
	RequestedAt       time.Time       `json:"requested_at"`
	StartedAt         *time.Time      `json:"started_at"`
	FinishedAt        *time.Time      `json:"finished_at"`
	Failure           *Failure        `json:"failure"`
	Stages            []Stage         `json:"stages"`
	Metadata          json.RawMessage `json:"metadata" doc:"Of the provider; null in lists when it is bulky"`
	Usage             json.RawMessage `json:"usage"`
	Warnings          []string        `json:"warnings"`
	Pages             int             `json:"pages" doc:"Cited pages"`
	UnresolvedMarkers int             `json:"unresolved_markers"`
	FactsLeftOut      int             `json:"facts_left_out"`
	Deleted           bool            `json:"deleted"`
	Projected         *bool           `json:"projected,omitempty" doc:"In answers to writes: false when reads may not see the change for a moment"`
}

// Waiting says what a run waits for.
type Waiting struct {
	For   string     `json:"for" doc:"Goes on after \"waits for\""`
	Since time.Time  `json:"since"`
	Until *time.Time `json:"until" doc:"When it goes on, if that is known"`
}

// Attempt is one try of a run's call.
type Attempt struct {
	N         int        `json:"n"`
	StartedAt time.Time  `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at"`
	Outcome   string     `json:"outcome" doc:"completed, a failure code, or running"`
	Detail    string     `json:"detail"`
}

// Failure is why a run gave no report.
type Failure struct {
	Code      string `json:"code"`
	Detail    string `json:"detail"`
	Retryable bool   `json:"retryable"`
}

// Stage is what is made of a run, or of its cycle.
type Stage struct {
	Name    string     `json:"name"`
	State   string     `json:"state" enum:"pending,waiting,running,done,failed,skipped"`
	Since   *time.Time `json:"since"`
	Text    string     `json:"text"`
	Seconds *float64   `json:"seconds" doc:"How long it took, with the time it waited"`
	Engine  string     `json:"engine"`
	Error   string     `json:"error"`
}

// The states of a stage.
const (
	statePending = "pending"
	stateDone    = "done"
	stateFailed  = "failed"
	stateSkipped = "skipped"
)

// board is what the steps of a thread are doing at the moment, by entity and stage.
type board map[[2]string]progress.State

func boardOf(entries []progress.Entry) board {
	b := board{}
	for _, e := range entries {
		b[[2]string{e.Entity, e.Stage}] = e.State
	}
	return b
}

// runView shows a run but for its metadata, which the state does not hold.
func runView(t *notebook.Thread, r *notebook.Run, b board, now time.Time) Run {
	q := r.Requested
	v := Run{
		ID: r.ID, Thread: t.ID, Question: q.Text, QuestionID: q.Question, Kind: q.RunKind, Status: r.Status, Provider: q.Provider, Replayed: q.Replay,
		Mode: q.Mode, Depth: q.Depth, Cycle: q.Cycle, Attempts: attemptViews(r), Cost: q.Cost, RequestedAt: r.At.UTC(),
		FinishedAt: timeOrNull(r.Ended), Deleted: r.Deleted, Warnings: []string{},
		UnresolvedMarkers: r.UnresolvedMarkers, FactsLeftOut: r.LeftOut,
	}
	if len(r.Attempts) > 0 {
		v.StartedAt = timeOrNull(r.Attempts[0].Started)
	}
	if c := r.Completed; c != nil {
		v.Cost, v.Dollars, v.Usage, v.Warnings, v.Pages = c.Cost, c.Dollars, c.Usage, some(c.Warnings), c.Pages
	}
	if f := r.Failure; f != nil {
		v.Cost = f.Cost
		v.Failure = &Failure{Code: f.Code, Detail: f.Detail, Retryable: f.Retryable}
	}
	v.Stages = stageViews(t, r, b)
	v.Waiting, v.Phase = waitingOf(r, v.Stages, b, now)
	return v
}

func attemptViews(r *notebook.Run) []Attempt {
	views := make([]Attempt, len(r.Attempts))
	for i, a := range r.Attempts {
		outcome := a.Code
		switch {
		case a.Ended.IsZero():
			outcome = "running"
		case outcome == "":
			outcome = r.Status
		}
		views[i] = Attempt{N: a.N, StartedAt: a.Started.UTC(), EndedAt: timeOrNull(a.Ended), Outcome: outcome, Detail: a.Detail}
	}
	return views
}

// waitingOf says what a run waits for, and the phase that its call is in.
func waitingOf(r *notebook.Run, stages []Stage, b board, now time.Time) (*Waiting, string) {
	if !r.Terminal() {
		if until := r.RetryAt(); now.Before(until) {
			last := r.Attempts[len(r.Attempts)-1]
			return &Waiting{For: "the next attempt, after: " + last.Code, Since: last.Ended.UTC(), Until: timeOrNull(until)}, ""
		}
		state := b[[2]string{r.ID, event.StageRun}]
		switch state.State {
		case progress.Waiting:
			return &Waiting{For: waitedFor(state.Text), Since: state.Since.UTC()}, ""
		case progress.Running:
			return nil, state.Text
		}
		return nil, ""
	}
	for _, s := range stages {
		if s.State == progress.Waiting {
			return &Waiting{For: waitedFor(s.Text), Since: *s.Since}, ""
		}
	}
	return nil, ""
}

// waitedFor goes on after "for", which a worker's own words may begin with.
func waitedFor(text string) string { return strings.TrimPrefix(text, "for ") }

// stageViews lists the stages of a run's chain: its own, then those of its cycle's closing.
func stageViews(t *notebook.Thread, r *notebook.Run, b board) []Stage {
	distilled := Stage{Name: event.StageDistill}
	judged := Stage{Name: event.StageJudge}
	switch {
	case !r.Terminal():
		distilled.State, judged.State = statePending, statePending
	case r.Completed == nil:
		distilled.State, judged.State = stateSkipped, stateSkipped
	default:
		runStage(&distilled, r, r.DistillSeq, r.Distilled, r.Ended, b)
		var from time.Time
		if r.Distilled != nil {
			from = r.Distilled.At
		}
		runStage(&judged, r, r.JudgeSeq, r.Judged, from, b)
	}
	stages := []Stage{distilled, judged}
	c := t.CycleOf(r.Requested.Cycle)
	if c == nil {
		return stages
	}
	names := []string{event.StageQuestions, event.StageBrief, event.StageCoverage}
	if c.Kind == event.KindWatch {
		names = append(names, event.StageDigest)
	}
	for _, name := range names {
		stages = append(stages, closingStage(t, c, name, b))
	}
	return stages
}

// runStage fills in a stage of the run itself. asked is what triggered it in the current generation, 0 when that does not do it.
func runStage(s *Stage, r *notebook.Run, asked uint64, outcome *notebook.Outcome, from time.Time, b board) {
	failed, isFailed := r.Failed[s.Name]
	switch {
	case isFailed:
		s.State, s.Error, s.Since = stateFailed, failed.Reason, timeOrNull(failed.At)
	case outcome != nil && outcome.Seq > asked:
		s.State, s.Engine, s.Since = stateDone, outcome.Engine, timeOrNull(outcome.At)
		s.Seconds = secondsBetween(from, outcome.At)
	case !r.Open: // the stage before it failed
		s.State = stateSkipped
	default:
		s.moment(b, r.ID)
	}
}

// closingStage finds a stage in the newest closing that had to do it.
func closingStage(t *notebook.Thread, c *notebook.Cycle, name string, b board) Stage {
	s := Stage{Name: name}
	newest := c.Newest()
	if newest == nil || t.RunOpen(c) {
		s.State = statePending
		return s
	}
	for i := len(c.Closings) - 1; i >= 0; i-- {
		closing := c.Closings[i]
		if done, ok := closing.Done[name]; ok {
			s.State, s.Engine, s.Since = stateDone, done.Engine, timeOrNull(done.At)
			s.Seconds = secondsBetween(before(closing, done), done.At)
			return s
		}
		if failed, ok := closing.Failed[name]; ok {
			s.State, s.Error, s.Since = stateFailed, failed.Reason, timeOrNull(failed.At)
			return s
		}
		if closing == newest && !closing.Settled {
			for _, step := range closing.Remaining() {
				if step == name {
					s.moment(b, strconv.Itoa(c.ID))
					return s
				}
			}
		}
	}
	s.State = stateSkipped
	return s
}

// before is when the step before one of a closing ended: they are done one after the other.
func before(closing *notebook.Closing, done notebook.Outcome) time.Time {
	at := closing.At
	for _, other := range closing.Done {
		if other.At.Before(done.At) && other.At.After(at) {
			at = other.At
		}
	}
	return at
}

// moment is the state of a stage that has no outcome yet: what it says itself, else pending.
func (s *Stage) moment(b board, entity string) {
	state, told := b[[2]string{entity, s.Name}]
	if !told {
		s.State = statePending
		return
	}
	since := state.Since.UTC()
	s.State, s.Since, s.Text, s.Engine = state.State, &since, state.Text, state.Engine
}

func secondsBetween(from, to time.Time) *float64 {
	if from.IsZero() || to.Before(from) {
		return nil
	}
	seconds := to.Sub(from).Seconds()
	return &seconds
}
