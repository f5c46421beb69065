package brief

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/factstream/factstream/shared/engine"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/extractive"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/text"
)

const (
	// maxStated disputes stand in a brief, those that the model wrote about included. The others are counted there, and are
	// listed with the thread.
	maxStated = 60
	// maxSide is how many characters of each side the server quotes where the model said nothing about a dispute.
	maxSide = 250
	// maxSeeAlso facts that are not among the findings stand in their own words under the dispute that they are about.
	maxSeeAlso = 3
	// droppedInDispute is the cause, in BriefWritten.Dropped, of facts that no open contradiction names and that are all the same kept
	// out of the findings.
	droppedInDispute = "in_dispute"
)

// write writes the brief.
func (b *Briefer) write(ctx context.Context, c closing, m *engine.Engine) (notebook.Command, error) {
	var state *notebook.Thread // a copy: what it says is read word by word, which must not hold up the tail
	if err := b.read(c, func(t *notebook.Thread, _ *notebook.Cycle) { state = t.Clone() }); err != nil {
		return nil, err
	}
	material := materialOf(state)
	m.Say(ctx, fmt.Sprintf("from %d of %d facts", len(material.task.Facts), len(material.facts)))
	written, err := model.WriteBrief(ctx, m.Call(""), material.task)
	if err != nil {
		return nil, err
	}
	if written.Engine == "" { // no facts, and so no call
		written.Engine, written.Model = m.Info.Engine, m.Info.ChatModel
	}
	return notebook.WriteBrief{ClosingStep: c.step(), Brief: material.brief(written)}, nil
}

// material is what a brief is written from.
type material struct {
	task     model.BriefTask
	facts    map[string]cited    // every fact that counts, by id
	disputes []dispute           // every open contradiction, oldest first
	runs     int                 // completed
	recorded int                 // of them, replays of recordings
	leftOut  int                 // facts that the task has no room for
	unkept   int                 // statements of reports that were over the limit of facts of a run
	withheld []string            // ids of facts of the task that say, or rest on, what is in dispute
	seeAlso  map[string][]string // those of them that add something to a dispute, by its pair
}

// cited is a fact as the list at the end of a brief shows it.
type cited struct {
	statement string
	source    *event.Source
	disputed  bool
	recorded  bool // from a replay of a recording
}

// dispute is an open contradiction: the pair's id, and those of its facts.
type dispute struct{ pair, elder, newer string }

// materialOf chooses and numbers what the model gets to see. It is pure. The newest disputes come first, with both their
// facts; then the settled facts: pinned ones, those that speak most of the question, those that more pages support, and newer ones before
// older.
func materialOf(t *notebook.Thread) material {
	w := material{facts: map[string]cited{}, task: model.BriefTask{Question: t.Question, Previous: previousBrief(t)}}
	for _, id := range t.RunIDs {
		if r := t.Runs[id]; r.Completed != nil {
			w.runs++
			w.recorded += rank(r.Requested.Replay)
			w.unkept += r.LeftOut
		}
	}
	open := t.Contradictions()
	disputed := map[string]bool{}
	for _, p := range open {
		w.disputes = append(w.disputes, dispute{p.Pair, p.Elder, p.Newer})
		disputed[p.Elder], disputed[p.Newer] = true, true
	}
	for _, id := range t.FactIDs {
		if f := t.Facts[id]; f.Active() {
			w.facts[id] = cited{statement: f.Statement, source: f.Source, disputed: disputed[id], recorded: f.Replayed}
		}
	}

	numbers := map[string]int{}
	number := func(id string) int {
		if numbers[id] == 0 {
			numbers[id] = len(numbers) + 1
			w.task.Facts = append(w.task.Facts, briefFact(t.Facts[id], numbers[id], disputed[id]))
		}
		return numbers[id]
	}
	for i, p := range slices.Backward(open) {
		if len(open)-i > model.MaxBriefDisputes {
			break
		}
		w.task.Disputes = append(w.task.Disputes, model.BriefDispute{
			N: len(w.task.Disputes) + 1, Ref: p.Pair, A: number(p.Elder), B: number(p.Newer), Reason: p.Reason,
		})
	}
	settled := settledFacts(t, disputed)
	room := min(len(settled), model.MaxBriefFacts-len(w.task.Facts))
	for _, id := range settled[:room] {
		number(id)
	}
	w.leftOut = len(settled) - room
	for _, p := range t.Related() {
		if a, b := numbers[p.Elder], numbers[p.Newer]; a > 0 && b > 0 {
			w.task.Related = append(w.task.Related, [2]int{a, b})
		}
	}
	return w
}

