package distil_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/services/distiller/distil"
	"github.com/factstream/factstream/shared/engine/enginetest"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/ollama/ollamatest"
	"github.com/factstream/factstream/shared/service/servicetest"
)

func TestMain(m *testing.M) { enginetest.Main(m, "distiller", distil.Parts) }

// A process that is killed at any point is started again. The outcome is the one it would have been, there is one of it, and only a
// reply that was not kept yet is asked for again.
func TestAProcessIsKilledAtEveryPointOfAStep(t *testing.T) {
	t.Parallel()
	for point, calls := range map[string]int{
		"distiller.delivered": 2,
		"distiller.chosen":    2,
		"distiller.replied":   3,
		"distiller.replied@2": 3,
		"distiller.kept":      2,
		"distiller.kept@2":    2,
		"distiller.made":      2,
		"distiller.appended":  2,
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			server := ollamatest.Start(t)
			server.Respond(oneFactEach)
			bus := servicetest.NewBus(t, bustest.Mortal)
			s := bus.Open("gateway")
			servicetest.Run(t, s)
			enginetest.Create(t, s, thread, "auto", question)
			process := enginetest.Spawn(t, bus.Config("distiller", enginetest.Ollama(server)), point)
			report := long(150)
			enginetest.Complete(t, s, thread, run, servicetest.Access, report)
			process.Restart()
			out := facts(t, s, run)
			servicetest.Delivered(t, bus.JS, topology.Distil)
			require.Equal(t, 1, outcomes(t, bus.JS))
			require.Len(t, server.Chats(), calls)
			require.Equal(t, "ollama", out.Engine)
			require.Len(t, out.Facts, 20)
			require.Equal(t, 130, out.LeftOut)
		})
	}
	t.Run("distiller.given-up", func(t *testing.T) {
		t.Parallel()
		server := ollamatest.Start(t)
		server.Respond(func(ollamatest.ChatCall) ollamatest.Answer { return ollamatest.Answer{Content: "no"} })
		bus := servicetest.NewBus(t, bustest.Mortal)
		s := bus.Open("gateway")
		servicetest.Run(t, s)
		enginetest.Create(t, s, thread, "ollama", question)
		process := enginetest.Spawn(t, bus.Config("distiller", enginetest.Ollama(server)), "distiller.given-up")
		enginetest.Complete(t, s, thread, run, servicetest.Access, twoPages)
		require.Equal(t, model.ClassBad, failed(t, s, run).Class)
		process.Restart()
		servicetest.Delivered(t, bus.JS, topology.Distil)
		require.Len(t, server.Chats(), 2)
		require.Equal(t, 1, count(t, bus.JS, event.StageFailed{}.Kind()+".>"))
	})
}
