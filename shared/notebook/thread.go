// Package notebook folds the events of a thread into its state, decides what may be appended next, and names what must happen next.
//
// Decide holds every rule and Evolve applies effects by id without asking, so that whoever folds the stream sees the same notebook.
// Neither of them reads a clock, a network or a random number.
package notebook

import (
	"encoding/json"
	"time"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/ledger"
	"github.com/factstream/factstream/shared/text"
)

// Standing statuses of a thread, and what is shown.
const (
	New      = "new"
	Running  = "running"
	Paused   = "paused"   // a person pressed Pause
	Idle     = "idle"     // waits for a person
	Complete = "complete" // has nothing left that it may do
)

// Codes of the reason of a status.
const (
	ReasonPaused       = "paused"
	ReasonAutoOff      = "auto_off"
	ReasonNoKey        = "no_key"
	ReasonProvider     = "provider"
	ReasonStage        = "stage"
	ReasonReady        = "ready"
	ReasonBudget       = "budget"
	ReasonDepth        = "depth"
	ReasonAnswerBudget = "answer_budget"
	ReasonNoQuestions  = "no_questions"
	ReasonCycle        = "cycle"
	ReasonManual       = "manual"
	ReasonWatch        = "watch"
	ReasonRetry        = "retry"
	ReasonNew          = "new"
)

// Thread is the state of one thread after the event at Seq.
type Thread struct {
	ID        string
	Seq       uint64 // last sequence of the thread; the condition of the next append
	Created   time.Time
	Updated   time.Time
	Question  string
	Title     string
	Tags      []string
	Settings  event.Settings
	Standing  string // changed by thread.* events only
	Reason    event.Reason
	Archived  bool
	Deleted   bool
	Replay    *bool // fixed by the first run, for ever
	Ledger    ledger.Ledger
	Runs      map[string]*Run
	RunIDs    []string // in order of request
	Sources   map[string]*Source
	Cycles    []*Cycle // cycle n is Cycles[n-1]
	Questions map[string]*Question
	QIDs      []string // in order of appearance, the root first
	Facts     map[string]*Fact
	FactIDs   []string // in order of first appearance
	// ByFingerprint has every statement the thread knows, dismissed and dropped ones too.
	ByFingerprint  map[string]string
	Pairs          map[string]*Pair
	PairIDs        []string
	Links          []event.Link
	Brief          *Brief
	Coverage       *Coverage
	KnowledgeError *KnowledgeError
	LastSettled    uint64 // sequence of the newest thread.settled, or of the stage.retried that asks for autopilot again
	LastPlan       bool   // the newest proposal was nothing but repeats

	reasonSeq uint64 // of the event that gave the standing reason
	heard     heard
}

// heard is the newest standing reason that was more than `ready`: what failed before it a person has been told of, or has pressed a button after.
type heard struct {
	code string
	seq  uint64
}

// Run is one paid call and what was made of it.
type Run struct {
	ID        string
	Requested event.RunRequested
	At        time.Time
	Seq       uint64 // of the trigger of the call: run.requested, or the stage.retried that asks for it again
	Attempts  []Attempt
	Status    string // requested, running, completed, failed, withdrawn
	Completed *Completion
	Failure   *event.RunFailed
	Ended     time.Time
	EndSeq    uint64 // of its terminal event
	Deleted   bool

	Open  bool // from its latest trigger until the event that ends that generation
	Gen   int  // current generation of its outcomes
	LastN int  // highest n used by a stage.retried of this run

	DistillSeq uint64 // what triggered the current distillation: run.completed or stage.retried; 0 when the generation does not distil
	JudgeSeq   uint64 // what triggered the current judging: facts.distilled or stage.retried
	Distilled  *Outcome
	Judged     *Outcome
	Failed     map[string]Failed // stages of the current generation that failed
	Lost       map[string]int    // retries of a stage by the sweeper since its last outcome

	LeftOut           int // acceptable facts over the limit of a run, at its newest distillation
	UnresolvedMarkers int
}

// Completion is what the state keeps of a run's answer. What the answer says (its report, metadata, pages and gaps: up to 256 KiB a run) would stay in the
// memory of every process for ever; it is in the event at the run's EndSeq, and who needs it has it read again (Tail.Completed).
type Completion struct {
	Attempt  int
	Cost     int // credits spent
	Dollars  float64
	Pages    int // how many it cites
	Gaps     int // how many it names in its own research
	Events   int // of the provider
	Usage    json.RawMessage
	Warnings []string
	Replayed bool
	Raw      event.Blob   // the answer as it came
	Kept     []event.Blob // by reference: all that it has outside the event, Raw too
}

