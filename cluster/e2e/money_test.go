package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/fixtures/standin"
	"github.com/factstream/factstream/jetstream/topology"
)

func TestAKillInTheStreamCostsTheRunOnce(t *testing.T) {
	t.Parallel()
	forever := make(chan struct{})
	t.Cleanup(func() { close(forever) })
	c, provider := live(t, standin.Options{Answers: []standin.Answer{{Piece: 512, Gate: forever, After: 2000}}}, hurried...)
	th := c.ask("What does a kill in the stream cost?")
	requested := c.request(th.ID, nil)
	sent(t, provider, 2000)
	eventually(t, "the run is running", func() bool { return c.run(requested.ID).Status == "running" })

	c.kill("researcher")
	c.settled(th.ID)
	r := c.completed(requested.ID, 2)
	require.Equal(t, "lost", r.Attempts[0].Outcome)
	c.spent(th.ID, 250)
	stats := provider.Stats()
	require.Equal(t, 2, stats.Calls)
	require.Equal(t, 1, stats.MaxInFlight)
	require.Equal(t, 1, stats.Left)
	require.Equal(t, 1, stats.Whole)
}

// sent waits until a provider has sent so many bytes and holds the rest back.
func sent(t *testing.T, provider *standin.Server, bytes int64) {
	t.Helper()
	awaitStats(t, provider, func(s standin.Stats) bool { return s.InFlight == 1 && s.Bytes >= bytes })
}

func TestAKillBetweenSavingAndSettlingBuysNothingAgain(t *testing.T) {
	t.Parallel()
	struck := filepath.Join(t.TempDir(), "struck")
	c, provider := live(t, standin.Options{}, append(hurried, "FACTSTREAM_FAULT=researcher.saved=kill", "FACTSTREAM_FAULT_LOG="+struck)...)
	before := c.pids()["researcher"]
	th := c.ask("What does a kill after saving cost?")
	requested := c.request(th.ID, nil)
	c.settled(th.ID)

	c.completed(requested.ID, 1)
	c.spent(th.ID, 250)
	require.Equal(t, 1, provider.Stats().Calls, "the answer was bought once")
	log, err := os.ReadFile(struck)
	require.NoError(t, err, "the fault has struck")
	require.Equal(t, "researcher.saved kill\n", string(log))
	require.NotEqual(t, before, c.pids()["researcher"], "it was killed")
}

func TestOneCallAtATimeOverTwoResearchersOneOfWhichIsKilled(t *testing.T) {
	t.Parallel()
	both, forever := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(forever) })
	const runs, threads, held = 20, 4, 6 // the held-th call is the one whose researcher is killed
	hold := standin.Answer{Hold: 300 * time.Millisecond}
	answers := []standin.Answer{{Gate: both}, hold, hold, hold, hold, {Gate: forever, After: 1000}}
	require.Len(t, answers, held)
	c, provider := live(t, standin.Options{Answers: answers, Then: hold}, hurried...)
	tape := c.follow()

	var ids, requested []string
	for i := range threads {
		ids = append(ids, c.ask(fmt.Sprintf("Single flight %d?", i)).ID)
	}
	for i := range runs {
		requested = append(requested, c.request(ids[i%threads], map[string]any{"question": fmt.Sprintf("Part %d?", i)}).ID)
	}
	awaitStats(t, provider, func(s standin.Stats) bool { return s.InFlight == 1 })

	// The other one joins when the first has its hands full, and takes runs of its own.
	inHand := c.inHand(func(now *jetstream.ConsumerInfo) bool { return now.NumWaiting == 0 && now.NumPending > 0 })
	other := c.join("researcher")
	c.inHand(func(now *jetstream.ConsumerInfo) bool { return now.NumAckPending > inHand })
	close(both)
	awaitStats(t, provider, func(s standin.Stats) bool { return s.Calls == held && s.InFlight == 1 })
	holder := holderOf(t, tape, held)
	require.Contains(t, []int{other, c.pids()["researcher"]}, holder)
	require.NoError(t, syscall.Kill(holder, syscall.SIGKILL))

	for _, id := range ids {
		c.settled(id)
		c.spent(id, runs/threads*250)
	}
	lost := 0
	for _, id := range requested {
		r := c.run(id)
		require.Equal(t, "completed", r.Status, "%+v", r.Failure)
		lost += len(r.Attempts) - 1
	}
	require.Equal(t, 1, lost)
	stats := provider.Stats()
	require.Equal(t, runs+1, stats.Calls)
	require.Equal(t, 1, stats.MaxInFlight, "one at a time")
	require.Equal(t, 1, stats.Left)
	require.Equal(t, runs, stats.Whole)
}

