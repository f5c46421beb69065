//go:build threeservers

package projector_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/batch"
	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/jetstream/topology"
)

const patience = 2 * time.Minute

// Three tails, each connected to another server first, while the leader is killed four times: what is written next is seen by all of them, by who waits for it
// and without anybody waiting, everything once and in order.
func TestTailsGoOnWhenTheLeaderIsKilled(t *testing.T) {
	c := bustest.StartCluster(t, nil)
	c.Declare(t)
	_, js := c.Dial(t, 0)
	tails, seens := make([]*projector.Projector, bustest.Servers), make([]seen, bustest.Servers)
	for i := range tails {
		_, js := c.Dial(t, i)
		tails[i], _ = run(t, js, projector.Config{Handler: seens[i].handle})
	}
	write := func(id string) (last uint64) { // as one batch of three, until it is surely stored
		try := 0
		require.Eventually(t, func() bool {
			try++
			messages := make([]batch.Message, 3)
			for i := range messages {
				messages[i] = batch.Message{Subject: topology.Subject("run", "requested", "t", fmt.Sprint(id, "-", try), i)}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			seq, err := batch.Publish(ctx, js, messages, batch.Expect{})
			last = seq
			return err == nil
		}, patience, 5*time.Millisecond)
		return last
	}
	for round := range 4 {
		var leader int
		require.Eventually(t, func() (known bool) {
			leader, known = c.Leader(t.Context(), js, topology.Notebook)
			return known
		}, patience, 20*time.Millisecond)
		last := write(fmt.Sprint("before", round))
		began := time.Now()
		c.Kill(leader)
		for i, tail := range tails { // of what was acknowledged just before
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			require.NoError(t, tail.WaitFor(ctx, last), "tail %d", i)
			cancel()
		}
		waited := time.Since(began)
		last = write(fmt.Sprint("after", round))
		stored := time.Since(began)
		for i, tail := range tails {
			require.Eventually(t, func() bool { return tail.Position() >= last }, patience, 5*time.Millisecond, "tail %d", i)
		}
		t.Logf("leader %d killed: what was stored is seen after %v, the next is stored after %v and seen by all without waiting after %v",
			leader, waited.Round(time.Millisecond), stored.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
		c.Run(t, leader)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		require.NoError(t, c.AwaitWhole(ctx, js, topology.Notebook))
		cancel()
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	last := write("end")
	for i, tail := range tails {
		require.NoError(t, tail.WaitFor(ctx, last))
		require.Equal(t, ascending(1, last), seens[i].all(), "tail %d", i)
	}
}