// Source is a page as the thread knows it: as it was first cited; later citations fill in what the earlier ones lack.
type Source struct {
	ID          string
	URL         string
	Title       string
	PublishedAt *time.Time

	ofFact *event.Source // as the newest fact names it
}

// Outcome is the newest outcome of a stage.
type Outcome struct {
	N      int
	Seq    uint64
	At     time.Time
	Engine string
}

// Failed is a stage that ended without an outcome.
type Failed struct {
	N      int
	Class  string
	Reason string
	At     time.Time
	Seq    uint64
}

// Attempt is one try of a run's call.
type Attempt struct {
	N       int
	Started time.Time
	Ended   time.Time
	Code    string // empty while open or when it completed the run
	Detail  string
	RetryAt time.Time
}

// Terminal says that the run has its one terminal event.
func (r *Run) Terminal() bool { return r.EndSeq != 0 }

// Awaits names the stage that has to end next for the run to be no longer open: run, distill or judge; empty when it is not open.
func (r *Run) Awaits() string {
	switch {
	case !r.Open:
		return ""
	case !r.Terminal():
		return event.StageRun
	case r.DistillSeq != 0 && (r.Distilled == nil || r.Distilled.Seq < r.DistillSeq):
		return event.StageDistill
	}
	return event.StageJudge
}

// OpenAttempt gives the attempt that was started and not ended.
func (r *Run) OpenAttempt() (Attempt, bool) {
	if r.Terminal() || len(r.Attempts) == 0 {
		return Attempt{}, false
	}
	last := r.Attempts[len(r.Attempts)-1]
	return last, last.Ended.IsZero()
}

// RetryAt is the time before which the next attempt must not start; zero when it may.
func (r *Run) RetryAt() time.Time {
	if r.Terminal() || len(r.Attempts) == 0 {
		return time.Time{}
	}
	return r.Attempts[len(r.Attempts)-1].RetryAt
}

// Cycle is a plan's runs, or one manual or watch run.
type Cycle struct {
	ID        int
	Kind      string
	Size      int
	Runs      []string
	Closings  []*Closing
	Proposed  bool // questions.proposed exists
	LastN     int  // highest n used by a stage.retried of this cycle
	Lost      map[string]int
	fresh     bool   // new verdicts since the last closing
	retried   bool   // a stage was retried since the last closing
	retriedBy string // who asked for the newest retry
}

// Closing is the moment after which none of a cycle's runs is open, and what is done then.
type Closing struct {
	Cycle      int
	N          int
	Seq        uint64 // of the event that closed it
	EventID    string // id of that event: the cause of all its steps
	At         time.Time
	Steps      []string           // questions, brief, coverage, digest: what this closing has to do
	Done       map[string]Outcome // steps with an outcome
	Failed     map[string]Failed  // steps that failed
	Retry      bool               // asked for by stage.retried
	Settled    bool
	SettledSeq uint64
	Fresh      bool // a run of it has new verdicts
}

// Remaining lists the steps that have neither outcome nor failure, in order.
func (c *Closing) Remaining() []string {
	var left []string
	for _, step := range c.Steps {
		_, done := c.Done[step]
		_, failed := c.Failed[step]
		if !done && !failed {
			left = append(left, step)
		}
	}
	return left
}

// lacking lists the steps without an outcome, in order: those that remain and those that failed.
func (c *Closing) lacking() []string {
	var left []string
	for _, step := range c.Steps {
		if _, done := c.Done[step]; !done {
			left = append(left, step)
		}
	}
	return left
}

// Newest is the last closing, nil before the first.
func (c *Cycle) Newest() *Closing {
	if len(c.Closings) == 0 {
		return nil
	}
	return c.Closings[len(c.Closings)-1]
}

// Question is one question of the thread. Its status is computed from its runs.
type Question struct {
	ID        string
	Text      string
	Origin    string // human or ai
	Score     float64
	Depth     int
	ParentRun string
	Rank      float64 // lower is asked earlier
	Seq       uint64
	At        time.Time
	Dismissed bool
	Runs      []string
}

// Fact is one claim with everything that decisions about it need.
type Fact struct {
	event.Fact
	Run       string // that added it; empty for a fact added by hand
	Seq       uint64 // of the event that added it
	Rank      int    // its place in that event, from 0
	At        time.Time
	Engine    string
	Replayed  bool
	Support   []Support
	Root      string // it was dropped as a duplicate of this fact
	Removed   bool   // a rebuild did not find it again
	Dismissed bool
	Pinned    bool
	Edited    bool
}

