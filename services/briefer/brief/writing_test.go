package brief

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/extractive"
	"github.com/factstream/factstream/shared/notebook"
)

// state is a thread that holds facts, as a fold would leave it. Fact n is of sequence n.
func state(facts ...event.Fact) *notebook.Thread {
	t := notebook.NewThread(thread)
	t.Question, t.Standing = question, notebook.New
	for i, f := range facts {
		t.Facts[f.ID] = &notebook.Fact{Fact: f, Run: "run1", Seq: uint64(i + 1), At: day("2026-03-01"), Support: []notebook.Support{{Run: "run1", Source: f.Source}}}
		t.FactIDs = append(t.FactIDs, f.ID)
	}
	return t
}

// disputing adds an open contradiction to a state.
func disputing(t *notebook.Thread, elder, newer event.Fact) (pair string) {
	v := contradicts(elder, newer)
	v.Pair = notebook.PairID(elder.ID, newer.ID)
	t.Pairs[v.Pair] = &notebook.Pair{Verdict: v, Run: "run1"}
	t.PairIDs = append(t.PairIDs, v.Pair)
	return v.Pair
}

func day(s string) time.Time {
	at, err := time.Parse(time.DateOnly, s)
	if err != nil {
		panic(err)
	}
	return at
}

// many are n facts on different things.
func many(n int) []event.Fact {
	facts := make([]event.Fact, n)
	for i := range facts {
		facts[i] = fact(fmt.Sprintf("Statement number %d is about thing %d.", i, i))
	}
	return facts
}

func refs(facts []model.BriefFact) []string {
	out := make([]string, len(facts))
	for i, f := range facts {
		out[i] = f.Ref
	}
	return out
}

func TestDisputedFactsComeFirstThenPinnedSupportedAndNewOnes(t *testing.T) {
	t.Parallel()
	f := many(7)
	th := state(f...)
	pair := disputing(th, f[0], f[3])
	th.Facts[f[1].ID].Pinned = true
	th.Facts[f[2].ID].Support = append(th.Facts[f[2].ID].Support, notebook.Support{Run: "run2", Source: f[6].Source})
	th.Facts[f[6].ID].Root = f[4].ID // a duplicate's page supports its root
	th.Facts[f[5].ID].Source.PublishedAt = pointer(day("2025-02-03"))

	w := materialOf(th)
	require.Equal(t, []string{f[0].ID, f[3].ID, f[1].ID, f[4].ID, f[2].ID, f[5].ID}, refs(w.task.Facts))
	require.Equal(t, []model.BriefDispute{{N: 1, Ref: pair, A: 1, B: 2, Reason: "The figures differ."}}, w.task.Disputes)
	require.True(t, w.task.Facts[0].Disputed)
	require.False(t, w.task.Facts[2].Disputed)
	require.Equal(t, "2026-03-01", w.task.Facts[0].Date, "the day of retrieval, where the page has none")
	require.Equal(t, "2025-02-03", w.task.Facts[5].Date)
	require.Zero(t, w.leftOut)
}

func TestWhatSpeaksOfTheQuestionComesFirst(t *testing.T) {
	t.Parallel()
	pinned, near, far := fact("Owls nest in Moss."), fact("The mill burns 9 tonnes of bark."), fact("Ships land in Halden.")
	th := state(near, pinned, far)
	th.Question = "What does the mill burn?"
	th.Facts[pinned.ID].Pinned = true
	require.Equal(t, []string{pinned.ID, near.ID, far.ID}, refs(materialOf(th).task.Facts), "though the last is newer")
}

func pointer[T any](v T) *T { return &v }

func TestABriefIsWrittenFromABoundedNumberOfFacts(t *testing.T) {
	t.Parallel()
	f := many(300)
	th := state(f...)
	const open = 80
	for i := range open {
		disputing(th, f[2*i], f[2*i+1])
	}
	w := materialOf(th)
	require.Len(t, w.task.Facts, model.MaxBriefFacts)
	require.Len(t, w.task.Disputes, model.MaxBriefDisputes)
	require.Equal(t, f[2*open-2].ID, w.task.Facts[w.task.Disputes[0].A-1].Ref, "the newest dispute comes first")
	require.Equal(t, f[299].ID, w.task.Facts[2*model.MaxBriefDisputes].Ref, "the newest settled fact follows the disputed ones")
	require.Equal(t, 300-2*open-(model.MaxBriefFacts-2*model.MaxBriefDisputes), w.leftOut)

	brief := w.brief(model.Brief{Outcome: model.Outcome{Engine: model.EngineExtractive, Drops: model.Drops{}}})
	require.Equal(t, w.leftOut, brief.Dropped[model.DropLeftOut])
	require.Len(t, brief.Disputed, maxStated)
	require.Contains(t, brief.Markdown, "20 more open contradictions are not mentioned here.")
	require.Contains(t, brief.Markdown, fmt.Sprintf("%d facts were left out", w.leftOut))
}