// inHand waits until the workers that do runs are as is wanted; it gives how many runs they have in hand.
func (c *cluster) inHand(wanted func(*jetstream.ConsumerInfo) bool) (messages int) {
	c.t.Helper()
	consumer, err := c.jetStream().Consumer(c.t.Context(), topology.Notebook, topology.RunsTabstack)
	require.NoError(c.t, err)
	eventually(c.t, "the runs are in hand", func() bool {
		now, err := consumer.Info(c.t.Context())
		require.NoError(c.t, err)
		messages = now.NumAckPending
		return wanted(now)
	})
	return messages
}

// holderOf gives the process that claimed the n-th attempt of the notebook.
func holderOf(t *testing.T, tape *tape, n int) (pid int) {
	t.Helper()
	seen := 0
	claim := tape.await("the claim of the call under way", func(one note) bool {
		if one.kind() == "attempt.started" {
			seen++
		}
		return seen == n
	})
	var data struct{ Holder string }
	require.NoError(t, json.Unmarshal(claim.Data, &data))
	pid, err := strconv.Atoi(data.Holder[strings.LastIndex(data.Holder, ":")+1:])
	require.NoError(t, err, data.Holder)
	return pid
}

func TestTheBudgetHoldsWhoeverAsksAtTheSameTime(t *testing.T) {
	t.Parallel()
	c := start(t)

	one := c.ask("One key, asked for twice at once?")
	answers := together(2, func(int) (int, []byte, error) {
		return c.try(http.MethodPost, base+"/threads/"+one.ID+"/runs", map[string]any{}, "Idempotency-Key", "the-same")
	})
	ids := map[string]bool{}
	for _, a := range answers {
		require.NoError(t, a.err)
		require.Equal(t, http.StatusAccepted, a.status, "%s", a.body)
		var r run
		require.NoError(t, json.Unmarshal(a.body, &r))
		ids[r.ID] = true
	}
	require.Len(t, ids, 1)
	c.settled(one.ID)
	c.spent(one.ID, 250)
	require.Len(t, all[run](c.api, "/threads/"+one.ID+"/runs"), 1)
	refused := call[refusal](c.api, http.StatusUnprocessableEntity, http.MethodPost, base+"/threads/"+one.ID+"/runs",
		map[string]any{"mode": "balanced"}, "Idempotency-Key", "the-same")
	require.NotEmpty(t, refused.Detail)

	eight := c.create(map[string]any{"question": "Eight at once?", "auto": false, "budget": 500})
	counts := map[int]int{}
	for _, a := range together(8, func(int) (int, []byte, error) {
		return c.try(http.MethodPost, base+"/threads/"+eight.ID+"/runs", map[string]any{})
	}) {
		require.NoError(t, a.err)
		counts[a.status]++
		if a.status != http.StatusPaymentRequired {
			continue
		}
		var no refusal
		require.NoError(t, json.Unmarshal(a.body, &no))
		require.Contains(t, no.Type, "budget-exceeded")
		require.NotNil(t, no.Spent, "%s", a.body)
		require.NotNil(t, no.Reserved, "%s", a.body)
		require.Equal(t, 500, *no.Spent+*no.Reserved)
		require.Equal(t, 500, *no.Budget)
		require.Equal(t, 250, *no.Cost)
	}
	require.Equal(t, map[int]int{http.StatusAccepted: 2, http.StatusPaymentRequired: 6}, counts)
	c.settled(eight.ID)
	c.spent(eight.ID, 500)
}

// answer is what one of several requests was answered.
type answer struct {
	status int
	body   []byte
	err    error
}

// together sends requests at the same time.
func together(n int, send func(i int) (int, []byte, error)) []answer {
	answers := make([]answer, n)
	var begin, done sync.WaitGroup
	begin.Add(1)
	for i := range n {
		done.Go(func() {
			begin.Wait()
			answers[i].status, answers[i].body, answers[i].err = send(i)
		})
	}
	begin.Done()
	done.Wait()
	return answers
}