// Support is one place where the statement was found.
type Support struct {
	Run     string
	Source  *event.Source
	Excerpt *event.Excerpt // nil in a Tail
}

// Active says that the fact counts: neither dropped, removed nor dismissed.
func (f *Fact) Active() bool { return f.Root == "" && !f.Removed && !f.Dismissed }

// Curated says that a person's judgement stands on it: it outlives every rebuild.
func (f *Fact) Curated() bool { return f.Pinned || f.Edited || f.Dismissed }

// Pair is what was judged about two facts of which at least the newer is of this thread.
type Pair struct {
	event.Verdict
	Seq    uint64
	At     time.Time
	Engine string
	Run    string
}

// Brief is the newest brief.
type Brief struct {
	event.BriefWritten
	Cycle, Closing int
	ClosingSeq     uint64
	At             time.Time
}

// Coverage is the newest map.
type Coverage struct {
	event.CoverageMapped
	Cycle, Closing int
	ClosingSeq     uint64
	At             time.Time
}

// KnowledgeError names a stage whose outcome is missing.
type KnowledgeError struct {
	Stage  string
	Reason string
	Class  string
	Entity string
	Since  time.Time
}

// RootQuestionID is the id of question 0 of a thread.
func RootQuestionID(thread string) string { return text.ID("question", thread, "0") }

// questionID is the id of a question that is known by its words, whoever came up with it.
func questionID(thread, fingerprint string) string { return text.ID("question", thread, fingerprint) }

// FactID is the id of a statement in a thread.
func FactID(thread, fingerprint string) string { return text.ID("fact", thread, fingerprint) }

// SourceID is the id of a source in a thread.
func SourceID(thread, canonical string) string { return text.ID("source", thread, canonical) }

// PairID is the id of two facts, in whatever order.
func PairID(a, b string) string {
	if b < a {
		a, b = b, a
	}
	return text.ID("pair", a, b)
}

// CycleOf gives cycle n, nil when there is none.
func (t *Thread) CycleOf(n int) *Cycle {
	if n < 1 || n > len(t.Cycles) {
		return nil
	}
	return t.Cycles[n-1]
}

// RunOpen says whether a run of the cycle is open.
func (t *Thread) RunOpen(c *Cycle) bool {
	for _, id := range c.Runs {
		if t.Runs[id].Open {
			return true
		}
	}
	return false
}

// CycleUnsettled says that a run of the cycle is open, or that its newest closing is not settled.
func (t *Thread) CycleUnsettled(c *Cycle) bool {
	if len(c.Runs) < c.Size || t.RunOpen(c) {
		return true
	}
	newest := c.Newest()
	return newest == nil || !newest.Settled
}

// Unsettled gives the first cycle that is not settled, nil when all are.
func (t *Thread) Unsettled() *Cycle {
	for _, c := range t.Cycles {
		if t.CycleUnsettled(c) {
			return c
		}
	}
	return nil
}

// Root gives the active root of a fact: itself, or what it was dropped into, followed to the end.
func (t *Thread) Root(id string) string {
	for range t.Facts {
		f := t.Facts[id]
		if f == nil || f.Root == "" {
			return id
		}
		id = f.Root
	}
	return id
}

// Contradictions lists the pairs that were judged contradictory and whose facts are both active, oldest first.
func (t *Thread) Contradictions() []*Pair {
	return t.judgedPairs(func(p *Pair) bool { return p.Relation == event.Contradiction })
}

// Related lists the pairs that were judged distinct and yet of the same thing, and whose facts are both active, oldest first.
func (t *Thread) Related() []*Pair {
	return t.judgedPairs(func(p *Pair) bool { return p.Verdict.Related })
}

// judgedPairs lists pairs of this thread's own facts, both active and as they were judged.
func (t *Thread) judgedPairs(wanted func(*Pair) bool) []*Pair {
	var open []*Pair
	for _, id := range t.PairIDs {
		p := t.Pairs[id]
		if p.ElderThread != "" || !wanted(p) {
			continue
		}
		a, b := t.Facts[p.Elder], t.Facts[p.Newer]
		if a == nil || b == nil || !a.Active() || !b.Active() ||
			a.Fingerprint != p.ElderFingerprint || b.Fingerprint != p.NewerFingerprint {
			continue
		}
		open = append(open, p)
	}
	return open
}
