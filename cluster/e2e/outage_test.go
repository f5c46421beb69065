//go:build outage

package e2e

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/cluster/chaos"
	"github.com/factstream/factstream/fixtures/standin"
)

// busAway is how long the bus is away; longer on request: make test-outage AWAY=2m.
var busAway = flag.Duration("bus-away", 8*time.Second, "how long the bus is away")

func TestWhileTheBusIsAwayItIsSaidAndNothingIsLost(t *testing.T) {
	t.Parallel()
	f := open(t, "MODEL_ENGINE=extractive")
	over := make(chan struct{})
	require.NoError(t, f.provider.Set(standin.Answer{}, standin.Answer{Gate: over, After: 1000}))
	th := f.ask("What if the bus is away?")
	requested := f.request(th.ID, nil)
	sent(t, f.provider, 1000)

	left := time.Now()
	back := f.Away(chaos.Bus)
	eventually(t, "it is said", func() bool {
		status, r := f.readiness()
		return status == http.StatusServiceUnavailable && !r.Ready && strings.Contains(strings.Join(r.Reasons, " "), "bus")
	})
	require.Equal(t, th.Question, f.thread(th.ID).Question, "what is known can be read")
	status, text, err := f.try(http.MethodPost, base+"/threads", map[string]any{"question": "Now?"}, "Idempotency-Key", "while-away")
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, status, "%s", text)
	refused := decode[refusal](t, text)
	require.NotEmpty(t, refused.Type)
	require.Contains(t, refused.Detail, "try again")
	close(over) // the answer comes while nobody can be told of it
	awaitStats(t, f.provider, func(s standin.Stats) bool { return s.InFlight == 0 })
	<-time.After(time.Until(left.Add(*busAway)))
	back()

	asked := time.Now()
	created := decode[thread](t, f.insist(http.StatusCreated, http.MethodPost, "/threads", "while-away", map[string]any{"question": "Now?"}))
	f.settled(th.ID)
	f.completed(requested.ID, 1)
	t.Logf("%.1f s after its return", time.Since(asked).Seconds())
	f.spent(th.ID, 250)
	require.Equal(t, 1, f.provider.Stats().Calls, "the answer was kept while the bus was away")
	require.Equal(t, created.ID, decode[thread](t, f.insist(http.StatusCreated, http.MethodPost, "/threads", "while-away", map[string]any{"question": "Now?"})).ID)
	require.Len(t, all[thread](f.api, "/threads"), 2)
	f.completed(f.researched(created.ID, nil).ID, 1)
	require.Empty(t, f.Unasked(), "every process waited for it")
}

func TestAFullDiskStopsWhatIsPaidAndGoesByItself(t *testing.T) {
	t.Parallel()
	disk, err := chaos.Mount(filepath.Join(t.TempDir(), "disk"))
	if errors.Is(err, chaos.ErrNoDisk) {
		t.Logf("not tried: %v", err)
		return
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, disk.Unmount()) })
	f := openWith(t, chaos.Layout{Data: filepath.Join(disk.Dir, "data"), Env: []string{"MODEL_ENGINE=extractive"}})
	th := f.ask("What if the disk is full?")
	f.completed(f.researched(th.ID, nil).ID, 1)

	// Less is free than an answer may need: everything goes on but what is paid.
	require.NoError(t, disk.Fill(100<<20))
	waiting := f.request(th.ID, map[string]any{"mode": "balanced"})
	eventually(t, "the run says what it waits for", func() bool {
		status, text, err := f.try(http.MethodGet, base+"/runs/"+waiting.ID, nil)
		return err == nil && status == http.StatusOK && strings.Contains(string(text), "MiB are free")
	})
	_, r := f.readiness()
	require.Less(t, r.StoreFree, int64(101<<20))
	require.Equal(t, 1, f.provider.Stats().Calls, "nothing paid is started")
	require.NoError(t, disk.Empty())
	f.settled(th.ID)
	f.completed(waiting.ID, 1)
	f.spent(th.ID, 600)

	// Nothing can be written at all.
	require.NoError(t, disk.Fill(0))
	full := false
	for i := 0; i < 40 && !full; i++ {
		status, text, err := f.try(http.MethodPost, base+"/threads", map[string]any{"question": strings.Repeat("Is there room? ", 500)}, "Idempotency-Key", fmt.Sprintf("full-%d", i))
		require.NoError(t, err)
		if full = status >= 500; full {
			require.NotEmpty(t, decode[refusal](t, text).Detail)
		}
	}
	require.True(t, full, "the intake stops")
	require.Equal(t, 2, f.provider.Stats().Calls)
	require.NoError(t, disk.Empty())
	after := decode[thread](t, f.insist(http.StatusCreated, http.MethodPost, "/threads", "after", map[string]any{"question": "Is there room again?"}))
	f.completed(f.researched(after.ID, nil).ID, 1)
	f.spent(th.ID, 600)
	require.NotEmpty(t, f.factsOf(th.ID))
	status, ready := f.readiness()
	require.Equal(t, http.StatusOK, status, "%v", ready.Reasons)
}
