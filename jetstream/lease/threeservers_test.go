//go:build threeservers

package lease_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/lease"
	"github.com/factstream/factstream/jetstream/topology"
)

const (
	patience = 3 * time.Minute
	// leases is the stream of the bucket.
	leases = "KV_" + topology.BucketLeases
)

// While the leader of the leases is killed and comes back, one process holds a lease for long and two others wait for it. The holder finds its lease again after the
// election, or stops before another has it; in the end everybody has had it, one after the other. Short work in between goes on as soon as there is a leader.
func TestOneHolderAtATimeWhileTheLeaderIsKilled(t *testing.T) {
	for name, opts := range map[string][]lease.Option{"guarded": nil, "kept while the bus is away": {lease.KeepWhileBusAway()}} {
		t.Run(name, func(t *testing.T) {
			c := bustest.StartCluster(t, nil)
			c.Declare(t)
			nc, js := c.Dial(t, 0)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			process := func(i int) *lease.Leases {
				_, js := c.Dial(t, i)
				return lease.New(bustest.Bucket(t, js, topology.BucketLeases), lease.Config{TTL: bustest.ClusterLeaseTTL, Name: fmt.Sprint("p", i), Logger: zerolog.Nop()})
			}
			var working, had atomic.Int32
			enter := func() (leave func()) {
				if working.Add(1) != 1 {
					t.Error("two holders")
				}
				had.Add(1)
				return func() { working.Add(-1) }
			}

			began, enough := make(chan struct{}), make(chan struct{})
			var once sync.Once
			var group sync.WaitGroup
			var lost atomic.Int32
			holder := process(0)
			group.Go(func() {
				for { // who lost it to an election waits for it again, as a worker does
					err := holder.Do(ctx, key, lease.Batch, func(ctx context.Context) error {
						defer enter()()
						once.Do(func() { close(began) })
						select {
						case <-enough:
							return nil
						case <-ctx.Done():
							return context.Cause(ctx)
						}
					}, opts...)
					if !errors.Is(err, lease.ErrLost) {
						if err != nil {
							t.Errorf("holder: %v", err)
						}
						return
					}
					lost.Add(1)
				}
			})
			<-began
			for i := 1; i < bustest.Servers; i++ {
				waiter := process(i)
				group.Go(func() {
					err := waiter.Do(ctx, key, lease.Batch, func(context.Context) error {
						defer enter()()
						return nil
					})
					if err != nil && !errors.Is(err, lease.ErrLost) {
						t.Errorf("waiter %d: %v", i, err)
					}
				})
			}
			start := time.Now()
			for range 3 {
				leader, known := c.Leader(ctx, js, leases)
				require.True(t, known)
				c.Kill(leader)
				require.Eventually(t, func() bool { // others' leases are given as soon as there is a leader again
					ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
					defer cancel()
					return holder.Do(ctx, "provider.other", lease.Batch, func(context.Context) error { return nil }) == nil
				}, patience, 10*time.Millisecond)
				c.Run(t, leader)
				require.NoError(t, c.AwaitWhole(ctx, js, leases))
				// A step-down is an election without a killed server.
				require.NoError(t, c.StepDown(ctx, nc, leases))
				require.NoError(t, c.AwaitWhole(ctx, js, leases))
			}
			disturbed := time.Since(start)
			close(enough)
			group.Wait()
			require.GreaterOrEqual(t, had.Load(), int32(bustest.Servers))
			t.Logf("lost to an election: %d times of 6, in %v; all had it %v later", lost.Load(), disturbed.Round(time.Second), (time.Since(start) - disturbed).Round(time.Millisecond))
		})
	}
}