func TestEveryOpenDisputeIsStatedAndNoDisputedFactIsAFinding(t *testing.T) {
	t.Parallel()
	th := state(rises, falls, costs)
	pair := disputing(th, rises, falls)
	w := materialOf(th)

	brief := w.brief(model.Brief{
		Findings:      []model.Cited{{Text: "It rises.", Facts: []string{rises.ID}}, {Text: "It costs.", Facts: []string{costs.ID}}},
		Relationships: []model.Cited{{Text: "It rises as it costs.", Facts: []string{costs.ID, falls.ID}}},
		Gaps:          []model.Cited{{Text: "Nobody measured it twice."}},
		Outcome:       model.Outcome{Drops: model.Drops{}},
	})
	require.Equal(t, []event.CitedText{{Text: "It costs.", Facts: []string{costs.ID}}}, brief.Findings)
	require.Empty(t, brief.Relationships)
	require.Equal(t, []string{"Nobody measured it twice."}, brief.Gaps)
	require.Equal(t, []event.DisputedText{{
		Text:          "“The cell of Acme keeps 90 percent after 1,000 cycles” contradicts “The cell of Acme keeps 60 percent after 1,000 cycles”.",
		Contradiction: pair,
	}}, brief.Disputed)
	require.Equal(t, 2, brief.DroppedSentences)
	require.Equal(t, map[string]int{model.DropDisputedFact: 2}, brief.Dropped)

	t.Log("what the model says about it stands instead, once")
	said := model.Disputed{Text: "Sources disagree on it.", Dispute: pair}
	brief = w.brief(model.Brief{Disputed: []model.Disputed{said, {Text: "They do.", Dispute: pair}}, Outcome: model.Outcome{Drops: model.Drops{}}})
	require.Equal(t, []event.DisputedText{{Text: said.Text, Contradiction: pair}}, brief.Disputed)
	require.Equal(t, 1, brief.DroppedSentences)
}

func TestAFactThatSaysWhatIsInDisputeIsCountedAndNamedButNoFinding(t *testing.T) {
	t.Parallel()
	echoes := fact("The cell of Acme keeps 60 percent of its charge after 1,000 cycles; a pack holds 90 of them.")
	th := state(rises, falls, costs, echoes)
	disputing(th, rises, falls)
	w := materialOf(th)
	written, err := model.WriteBrief(t.Context(), model.Call{Model: extractive.New(), Thread: thread, Trigger: "e1"}, w.task)
	require.NoError(t, err)

	brief := w.brief(written)
	require.Equal(t, []event.CitedText{{Text: costs.Statement, Facts: []string{costs.ID}}}, brief.Findings)
	require.Equal(t, map[string]int{droppedInDispute: 1}, brief.Dropped)
	require.Zero(t, brief.DroppedSentences)
	require.Contains(t, brief.Markdown, "\n1 fact is not among the findings, because it repeats one side of a dispute above or depends on it: [4].\n")
	require.Len(t, brief.Withheld, 1)
	require.Contains(t, brief.Markdown, "\n4. "+echoes.Statement+" ", "it stands among the facts")
	require.Contains(t, brief.Markdown, "from 3 of 4 facts that")
	require.Contains(t, brief.Markdown, "[2] [3]\n  - See also: "+echoes.Statement+" [4]\n", "and under the dispute, of which it tells more")

	t.Log("a language model words its findings itself")
	written.Engine = model.EngineOllama
	require.Empty(t, w.brief(written).Dropped)
	require.Contains(t, w.brief(written).Markdown, "from 4 of 4 facts that")
}

func TestAFactThatAddsNothingToADisputeStandsNotUnderIt(t *testing.T) {
	t.Parallel()
	th := state(rises, falls, fact("The cell of Acme still keeps 60 percent after 1,000 cycles."))
	disputing(th, rises, falls)
	w := materialOf(th)
	written, err := model.WriteBrief(t.Context(), model.Call{Model: extractive.New(), Thread: thread, Trigger: "e1"}, w.task)
	require.NoError(t, err)
	brief := w.brief(written)
	require.Len(t, brief.Withheld, 1)
	require.NotContains(t, brief.Markdown, "See also")
}

