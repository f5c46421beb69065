package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/cluster/chaos"
	"github.com/factstream/factstream/fixtures/standin"
	"github.com/factstream/factstream/jetstream/topology"
)

// readiness is what /readyz tells.
type readiness struct {
	Ready     bool
	Reasons   []string
	Dead      int
	BadEvents []struct {
		Seq            uint64
		Subject, Error string
	} `json:"bad_events"`
	BadCount  int   `json:"bad_count"`
	StoreFree int64 `json:"store_free"`
}

func (f *field) readiness() (status int, r readiness) {
	f.t.Helper()
	status, text, err := f.try(http.MethodGet, "/readyz", nil)
	require.NoError(f.t, err)
	require.NoError(f.t, json.Unmarshal(text, &r), "%s", text)
	return status, r
}

// idle waits until no worker has anything in hand or before it.
func (f *field) idle() {
	f.t.Helper()
	eventually(f.t, "the workers are idle", func() bool {
		for _, d := range topology.Durables() {
			consumer, err := f.JS.Consumer(f.t.Context(), topology.Notebook, d.Name)
			require.NoError(f.t, err)
			if now := consumer.CachedInfo(); now.NumPending > 0 || now.NumAckPending > 0 {
				return false
			}
		}
		return true
	})
}

func TestPoisonOnEverySubjectIsKeptAndShownAndStopsNothing(t *testing.T) {
	t.Parallel()
	f := open(t, "MODEL_ENGINE=extractive")
	th := f.ask("Does poison stop anything?")
	f.researched(th.ID, nil)
	before := f.knows(th.ID)

	poisons := chaos.Poisons()
	readers := map[string]int{} // of a kind, by the filters of the durables
	for _, d := range topology.Durables() {
		for _, filter := range d.Filters {
			readers[strings.TrimSuffix(filter, ".>")]++
		}
	}
	dead, bad, n := 0, 0, 0
	for _, thread := range []string{th.ID, "nobody"} {
		for _, poison := range poisons {
			n++
			fill := strings.NewReplacer("%t", thread, "%i", fmt.Sprintf("poison-%d", n))
			_, err := f.JS.Publish(t.Context(), fill.Replace(poison[0]), []byte(fill.Replace(poison[1])))
			require.NoError(t, err)
			if kind, _, _ := strings.Cut(poison[0], ".%t"); !strings.Contains(poison[1], `"new":true`) && readers[kind] > 0 {
				dead += readers[kind]
				bad++
			}
			if poison[1] == "\x00\xff" {
				bad++
			}
		}
	}
	require.Len(t, poisons, 8*4+3)
	f.idle()

	eventually(t, "everything is kept and shown", func() bool {
		status, r := f.readiness()
		return status == http.StatusOK && r.Ready && r.Dead == dead && r.BadCount == bad
	})
	_, r := f.readiness()
	require.NotEmpty(t, r.BadEvents)
	for _, event := range r.BadEvents {
		require.NotEmpty(t, event.Error, event.Subject)
	}
	type letter struct {
		ID      json.RawMessage
		Reason  string
		Subject string
	}
	letters := call[list[letter]](f.api, http.StatusOK, http.MethodGet, base+"/dead?limit=500", nil).Items
	require.Len(t, letters, dead)
	for _, l := range letters {
		require.NotEmpty(t, l.Reason)
		require.Contains(t, l.Subject, ".poisoned.0")
	}
	status, text, err := f.try(http.MethodPost, base+"/dead/"+strings.Trim(string(letters[0].ID), `"`)+"/retry", map[string]any{})
	require.NoError(t, err)
	require.True(t, status < 500, "%d %s", status, text)

	require.Equal(t, before, f.knows(th.ID), "what was known is untouched")
	f.completed(f.researched(th.ID, map[string]any{"mode": "balanced"}).ID, 1)
	f.spent(th.ID, 600)
	other := f.ask("And another one?")
	f.completed(f.researched(other.ID, nil).ID, 1)
	require.NoError(t, f.Restart(t.Context(), "gateway", "researcher", "distiller", "judge", "briefer"))
	require.NoError(t, f.Ready(t.Context()))
	third := f.ask("And after a restart?")
	f.completed(f.researched(third.ID, nil).ID, 1)
	f.idle()
	require.Empty(t, f.Unasked(), "nobody fell over")
}

func TestAStaleResearcherIsRefusedAndItsCallClosed(t *testing.T) {
	t.Parallel()
	f := openWith(t, chaos.Layout{Workers: map[string]int{"researcher": 2}, Env: []string{"MODEL_ENGINE=extractive"}})
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	require.NoError(t, f.provider.Set(standin.Answer{}, standin.Answer{Gate: never, After: 2000}))
	tape := f.follow()
	th := f.ask("Who is stale?")
	requested := f.request(th.ID, nil)
	sent(t, f.provider, 2000)
	var claim struct{ Holder string }
	require.NoError(t, json.Unmarshal(tape.awaitRun("attempt.started", requested.ID).Data, &claim))
	stale := ""
	for _, name := range []string{"researcher", "researcher-2"} {
		if strings.HasSuffix(claim.Holder, fmt.Sprintf(":%d", f.PID(name))) {
			stale = name
		}
	}
	require.NotEmpty(t, stale, claim.Holder)
	require.True(t, f.Stop(stale))
	f.settled(th.ID)
	done := f.completed(requested.ID, 2)
	require.Equal(t, "lost", done.Attempts[0].Outcome)
	require.Equal(t, 1, f.provider.Stats().InFlight, "the stopped one still has its connection")

	require.True(t, f.Continue(stale))
	awaitStats(t, f.provider, func(s standin.Stats) bool { return s.InFlight == 0 })
	stats := f.provider.Stats()
	require.Equal(t, 1, stats.Left, "it closed its connection")
	require.Equal(t, 1, stats.Whole)
	require.Equal(t, 2, stats.Calls)
	f.idle()
	f.spent(th.ID, 250)
	f.completed(requested.ID, 2)
	completions := 0
	for _, n := range tape.until(f.thread(th.ID).Position) {
		if n.Run == requested.ID && n.kind() == "run.completed" {
			completions++
		}
	}
	require.Equal(t, 1, completions)
}
