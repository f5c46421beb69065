package notebook

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"

	"github.com/factstream/factstream/shared/event"
)

// NewThread is the state of a thread of which nothing has been seen.
func NewThread(id string) *Thread {
	return &Thread{
		ID:            id,
		Runs:          map[string]*Run{},
		Sources:       map[string]*Source{},
		Questions:     map[string]*Question{},
		Facts:         map[string]*Fact{},
		ByFingerprint: map[string]string{},
		Pairs:         map[string]*Pair{},
	}
}

// Exists says that the thread was created and not deleted.
func (t *Thread) Exists() bool { return t.Standing != "" && !t.Deleted }

// Evolve applies one event of the thread. It never refuses: what Decide accepted is so. Events of types it does not know only move the position.
// A panic-free fold of any order is not promised; events must come in the order of the stream.
func (t *Thread) Evolve(e event.Event) {
	t.Seq = e.Seq
	if _, unknown := e.Data.(event.Unknown); unknown {
		return
	}
	t.Updated = e.Time
	switch d := e.Data.(type) {
	case event.ThreadCreated:
		t.created(e, d)
	case event.ThreadConfigured:
		t.configured(d)
	case event.ThreadStarted:
		t.stand(e, Running, d.Reason)
	case event.ThreadPaused:
		t.stand(e, Paused, d.Reason)
	case event.ThreadParked:
		t.stand(e, d.Status, d.Reason)
	case event.ThreadArchived:
		t.Archived = d.Archived
	case event.ThreadDeleted:
		t.deleted(d)
	case event.QuestionAsked:
		t.addQuestion(&Question{ID: e.Entity, Text: d.Text, Origin: d.Origin, Rank: humanRank + byAge(e, 0), Seq: e.Seq, At: e.Time})
	case event.QuestionMoved:
		if q := t.Questions[e.Entity]; q != nil {
			q.Rank = d.Rank
		}
	case event.QuestionDismissed:
		if q := t.Questions[e.Entity]; q != nil {
			q.Dismissed = true
		}
	case event.QuestionsProposed:
		t.proposed(e, d)
	case event.RunRequested:
		t.requested(e, d)
	case event.AttemptStarted:
		t.attemptStarted(e)
	case event.AttemptFailed:
		t.attemptFailed(e, d)
	case event.RunCompleted:
		t.completed(e, d)
	case event.RunFailed:
		t.failed(e, d)
	case event.RunDeleted:
		if r := t.Runs[e.Entity]; r != nil {
			r.Deleted = true
		}
	case event.FactsDistilled:
		t.distilled(e, d)
	case event.ContradictionsFound:
		t.judged(e, d)
	case event.BriefWritten:
		t.closingStep(e, event.StageBrief, d.Engine)
		if cycle, closing := t.closingOf(e); closing != nil && (t.Brief == nil || closing.Seq >= t.Brief.ClosingSeq) {
			t.Brief = &Brief{BriefWritten: d, Cycle: cycle.ID, Closing: e.N, ClosingSeq: closing.Seq, At: e.Time}
		}
	case event.CoverageMapped:
		t.closingStep(e, event.StageCoverage, d.Engine)
		if cycle, closing := t.closingOf(e); closing != nil && (t.Coverage == nil || closing.Seq >= t.Coverage.ClosingSeq) {
			t.Coverage = &Coverage{CoverageMapped: d, Cycle: cycle.ID, Closing: e.N, ClosingSeq: closing.Seq, At: e.Time}
		}
	case event.ThreadSettled:
		t.settled(e, d)
	case event.StageFailed:
		t.stageFailed(e, d)
	case event.StageRetried:
		t.stageRetried(e, d)
	}
}

// Ranks of questions that nobody moved. Lower is asked earlier: the root, then people's, then the model's by score.
const (
	rootRank  = 0
	humanRank = 1
	aiRank    = 2
)

// byAge breaks ties, oldest first, so that no two ranks are equal and a question can be moved between any two others. It takes the original
// sequence, since question.moved keeps ranks that were made of those.
func byAge(e event.Event, i int) float64 {
	return float64(cmp.Or(e.Original, e.Seq))*1e-9 + float64(i)*1e-10
}

