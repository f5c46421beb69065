// Package judging compares the facts of a run with those that were there before: similarity proposes pairs, a model decides each.
package judging

import (
	"context"
	"fmt"
	"time"

	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/engine"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service"
)

// MaxPairs is how many pairs of a run are judged; the rest is counted.
const MaxPairs = 24

// Judge is the service.
type Judge struct {
	*service.Service
	engines *engine.Engines
	index   index
}

// Parts is the judge with the default options, for service.Main.
func Parts(ctx context.Context, s *service.Service) ([]service.Part, error) {
	j, err := New(ctx, s, engine.Options{})
	if err != nil {
		return nil, err
	}
	return j.Parts(), nil
}

// New opens what the judge needs on the bus of s.
func New(ctx context.Context, s *service.Service, options engine.Options) (*Judge, error) {
	engines, err := engine.Open(ctx, s, options)
	if err != nil {
		return nil, err
	}
	return &Judge{Service: s, engines: engines}, nil
}

// Parts are what the judge does as long as it runs.
func (j *Judge) Parts() []service.Part {
	return []service.Part{j.engines.Worker(engine.RunStage{
		Stage: event.StageJudge, Durable: topology.Judge, First: event.FactsDistilled{}.Kind(),
		Kept:   "The report and its facts are kept; duplicates and contradictions among them are not marked.",
		Points: points, Do: j.judge,
	})}
}

// points are where a test may end this process.
var points = engine.NewPoints("judge").Embedding("judge")

// judge nominates the pairs of a run's facts with elder ones, asks about each, the most similar first, and gathers the verdicts.
func (j *Judge) judge(ctx context.Context, run engine.Run, m *engine.Engine) (notebook.Command, error) {
	var scene scene
	j.Tail.ViewAll(func(n *notebook.Notebook) { scene = look(n, run.Thread, run.ID) })
	out := notebook.Judge{Run: run.ID, N: run.N, Engine: m.Info.Engine, Model: m.Info.ChatModel}
	if len(scene.newcomers) == 0 {
		return out, nil
	}
	similar, err := j.index.of(ctx, m, scene)
	if err != nil {
		return nil, err
	}
	pairs := scene.nominate(similar, m.Info.Floor)

	bench := bench{dropped: map[string]bool{}, refused: model.Drops{}}
	for i, p := range pairs {
		if bench.spares(p) {
			continue
		}
		if p.sameText() {
			bench.take(p, model.Verdict{Relation: model.Duplicate, Reason: "The two statements are the same."})
			continue
		}
		if bench.asked == MaxPairs {
			out.LeftOut++
			continue
		}
		bench.asked++
		m.Say(ctx, fmt.Sprintf("pair %d of %d", bench.asked, min(bench.asked+len(pairs)-i-1, MaxPairs)))
		verdict, err := model.Judge(ctx, m.CallPair(p.elder.Fingerprint, p.newer.Fingerprint), p.task())
		if err != nil {
			return nil, fmt.Errorf("pair %d: %w", bench.asked, err)
		}
		bench.take(p, verdict)
	}
	out.Verdicts, out.Dropped = bench.verdicts, bench.refused
	return out, nil
}

// bench gathers verdicts.
type bench struct {
	asked    int
	verdicts []event.Verdict
	dropped  map[string]bool // facts of the thread that these verdicts drop
	refused  model.Drops     // what of the answers was not accepted, by cause
}

// spares says whether a pair need not be judged: one of its facts was dropped by a verdict before.
func (b *bench) spares(p pair) bool {
	return b.dropped[p.newer.ID] || p.elder.thread == p.newer.thread && b.dropped[p.elder.ID]
}

func (b *bench) take(p pair, v model.Verdict) {
	b.refused.Merge(v.Drops)
	verdict := event.Verdict{
		Pair: notebook.PairID(p.elder.ID, p.newer.ID), Elder: p.elder.ID, ElderFingerprint: p.elder.Fingerprint,
		Newer: p.newer.ID, NewerFingerprint: p.newer.Fingerprint,
		Relation: string(v.Relation), Reason: v.Reason, Related: v.Related, Similarity: p.similarity,
	}
	if p.elder.thread != p.newer.thread {
		verdict.ElderThread = p.elder.thread
	} else if v.Relation == model.Duplicate && !p.newer.curated {
		b.dropped[p.newer.ID] = true
	}
	b.verdicts = append(b.verdicts, verdict)
}

// task is what the model is asked about a pair.
func (p pair) task() model.JudgeTask {
	return model.JudgeTask{Elder: p.elder.statement(), Newer: p.newer.statement()}
}

func (f fact) statement() model.Statement {
	s := model.Statement{Text: f.Statement, Tags: f.Tags, Date: day(f.retrieved)}
	if f.Source != nil {
		s.SourceTitle = f.Source.Title
		if f.Source.PublishedAt != nil {
			s.Date = day(*f.Source.PublishedAt)
		}
	}
	return s
}

func day(at time.Time) string { return at.UTC().Format(time.DateOnly) }
