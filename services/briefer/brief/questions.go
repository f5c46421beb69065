package brief

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/factstream/factstream/shared/engine"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/extractive"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/vector"
)

const (
	// repeatFrom is the cosine similarity from which a proposal repeats a question, whatever became of that one.
	repeatFrom = 0.92
	// spares are asked for beside the questions that are wanted, since some proposals repeat what was asked before.
	spares = 3
	// thinBelow facts make a topic thin.
	thinBelow = 3
)

// Causes in QuestionsProposed.Dropped that are found here.
const (
	droppedRepeat    = "repeat"
	droppedOverLimit = "over_limit"
)

// plan proposes what to ask next.
func (b *Briefer) plan(ctx context.Context, c closing, m *engine.Engine) (notebook.Command, error) {
	var state *notebook.Thread // a copy: topics are found by reading facts word by word, which must not hold up the tail
	var cycle *notebook.Cycle
	if err := b.read(c, func(t *notebook.Thread, _ *notebook.Cycle) { state = t.Clone(); cycle = state.CycleOf(c.cycle) }); err != nil {
		return nil, err
	}
	s := situationOf(state, cycle)
	var err error
	if s.task.Gaps, err = b.gaps(ctx, c.thread, s.leftGaps); err != nil {
		return nil, err
	}
	out := notebook.ProposeQuestions{ClosingStep: c.step(), Proposed: event.QuestionsProposed{Engine: m.Info.Engine}}
	if s.parent == "" { // nothing was learnt that a question could follow up
		return out, nil
	}
	found, err := b.propose(ctx, m, s, "")
	if err != nil {
		return nil, err
	}
	if len(found.fresh) == 0 && len(found.repeats) > 0 {
		// A prompt shows the newest questions only. Told which older ones it repeated, the model may still find something else.
		s.task.Asked = append(s.task.Asked, found.repeats...)
		more, err := b.propose(ctx, m, s, "more")
		if err != nil {
			return nil, err
		}
		found.fresh = more.fresh
		for cause, n := range more.dropped {
			count(found.dropped, cause, n)
		}
	}
	out.Proposed.Engine, out.Proposed.Dropped = found.engine, found.dropped
	count(out.Proposed.Dropped, droppedOverLimit, len(found.fresh)-notebook.MaxQuestions)
	for _, q := range found.fresh[:min(len(found.fresh), notebook.MaxQuestions)] {
		out.Proposed.Questions = append(out.Proposed.Questions, event.ProposedQuestion{
			Text: q.Text, Score: q.Score, Depth: s.depth, ParentRun: s.parent,
		})
	}
	return out, nil
}

// gaps reads what the providers of some runs found missing. A run whose answer is gone has none to tell.
func (b *Briefer) gaps(ctx context.Context, thread string, runs []string) (gaps []string, err error) {
	for _, run := range runs {
		completed, err := b.Tail.Completed(ctx, thread, run)
		if err != nil && !errors.Is(err, notebook.ErrNoAnswer) {
			return nil, fmt.Errorf("read the gaps that run %s left: %w", run, err)
		}
		gaps = append(gaps, completed.Gaps...)
	}
	return gaps, nil
}

// proposals are what one call gave.
type proposals struct {
	fresh   []model.PlannedQuestion // the best first
	repeats []string                // what was alike to a known question or to a better proposal
	dropped map[string]int          // how many were left out, by cause, the repeats too
	engine  string
}

// propose asks for questions once. The part tells apart several calls of one plan.
func (b *Briefer) propose(ctx context.Context, m *engine.Engine, s situation, part string) (proposals, error) {
	planned, err := model.Questions(ctx, m.Call(part), s.task)
	if err != nil {
		return proposals{}, err
	}
	out := proposals{dropped: proposalsDropped(planned.Drops), engine: planned.Engine}
	if len(planned.Questions) == 0 {
		return out, nil
	}
	texts := slices.Clone(s.known)
	for _, q := range planned.Questions {
		texts = append(texts, q.Text)
	}
	vectors, err := m.Embed(ctx, texts, func(done, all int) { m.Say(ctx, fmt.Sprintf("comparing questions, %d of %d", done, all)) })
	if err != nil {
		return proposals{}, err
	}
	kept := unlike(vectors[:len(s.known)], vectors[len(s.known):])
	for i, q := range planned.Questions {
		if slices.Contains(kept, i) {
			out.fresh = append(out.fresh, q)
		} else {
			out.repeats = append(out.repeats, q.Text)
		}
	}
	count(out.dropped, droppedRepeat, len(out.repeats))
	return out, nil
}

// situation is what a plan is made from.
type situation struct {
	task     model.QuestionsTask // but for its gaps
	leftGaps []string            // runs of the cycle that say so
	known    []string            // every question of the thread
	parent   string              // the run that the questions follow; empty when no run of the cycle completed
	depth    int                 // of the questions
}