func (t *Thread) created(e event.Event, d event.ThreadCreated) {
	t.Created, t.Question, t.Title, t.Tags, t.Settings = e.Time, d.Question, d.Title, d.Tags, d.Settings
	t.stand(e, New, event.Reason{Code: ReasonNew, Text: "Nothing has been asked yet. Ask now, or press Start."})
	t.Ledger.Budget, t.Ledger.AnswerBudget = d.Settings.Budget, d.Settings.AnswerBudget
	t.addQuestion(&Question{ID: RootQuestionID(t.ID), Text: d.Question, Origin: "human", Rank: rootRank, Seq: e.Seq, At: e.Time})
}

// stand gives the thread its standing status and the reason that an event gave for it.
func (t *Thread) stand(e event.Event, status string, reason event.Reason) {
	t.Standing, t.Reason, t.reasonSeq = status, reason, e.Seq
	if reason.Code != ReasonReady {
		t.heard = heard{code: reason.Code, seq: e.Seq}
	}
}

func (t *Thread) configured(d event.ThreadConfigured) {
	set(&t.Title, d.Title)
	set(&t.Tags, d.Tags)
	set(&t.Settings.Provider, d.Provider)
	set(&t.Settings.Mode, d.Mode)
	set(&t.Settings.Depth, d.Depth)
	set(&t.Settings.Batch, d.Batch)
	set(&t.Settings.Auto, d.Auto)
	set(&t.Settings.Engine, d.Engine)
	set(&t.Settings.Budget, d.Budget)
	if d.AnswerBudget != nil {
		t.Settings.AnswerBudget = d.AnswerBudget
		if *d.AnswerBudget < 0 {
			t.Settings.AnswerBudget = nil
		}
	}
	t.Ledger.Budget, t.Ledger.AnswerBudget = t.Settings.Budget, t.Settings.AnswerBudget
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

// deleted keeps the tombstone and lets everything else go, so that who has seen the thread has the same state as who reads the stream after the purge, of
// which the tombstone is all that is left.
func (t *Thread) deleted(d event.ThreadDeleted) {
	gone := NewThread(t.ID)
	gone.Seq, gone.Updated, gone.Standing = t.Seq, t.Updated, Idle
	gone.Ledger.Spent, gone.Ledger.Dollars = d.Spent, d.Dollars
	gone.Deleted = true
	*t = *gone
}

func (t *Thread) addQuestion(q *Question) {
	if t.Questions[q.ID] != nil {
		return
	}
	t.Questions[q.ID] = q
	t.QIDs = append(t.QIDs, q.ID)
}

func (t *Thread) proposed(e event.Event, d event.QuestionsProposed) {
	for i, p := range d.Questions {
		t.addQuestion(&Question{
			ID: p.ID, Text: p.Text, Origin: "ai", Score: p.Score, Depth: p.Depth, ParentRun: p.ParentRun,
			Rank: aiRank + (1 - p.Score) + byAge(e, i), Seq: e.Seq, At: e.Time,
		})
	}
	t.LastPlan = d.Repeats
	if cycle, _ := t.closingOf(e); cycle != nil {
		cycle.Proposed = true
	}
	t.closingStep(e, event.StageQuestions, d.Engine)
}

func (t *Thread) requested(e event.Event, d event.RunRequested) {
	if d.Cycle < 1 || d.Cycle > len(t.Cycles)+1 { // not one of Decide's: refused before anything of it is applied
		panic(fmt.Sprintf("cycle %d of a thread that has %d", d.Cycle, len(t.Cycles)))
	}
	if q := t.Questions[d.Question]; q != nil && q.Text == d.Text {
		d.Text = q.Text // the same letters, in one place: a question may be long
	}
	r := &Run{
		ID: e.Entity, Requested: d, At: e.Time, Seq: e.Seq, Status: "requested", Open: true,
		Failed: map[string]Failed{}, Lost: map[string]int{},
	}
	t.Runs[r.ID] = r
	t.RunIDs = append(t.RunIDs, r.ID)
	for len(t.Cycles) < d.Cycle {
		t.Cycles = append(t.Cycles, &Cycle{ID: len(t.Cycles) + 1, Kind: d.RunKind, Size: d.CycleSize, Lost: map[string]int{}})
	}
	c := t.Cycles[d.Cycle-1]
	c.Runs = append(c.Runs, r.ID)
	if q := t.Questions[d.Question]; q != nil {
		q.Runs = append(q.Runs, r.ID)
	}
	t.Ledger.Reserve(r.ID, d.Provider, d.Cost)
	if t.Replay == nil {
		replay := d.Replay
		t.Replay = &replay
	}
}

func (t *Thread) attemptStarted(e event.Event) {
	if r := t.Runs[e.Entity]; r != nil {
		r.Attempts = append(r.Attempts, Attempt{N: e.N, Started: e.Time})
		r.Status = "running"
	}
}

func (t *Thread) attemptFailed(e event.Event, d event.AttemptFailed) {
	r := t.Runs[e.Entity]
	if r == nil {
		return
	}
	for i := range r.Attempts {
		if a := &r.Attempts[i]; a.N == e.N {
			a.Ended, a.Code, a.Detail = e.Time, d.Code, d.Detail
			if d.RetryAt != nil {
				a.RetryAt = *d.RetryAt
			}
		}
	}
}

func (t *Thread) completed(e event.Event, d event.RunCompleted) {
	r := t.Runs[e.Entity]
	if r == nil {
		return
	}
	r.end(e, "completed")
	r.Completed = &Completion{
		Attempt: d.Attempt, Cost: d.Cost, Dollars: d.Dollars, Pages: len(d.Pages), Gaps: len(d.Gaps), Events: d.Events, Usage: d.Usage, Warnings: d.Warnings,
		Replayed: d.Replayed, Raw: d.Raw, Kept: d.Kept(),
	}
	for _, p := range d.Pages {
		t.cite(p)
	}
	r.DistillSeq = e.Seq
	t.Ledger.Settle(r.ID, r.Requested.Provider, d.Cost, d.Dollars, true)
}

// cite unites what the citations of a source say. A page that is none of the web is no source.
func (t *Thread) cite(p event.Page) {
	if p.Source == "" {
		return
	}
	s := t.Sources[p.Source]
	if s == nil {
		s = &Source{ID: p.Source, URL: p.URL}
		t.Sources[p.Source] = s
	}
	s.Title = cmp.Or(s.Title, p.Title)
	s.PublishedAt = cmp.Or(s.PublishedAt, p.PublishedAt)
}

// sourceOf is a source as a fact names it, kept once for all facts that name it alike.
func (t *Thread) sourceOf(named *event.Source) *event.Source {
	if named == nil {
		return nil
	}
	known := t.Sources[named.ID]
	if known == nil {
		return named
	}
	if same := known.ofFact; same != nil && reflect.DeepEqual(same, named) {
		return same
	}
	one := *named
	one.ID = known.ID
	for _, field := range []*string{&one.URL, &one.Canonical, &one.Title} {
		for _, text := range []string{known.URL, known.Title} {
			if *field == text {
				*field = text // the same letters, in one place
			}
		}
	}
	known.ofFact = &one
	return &one
}

func (t *Thread) failed(e event.Event, d event.RunFailed) {
	r := t.Runs[e.Entity]
	if r == nil {
		return
	}
	r.end(e, "failed")
	if d.Code == event.CodeWithdrawn {
		r.Status = "withdrawn"
	}
	r.Failure = &d
	r.Open = false
	t.Ledger.Settle(r.ID, r.Requested.Provider, d.Cost, 0, false)
	t.maybeClose(r.Requested.Cycle, e)
}

func (r *Run) end(e event.Event, status string) {
	r.Status, r.Ended, r.EndSeq = status, e.Time, e.Seq
	delete(r.Lost, event.StageRun)
	if len(r.Attempts) > 0 {
		if last := &r.Attempts[len(r.Attempts)-1]; last.Ended.IsZero() {
			last.Ended = e.Time
			if f, ok := e.Data.(event.RunFailed); ok {
				last.Code, last.Detail = f.Code, f.Detail
			}
		}
	}
}

func (t *Thread) distilled(e event.Event, d event.FactsDistilled) {
	r := t.Runs[e.Entity]
	if r == nil {
		return
	}
	if r.Distilled != nil { // a rebuild says all of this run's support anew
		for _, f := range t.Facts {
			f.Support = withoutRun(f.Support, r.ID)
		}
	}
	for i, fact := range d.Facts {
		f := t.Facts[fact.ID]
		if f == nil {
			f = &Fact{}
			t.Facts[fact.ID] = f
			t.FactIDs = append(t.FactIDs, fact.ID)
		}
		support := f.Support
		fact.Source = t.sourceOf(fact.Source)
		*f = Fact{Fact: fact, Run: r.ID, Seq: e.Seq, Rank: i, At: e.Time, Engine: d.Engine, Replayed: d.Replayed}
		f.Support = append(support, Support{Run: r.ID, Source: fact.Source, Excerpt: fact.Excerpt})
		t.ByFingerprint[fact.Fingerprint] = fact.ID
	}
	for _, s := range d.Support {
		if f := t.Facts[s.Fact]; f != nil {
			if s.Excerpt != nil && f.Excerpt != nil && *s.Excerpt == *f.Excerpt {
				s.Excerpt = f.Excerpt // the same report again
			}
			f.Support = append(f.Support, Support{Run: r.ID, Source: t.sourceOf(s.Source), Excerpt: s.Excerpt})
		}
	}
	for _, id := range d.Removed {
		if f := t.Facts[id]; f != nil {
			f.Removed = true
			delete(t.ByFingerprint, f.Fingerprint)
		}
	}
	r.LeftOut, r.UnresolvedMarkers = d.LeftOut, d.UnresolvedMarkers
	r.Distilled = &Outcome{N: e.N, Seq: e.Seq, At: e.Time, Engine: d.Engine}
	r.JudgeSeq = e.Seq
	delete(r.Lost, event.StageDistill)
}

func withoutRun(support []Support, run string) []Support {
	kept := support[:0:0]
	for _, s := range support {
		if s.Run != run {
			kept = append(kept, s)
		}
	}
	return kept
}

func (t *Thread) judged(e event.Event, d event.ContradictionsFound) {
	for _, v := range d.Verdicts {
		t.shareIDs(&v)
		if t.Pairs[v.Pair] == nil {
			t.PairIDs = append(t.PairIDs, v.Pair)
		}
		t.Pairs[v.Pair] = &Pair{Verdict: v, Seq: e.Seq, At: e.Time, Engine: d.Engine, Run: e.Run}
	}
	for _, drop := range d.Drops {
		if f := t.Facts[drop.Fact]; f != nil {
			f.Root = drop.Root
			f.Dismissed = f.Dismissed || drop.Dismissed
		}
	}
	t.Links = append(t.Links, d.Links...)
	r := t.Runs[e.Entity]
	if r == nil { // about one fact that a person added or edited: ends no run
		return
	}
	r.Judged = &Outcome{N: e.N, Seq: e.Seq, At: e.Time, Engine: d.Engine}
	delete(r.Lost, event.StageJudge)
	r.Open = false
	if c := t.CycleOf(r.Requested.Cycle); c != nil {
		c.fresh = true
	}
	t.maybeClose(r.Requested.Cycle, e)
}

// shareIDs makes a verdict name facts of the thread in the letters that these have: verdicts are many.
func (t *Thread) shareIDs(v *event.Verdict) {
	share := func(id, fingerprint *string) {
		if f := t.Facts[*id]; f != nil {
			*id = f.ID
			if *fingerprint == f.Fingerprint {
				*fingerprint = f.Fingerprint
			}
		}
	}
	share(&v.Newer, &v.NewerFingerprint)
	share(&v.Elder, &v.ElderFingerprint)
	for _, relation := range []string{event.Duplicate, event.Contradiction, event.Distinct} {
		if v.Relation == relation {
			v.Relation = relation
		}
	}
}

// maybeClose records a closing when the event just applied left no run of the cycle open.
func (t *Thread) maybeClose(cycle int, e event.Event) {
	c := t.CycleOf(cycle)
	if c == nil || len(c.Runs) < c.Size || t.RunOpen(c) {
		return
	}
	closing := t.newClosing(c, e)
	closing.Fresh = c.fresh
	if c.fresh {
		if !c.Proposed {
			closing.Steps = append(closing.Steps, event.StageQuestions)
		}
		closing.Steps = append(closing.Steps, event.StageBrief, event.StageCoverage)
		if c.Kind == event.KindWatch {
			closing.Steps = append(closing.Steps, event.StageDigest)
		}
	}
	c.fresh = false
}

func (t *Thread) newClosing(c *Cycle, e event.Event) *Closing {
	closing := &Closing{
		Cycle: c.ID, N: len(c.Closings), Seq: e.Seq, EventID: e.ID, At: e.Time,
		Done: map[string]Outcome{}, Failed: map[string]Failed{}, Retry: c.retried,
	}
	c.retried = false
	c.Closings = append(c.Closings, closing)
	return closing
}

// closingOf finds the cycle and closing that an outcome of a closing step names by its entity and n; nil for the plan before the first run.
func (t *Thread) closingOf(e event.Event) (*Cycle, *Closing) {
	id, err := strconv.Atoi(e.Entity)
	if err != nil {
		return nil, nil
	}
	c := t.CycleOf(id)
	if c == nil || e.N >= len(c.Closings) {
		return c, nil
	}
	return c, c.Closings[e.N]
}

func (t *Thread) closingStep(e event.Event, stage, engine string) {
	if _, closing := t.closingOf(e); closing != nil {
		closing.Done[stage] = Outcome{N: e.N, Seq: e.Seq, At: e.Time, Engine: engine}
	}
}

func (t *Thread) settled(e event.Event, d event.ThreadSettled) {
	cycle, closing := t.closingOf(e)
	if closing == nil {
		return
	}
	closing.Settled, closing.SettledSeq = true, e.Seq
	cycle.Lost = map[string]int{}
	t.LastSettled = e.Seq
	if len(d.Failures) == 0 && closing.Fresh && !t.stillFailing(cycle) { // a good chain: none of its runs lacks its facts or verdicts either
		t.KnowledgeError = nil
	}
}

func (t *Thread) stageFailed(e event.Event, d event.StageFailed) {
	t.KnowledgeError = &KnowledgeError{Stage: d.Stage, Reason: d.Reason, Class: d.Class, Entity: e.Entity, Since: e.Time}
	failed := Failed{N: e.N, Class: d.Class, Reason: d.Reason, At: e.Time, Seq: e.Seq}
	if r := t.Runs[e.Entity]; r != nil {
		r.Failed[d.Stage] = failed
		delete(r.Lost, d.Stage)
		if d.Stage == event.StageDistill || d.Stage == event.StageJudge {
			r.Open = false
			t.maybeClose(r.Requested.Cycle, e)
		}
		return
	}
	if _, closing := t.closingOf(e); closing != nil {
		closing.Failed[d.Stage] = failed
	}
}

func (t *Thread) stageRetried(e event.Event, d event.StageRetried) {
	if ke := t.KnowledgeError; ke != nil && ke.Entity == e.Entity && (ke.Stage == d.Stage || d.Stage == event.StageClose) {
		t.KnowledgeError = nil
	}
	if r := t.Runs[e.Entity]; r != nil {
		t.runStageRetried(r, e, d)
		return
	}
	id, err := strconv.Atoi(e.Entity)
	if err != nil {
		return
	}
	c := t.CycleOf(id)
	if c == nil {
		return
	}
	c.LastN = e.N
	if d.By == BySweeper {
		c.Lost[d.Stage]++
	}
	switch d.Stage {
	case event.StageAutopilot:
		t.LastSettled = e.Seq
	case event.StageClose: // whatever the newest closing still lacks; a person has what failed done again too
		c.retriedBy = d.By
		before := c.Newest()
		c.retried = true
		closing := t.newClosing(c, e)
		if before != nil {
			closing.Steps, closing.Fresh = before.Remaining(), before.Fresh
			if d.By == ByPerson {
				closing.Steps = before.lacking()
			}
		}
	default:
		c.retried, c.retriedBy = true, d.By
		closing := t.newClosing(c, e)
		closing.Steps = []string{d.Stage}
	}
}

func (t *Thread) runStageRetried(r *Run, e event.Event, d event.StageRetried) {
	r.LastN = e.N
	if d.By == BySweeper {
		r.Lost[d.Stage]++
	}
	switch d.Stage {
	case event.StageRun:
		r.Seq = e.Seq
	case event.StageDistill:
		r.reopen(e)
		r.DistillSeq, r.JudgeSeq = e.Seq, 0
	case event.StageJudge:
		r.reopen(e)
		r.DistillSeq, r.JudgeSeq = 0, e.Seq
	default: // stages outside the chain
		delete(r.Failed, d.Stage)
		return
	}
	if c := t.CycleOf(r.Requested.Cycle); c != nil {
		c.retried, c.retriedBy = true, d.By
	}
}

func (r *Run) reopen(e event.Event) {
	r.Open, r.Gen = true, e.N
	r.Failed = map[string]Failed{}
}
