package measured_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/fixtures"
	"github.com/factstream/factstream/services/distiller/distil"
	"github.com/factstream/factstream/services/judge/judging"
	"github.com/factstream/factstream/shared/engine"
	"github.com/factstream/factstream/shared/engine/enginetest"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service/servicetest"
)

// TestTheRecordedReportsAreJudgedAsLabelled distils and judges the two recorded reports with the engine without a model, and measures
// the verdicts by the labelled pairs between them: those whose two claims were both distilled.
func TestTheRecordedReportsAreJudgedAsLabelled(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	s := bus.Open("gateway")
	servicetest.Run(t, s)
	distiller, err := distil.New(t.Context(), bus.Open("distiller"), engine.Options{})
	require.NoError(t, err)
	servicetest.Run(t, distiller.Service, distiller.Parts()...)
	judge, err := judging.New(t.Context(), bus.Open("judge"), engine.Options{})
	require.NoError(t, err)
	servicetest.Run(t, judge.Service, judge.Parts()...)

	const thread = "t1"
	enginetest.Create(t, s, thread, "extractive", "How far are solid-state batteries for cars?")
	for _, mode := range []string{"fast", "balanced"} {
		enginetest.Complete(t, s, thread, mode, servicetest.Access, enginetest.Recorded(t, mode))
		servicetest.Until(t, s, thread, func(th *notebook.Thread) bool { return th.Runs[mode].Judged != nil })
	}
	relations, err := fixtures.Relations()
	require.NoError(t, err)
	measure(t, servicetest.Whole(t, s, thread), relations)
}

// right says whether a verdict on a labelled pair is. A paraphrase is a duplicate, or distinct and related where one side adds a detail. What was
// never judged is neither.
func right(relation string, v found) bool {
	if relation == "contradicts" {
		return v.relation == event.Contradiction
	}
	return v.relation == event.Duplicate || v.relation == event.Distinct && v.related
}

// found is what was found between any of the facts of two claims.
type found struct {
	relation string // "" if no two of them were put before the judge
	related  bool
	reason   string
}

func measure(t *testing.T, th *notebook.Thread, relations []fixtures.Relation) {
	reached, given, labelled := map[string]int{}, map[string]int{}, map[string]int{}
	left := map[string]string{}   // which paraphrases are not reached, and why
	expected := map[string]bool{} // pairs that a label is about
	for _, r := range relations {
		if r.Relation != "contradicts" && r.Relation != "paraphrases" {
			continue
		}
		fast, balanced := claims(t, th, "fast", r.Fast), claims(t, th, "balanced", r.Balanced)
		if len(fast) == 0 || len(balanced) == 0 {
			t.Logf("not distilled (fast: %v, %d facts left out; balanced: %v, %d left out): %s | %s", len(fast) > 0, th.Runs["fast"].LeftOut, len(balanced) > 0, th.Runs["balanced"].LeftOut, r.Fast, r.Balanced)
			if r.Relation == "paraphrases" {
				left[r.Fast] = "not distilled"
			}
			continue
		}
		got := between(th, fast, balanced)
		ok := right(r.Relation, got)
		t.Logf("%-11s %-13s related=%-5v right=%-5v %s | %s (%s)", r.Relation, got.relation, got.related, ok, r.Fast, r.Balanced, got.reason)
		labelled[r.Relation]++
		switch {
		case ok:
			reached[r.Relation]++
		case r.Relation == "paraphrases" && got.relation == "":
			left[r.Fast] = "not judged"
		case r.Relation == "paraphrases":
			left[r.Fast] = "plain " + got.relation
		}
		if r.Relation == "contradicts" {
			require.NotEqual(t, event.Duplicate, got.relation, "a contradiction must never be dropped as a duplicate: %s", r.Fast)
		}
		for _, f := range fast {
			for _, b := range balanced {
				expected[notebook.PairID(f, b)] = true
			}
		}
	}
	unlabelled := map[string]int{}
	for _, p := range th.Pairs {
		across := th.Facts[p.Elder].Run != th.Facts[p.Newer].Run
		if !across || p.Relation == event.Distinct {
			continue
		}
		given[p.Relation]++
		if !expected[p.Pair] {
			unlabelled[p.Relation]++
			t.Logf("not labelled: %s\n  %s\n  %s", p.Relation, th.Facts[p.Elder].Statement, th.Facts[p.Newer].Statement)
		}
	}
	t.Logf("contradicts: recall %d of %d, precision %d of %d; paraphrases: right %d of %d, duplicates right %d of %d; pairs judged %d",
		reached["contradicts"], labelled["contradicts"], given[event.Contradiction]-unlabelled[event.Contradiction], given[event.Contradiction],
		reached["paraphrases"], labelled["paraphrases"], given[event.Duplicate]-unlabelled[event.Duplicate], given[event.Duplicate], len(th.Pairs))
	require.GreaterOrEqual(t, labelled["contradicts"], 3, "claims that were distilled")
	require.GreaterOrEqual(t, labelled["paraphrases"], 3, "claims that were distilled")
	require.GreaterOrEqual(t, 3*reached["contradicts"], 2*labelled["contradicts"], "two of three contradictions are found")
	t.Logf("paraphrases that are not reached: %v", left)
	require.Equal(t, labelled["paraphrases"], reached["paraphrases"], "each that was distilled is a duplicate, or distinct and related")
	require.Empty(t, unlabelled, "what no label is about is distinct")
}

// claims are the facts of a run whose excerpts share a part of its report with a labelled claim.
func claims(t *testing.T, th *notebook.Thread, run, claim string) (ids []string) {
	t.Helper()
	start := strings.Index(enginetest.Recorded(t, run).Markdown, claim)
	require.GreaterOrEqual(t, start, 0, "the report of the %s run holds %q", run, claim)
	for _, id := range th.FactIDs {
		f := th.Facts[id]
		for _, support := range f.Support {
			if support.Run == run && support.Excerpt != nil && support.Excerpt.Start < start+len(claim) && start < support.Excerpt.End {
				ids = append(ids, id)
				break
			}
		}
	}
	return ids
}

// between is the verdict on the facts of two claims: one that is not distinct goes before one that is, and one that is related before a plain one.
func between(th *notebook.Thread, a, b []string) (out found) {
	for _, x := range a {
		for _, y := range b {
			p := th.Pairs[notebook.PairID(x, y)]
			if p == nil {
				continue
			}
			if out.relation == "" || p.Relation != event.Distinct || out.relation == event.Distinct && p.Related && !out.related {
				out = found{p.Relation, p.Related, p.Reason}
			}
		}
	}
	return out
}
