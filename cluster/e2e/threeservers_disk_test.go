//go:build threeservers

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/cluster/chaos"
	"github.com/factstream/factstream/jetstream/embedded"
)

// Each of three servers looks at its own disk: the other two go on while that of one is full, and it comes back by itself.
func TestAFullDiskUnderOneOfThreeServersStopsNothingAndGoesByItself(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	disk, err := chaos.Mount(embedded.ServerDir(data, 2))
	if errors.Is(err, chaos.ErrNoDisk) {
		t.Logf("not tried: %v", err)
		return
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, disk.Unmount()) })
	f := openWith(t, chaos.Layout{Cluster: true, Data: data, Env: []string{"MODEL_ENGINE=extractive", "ACK_WAIT=5s", "LEASE_TTL=10s"}})
	const server = "bus-2"
	starts := f.Starts(server)

	require.NoError(t, disk.Fill(0))
	long := strings.Repeat("Is there room? ", 500)
	for i := range 40 {
		f.insist(http.StatusCreated, http.MethodPost, "/threads", fmt.Sprintf("full-%d", i), map[string]any{"question": long})
	}
	th := f.ask("What if the disk of one is full?")
	f.completed(f.researched(th.ID, nil).ID, 1)
	require.Equal(t, starts, f.Starts(server), "a start on a full disk would help nobody")

	require.NoError(t, disk.Empty())
	eventually(t, server+" opens its store again", func() bool { return f.Starts(server) > starts })
	require.Len(t, f.Unasked(), 1)
	require.Contains(t, f.Unasked()[0], server)
	awaitReplicas(t, f.JS)
	after := f.ask("Is there room again?")
	f.completed(f.researched(after.ID, nil).ID, 1)
	require.Equal(t, 2, f.provider.Stats().Calls)
}
