package ledger_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/ledger"
)

func TestCost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		provider, mode string
		cost           int
		known          bool
	}{
		{event.Tabstack, event.Fast, 250, true},
		{event.Tabstack, event.Balanced, 350, true},
		{event.Tabstack, "", 0, false},
		{event.Brave, "", 0, true},
		{"other", event.Fast, 0, false},
	} {
		cost, err := ledger.Cost(c.provider, c.mode)
		require.Equal(t, c.known, err == nil, "%s %s", c.provider, c.mode)
		require.Equal(t, c.cost, cost)
	}
}

func TestAnswersAreCountedWithThoseUnderWay(t *testing.T) {
	t.Parallel()
	limit := 2
	l := ledger.Ledger{AnswerBudget: &limit}
	l.Reserve("a", event.Brave, 0)
	require.NoError(t, l.Allows(event.Brave, 0))
	l.Reserve("b", event.Brave, 0)
	var over *ledger.AnswersExceeded
	require.ErrorAs(t, l.Allows(event.Brave, 0), &over)
	l.Settle("a", event.Brave, 0, 0.01, true)
	require.ErrorAs(t, l.Allows(event.Brave, 0), &over, "saved + requested + 1 is over the limit")
	l.Settle("b", event.Brave, 0, 0, false)
	require.NoError(t, l.Allows(event.Brave, 0))
}

// Whatever is reserved and settled: what Allows let in never goes over the budget, and nothing is lost or doubled.
func TestReservedAndSpentNeverExceedTheBudget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := ledger.Ledger{Budget: rapid.IntRange(0, 3000).Draw(t, "budget")}
		open, spent := []string{}, 0
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(open) > 0 && rapid.Bool().Draw(t, "settle") {
				run := open[0]
				open = open[1:]
				cost := l.Reserved[run]
				if rapid.Bool().Draw(t, "failed") {
					cost = 0
				}
				spent += cost
				l.Settle(run, event.Tabstack, cost, 0, cost > 0)
			} else if cost := rapid.SampledFrom([]int{ledger.FastCost, ledger.BalancedCost}).Draw(t, "cost"); l.Allows(event.Tabstack, cost) == nil {
				run := strconv.Itoa(i)
				l.Reserve(run, event.Tabstack, cost)
				open = append(open, run)
			}
			require.LessOrEqual(t, l.Held()+l.Spent, l.Budget)
			require.Equal(t, spent, l.Spent)
			require.Len(t, l.Reserved, len(open))
		}
	})
}
