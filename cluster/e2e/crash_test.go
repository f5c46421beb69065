package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sort"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/fixtures/standin"
	"github.com/factstream/factstream/jetstream/topology"
)

func TestAChainWhoseServicesAreKilledGivesTheSameFacts(t *testing.T) {
	t.Parallel()
	c := start(t, hurried...)
	tape := c.follow()
	const text = "What comes of a chain that is killed at every step?"
	disturbed := c.ask(text)

	// Stopped before its message comes, each of them dies with it in hand.
	chain := []struct{ service, after string }{
		{"distiller", "run.completed"}, {"judge", "facts.distilled"}, {"briefer", "contradictions.found"},
	}
	for _, step := range chain {
		c.send(step.service, syscall.SIGSTOP)
	}
	first := c.request(disturbed.ID, nil)
	for _, step := range chain {
		tape.awaitRun(step.after, first.ID)
		c.kill(step.service)
	}
	c.kill("gateway")
	c.settled(disturbed.ID)

	// And killed when the event before it is seen, each of them dies wherever it is just then.
	second := c.request(disturbed.ID, map[string]any{"mode": "balanced"})
	for _, step := range chain {
		tape.awaitRun(step.after, second.ID)
		c.kill(step.service)
	}
	c.kill("gateway")
	c.settled(disturbed.ID)
	for _, id := range []string{first.ID, second.ID} {
		c.completed(id, 1)
	}
	c.spent(disturbed.ID, 600)

	calm := c.ask(text)
	c.researched(calm.ID, nil)
	c.researched(calm.ID, map[string]any{"mode": "balanced"})
	require.Equal(t, c.essence(calm.ID), c.essence(disturbed.ID))

	// Killed or not, nothing was done twice, and whoever watches missed nothing.
	kinds := map[string]map[string]int{}
	for i, n := range tape.until(c.thread(calm.ID).Position) {
		require.Equal(t, uint64(i+1), n.Seq)
		if kinds[n.Thread] == nil {
			kinds[n.Thread] = map[string]int{}
		}
		kinds[n.Thread][n.kind()]++
	}
	require.Equal(t, kinds[calm.ID], kinds[disturbed.ID])
}

// essence is what a thread knows, without what differs from one thread to another.
func (a *api) essence(thread string) []string {
	a.t.Helper()
	facts := all[fact](a, "/threads/"+thread+"/facts?include=all&limit=500")
	statements := map[string]string{}
	for _, f := range facts {
		statements[f.ID] = f.Statement
	}
	var out []string
	for _, f := range facts {
		where, duplicate := "", ""
		if f.Source != nil {
			where = f.Source.URL
		}
		if f.DuplicateOf != nil {
			duplicate = statements[*f.DuplicateOf]
		}
		out = append(out, fmt.Sprintf("%s | %.3f | %s | %v | disputed %v | duplicate of %q", f.Statement, f.Confidence, where, *f.Excerpt, f.Disputed, duplicate))
	}
	require.NotEmpty(a.t, out)
	sort.Strings(out)
	return out
}

func TestAKilledSupervisorLeavesNothingBehindAndItsThreadsGoOn(t *testing.T) {
	t.Parallel()
	forever := make(chan struct{})
	t.Cleanup(func() { close(forever) })
	c, provider := live(t, standin.Options{Answers: []standin.Answer{{Gate: forever, After: 1000}}}, hurried...)
	th := c.create(map[string]any{"question": "Who goes on when all are killed?", "budget": 600, "auto": true})
	started := call[thread](c.api, http.StatusOK, http.MethodPost, base+"/threads/"+th.ID+"/start", nil)
	require.Equal(t, "running", started.Status)
	require.Equal(t, 250, started.Ledger.Reserved)
	sent(t, provider, 1000)

	c.signal(syscall.SIGKILL)
	require.Equal(t, -1, c.exit())
	c.nobodyLeft(patience)
	awaitStats(t, provider, func(s standin.Stats) bool { return s.InFlight == 0 })
	require.Equal(t, 1, provider.Stats().Left)

	c.again()
	require.Equal(t, started.Question, c.thread(th.ID).Question, "the notebook is there")
	now := c.settled(th.ID)
	require.Equal(t, "complete", now.Status, "%+v", now.Reason)
	require.NotEmpty(t, now.Reason.Text)
	runs := all[run](c.api, "/threads/"+th.ID+"/runs")
	first := c.completed(runs[0].ID, 2)
	require.Equal(t, "lost", first.Attempts[0].Outcome)
	for _, r := range runs[1:] {
		c.completed(r.ID, 1)
	}
	c.spent(th.ID, 250*len(runs))
	stats := provider.Stats()
	require.Equal(t, len(runs)+1, stats.Calls)
	require.Equal(t, 1, stats.MaxInFlight)
}

func awaitStats(t *testing.T, provider *standin.Server, holds func(standin.Stats) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, provider.Await(ctx, holds))
}

