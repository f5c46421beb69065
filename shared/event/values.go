package event

import "time"

// Providers and modes of research that the notebook knows by name.
const (
	Tabstack = "tabstack"
	Brave    = "brave"

	Fast     = "fast"
	Balanced = "balanced"
)

// Kinds of a run.
const (
	KindCycle  = "cycle"  // planned by autopilot or Start
	KindManual = "manual" // a person asked for this one run
	KindWatch  = "watch"  // a due slot of a watch
)

// Stages: what is done with a run or, at its end, with a cycle.
const (
	StageRun       = "run"       // researcher: the paid call
	StageDistill   = "distill"   // distiller: report to facts
	StageJudge     = "judge"     // judge: facts to verdicts
	StageQuestions = "questions" // briefer, once per cycle
	StageBrief     = "brief"
	StageCoverage  = "coverage"
	StageDigest    = "digest"
	StageClose     = "close"     // briefer: whatever a closing still lacks
	StageAutopilot = "autopilot" // researcher: what comes after a settled cycle
)

// Blob is a text or JSON value of any size: inline, or by reference when the body of the event would grow over 256 KiB with it.
type Blob struct {
	Text   string `json:"text,omitempty"`
	Ref    string `json:"ref,omitempty"` // name in the object store
	SHA256 string `json:"sha256,omitempty"`
	Size   int64  `json:"size,omitempty"` // bytes
}

// Empty says that there is neither text nor reference.
func (b Blob) Empty() bool { return b.Text == "" && b.Ref == "" }

// Settings of a thread. Cost is counted in Tabstack credits; a Brave thread has none and may limit its answers.
type Settings struct {
	Provider     string `json:"provider"`                // tabstack or brave
	Mode         string `json:"mode,omitempty"`          // fast or balanced
	Depth        int    `json:"depth"`                   // deepest question that autopilot may ask; the root has depth 0; -1 is no limit
	Batch        int    `json:"batch"`                   // runs per cycle
	Auto         bool   `json:"auto"`                    // plan and run follow-ups
	Engine       string `json:"engine"`                  // auto until the first model step, then ollama or extractive
	Budget       int    `json:"budget"`                  // credits; reserved + spent never exceed it
	AnswerBudget *int   `json:"answer_budget,omitempty"` // Brave answers that may be bought; nil is no limit
}

// Reason says why a thread has its status, for programs and for people.
type Reason struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// Source is where a fact comes from. ID is a function of the thread and the canonical URL.
type Source struct {
	ID          string     `json:"id"`
	URL         string     `json:"url"` // as it was cited
	Canonical   string     `json:"canonical_url"`
	Site        string     `json:"site,omitempty"` // registrable domain
	Title       string     `json:"title,omitempty"`
	PublishedAt *time.Time `json:"published_at,omitempty"`
}

// Excerpt is a literal part of a report: text = report[start:end] in bytes.
type Excerpt struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	Text  string `json:"text"`
}
