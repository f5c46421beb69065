package e2e

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/fixtures/standin"
)

// key is what the stand-in accepts.
const key = "e2e-live-key-7f3a"

// live runs a cluster that buys from a stand-in on this machine.
func live(t *testing.T, provider standin.Options, env ...string) (*cluster, *standin.Server) {
	t.Helper()
	provider.Key = key
	server := standin.Start(t, provider)
	return start(t, append([]string{"TABSTACK_BASE_URL=" + server.URL(), "TABSTACK_API_KEY=" + key}, env...)...), server
}

func TestWithAKeyTheRunsAreBought(t *testing.T) {
	t.Parallel()
	c, provider := live(t, standin.Options{Then: standin.Answer{Piece: 512}})
	require.Contains(t, c.stdout.String(), "live: runs are bought from the provider")

	const text = "Wer baut 2027 <Festkörper> & \"Serie\"?"
	th := c.ask(text)
	fast := c.researched(th.ID, nil)
	balanced := c.researched(th.ID, map[string]any{"mode": "balanced"})
	require.False(t, *c.spent(th.ID, 600).Replay)
	for _, id := range []string{fast.ID, balanced.ID} {
		require.False(t, c.completed(id, 1).Replayed)
	}
	for _, f := range c.factsOf(th.ID) {
		require.False(t, f.Replayed, f.Statement)
	}

	calls := provider.Calls()
	require.Len(t, calls, 2)
	require.Zero(t, provider.Stats().Strays)
	require.Equal(t, 1, provider.Stats().MaxInFlight)
	for i, mode := range []string{"fast", "balanced"} {
		require.Equal(t, http.MethodPost, calls[i].Method)
		require.Equal(t, "/v1/research", calls[i].Path)
		require.Equal(t, "text/event-stream", calls[i].Header.Get("Accept"))
		require.Equal(t, "Bearer "+key, calls[i].Header.Get("Authorization"))
		require.Equal(t, "application/json", calls[i].Header.Get("Content-Type"))
		var body map[string]any
		require.NoError(t, json.Unmarshal([]byte(calls[i].Body), &body))
		require.Equal(t, map[string]any{"query": text, "mode": mode}, body, "what is not set is left out")
		require.Equal(t, standin.Whole, calls[i].Outcome)
	}

	c.signal(os.Interrupt)
	require.Zero(t, c.exit())
	requireNowhere(t, c.data, key)
	require.NotContains(t, c.stdout.String()+c.stderr.String(), key)
}

// requireNowhere asserts that no file below a directory holds a text.
func requireNowhere(t *testing.T, dir, text string) {
	t.Helper()
	read := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(text)) {
			t.Errorf("%s holds %q", path, text)
		}
		read++
		return err
	}))
	require.Greater(t, read, 10)
}

func TestAKeyThatIsSavedCountsFromTheNextRunOn(t *testing.T) {
	t.Parallel()
	provider := standin.Start(t, standin.Options{Key: key})
	c := start(t, "TABSTACK_BASE_URL="+provider.URL())
	replayed := c.ask("Without a key?")
	require.True(t, c.researched(replayed.ID, nil).Replayed)
	require.Zero(t, provider.Stats().Calls)

	saved := call[map[string]any](c.api, http.StatusOK, http.MethodPut, base+"/settings", map[string]any{"tabstack_key": key})
	require.Equal(t, true, saved["tabstack_key_set"])
	bought := c.ask("With a key?")
	require.False(t, c.researched(bought.ID, nil).Replayed)
	require.Equal(t, "Bearer "+key, provider.Calls()[0].Header.Get("Authorization"))
	require.True(t, c.researched(replayed.ID, nil).Replayed, "a thread stays what its first run was")
	require.Equal(t, 1, provider.Stats().Calls)

	status, text, err := c.try(http.MethodGet, base+"/settings", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
	require.NotContains(t, string(text), key, "keys are written, never read")
	c.signal(os.Interrupt)
	require.Zero(t, c.exit())
	requireNowhere(t, c.data, key)
}

func TestACancelledRunClosesItsConnectionAndIsReleased(t *testing.T) {
	t.Parallel()
	forever := make(chan struct{})
	t.Cleanup(func() { close(forever) })
	c, provider := live(t, standin.Options{Answers: []standin.Answer{{Gate: forever, After: 1500}}})
	th := c.ask("Is this one called off?")
	requested := c.request(th.ID, nil)
	sent(t, provider, 1500)
	require.Equal(t, 250, c.thread(th.ID).Ledger.Reserved)

	cancelled := call[run](c.api, http.StatusOK, http.MethodPost, base+"/runs/"+requested.ID+"/cancel", map[string]any{})
	require.Equal(t, "failed", cancelled.Status)
	require.Equal(t, "cancelled", cancelled.Failure.Code)
	require.Contains(t, cancelled.Failure.Detail, "may still bill")
	awaitStats(t, provider, func(s standin.Stats) bool { return s.InFlight == 0 && s.Left == 1 })
	c.settled(th.ID)
	c.spent(th.ID, 0)

	c.completed(c.researched(th.ID, nil).ID, 1)
	c.spent(th.ID, 250)
	require.Equal(t, 2, provider.Stats().Calls)
}

func TestNoKeyReachesAProviderWhileCallsAreSwitchedOff(t *testing.T) {
	t.Parallel()
	// Whoever calls out of this machine would ask this proxy first.
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var asked atomic.Int32
	go func() {
		for {
			conn, err := proxy.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = proxy.Close() })

	c := start(t, "OFFLINE=1", "TABSTACK_API_KEY="+key, "BRAVE_API_KEY="+key, "TABSTACK_BASE_URL=https://research.invalid",
		"HTTPS_PROXY=http://"+proxy.Addr().String(), "HTTP_PROXY=http://"+proxy.Addr().String(), "NO_PROXY=127.0.0.1")
	require.Contains(t, c.stdout.String(), "nothing is bought (OFFLINE is set)")
	ready := call[struct {
		Ready    bool
		Provider struct{ Mode string }
	}](c.api, http.StatusOK, http.MethodGet, "/readyz", nil)
	require.True(t, ready.Ready)
	require.Equal(t, "replay", ready.Provider.Mode)

	th := c.ask("Does anything leave this machine?")
	r := c.researched(th.ID, nil)
	require.True(t, c.completed(r.ID, 1).Replayed)
	require.True(t, *c.thread(th.ID).Replay)
	require.Zero(t, asked.Load())
	for _, f := range c.factsOf(th.ID) {
		require.True(t, f.Replayed)
	}
	require.NotContains(t, strings.ToLower(c.stderr.String()), "research.invalid")
}
