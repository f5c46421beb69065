package brief

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/ollama/ollamatest"
	"github.com/factstream/factstream/shared/notebook"
)

func TestAPlanIsMadeFromWhatTheCycleFoundAndTheThreadKnows(t *testing.T) {
	t.Parallel()
	old, gone := fact("An old statement."), fact("A dismissed statement.")
	th := state(old, rises, falls, costs, gone)
	th.Facts[old.ID].Run = "run0"
	th.Facts[gone.ID].Dismissed = true
	disputing(th, old, costs)
	th.Pairs[th.PairIDs[0]].Run = "run0"
	disputing(th, rises, falls)
	th.Runs["failed"] = &notebook.Run{ID: "failed"}
	th.Runs["run1"] = &notebook.Run{ID: "run1", Requested: event.RunRequested{Depth: 2}, Completed: &notebook.Completion{Gaps: 1}}
	th.Runs["whole"] = &notebook.Run{ID: "whole", Completed: &notebook.Completion{}}
	th.Coverage = &notebook.Coverage{CoverageMapped: event.CoverageMapped{Topics: []event.Topic{
		{ID: "a", Name: "Durability", Facts: []string{old.ID, rises.ID, falls.ID}},
		{ID: "b", Name: "Cost", Facts: []string{costs.ID, gone.ID}},
		{ID: "c", Name: "Safety", Facts: []string{gone.ID}},
	}}}
	root := notebook.RootQuestionID(thread)
	th.QIDs = []string{root, "q1", "q2"}
	th.Questions = map[string]*notebook.Question{root: {Text: question}, "q1": {Text: "Dismissed?", Dismissed: true}, "q2": {Text: "Asked?"}}

	s := situationOf(th, &notebook.Cycle{ID: 2, Runs: []string{"failed", "run1", "whole"}})
	require.Equal(t, "run1", s.parent)
	require.Equal(t, 3, s.depth)
	require.Equal(t, []string{"run1"}, s.leftGaps, "whose gaps are read")
	require.Equal(t, []string{question, "Dismissed?", "Asked?"}, s.known)
	require.Equal(t, model.QuestionsTask{
		Root: question, Facts: []string{rises.Statement, falls.Statement, costs.Statement},
		Contradictions: []model.StatementPair{{A: rises.Statement, B: falls.Statement}, {A: old.Statement, B: costs.Statement}},
		ThinTopics:     []string{"Cost"}, Asked: []string{"Dismissed?", "Asked?"}, Max: notebook.MaxQuestions + spares,
	}, s.task)
}

func TestATopicThatTheLastRunFilledIsNotThin(t *testing.T) {
	t.Parallel()
	fill := []event.Fact{fact("The harbour cost 12 million euros.", "harbour"), fact("The harbour has 40 cranes.", "harbour"), fact("The harbour opened in 2019.", "harbour")}
	led := fact("The trial was led by Rhea Dunn in 2019.", "rhea dunn")
	lonely := fact("Owls nest in the roofs of Moss.", "owls in roofs")
	for name, c := range map[string]struct {
		engine string
		want   []string
	}{
		"by the rules, new topics too":               {model.EngineExtractive, []string{"owls in roofs"}},
		"with a language model, those that exist":    {model.EngineOllama, nil},
		"with one that is not chosen, those as well": {"", nil},
	} {
		th := state(fill[0], led, fill[1], fill[2], lonely)
		th.Settings.Engine = c.engine
		th.Coverage = &notebook.Coverage{CoverageMapped: event.CoverageMapped{Topics: []event.Topic{
			{ID: "a", Name: "harbour", Facts: []string{fill[0].ID}}, {ID: "b", Name: "Rhea Dunn", Facts: []string{led.ID}},
		}}}
		require.Equal(t, c.want, thinTopics(th), name)
		th.Facts[fill[1].ID].Dismissed, th.Facts[fill[2].ID].Dismissed = true, true
		require.Contains(t, thinTopics(th), "harbour", name)
		require.NotContains(t, thinTopics(th), "Rhea Dunn", "who is told of is no topic")
	}
}

func TestTheRulesAreToldWhatTheThreadKnows(t *testing.T) {
	t.Parallel()
	gone := fact("A dismissed statement.")
	th := state(rises, falls, costs, gone)
	th.Facts[gone.ID].Dismissed = true
	th.Facts[costs.ID].Source.PublishedAt = pointer(day("2025-02-03"))
	th.Facts[costs.ID].Support = append(th.Facts[costs.ID].Support, notebook.Support{Run: "run2", Source: rises.Source})
	disputing(th, rises, falls)
	cycle := &notebook.Cycle{ID: 1}
	require.Empty(t, situationOf(th, cycle).task.Known, "a language model reads the brief")
	th.Settings.Engine = model.EngineExtractive
	require.Equal(t, []model.KnownFact{
		{Statement: rises.Statement, Tags: rises.Tags, Retrieved: "2026-03-01", Pages: 1, Disputed: true},
		{Statement: falls.Statement, Tags: falls.Tags, Retrieved: "2026-03-01", Pages: 1, Disputed: true},
		{Statement: costs.Statement, Tags: costs.Tags, Retrieved: "2026-03-01", Published: "2025-02-03", Pages: 2},
	}, situationOf(th, cycle).task.Known)
}

