package research

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/fixtures/standin"
	"github.com/factstream/factstream/shared/progress"
	"github.com/factstream/factstream/shared/service/servicetest"
)

// The words go on after "waits for": it is the name of the field that shows them.
func TestARunThatWaitsForItsTurnSaysSo(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	gate := make(chan struct{})
	provider := standin.Start(t, standin.Options{Then: standin.Answer{Gate: gate, After: 500}})
	r, _ := start(t, bus, Options{}, live(provider))
	thread := newThread(t, r.Service)
	running := request(t, r.Service, thread, liveAccess)
	await(t, provider, func(s standin.Stats) bool { return s.Bytes >= 500 })
	waiting := request(t, r.Service, thread, liveAccess)
	said := ""
	require.Eventually(t, func() bool {
		entries, err := r.Progress.Read(withinWait(t), thread)
		for _, e := range entries {
			if e.Entity == waiting && e.State.State == progress.Waiting {
				said = e.State.Text
			}
		}
		return err == nil && said != ""
	}, servicetest.Wait, soon)
	require.Regexp(t, `^its turn: one call at a time \(.+\)$`, said)
	close(gate)
	for _, run := range []string{running, waiting} {
		require.Equal(t, "completed", awaitRun(t, r.Service, thread, run).Status)
	}
}
