// Package gatewaytest does, for tests of the gateway, what the other services do: it appends their outcomes with contents that are known.
package gatewaytest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service"
	"github.com/factstream/factstream/shared/service/servicetest"
	"github.com/factstream/factstream/shared/text"
)

// Report of every run; parts of it are hostile.
const Report = "# Report\n\nCells reached 450 Wh/kg in 2025 [1]. Others say 300 Wh/kg [2].\n\n<script>alert(1)</script> [bad](javascript:alert(1)) [good](https://example.com/a)\n"

// Complete does what researcher, distiller, judge and briefer do for a requested run, up to the settled cycle and the parked thread.
func Complete(t testing.TB, s *service.Service, thread, run string) {
	t.Helper()
	servicetest.Append(t, s, thread, notebook.StartAttempt{Run: run, Holder: "test", Max: 3})
	servicetest.Append(t, s, thread, notebook.CompleteRun{Run: run, Completed: Completed(thread)})
	Derive(t, s, thread, run)
}

// Derive does what distiller, judge and briefer do for a run that is completed, or whose facts are derived again.
func Derive(t testing.TB, s *service.Service, thread, run string) {
	t.Helper()
	var generation, cycle, closing int
	servicetest.Until(t, s, thread, func(t *notebook.Thread) bool {
		generation, cycle = t.Runs[run].Gen, t.Runs[run].Requested.Cycle
		return t.Runs[run].Awaits() == event.StageDistill
	})
	servicetest.Append(t, s, thread, distil(thread, run, generation))
	servicetest.Append(t, s, thread, judge(thread, run, generation))
	s.Tail.View(thread, func(t *notebook.Thread) { closing = t.CycleOf(cycle).Newest().N })
	step := notebook.ClosingStep{Cycle: cycle, N: closing}
	facts := FactIDs(thread)
	servicetest.Append(t, s, thread, notebook.ProposeQuestions{ClosingStep: step, Proposed: event.QuestionsProposed{Engine: "extractive", Questions: []event.ProposedQuestion{
		{Text: "What limits the cells?", Score: 0.8, Depth: 1, ParentRun: run}, {Text: "Who makes the cells?", Score: 0.4, Depth: 1, ParentRun: run}}}})
	servicetest.Append(t, s, thread, notebook.WriteBrief{ClosingStep: step, Brief: event.BriefWritten{RunCount: 1, Engine: "extractive", Markdown: "Brief",
		Findings: []event.CitedText{{Text: "Cells reached 450 Wh/kg.", Facts: facts[:1]}}, Gaps: []string{"Cost"}}})
	servicetest.Append(t, s, thread, notebook.MapCoverage{ClosingStep: step, Coverage: event.CoverageMapped{Engine: "extractive",
		Topics: []event.Topic{{ID: "t1", Name: "Energy", Facts: facts[:2]}}}})
	servicetest.Append(t, s, thread, notebook.Settle{ClosingStep: step})
	var settled uint64
	s.Tail.View(thread, func(t *notebook.Thread) { settled = t.LastSettled })
	servicetest.Append(t, s, thread, notebook.Autopilot{Access: servicetest.Access, Trigger: settled})
}

// URLs of the pages that the report cites; the last is no page of the web.
var URLs = []string{"https://www.example.com/a?utm_source=x", "https://example.org/b", "javascript:alert(1)"}

var published = time.Date(2020, 5, 1, 0, 0, 0, 0, time.UTC)

// Settle ends every cycle whose runs came to nothing, as the briefer would.
func Settle(t testing.TB, s *service.Service, thread string) {
	t.Helper()
	var steps []notebook.ClosingStep
	s.Tail.View(thread, func(t *notebook.Thread) {
		for _, c := range t.Cycles {
			if newest := c.Newest(); newest != nil && !newest.Settled {
				steps = append(steps, notebook.ClosingStep{Cycle: c.ID, N: newest.N})
			}
		}
	})
	for _, step := range steps {
		servicetest.Append(t, s, thread, notebook.Settle{ClosingStep: step})
	}
}

// Completed is the outcome of a paid call of attempt 1.
func Completed(thread string) event.RunCompleted {
	c := event.RunCompleted{
		Attempt: 1, Cost: 250, Report: event.Blob{Text: Report}, Metadata: event.Blob{Text: `{"mode":"fast"}`}, Usage: json.RawMessage(`{"credits":250}`),
		Events: 2, Bytes: 100, Replayed: true,
	}
	for i, url := range URLs {
		p := event.Page{N: i + 1, URL: url, Title: "<b>Title</b>", Claims: event.Claims{Texts: []string{"a claim"}}}
		if s := source(thread, url); s != nil {
			p.Source, p.Canonical, p.PublishedAt = s.ID, s.Canonical, s.PublishedAt
		}
		c.Pages = append(c.Pages, p)
	}
	return c
}

func source(thread, url string) *event.Source {
	canonical, err := text.CanonicalURL(url)
	if err != nil {
		return nil
	}
	s := &event.Source{ID: notebook.SourceID(thread, canonical), URL: url, Canonical: canonical, Site: text.Site(url), Title: "<b>Title</b>"}
	if strings.Contains(url, "example.com") {
		s.PublishedAt = &published
	}
	return s
}

// Statements of the facts that a run gives, each with the page of its place in URLs.
var Statements = []string{"Cells reached 450 Wh/kg in 2025.", "Others say 300 Wh/kg.", "<img src=x onerror=alert(1)> is a statement."}

// FactIDs are the ids of the statements in a thread.
func FactIDs(thread string) []string {
	var ids []string
	for _, s := range Statements {
		ids = append(ids, notebook.FactID(thread, text.Fingerprint(s)))
	}
	return ids
}

// Fact is a candidate with a source of its own.
func Fact(thread, statement, url string, excerpt *event.Excerpt) event.Fact {
	print := text.Fingerprint(statement)
	return event.Fact{ID: notebook.FactID(thread, print), Fingerprint: print, Statement: statement, Confidence: 0.9, Source: source(thread, url), Excerpt: excerpt}
}

func distil(thread, run string, generation int) notebook.Distil {
	cmd := notebook.Distil{Run: run, N: generation, Engine: "extractive", LeftOut: 2, UnresolvedMarkers: 1, Dropped: map[string]int{"no_page": 1}}
	for i, s := range Statements {
		f := event.Fact{ID: notebook.FactID(thread, text.Fingerprint(s)), Fingerprint: text.Fingerprint(s), Statement: s, Confidence: 0.9, Tags: []string{"energy"}}
		if f.Source = source(thread, URLs[i]); f.Source != nil {
			at := strings.Index(Report, s[:10])
			f.Excerpt = &event.Excerpt{Start: at, End: at + 10, Text: s[:10]}
		}
		cmd.Facts = append(cmd.Facts, f)
	}
	return cmd
}

func judge(thread, run string, generation int) notebook.Judge {
	ids := FactIDs(thread)
	return notebook.Judge{Run: run, N: generation, Engine: "extractive", Verdicts: []event.Verdict{{
		Elder: ids[0], ElderFingerprint: text.Fingerprint(Statements[0]), Newer: ids[1], NewerFingerprint: text.Fingerprint(Statements[1]),
		Relation: event.Contradiction, Reason: "other figure", Similarity: 0.9,
	}}}
}