func TestItStopsInOrderGoesOnAndForgetsWhatIsDeleted(t *testing.T) {
	t.Parallel()
	rest := make(chan struct{})
	c, provider := live(t, standin.Options{Answers: []standin.Answer{{Gate: rest, After: 1000}}}, hurried...)
	th := c.ask("Does this one survive a restart?")
	requested := c.request(th.ID, nil)
	sent(t, provider, 1000)

	// It is told to stop in the middle of a call. What others say about the thread meanwhile must not keep the call from being settled.
	js := c.jetStream()
	c.signal(os.Interrupt)
	eventually(t, "only the researcher is not done", func() bool { return len(c.stopped()) == 4 })
	subject := "ext.noticed." + th.ID + ".0.0"
	_, err := js.Publish(t.Context(), subject, []byte(`{"id":"ext-1","type":"ext.noticed","thread":"`+th.ID+`","n":0,"data":{}}`))
	require.NoError(t, err)
	close(rest)
	require.Zero(t, c.exit())
	c.nobodyLeft(0)
	require.Contains(t, c.stdout.String(), "Factstream has stopped. Everything is kept in "+c.data)
	c.stoppedInOrder()
	c.quiet()
	require.Equal(t, 1, provider.Stats().Whole, "the call under way is brought to its end, since it is paid for")

	c.again()
	c.settled(th.ID)
	c.completed(requested.ID, 1)
	c.spent(th.ID, 250)
	require.Equal(t, 1, provider.Stats().Calls, "nothing is bought again")
	require.NotEmpty(t, c.factsOf(th.ID))
	other := c.ask("Is this one left alone?")
	c.researched(other.ID, nil)

	deleted := call[struct {
		Deleted, Purged bool
		Spent           int
	}](c.api, http.StatusOK, http.MethodDelete, base+"/threads/"+th.ID, nil)
	require.True(t, deleted.Deleted && deleted.Purged)
	require.Equal(t, 250, deleted.Spent, "what it cost is known for ever")
	for _, path := range []string{"", "/facts", "/runs", "/sources", "/questions", "/brief"} {
		status, _, err := c.try(http.MethodGet, base+"/threads/"+th.ID+path, nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusGone, status, path)
	}
	status, _, err := c.try(http.MethodGet, base+"/runs/"+requested.ID, nil)
	require.NoError(t, err)
	require.Contains(t, []int{http.StatusNotFound, http.StatusGone}, status)
	left := all[thread](c.api, "/threads")
	require.Len(t, left, 1)
	require.Equal(t, other.ID, left[0].ID)
	c.purged(th.ID)
	require.NotEmpty(t, c.factsOf(other.ID))
	c.completed(all[run](c.api, "/threads/"+other.ID+"/runs")[0].ID, 1)

	c.signal(syscall.SIGTERM)
	require.Zero(t, c.exit())
	c.again()
	status, _, err = c.try(http.MethodGet, base+"/threads/"+th.ID, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusGone, status, "the tombstone stays")
	require.NotEmpty(t, c.factsOf(other.ID))
}

// stoppedInOrder asserts that every service was asked to stop and did, the gateway first.
func (c *cluster) stoppedInOrder() {
	c.t.Helper()
	for _, one := range c.changes() {
		require.NotContains(c.t, one.Message, "did not stop in time", one.Program)
		require.NotContains(c.t, one.Message, "ended by itself", one.Program)
	}
	stopped := c.stopped()
	require.Equal(c.t, "gateway", stopped[0])
	require.ElementsMatch(c.t, []string{"briefer", "distiller", "gateway", "judge", "researcher"}, stopped)
}

// stopped lists the services that have stopped because they were asked to, in order.
func (c *cluster) stopped() (programs []string) {
	for _, one := range c.changes() {
		if one.Message == "stopped" {
			programs = append(programs, one.Program)
		}
	}
	return programs
}

// purged asserts that of a deleted thread nothing but its tombstone is on the bus.
func (c *cluster) purged(thread string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	js := c.jetStream()
	subjects := func(name, filter string) (found []string) {
		stream, err := js.Stream(ctx, name)
		require.NoError(c.t, err)
		info, err := stream.Info(ctx, jetstream.WithSubjectFilter(filter))
		require.NoError(c.t, err)
		for subject := range info.State.Subjects {
			found = append(found, subject)
		}
		return found
	}
	require.Equal(c.t, []string{"thread.deleted." + thread + ".0.0"}, subjects(topology.Notebook, topology.ThreadFilter(thread)))
	require.Empty(c.t, subjects(topology.Trail, topology.ThreadTrail(thread)))

	artifacts, err := js.ObjectStore(ctx, topology.StoreArtifacts)
	require.NoError(c.t, err)
	objects, err := artifacts.List(ctx)
	require.NoError(c.t, err)
	for _, object := range objects {
		require.False(c.t, strings.HasPrefix(object.Name, thread), object.Name)
	}
	replies, err := js.KeyValue(ctx, topology.BucketReplies)
	require.NoError(c.t, err)
	keys, err := replies.ListKeys(ctx)
	require.NoError(c.t, err)
	for key := range keys.Keys() {
		require.False(c.t, strings.HasPrefix(key, thread), key)
	}
}