func TestProposalsNotAlikeToAnything(t *testing.T) {
	t.Parallel()
	x, y, nearX := []float32{1, 0}, []float32{0, 1}, []float32{0.93, 0.3675595}
	far := []float32{0.91, 0.4146082}
	for name, c := range map[string]struct {
		known, proposed [][]float32
		want            []int
	}{
		"all new":                     {nil, [][]float32{x, y}, []int{0, 1}},
		"the same":                    {[][]float32{x}, [][]float32{x, y}, []int{1}},
		"alike to a known one":        {[][]float32{y, x}, [][]float32{nearX}, nil},
		"just not alike":              {[][]float32{x}, [][]float32{far}, []int{0}},
		"alike to a better proposal":  {nil, [][]float32{x, nearX, y}, []int{0, 2}},
		"alike to a dropped one only": {[][]float32{x}, [][]float32{nearX, {0.75, 0.6614378}}, []int{1}},
		"none":                        {[][]float32{x}, nil, nil},
	} {
		require.Equal(t, c.want, unlike(c.known, c.proposed), name)
	}
}

func TestAtMostFiveQuestionsAndNoRepeats(t *testing.T) {
	t.Parallel()
	s, server := withModel(t)
	proposals := func(texts ...string) map[string]any {
		var questions []any
		for i, text := range texts {
			questions = append(questions, map[string]any{"text": text, "reason": "", "score": 0.9 - float64(i)/100})
		}
		return map[string]any{event.StageQuestions: map[string]any{"questions": questions}}
	}
	server.Respond(answering(proposals("Alpha?", question, "Beta beta?", "Gamma gamma gamma?", "Delta is where?", "Epsilon and zeta?", "Eta, theta, iota?", "Kappa over lambda?")))
	s.start()
	s.tell(nil, nil, costs)
	s.settled(1, 0)
	first := one[event.QuestionsProposed](s)
	require.Len(t, first.Questions, notebook.MaxQuestions)
	require.Equal(t, "Alpha?", first.Questions[0].Text)
	require.Equal(t, map[string]int{droppedRepeat: 1, droppedOverLimit: 2}, first.Dropped)
	require.False(t, first.Repeats)

	t.Log("the model proposes what the thread knows: word for word, and alike by its vectors")
	server.Respond(answering(proposals("alpha?", "Zeta and Epsilon?")))
	s.tell(nil, nil, rises)
	s.settled(2, 0)
	second := last[event.QuestionsProposed](s)
	require.Empty(t, second.Questions)
	require.Equal(t, map[string]int{droppedRepeat: 4}, second.Dropped, "it was told so, and proposed them again")
	require.True(t, second.Repeats, "nothing but repeats: the thread has nothing left to ask")
}

func TestAModelThatOnlyRepeatsIsToldSoOnce(t *testing.T) {
	t.Parallel()
	s, server := withModel(t)
	told := 0
	server.Respond(func(call ollamatest.ChatCall) ollamatest.Answer {
		text := "Epsilon and zeta?"
		if strings.Contains(prompt(call), "- Zeta and Epsilon?") {
			text = "What about eta?"
			told++
		} else if strings.Contains(prompt(call), "- Epsilon and zeta?") {
			text = "Zeta and Epsilon?"
		}
		return answering(map[string]any{event.StageQuestions: map[string]any{
			"questions": []any{map[string]any{"text": text, "reason": "", "score": 1}},
		}})(call)
	})
	s.start()
	s.tell(nil, nil, costs)
	s.settled(1, 0)
	require.Zero(t, told)
	s.tell(nil, nil, rises)
	s.settled(2, 0)
	require.Equal(t, 1, told)
	proposed := last[event.QuestionsProposed](s)
	require.Equal(t, "What about eta?", proposed.Questions[0].Text)
	require.Equal(t, map[string]int{droppedRepeat: 1}, proposed.Dropped)
	require.False(t, proposed.Repeats)
}

func TestNothingIsProposedWhenNoRunOfTheCycleCompleted(t *testing.T) {
	t.Parallel()
	s, server := withModel(t)
	s.start()
	run := s.request()
	s.append(notebook.FailRun{Run: run, Code: "crash_loop", Detail: "x"})
	s.settled(1, 0)
	s.append(notebook.RetryStage{Stage: event.StageQuestions, Entity: "1"})
	s.settled(1, 1)
	require.Empty(t, one[event.QuestionsProposed](s).Questions)
	require.Empty(t, server.Chats())
}

func TestOnlyDroppedProposalsAreCounted(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]int{droppedRepeat: 2, droppedOverLimit: 1, model.DropEmpty: 3}, proposalsDropped(model.Drops{
		model.DropDuplicate: 2, model.DropOverLimit: 1, model.DropEmpty: 3, model.DropPercent: 4, model.DropConfidence: 5, model.DropReason: 6,
	}))
}

func BenchmarkUnlike(b *testing.B) {
	known := make([][]float32, 1000)
	for i := range known {
		known[i] = make([]float32, 768)
		known[i][i%768] = 1
	}
	for b.Loop() {
		unlike(known, known[:8])
	}
}