// keptBack gives the ids of the facts that an engine keeps out of its findings because they say what is in dispute, and, by the pair of a
// dispute, those of them that tell more of it than its two sides. A language model is told what is disputed and words its findings itself.
func (w material) keptBack(engine string) (ids []string, seeAlso map[string][]string) {
	if engine != model.EngineExtractive || len(w.task.Disputes) == 0 {
		return nil, nil
	}
	refs, pairs := map[int]string{}, map[int]string{}
	for _, f := range w.task.Facts {
		refs[f.N] = f.Ref
	}
	for _, d := range w.task.Disputes {
		pairs[d.N] = d.Ref
	}
	seeAlso = map[string][]string{}
	for _, kept := range extractive.Withheld(w.task) {
		ids = append(ids, refs[kept.Fact])
		if pair := pairs[kept.Dispute]; kept.Adds && len(seeAlso[pair]) < maxSeeAlso {
			seeAlso[pair] = append(seeAlso[pair], refs[kept.Fact])
		}
	}
	return ids, seeAlso
}

// settledFacts lists the facts that count and are not disputed, the most important first.
func settledFacts(t *notebook.Thread, disputed map[string]bool) []string {
	var settled []string
	for _, id := range t.FactIDs {
		if t.Facts[id].Active() && !disputed[id] {
			settled = append(settled, id)
		}
	}
	pages, answers := pagesOf(t), closeness(t, settled)
	slices.SortStableFunc(settled, func(a, b string) int {
		f, g := t.Facts[a], t.Facts[b]
		return cmp.Or(
			cmp.Compare(rank(g.Pinned), rank(f.Pinned)),
			cmp.Compare(answers[b], answers[a]),
			cmp.Compare(len(pages[b]), len(pages[a])),
			cmp.Compare(g.Seq, f.Seq),
		)
	})
	return settled
}

// closeness says in steps how much each fact speaks of the question: a word more or less is no reason to put one before a fact that more
// pages support.
func closeness(t *notebook.Thread, facts []string) map[string]int {
	const steps = 6
	statements, tags := make([]string, len(facts)), make([][]string, len(facts))
	for i, id := range facts {
		statements[i], tags[i] = t.Facts[id].Statement, t.Facts[id].Tags
	}
	scores := extractive.Relevance(t.Question, statements, tags...)
	most := slices.Max(append(scores, 0))
	out := map[string]int{}
	for i, id := range facts {
		if most > 0 {
			out[id] = int(steps*scores[i]/most + 0.5)
		}
	}
	return out
}

func rank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// pagesOf gives the sources of each fact, those of its duplicates included.
func pagesOf(t *notebook.Thread) map[string]map[string]bool {
	pages := map[string]map[string]bool{}
	for _, id := range t.FactIDs {
		root := t.Root(id)
		for _, s := range t.Facts[id].Support {
			if s.Source == nil {
				continue
			}
			if pages[root] == nil {
				pages[root] = map[string]bool{}
			}
			pages[root][s.Source.ID] = true
		}
	}
	return pages
}

func briefFact(f *notebook.Fact, n int, disputed bool) model.BriefFact {
	out := model.BriefFact{N: n, Ref: f.ID, Statement: f.Statement, Tags: slices.Clone(f.Tags), Disputed: disputed, Date: f.At.UTC().Format(time.DateOnly)}
	if f.Source != nil {
		out.SourceTitle = f.Source.Title
		if f.Source.PublishedAt != nil {
			out.Date = f.Source.PublishedAt.UTC().Format(time.DateOnly)
		}
	}
	return out
}

