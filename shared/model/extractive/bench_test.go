package extractive

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/model"
)

// What the engine does for a recorded fast run: it distils the report, judges each fact against those before it, and makes the brief and the
// map of topics. It remembers what it read lately, as it does in a service.
func BenchmarkFastRun(b *testing.B) {
	task := reportTask(b, "fast")
	call := model.Call{Model: New(), Thread: "t", Trigger: "e"}
	distilled, err := model.Distill(b.Context(), call, task)
	require.NoError(b, err)
	brief := model.BriefTask{Question: task.Question, Disputes: []model.BriefDispute{{N: 1, Ref: "d", A: 1, B: 2}}}
	coverage := model.CoverageTask{Question: task.Question}
	for i, f := range distilled.Facts {
		brief.Facts = append(brief.Facts, model.BriefFact{N: i + 1, Ref: fmt.Sprint(i), Statement: f.Statement})
		coverage.Facts = append(coverage.Facts, model.CoverageFact{N: i + 1, Ref: fmt.Sprint(i), Statement: f.Statement})
	}
	b.Run("distill", func(b *testing.B) {
		for b.Loop() {
			_, err := model.Distill(b.Context(), call, task)
			require.NoError(b, err)
		}
	})
	b.Run("judge", func(b *testing.B) {
		for b.Loop() {
			for i, newer := range distilled.Facts {
				for _, elder := range distilled.Facts[:i] {
					_, err := model.Judge(b.Context(), call, model.JudgeTask{Elder: model.Statement{Text: elder.Statement}, Newer: model.Statement{Text: newer.Statement}})
					require.NoError(b, err)
				}
			}
		}
	})
	b.Run("brief", func(b *testing.B) {
		for b.Loop() {
			_, err := model.WriteBrief(b.Context(), call, brief)
			require.NoError(b, err)
		}
	})
	b.Run("coverage", func(b *testing.B) {
		for b.Loop() {
			_, err := model.MapCoverage(b.Context(), call, coverage)
			require.NoError(b, err)
		}
	})
}
