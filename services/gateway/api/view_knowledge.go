package api

import (
	"time"

	"github.com/factstream/factstream/services/gateway/projection"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
)

// Question is a question as the API shows it.
type Question struct {
	ID        string    `json:"id"`
	Text      string    `json:"text"`
	Origin    string    `json:"origin" enum:"human,ai"`
	Score     float64   `json:"score" doc:"0 to 1; of the model's questions"`
	Depth     int       `json:"depth"`
	ParentRun *string   `json:"parent_run"`
	Status    string    `json:"status" enum:"pending,admitted,answered,dismissed"`
	Position  *int      `json:"position" doc:"Place in the line, 0 first; null when it is not pending"`
	Runs      []string  `json:"runs"`
	CreatedAt time.Time `json:"created_at"`
	Projected *bool     `json:"projected,omitempty" doc:"In answers to writes: false when reads may not see the change for a moment"`
}

// questionViews lists the pending questions in line, then the others in order of appearance.
func questionViews(t *notebook.Thread) []Question {
	views := make([]Question, 0, len(t.QIDs))
	for i, q := range t.Pending() {
		view := questionView(t, q)
		view.Position = &i
		views = append(views, view)
	}
	for _, id := range t.QIDs {
		if q := t.Questions[id]; t.QuestionStatus(q) != notebook.QuestionPending {
			views = append(views, questionView(t, q))
		}
	}
	return views
}

func questionView(t *notebook.Thread, q *notebook.Question) Question {
	return Question{
		ID: q.ID, Text: q.Text, Origin: q.Origin, Score: q.Score, Depth: q.Depth, ParentRun: textOrNull(q.ParentRun), Status: t.QuestionStatus(q),
		Runs: append([]string{}, q.Runs...), CreatedAt: q.At.UTC(),
	}
}

// Contradiction is two facts that cannot both be true.
type Contradiction struct {
	ID         string     `json:"id"`
	A          Fact       `json:"a" doc:"The elder"`
	B          Fact       `json:"b"`
	Relation   string     `json:"relation"`
	Reason     string     `json:"reason"`
	Similarity float64    `json:"similarity" doc:"Cosine of their embeddings"`
	Engine     string     `json:"engine"`
	FoundAt    time.Time  `json:"found_at"`
	ResolvedAt *time.Time `json:"resolved_at"`
	Keep       *string    `json:"keep"`
	Note       *string    `json:"note"`
}

func contradictionView(v *factViewer, p *notebook.Pair) Contradiction {
	return Contradiction{
		ID: p.Pair, A: v.view(v.thread.Facts[p.Elder]), B: v.view(v.thread.Facts[p.Newer]), Relation: p.Relation, Reason: p.Reason,
		Similarity: p.Similarity, Engine: p.Engine, FoundAt: p.At.UTC(),
	}
}

// Source is a source as the API shows it.
type Source struct {
	ID          string     `json:"id"`
	URL         string     `json:"url" doc:"As first cited"`
	Canonical   string     `json:"canonical_url"`
	Title       string     `json:"title"`
	Summary     string     `json:"summary"`
	PublishedAt *time.Time `json:"published_at"`
	CitedCount  int        `json:"cited_count" doc:"Runs that cited it"`
	Claims      []string   `json:"claims"`
	Runs        []string   `json:"runs"`
}

func sourceView(s projection.Source) Source {
	return Source{
		ID: s.ID, URL: s.URL, Canonical: s.Canonical, Title: s.Title, Summary: s.Summary, PublishedAt: utc(s.PublishedAt),
		CitedCount: len(s.Runs), Claims: some(s.Claims), Runs: some(s.Runs),
	}
}

// Brief is a brief as the API shows it.
type Brief struct {
	Cycle            int                  `json:"cycle"`
	Generation       int                  `json:"generation" doc:"Closing of the cycle, from 0"`
	RunCount         int                  `json:"run_count"`
	Findings         []event.CitedText    `json:"findings"`
	Disputed         []event.DisputedText `json:"disputed"`
	Gaps             []string             `json:"gaps"`
	Relationships    []event.CitedText    `json:"relationships"`
	Withheld         []string             `json:"withheld" doc:"Facts that are no findings, since they repeat a side of an open dispute or rest on one"`
	DroppedSentences int                  `json:"dropped_sentences"`
	Markdown         string               `json:"markdown"`
	Engine           string               `json:"engine"`
	CreatedAt        time.Time            `json:"created_at"`
}

func briefView(b notebook.Brief) Brief {
	return Brief{
		Cycle: b.Cycle, Generation: b.Closing, RunCount: b.RunCount, Findings: some(b.Findings), Disputed: some(b.Disputed), Gaps: some(b.Gaps),
		Relationships: some(b.Relationships), Withheld: some(b.Withheld), DroppedSentences: b.DroppedSentences, Markdown: b.Markdown, Engine: b.Engine, CreatedAt: b.At.UTC(),
	}
}

// Coverage is a map of topics as the API shows it.
type Coverage struct {
	Cycle      int       `json:"cycle"`
	Generation int       `json:"generation"`
	Topics     []Topic   `json:"topics"`
	Engine     string    `json:"engine"`
	CreatedAt  time.Time `json:"created_at"`
}

// Topic is one topic with its facts.
type Topic struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Facts   int      `json:"facts" doc:"How many facts"`
	FactIDs []string `json:"fact_ids"`
	Thin    bool     `json:"thin" doc:"Fewer than 3 facts"`
}

// thinBelow is how many facts a topic needs to be more than thin.
const thinBelow = 3

func coverageView(c notebook.Coverage) Coverage {
	v := Coverage{Cycle: c.Cycle, Generation: c.Closing, Topics: []Topic{}, Engine: c.Engine, CreatedAt: c.At.UTC()}
	for _, t := range c.Topics {
		v.Topics = append(v.Topics, Topic{ID: t.ID, Name: t.Name, Facts: len(t.Facts), FactIDs: some(t.Facts), Thin: len(t.Facts) < thinBelow})
	}
	return v
}
