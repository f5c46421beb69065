package brief

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/engine"
	"github.com/factstream/factstream/shared/engine/enginetest"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/extractive"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/text"
)

// What closing the cycle of a recorded run takes without the bus: its questions, brief and map of topics, each from the notebook to the
// command that records it. The process has not read the facts before; what one step reads of them the next finds, as in a closing.
func BenchmarkClosing(b *testing.B) {
	for _, mode := range []string{"fast", "balanced"} {
		b.Run(mode, func(b *testing.B) {
			s := begin(b, func(set *event.Settings) { set.Engine = model.EngineExtractive })
			s.fold()
			found := facts(b, enginetest.Recorded(b, mode))
			appended := s.judge(s.judged(nil, found), 0, verdicts(b, found)...)
			require.NoError(b, s.briefer.Tail.WaitFor(b.Context(), appended.Seq))
			c, remaining, closed := s.briefer.closing(thread, appended.Seq)
			require.True(b, closed)
			step := engine.Step{Thread: thread, Entity: c.entity(), Stage: event.StageClose, Trigger: c.event, Wanted: func(*notebook.Thread) bool { return true }}
			others := make([]string, 600) // more than the engine remembers
			for i := range others {
				others[i] = fmt.Sprint(i)
			}
			require.NoError(b, s.briefer.engines.Do(b.Context(), step, func(ctx context.Context, m *engine.Engine) error {
				for b.Loop() {
					b.StopTimer()
					_, err := m.Embed(ctx, others, nil)
					require.NoError(b, err)
					b.StartTimer()
					for _, stage := range remaining {
						require.NoError(b, s.briefer.produce(ctx, c, stage, m).err)
					}
				}
				return nil
			}))
		})
	}
}

// judged is a cycle whose run has brought facts that are not judged yet.
func (s *story) judged(gaps []string, facts []event.Fact) (run string) {
	s.t.Helper()
	run = s.request()
	s.complete(run, gaps...)
	s.distil(run, 0, facts...)
	return run
}

// facts are those that the engine finds in a report.
func facts(b *testing.B, report enginetest.Report) []event.Fact {
	b.Helper()
	task := model.DistillTask{Question: question, MaxFacts: notebook.MaxFacts}
	for i, s := range text.Sentences(report.Markdown) {
		task.Sentences = append(task.Sentences, model.Numbered{N: i + 1, Text: s.Text, Markers: s.Markers})
	}
	for i, p := range report.Pages {
		task.Pages = append(task.Pages, model.Page{N: i + 1, Title: p.Title, Summary: p.Summary, Claims: p.Claims})
	}
	distilled, err := model.Distill(b.Context(), model.Call{Model: extractive.New()}, task)
	require.NoError(b, err)
	var out []event.Fact
	for _, f := range distilled.Facts {
		out = append(out, fact(f.Statement, f.Tags...))
	}
	return out
}

// verdicts are those of the engine that contradict.
func verdicts(b *testing.B, facts []event.Fact) []event.Verdict {
	b.Helper()
	var out []event.Verdict
	for i, newer := range facts {
		for _, elder := range facts[:i] {
			v, err := model.Judge(b.Context(), model.Call{Model: extractive.New()}, model.JudgeTask{Elder: model.Statement{Text: elder.Statement}, Newer: model.Statement{Text: newer.Statement}})
			require.NoError(b, err)
			if v.Relation == model.Contradiction {
				out = append(out, contradicts(elder, newer))
			}
		}
	}
	return out
}
