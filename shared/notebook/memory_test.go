package notebook

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/text"
)

// What a process keeps in memory of one run for ever, in bytes, when its thread goes on and on: 10 threads of 100 runs, each like the recorded balanced one
// (11 pages, 20 facts, and as many verdicts as a run may have), with no page and no statement twice. The answer is as large as the recorded one, or as an
// event may be before its texts are kept apart.
func BenchmarkMemoryOfARun(b *testing.B) {
	const threads, runs = 10, 100
	for name, report := range map[string]int{"recorded": recorded, "256KiB": 240 << 10} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				n := NewTail(nil, zerolog.Nop()).notebook
				seq := uint64(0)
				for i := range threads {
					for _, e := range months(fmt.Sprintf("thread%d", i), runs, report) {
						seq++
						apply(b, n, seq, e)
					}
				}
				b.ReportMetric(float64(heap()-before)/(threads*runs), "B/run")
				runtime.KeepAlive(n)
			}
		})
	}
}

// recorded is the length of the recorded report.
const recorded = 6600

// Months of use must not fill the memory of five processes: of all texts that a run brings, the state keeps what decisions and judgements read.
func TestTheStateKeepsNoTextThatNoDecisionReads(t *testing.T) {
	t.Parallel()
	for _, tail := range []bool{false, true} {
		n := NewNotebook()
		n.withoutExcerpts = tail
		seq := uint64(0)
		for _, e := range months("t", 3, recorded) {
			if d, ok := e.Data.(event.FactsDistilled); ok {
				for i := range d.Facts {
					d.Facts[i].Excerpt.Text = letters("excerpt", i, 80)
				}
			}
			seq++
			apply(t, n, seq, e)
		}
		state, err := json.Marshal(n.Thread("t"))
		require.NoError(t, err)
		for _, gone := range []string{"report ", "metadata ", "summary ", "claim ", "gap "} {
			require.NotContains(t, string(state), gone)
		}
		for _, kept := range []string{"statement ", "question ", "title ", "https://example.org/ssb/", "brief 2"} {
			require.Contains(t, string(state), kept)
		}
		require.NotContains(t, string(state), "brief 1", "the newest only")
		require.Equal(t, tail, !strings.Contains(string(state), "excerpt "), "excerpts are for showing")
		require.Len(t, n.Thread("t").Sources, 33)
		require.Equal(t, 11, n.Thread("t").Runs[n.Thread("t").RunIDs[0]].Completed.Pages)
	}
}

