package extractive

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/model"
)

// disputing is a task whose first two facts are the sides of a dispute.
func disputing(statements ...string) model.BriefTask {
	task := model.BriefTask{Question: "What is known?", Disputes: []model.BriefDispute{{N: 1, Ref: "d1", A: 1, B: 2}}}
	for i, s := range statements {
		task.Facts = append(task.Facts, model.BriefFact{N: i + 1, Statement: s})
	}
	return task
}

func withheldOf(task model.BriefTask) (numbers []int) {
	for _, kept := range Withheld(task) {
		numbers = append(numbers, kept.Fact)
	}
	return numbers
}

func TestAFactThatTakesASideOfADisputeIsWithheld(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		elder, newer, fact string
		withheld           bool
	}{
		"in other words": {"Halden Paper plans to open its second mill in 2026.", "Halden Paper expects to open the second mill of the town in 2029.",
			"Halden Paper now gives 2029 as the opening of the second mill; the harbour is older.", true},
		"the same":    {"The tower in Moss is 93 m high.", "The tower in Moss is 71 m high.", "The height of the tower in Moss is 71 m.", true},
		"a third":     {"The tower in Moss is 93 m high.", "The tower in Moss is 71 m high.", "The tower in Moss is 85 m high.", true},
		"in a clause": {"The ferry to Moss takes 40 minutes.", "The ferry to Moss takes 55 minutes.", "The harbour was built in 1931, and the ferry from there to Moss takes 55 minutes.", true},
		"in a row":    {"Talmo's pump draws 450 W.", "A laboratory measured 520 W with Talmo's pump.", "Power: Value: 450 W; Source: maker", true},
		"the same date, of another thing": {"Halden Paper plans to open its second mill in 2026.", "Halden Paper expects to open the second mill of the town in 2029.",
			"A museum of glass opens in Moss in 2029.", false},
		"the same, of somebody else": {"Halden Paper plans to open its second mill in 2026.", "Halden Paper expects to open the second mill of the town in 2029.",
			"Ystad Board plans to open its second mill in 2029.", false},
		"the same, of somebody else of one word": {"Halden Paper plans to open its second mill in 2026.", "Halden Paper expects to open the second mill of the town in 2029.",
			"Ystad plans to open a second mill in 2029.", false},
		"of the same thing, something else": {"The tower in Moss is 93 m high.", "The tower in Moss is 71 m high.", "The tower in Moss was built by Talmo in 1931.", false},
		"a figure that is not in dispute": {"A pump of Talmo lasts 9 years at 40 °C.", "A pump of Talmo lasts 14 years at 40 °C.",
			"The pump of Talmo starts at 40 °C.", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			relation, why := judge(c.elder, c.newer)
			require.Equal(t, model.Contradiction, relation, why)
			task := disputing(c.elder, c.newer, c.fact)
			reply := brief(task)
			if c.withheld {
				require.Equal(t, []int{3}, withheldOf(task))
				require.Empty(t, reply.Findings)
				return
			}
			require.Empty(t, Withheld(task))
			require.Equal(t, []model.BriefSentence{{Text: c.fact, Facts: []int{3}}}, reply.Findings)
		})
	}
}

func TestAFactThatLeansOnASideIsWithheldUnlessItCanBeReadWithout(t *testing.T) {
	t.Parallel()
	task := disputing("The tower in Moss is 93 m high.", "The tower in Moss is 71 m high.",
		"The tower in Moss is 93 m high. Drammen will copy these walls in 2028.",
		"The tower in Moss is 93 m high. This makes it a landmark of the coast.",
		"The tower in Moss is 93 m high. Ships therefore see it from 30 km.")
	require.Equal(t, []int{4, 5}, withheldOf(task))
	require.Equal(t, []model.BriefSentence{{Text: "Drammen will copy these walls in 2028.", Facts: []int{3}}}, brief(task).Findings)
}

func TestNothingIsWithheldWhereNothingIsInDispute(t *testing.T) {
	t.Parallel()
	task := disputing("The tower in Moss is 93 m high.", "The tower in Moss is 71 m high.")
	task.Disputes = nil
	require.Empty(t, Withheld(task))
	require.Len(t, brief(task).Findings, 2)
}

func TestAWithheldFactIsOfTheDisputeWhoseSideItTakes(t *testing.T) {
	t.Parallel()
	task := disputing("Halden Paper plans to open its second mill in 2026.", "Halden Paper expects to open the second mill of the town in 2029.",
		"Halden Paper now gives 2029 as the opening of the second mill; 2026 is the year of the pier only.",
		"The second mill of Halden Paper is to open in 2026.",
		"The tower in Moss is 93 m high.", "The tower in Moss is 71 m high.",
		"The tower in Moss is 71 m high, as a survey of the coast guard found.")
	task.Disputes = append(task.Disputes, model.BriefDispute{N: 7, A: 5, B: 6})
	require.Equal(t, []Kept{{Fact: 3, Dispute: 1, Adds: true}, {Fact: 4, Dispute: 1}, {Fact: 7, Dispute: 7, Adds: true}}, Withheld(task))

	task.Facts[4].Disputed, task.Facts[5].Disputed = true, true
	task.Disputes = task.Disputes[:1]
	require.Equal(t, Kept{Fact: 7}, Withheld(task)[2], "of a dispute that is not in the task")
}
