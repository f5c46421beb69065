package measured_test

import (
	"fmt"
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

// want says which verdicts on a labelled pair are right. A paraphrase may add a detail on one side, and is distinct then.
var want = map[string][]string{
	"contradicts": {event.Contradiction},
	"paraphrases": {event.Duplicate, event.Distinct},
}

func measure(t *testing.T, th *notebook.Thread, relations []fixtures.Relation) {
	right, given, labelled := map[string]int{}, map[string]int{}, map[string]int{}
	expected := map[string]bool{} // pairs that a label is about
	for _, r := range relations {
		if want[r.Relation] == nil {
			continue
		}
		fast, balanced := claims(t, th, "fast", r.Fast), claims(t, th, "balanced", r.Balanced)
		if len(fast) == 0 || len(balanced) == 0 {
			t.Logf("not distilled: %s | %s", r.Fast, r.Balanced)
			continue
		}
		got := verdict(th, fast, balanced)
		ok := strings.Contains(fmt.Sprint(want[r.Relation]), got)
		t.Logf("%-11s %-13s right=%-5v %s | %s", r.Relation, got, ok, r.Fast, r.Balanced)
		labelled[r.Relation]++
		if ok {
			right[r.Relation]++
		}
		if r.Relation == "contradicts" {
			require.NotEqual(t, event.Duplicate, got, "a contradiction must never be dropped as a duplicate: %s", r.Fast)
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
		right["contradicts"], labelled["contradicts"], given[event.Contradiction]-unlabelled[event.Contradiction], given[event.Contradiction],
		right["paraphrases"], labelled["paraphrases"], given[event.Duplicate]-unlabelled[event.Duplicate], given[event.Duplicate], len(th.Pairs))
	require.GreaterOrEqual(t, labelled["contradicts"], 3, "claims that were distilled")
	require.GreaterOrEqual(t, labelled["paraphrases"], 2, "claims that were distilled")
	require.GreaterOrEqual(t, 3*right["contradicts"], 2*labelled["contradicts"], "two of three contradictions are found")
	require.Equal(t, labelled["paraphrases"], right["paraphrases"])
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

// verdict is the relation that was found between any of the facts of two claims; distinct if none was.
func verdict(th *notebook.Thread, a, b []string) string {
	relation := event.Distinct
	for _, x := range a {
		for _, y := range b {
			if p := th.Pairs[notebook.PairID(x, y)]; p != nil && p.Relation != event.Distinct {
				relation = p.Relation
			}
		}
	}
	return relation
}