// A source is shown as it was first cited; later citations fill in what that one lacks, and facts that name it alike share it.
func TestASourceIsAsItWasFirstCited(t *testing.T) {
	t.Parallel()
	s := tell(t)
	published := time.Date(2026, 3, 4, 9, 0, 0, 0, time.UTC)
	for _, p := range []event.Page{
		{N: 1, Source: "s", URL: "https://example.org/a"},
		{N: 2, Source: "s", URL: "https://example.org/a#2", Title: "A"},
		{N: 3, Source: "s", URL: "https://example.org/a", Title: "Another", PublishedAt: &published},
		{N: 4, URL: "file:///etc/passwd", Title: "none of the web"},
	} {
		require.NoError(t, s.request("Again, "+p.URL+p.Title+"?"))
		s.begin()
		s.must(CompleteRun{Run: s.last().ID, Completed: event.RunCompleted{Attempt: 1, Pages: []event.Page{p}}})
	}
	require.Len(t, s.thread.Sources, 1)
	require.Equal(t, Source{ID: "s", URL: "https://example.org/a", Title: "A", PublishedAt: &published}, *s.thread.Sources["s"])

	named := func(statement, title string) event.Fact {
		f := fact(statement)
		f.Source = &event.Source{ID: "s", URL: "https://example.org/a", Title: title}
		return f
	}
	s.must(Distil{Run: s.last().ID, Facts: []event.Fact{named("One.", "A"), named("Two.", "A"), named("Three.", "Other")}})
	one, two, three := s.thread.Facts[fact("One.").ID], s.thread.Facts[fact("Two.").ID], s.thread.Facts[fact("Three.").ID]
	require.Same(t, one.Source, two.Source)
	require.Equal(t, "Other", three.Source.Title, "each fact as it was distilled")
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // the first one empties what pools hold
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func apply(t testing.TB, n *Notebook, seq uint64, e event.Event) {
	body, err := event.Marshal(e)
	require.NoError(t, err)
	_, applied := n.Apply(Message{Seq: seq, Subject: e.Subject(), Data: body, Time: e.Time})
	require.True(t, applied)
}

// months are the events of a thread that asked so many questions, one a cycle, and got reports of so many bytes.
func months(thread string, runs, report int) []event.Event {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var events []event.Event
	say := func(entity, run string, n int, data event.Data) {
		at = at.Add(time.Second)
		events = append(events, event.Event{ID: text.ID("event", thread, fmt.Sprint(len(events))), Time: at, Thread: thread, Run: run, Entity: entity, N: n, Data: data})
	}
	say("0", "", 0, event.ThreadCreated{Question: "How far are solid-state cells?", Settings: event.Settings{Provider: event.Tabstack, Mode: event.Balanced, Budget: 1 << 30}})
	question := RootQuestionID(thread)
	var elder event.Fact
	for i := range runs {
		run, cycle := text.ID("run", thread, fmt.Sprint(i)), fmt.Sprint(i+1)
		done := balanced(thread, i, report)
		facts := twenty(thread, done.Pages)
		say(run, run, 0, event.RunRequested{
			Question: question, Text: letters("question", i, 80), Provider: event.Tabstack, Mode: event.Balanced, Cycle: i + 1, CycleSize: 1, RunKind: event.KindCycle, Cost: 350,
		})
		say(run, run, 1, event.AttemptStarted{Holder: "researcher@host:1"})
		say(run, run, 0, done)
		say(run, run, 0, event.FactsDistilled{Facts: facts, Engine: "extractive"})
		verdicts := event.ContradictionsFound{Engine: "extractive"}
		for k := range 24 {
			newer := facts[k%len(facts)]
			if elder.ID == "" || k >= len(facts) {
				elder = facts[0]
			}
			verdicts.Verdicts = append(verdicts.Verdicts, event.Verdict{
				Pair: text.ID("pair", thread, fmt.Sprint(i, k)), Elder: elder.ID, ElderFingerprint: elder.Fingerprint, Newer: newer.ID, NewerFingerprint: newer.Fingerprint,
				Relation: event.Distinct, Reason: "Both go on from the same sentence.", Similarity: 0.9,
			})
		}
		elder = facts[len(facts)-1]
		say(run, run, 0, verdicts)
		var proposed event.QuestionsProposed
		for k := range MaxQuestions {
			proposed.Questions = append(proposed.Questions, event.ProposedQuestion{ID: text.ID("question", thread, fmt.Sprint(i, k)), Text: letters("ask", i*10+k, 80), ParentRun: run})
		}
		say(cycle, "", 0, proposed)
		question = proposed.Questions[0].ID
		say(cycle, "", 0, event.BriefWritten{RunCount: i + 1, Markdown: letters("brief", i, 7000), Engine: "extractive"})
		say(cycle, "", 0, event.CoverageMapped{Topics: []event.Topic{{ID: "t", Name: "cells", Facts: []string{facts[0].ID}}}, Engine: "extractive"})
		say(cycle, "", 0, event.ThreadSettled{})
	}
	return events
}

// balanced is what a run brings.
func balanced(thread string, i, report int) event.RunCompleted {
	done := event.RunCompleted{
		Attempt: 1, Cost: 350, Report: event.Blob{Text: letters("report", i, report)}, Metadata: event.Blob{Text: letters("metadata", i, 10500)},
		Raw: event.Blob{Ref: thread + "/" + strings.Repeat("0", 64), SHA256: strings.Repeat("0", 64), Size: 28000}, Events: 36, Bytes: 28000,
		Gaps: []string{letters("gap", i, 90), letters("gap", i+1, 90)},
	}
	for n := range 11 {
		url := fmt.Sprintf("https://example.org/ssb/roadmap-%s-%d-%d", thread, i, n)
		published := time.Date(2026, 3, 4, 9, 0, 0, 0, time.UTC)
		done.Pages = append(done.Pages, event.Page{
			N: n + 1, Source: SourceID(thread, url), URL: url, Canonical: url, Title: letters("title", i, 58), Summary: letters("summary", i, 90),
			Claims: event.Claims{Texts: []string{letters("claim", i, 70), letters("claim", i+1, 70), letters("claim", i+2, 40)}}, PublishedAt: &published,
		})
	}
	return done
}

// twenty are the facts that a run gives, each with an excerpt that is about as long.
func twenty(thread string, pages []event.Page) []event.Fact {
	facts := make([]event.Fact, MaxFacts)
	for k := range facts {
		p := pages[k%len(pages)]
		statement := letters("statement "+p.URL, k, 250)
		print := text.Fingerprint(statement)
		facts[k] = event.Fact{
			ID: FactID(thread, print), Fingerprint: print, Statement: statement, Confidence: 0.8, Tags: []string{"production plans", "auralith", "lithium", "lines", "layers"},
			Source:  &event.Source{ID: p.Source, URL: p.URL, Canonical: p.Canonical, Site: "example.org", Title: p.Title, PublishedAt: p.PublishedAt},
			Excerpt: &event.Excerpt{Start: 10, End: 264, Text: statement + " [1]"},
		}
	}
	return facts
}

// letters is a text of n characters that no other i has.
func letters(what string, i, n int) string {
	s := fmt.Sprintf("%s %d: ", what, i)
	return s + strings.Repeat("a long sentence of the kind that reports have. ", n/47+1)[:max(0, n-len(s))]
}