func TestRelatedFactsAreOneFindingThatCitesAll(t *testing.T) {
	t.Parallel()
	less, owls, more := fact("The mill opened in 2019.", "mill"), fact("Owls nest in Moss."), fact("The mill in Halden opened in 2019 with 320 workers.")
	th := state(less, owls, more)
	pair := notebook.PairID(less.ID, more.ID)
	th.Pairs[pair] = &notebook.Pair{Verdict: event.Verdict{
		Pair: pair, Elder: less.ID, ElderFingerprint: less.Fingerprint, Newer: more.ID, NewerFingerprint: more.Fingerprint, Relation: event.Distinct, Related: true,
	}, Run: "run1"}
	th.PairIDs = append(th.PairIDs, pair)

	w := materialOf(th)
	require.Len(t, w.task.Related, 1)
	require.ElementsMatch(t, []string{less.ID, more.ID}, []string{w.task.Facts[w.task.Related[0][0]-1].Ref, w.task.Facts[w.task.Related[0][1]-1].Ref})
	require.Equal(t, []string{"mill"}, w.task.Facts[slices.IndexFunc(w.task.Facts, func(f model.BriefFact) bool { return f.Ref == less.ID })].Tags, "which gaps are held against")
	written, err := model.WriteBrief(t.Context(), model.Call{Model: extractive.New(), Thread: thread, Trigger: "e1"}, w.task)
	require.NoError(t, err)
	brief := w.brief(written)
	require.Equal(t, []event.CitedText{
		{Text: more.Statement, Facts: []string{more.ID, less.ID}}, {Text: owls.Statement, Facts: []string{owls.ID}},
	}, brief.Findings)
	require.Contains(t, brief.Markdown, "- "+more.Statement+" [1] [2]\n")
	require.Contains(t, brief.Markdown, "\n2. "+less.Statement+" ", "it stands among the facts")
}

func TestAQuotationEndsWithAWholeWord(t *testing.T) {
	t.Parallel()
	long := fact("The cell of Acme keeps 60 percent after 1,000 cycles " + strings.Repeat("of warmth ", 30))
	th := state(rises, long)
	disputing(th, rises, long)
	brief := materialOf(th).brief(model.Brief{Outcome: model.Outcome{Drops: model.Drops{}}})
	require.Contains(t, brief.Disputed[0].Text, " warmth of…”.")
}

func TestAReplyThatWasKeptBeforeAPersonActedIsHeldAgainstTheFactsOfNow(t *testing.T) {
	t.Parallel()
	th := state(rises, falls, costs)
	pair := disputing(th, rises, falls)
	written := model.Brief{
		Findings: []model.Cited{{Text: "It costs.", Facts: []string{costs.ID}}},
		Disputed: []model.Disputed{{Text: "They disagree.", Dispute: pair}},
		Outcome:  model.Outcome{Drops: model.Drops{}},
	}
	th.Facts[costs.ID].Dismissed = true
	th.Facts[falls.ID].Dismissed = true
	brief := materialOf(th).brief(written)
	require.Empty(t, brief.Findings)
	require.Empty(t, brief.Disputed)
	require.Equal(t, map[string]int{model.DropUnknownFact: 1, model.DropUnknownDispute: 1}, brief.Dropped)
	require.Contains(t, brief.Markdown, "Nothing is settled yet.")
}

func TestThePreviousBriefIsToldAsFarAsItHolds(t *testing.T) {
	t.Parallel()
	th := state(rises, falls, costs)
	require.Empty(t, previousBrief(th))
	th.Brief = &notebook.Brief{BriefWritten: event.BriefWritten{
		Findings:      []event.CitedText{{Text: "It rises.", Facts: []string{rises.ID}}, {Text: "It costs.", Facts: []string{costs.ID}}},
		Disputed:      []event.DisputedText{{Text: "Old quarrel.", Contradiction: "gone"}},
		Gaps:          []string{"Safety is open."},
		Relationships: []event.CitedText{{Text: "Both matter.", Facts: []string{rises.ID, costs.ID}}},
	}}
	require.Equal(t, "It rises.\nIt costs.\nSafety is open.\nBoth matter.", previousBrief(th))
	disputing(th, rises, falls)
	require.Equal(t, "It costs.\nSafety is open.", previousBrief(th))
	th.Facts[costs.ID].Dismissed = true
	require.Equal(t, "Safety is open.", previousBrief(th))
}

func TestABriefWithoutFactsAsksNobody(t *testing.T) {
	t.Parallel()
	s, server := withModel(t)
	s.start()
	s.tell(nil, nil)
	s.settled(1, 0)
	brief := one[event.BriefWritten](s)
	require.Contains(t, brief.Markdown, "No facts are known yet.")
	require.Equal(t, model.EngineOllama, brief.Engine)
	require.Empty(t, one[event.CoverageMapped](s).Topics)
	for _, call := range server.Chats() {
		require.Equal(t, event.StageQuestions, stepOf(call))
	}
}
