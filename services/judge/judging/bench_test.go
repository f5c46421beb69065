package judging

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
	"github.com/factstream/factstream/shared/service/servicetest"
	"github.com/factstream/factstream/shared/text"
)

// What judging the facts of a recorded run takes without the bus: from the facts, which the process has not read before, to the command
// that records the verdicts.
func BenchmarkJudge(b *testing.B) {
	for _, mode := range []string{"fast", "balanced"} {
		b.Run(mode, func(b *testing.B) {
			bus := servicetest.NewBus(b)
			j, err := New(b.Context(), bus.Open("judge"), engine.Options{})
			require.NoError(b, err)
			servicetest.Run(b, j.Service)
			enginetest.Create(b, j.Service, "t1", "extractive", "How dense are solid-state cells?")
			report := enginetest.Recorded(b, mode)
			enginetest.Complete(b, j.Service, "t1", "r1", servicetest.Access, report)
			servicetest.Append(b, j.Service, "t1", notebook.Distil{Run: "r1", Engine: "extractive", Facts: facts(b, report)})
			run := engine.Run{Thread: "t1", ID: "r1", Trigger: "e1"}
			step := engine.Step{Thread: "t1", Entity: "r1", Stage: event.StageJudge, Trigger: "e1", Wanted: func(*notebook.Thread) bool { return true }}
			others := make([]string, 600) // more than the engine remembers
			for i := range others {
				others[i] = fmt.Sprint(i)
			}
			require.NoError(b, j.engines.Do(b.Context(), step, func(ctx context.Context, m *engine.Engine) error {
				for b.Loop() {
					b.StopTimer()
					_, err := m.Embed(ctx, others, nil)
					require.NoError(b, err)
					j.index = index{}
					b.StartTimer()
					command, err := j.judge(ctx, run, m)
					require.NoError(b, err)
					require.NotEmpty(b, command.(notebook.Judge).Verdicts)
				}
				return nil
			}))
		})
	}
}

// facts are those that the engine finds in a report.
func facts(b *testing.B, report enginetest.Report) []event.Fact {
	b.Helper()
	task := model.DistillTask{Question: "How dense are solid-state cells?", MaxFacts: notebook.MaxFacts}
	for i, s := range text.Sentences(report.Markdown) {
		task.Sentences = append(task.Sentences, model.Numbered{N: i + 1, Text: s.Text, Markers: s.Markers})
	}
	for i, p := range report.Pages {
		task.Pages = append(task.Pages, model.Page{N: i + 1, Title: p.Title, Summary: p.Summary, Claims: p.Claims})
	}
	distilled, err := model.Distill(b.Context(), model.Call{Model: extractive.New(), Thread: "t1", Trigger: "e1"}, task)
	require.NoError(b, err)
	var out []event.Fact
	for _, f := range distilled.Facts {
		print := text.Fingerprint(f.Statement)
		out = append(out, event.Fact{ID: notebook.FactID("t1", print), Fingerprint: print, Statement: f.Statement, Confidence: f.Confidence, Tags: f.Tags})
	}
	return out
}
