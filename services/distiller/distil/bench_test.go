package distil

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/engine"
	"github.com/factstream/factstream/shared/engine/enginetest"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service/servicetest"
)

// What distilling a recorded run takes without the bus: from its report, which the process has not read before, to the command that
// records the facts.
func BenchmarkDistil(b *testing.B) {
	for _, mode := range []string{"fast", "balanced"} {
		b.Run(mode, func(b *testing.B) {
			bus := servicetest.NewBus(b)
			d, err := New(b.Context(), bus.Open("distiller"), engine.Options{})
			require.NoError(b, err)
			servicetest.Run(b, d.Service)
			enginetest.Create(b, d.Service, "t1", "extractive", "How dense are solid-state cells?")
			completed := enginetest.Complete(b, d.Service, "t1", "r1", servicetest.Access, enginetest.Recorded(b, mode))
			run := engine.Run{Thread: "t1", ID: "r1", Trigger: "e1", Asks: event.Event{Data: completed}}
			step := engine.Step{Thread: "t1", Entity: "r1", Stage: event.StageDistill, Trigger: "e1", Wanted: func(*notebook.Thread) bool { return true }}
			others := make([]string, 600) // more than the engine remembers
			for i := range others {
				others[i] = fmt.Sprint(i)
			}
			require.NoError(b, d.engines.Do(b.Context(), step, func(ctx context.Context, m *engine.Engine) error {
				for b.Loop() {
					b.StopTimer()
					_, err := m.Embed(ctx, others, nil)
					require.NoError(b, err)
					b.StartTimer()
					command, err := d.distill(ctx, run, m)
					require.NoError(b, err)
					require.NotEmpty(b, command.(notebook.Distil).Facts)
				}
				return nil
			}))
		})
	}
}
