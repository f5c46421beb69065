package judging_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/services/judge/judging"
	"github.com/factstream/factstream/shared/engine/enginetest"
	"github.com/factstream/factstream/shared/model/ollama/ollamatest"
	"github.com/factstream/factstream/shared/service/servicetest"
)

func TestMain(m *testing.M) { enginetest.Main(m, "judge", judging.Parts) }

// A process that is killed at any point is started again. The outcome is the one it would have been, there is one of it, and only
// what was not kept yet is asked for again.
func TestAProcessIsKilledAtEveryPointOfAStep(t *testing.T) {
	t.Parallel()
	for point, calls := range map[string]struct{ chats, embeds int }{
		"judge.delivered": {3, 1},
		"judge.chosen":    {3, 1},
		"judge.embedded":  {3, 2},
		"judge.replied":   {4, 1},
		"judge.kept":      {3, 1},
		"judge.replied@3": {4, 1},
		"judge.kept@3":    {3, 1},
		"judge.made":      {3, 1},
		"judge.appended":  {3, 1},
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			server := ollamatest.Start(t)
			server.Respond(rule)
			c := court{bus: servicetest.NewBus(t, bustest.Mortal)}
			c.driver = c.bus.Open("gateway")
			servicetest.Run(t, c.driver)
			c.thread(t, "t", "auto")
			process := enginetest.Spawn(t, c.bus.Config("judge", enginetest.Ollama(server)), point)
			c.run(t, "t", "r", servicetest.Access, "the cell stores energy", "the cell stores never energy", "the cell stores much more of energy")
			process.Restart()
			require.ElementsMatch(t, []string{
				"the cell stores energy contradiction the cell stores never energy",
				"the cell stores energy distinct the cell stores much more of energy",
				"the cell stores never energy distinct the cell stores much more of energy",
			}, c.relations("t", c.verdicts(t, "t", "r")))
			servicetest.Delivered(t, c.bus.JS, topology.Judge)
			require.Equal(t, 1, c.outcomes(t))
			require.Len(t, server.Chats(), calls.chats)
			require.Len(t, server.Embeds(), calls.embeds)
		})
	}
}