// brief makes the event of what the model wrote. A reply may have been kept before a person dismissed a fact or a dispute
// opened, so each sentence is held against the facts as they are now; and every open dispute is stated, also one that the
// model passed over.
func (w material) brief(written model.Brief) event.BriefWritten {
	out := event.BriefWritten{
		RunCount: w.runs, Findings: []event.CitedText{}, Disputed: []event.DisputedText{}, Gaps: []string{}, Relationships: []event.CitedText{},
		DroppedSentences: written.Dropped, Dropped: map[string]int{}, Engine: written.Engine, Model: written.Model,
	}
	for cause, n := range written.Drops {
		count(out.Dropped, cause, n)
	}
	count(out.Dropped, model.DropLeftOut, w.leftOut)
	w.withheld, w.seeAlso = w.keptBack(written.Engine)
	out.Withheld = w.withheld
	count(out.Dropped, droppedInDispute, len(w.withheld))

	stands := func(c model.Cited) bool {
		for _, id := range c.Facts {
			cause := ""
			switch f, known := w.facts[id]; {
			case !known:
				cause = model.DropUnknownFact
			case f.disputed:
				cause = model.DropDisputedFact
			default:
				continue
			}
			out.DroppedSentences++
			out.Dropped[cause]++
			return false
		}
		return true
	}
	for _, c := range written.Findings {
		if stands(c) {
			out.Findings = append(out.Findings, event.CitedText(c))
		}
	}
	for _, c := range written.Relationships {
		if stands(c) {
			out.Relationships = append(out.Relationships, event.CitedText(c))
		}
	}
	for _, c := range written.Gaps {
		if stands(c) {
			out.Gaps = append(out.Gaps, c.Text)
		}
	}
	w.dispute(&out, written.Disputed)
	out.Markdown = render(w, out)
	return out
}

// dispute writes the disputed part: what the model wrote about disputes that are still open, then the open ones that it did
// not mention, newest first, in the words of their two statements.
func (w material) dispute(out *event.BriefWritten, written []model.Disputed) {
	open := map[string]bool{}
	for _, d := range w.disputes {
		open[d.pair] = true
	}
	stated := map[string]bool{}
	for _, d := range written {
		if !open[d.Dispute] || stated[d.Dispute] {
			cause := model.DropUnknownDispute
			if stated[d.Dispute] {
				cause = model.DropDuplicate
			}
			out.DroppedSentences++
			out.Dropped[cause]++
			continue
		}
		stated[d.Dispute] = true
		out.Disputed = append(out.Disputed, event.DisputedText{Text: d.Text, Contradiction: d.Dispute})
	}
	for _, d := range slices.Backward(w.disputes) {
		if stated[d.pair] {
			continue
		}
		if len(out.Disputed) == maxStated {
			break
		}
		sentence := fmt.Sprintf("“%s” contradicts “%s”.", side(w.facts[d.elder].statement), side(w.facts[d.newer].statement))
		out.Disputed = append(out.Disputed, event.DisputedText{Text: sentence, Contradiction: d.pair})
	}
}

// side is a statement as it stands between quotation marks inside a sentence.
func side(statement string) string {
	return extractive.Quoted(text.Normalise(statement), maxSide)
}

// previousBrief is the plain text of the last brief as far as it still holds: sentences on facts that a person dismissed, that
// were dropped, or that are disputed by now would else live on in prose.
func previousBrief(t *notebook.Thread) string {
	if t.Brief == nil {
		return ""
	}
	open := map[string]bool{}
	disputed := map[string]bool{}
	for _, p := range t.Contradictions() {
		open[p.Pair] = true
		disputed[p.Elder], disputed[p.Newer] = true, true
	}
	var lines []string
	settled := func(c event.CitedText) {
		for _, id := range c.Facts {
			if f := t.Facts[id]; f == nil || !f.Active() || disputed[id] {
				return
			}
		}
		lines = append(lines, c.Text)
	}
	for _, c := range t.Brief.Findings {
		settled(c)
	}
	for _, d := range t.Brief.Disputed {
		if open[d.Contradiction] {
			lines = append(lines, d.Text)
		}
	}
	lines = append(lines, t.Brief.Gaps...)
	for _, c := range t.Brief.Relationships {
		settled(c)
	}
	return strings.Join(lines, "\n")
}