// situationOf reads the situation at the end of a cycle. It is pure. The task is cut to what a prompt shows by package model,
// which takes the first contradictions and gaps and the last facts and questions of each list.
func situationOf(t *notebook.Thread, cycle *notebook.Cycle) situation {
	s := situation{task: model.QuestionsTask{
		Root: t.Question, PreviousBrief: previousBrief(t), Max: notebook.MaxQuestions + spares,
		Contradictions: contradictionsFor(t, cycle), ThinTopics: thinTopics(t),
	}}
	if t.Settings.Engine == model.EngineExtractive {
		s.task.Known = knownFacts(t)
	}
	for _, id := range cycle.Runs {
		r := t.Runs[id]
		if r.Completed == nil {
			continue
		}
		if depth := r.Requested.Depth + 1; depth > s.depth { // the deepest run of the cycle, so that no follow-up seems less deep than it is
			s.parent, s.depth = r.ID, depth
		}
		if r.Completed.Gaps > 0 {
			s.leftGaps = append(s.leftGaps, id)
		}
	}
	for _, id := range t.FactIDs {
		if f := t.Facts[id]; f.Active() && slices.Contains(cycle.Runs, f.Run) {
			s.task.Facts = append(s.task.Facts, f.Statement)
		}
	}
	root := notebook.RootQuestionID(t.ID)
	for _, id := range t.QIDs {
		s.known = append(s.known, t.Questions[id].Text)
		if id != root {
			s.task.Asked = append(s.task.Asked, t.Questions[id].Text)
		}
	}
	return s
}

// contradictionsFor lists the open contradictions, those that the cycle found before the others and newer ones before older:
// what a prompt has no room for was asked about in earlier cycles.
func contradictionsFor(t *notebook.Thread, cycle *notebook.Cycle) []model.StatementPair {
	var found, others []model.StatementPair
	for _, p := range slices.Backward(t.Contradictions()) {
		pair := model.StatementPair{A: t.Facts[p.Elder].Statement, B: t.Facts[p.Newer].Statement}
		if slices.Contains(cycle.Runs, p.Run) {
			found = append(found, pair)
		} else {
			others = append(others, pair)
		}
	}
	return append(found, others...)
}

// knownFacts are the facts that count, the oldest first.
func knownFacts(t *notebook.Thread) []model.KnownFact {
	disputed := map[string]bool{}
	for _, p := range t.Contradictions() {
		disputed[p.Elder], disputed[p.Newer] = true, true
	}
	pages := pagesOf(t)
	var known []model.KnownFact
	for _, id := range t.FactIDs {
		f := t.Facts[id]
		if !f.Active() {
			continue
		}
		k := model.KnownFact{Statement: f.Statement, Tags: slices.Clone(f.Tags), Retrieved: f.At.UTC().Format(time.DateOnly), Pages: len(pages[id]), Disputed: disputed[id]}
		if f.Source != nil && f.Source.PublishedAt != nil {
			k.Published = f.Source.PublishedAt.UTC().Format(time.DateOnly)
		}
		known = append(known, k)
	}
	return known
}

// thinTopics names the topics that have few facts that count, and at least one. Questions are planned before the map is brought up to date, so
// the facts that are not on the last one are put to topics by the rules: a topic that they fill is not thin. A language model names its topics
// itself; of those that the rules would make, it is told none. Who is told of is no topic, whatever map has the name.
func thinTopics(t *notebook.Thread) []string {
	chart := chartOf(t)
	for part := range slices.Chunk(chart.unassigned, model.MaxCoverageFacts) {
		task := chart.task(part)
		assigned, _ := task.Check(extractive.Cover(task))
		if t.Settings.Engine != model.EngineExtractive {
			assigned = slices.DeleteFunc(assigned, func(a model.Assignment) bool { return a.Topic == "" })
		}
		chart.assign(assigned)
	}
	var thin []string
	for _, topic := range chart.topics() {
		person := slices.ContainsFunc(topic.Facts, func(id string) bool { return extractive.NamesPerson(topic.Name, t.Facts[id].Statement) })
		if len(topic.Facts) < thinBelow && !person {
			thin = append(thin, topic.Name)
		}
	}
	return thin
}

// unlike gives the places of the proposed vectors that are less than repeatFrom similar to every known one and to every one
// kept before them. All vectors have length 1. It is pure.
func unlike(known, proposed [][]float32) []int {
	taken := slices.Clone(known)
	var kept []int
	for i, p := range proposed {
		if !slices.ContainsFunc(taken, func(k []float32) bool { return vector.Dot(k, p) >= repeatFrom }) {
			kept = append(kept, i)
			taken = append(taken, p)
		}
	}
	return kept
}

// proposalsDropped counts the proposals that the check of the reply left out. What was only mended is no dropped proposal, and
// one that was asked before word for word is a repeat like the others.
func proposalsDropped(drops model.Drops) map[string]int {
	out := map[string]int{}
	for cause, n := range drops {
		switch cause {
		case model.DropPercent, model.DropConfidence, model.DropReason:
		case model.DropDuplicate:
			count(out, droppedRepeat, n)
		case model.DropOverLimit:
			count(out, droppedOverLimit, n)
		default:
			count(out, cause, n)
		}
	}
	return out
}

// count adds n, if it is more than nothing, so that a cause with nothing to tell does not stand there.
func count(counts map[string]int, cause string, n int) {
	if n > 0 {
		counts[cause] += n
	}
}
