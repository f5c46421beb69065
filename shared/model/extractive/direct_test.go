package extractive

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/modeltest"
)

// What the services make of an answer does not depend on whether it came as values or in words.
func TestAnswersInWordsAndByValuesAreTheSame(t *testing.T) {
	t.Parallel()
	direct, rendered := model.Call{Model: New()}, model.Call{Model: modeltest.Rendered(New())}
	tasks := allReports(t)
	for _, name := range slices.Sorted(maps.Keys(tasks)) {
		task := tasks[name]
		task.MaxFacts = len(task.Sentences)
		distilled, err := model.Distill(t.Context(), direct, task)
		require.NoError(t, err)
		again, err := model.Distill(t.Context(), rendered, task)
		require.NoError(t, err)
		distilled.Duration, again.Duration = 0, 0
		require.Equal(t, again, distilled)

		writing, covering := model.BriefTask{Question: task.Question}, model.CoverageTask{Question: task.Question}
		planning := model.QuestionsTask{Root: task.Question, Gaps: []string{"No prices were found."}, ThinTopics: []string{"costs"}, Max: 5}
		for i, f := range distilled.Facts {
			writing.Facts = append(writing.Facts, model.BriefFact{N: i + 1, Ref: fmt.Sprint(i), Statement: f.Statement})
			if i > 0 {
				pair := model.JudgeTask{Elder: model.Statement{Text: distilled.Facts[i-1].Statement}, Newer: model.Statement{Text: f.Statement}}
				verdict, err := model.Judge(t.Context(), direct, pair)
				require.NoError(t, err)
				verdictAgain, err := model.Judge(t.Context(), rendered, pair)
				require.NoError(t, err)
				verdict.Duration, verdictAgain.Duration = 0, 0
				require.Equal(t, verdictAgain, verdict)
			}
			covering.Facts = append(covering.Facts, model.CoverageFact{N: i + 1, Ref: fmt.Sprint(i), Statement: f.Statement, Tags: f.Tags})
		}
		writing.Disputes = []model.BriefDispute{{N: 1, Ref: "d", A: 1, B: 2}}
		brief, err := model.WriteBrief(t.Context(), direct, writing)
		require.NoError(t, err)
		briefAgain, err := model.WriteBrief(t.Context(), rendered, writing)
		require.NoError(t, err)
		brief.Duration, briefAgain.Duration = 0, 0
		require.Equal(t, briefAgain, brief)

		coverage, err := model.MapCoverage(t.Context(), direct, covering)
		require.NoError(t, err)
		coverageAgain, err := model.MapCoverage(t.Context(), rendered, covering)
		require.NoError(t, err)
		coverage.Duration, coverageAgain.Duration = 0, 0
		require.Equal(t, coverageAgain, coverage)

		planned, err := model.Questions(t.Context(), direct, planning)
		require.NoError(t, err)
		plannedAgain, err := model.Questions(t.Context(), rendered, planning)
		require.NoError(t, err)
		planned.Duration, plannedAgain.Duration = 0, 0
		require.Equal(t, plannedAgain, planned)
	}
}
