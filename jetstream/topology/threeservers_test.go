//go:build threeservers

package topology_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/topology"
)

const patience = 2 * time.Minute

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func replicated3() topology.Options {
	opts := bustest.Options()
	opts.Replicas, opts.LeaseTTL = bustest.Servers, bustest.ClusterLeaseTTL
	return opts
}

// names are those of all streams, those of the buckets too.
func names(t *testing.T, js jetstream.JetStream) (out []string) {
	lister := js.StreamNames(bounded(t))
	for name := range lister.Name() {
		out = append(out, name)
	}
	require.NoError(t, lister.Err())
	require.Len(t, out, 9)
	return out
}

// Two of three servers are a cluster: the third may be away, and become whole later.
func TestATopologyIsDeclaredWhileAServerIsAway(t *testing.T) {
	c := bustest.StartCluster(t, nil)
	_, js := c.Dial(t, 0)
	c.Kill(2)
	began := time.Now()
	require.NoError(t, topology.Declare(bounded(t), js, replicated3()))
	t.Logf("declared after %v", time.Since(began).Round(time.Millisecond))
	_, err := js.Publish(bounded(t), topology.Subject("run", "requested", "t", "r", 0), nil)
	require.NoError(t, err)
	c.Run(t, 2)
	require.NoError(t, c.AwaitWhole(bounded(t), js, names(t, js)...))
}

// The server that dies may be the leader of anything; who declares meanwhile waits for the election.
func TestATopologyIsDeclaredInTheMiddleOfAnElection(t *testing.T) {
	c := bustest.StartCluster(t, nil)
	c.Declare(t)
	_, js := c.Dial(t, 1) // goes to another server when this one is killed
	for victim := range bustest.Servers {
		c.Kill(victim)
		began := time.Now()
		require.NoError(t, topology.Declare(bounded(t), js, replicated3()))
		t.Logf("without server %d: declared after %v", victim, time.Since(began).Round(time.Millisecond))
		c.Run(t, victim)
		require.NoError(t, c.AwaitWhole(bounded(t), js, names(t, js)...))
	}
}

// Streams, buckets and consumers that were begun on one server go over to three.
func TestMoreReplicasLater(t *testing.T) {
	c := bustest.StartCluster(t, nil)
	_, js := c.Dial(t, 0)
	one := replicated3()
	one.Replicas = 1
	require.NoError(t, topology.Declare(bounded(t), js, one))
	for range 100 {
		_, err := js.Publish(bounded(t), topology.Subject("run", "requested", "t", "r", 0), []byte("{}"))
		require.NoError(t, err)
	}
	_, err := bustest.Bucket(t, js, topology.BucketSettings).Put(bounded(t), "a", []byte("b"))
	require.NoError(t, err)

	require.NoError(t, topology.Declare(bounded(t), js, replicated3()))
	require.NoError(t, c.AwaitWhole(bounded(t), js, names(t, js)...))
	for _, d := range topology.Durables() {
		require.Eventually(t, func() bool {
			consumer, err := js.Consumer(t.Context(), topology.Notebook, d.Name)
			if err != nil || consumer.CachedInfo().Cluster == nil || consumer.CachedInfo().Cluster.Leader == "" {
				return false
			}
			for _, r := range consumer.CachedInfo().Cluster.Replicas {
				if !r.Current {
					return false
				}
			}
			return len(consumer.CachedInfo().Cluster.Replicas) == bustest.Servers-1
		}, patience, 50*time.Millisecond, d.Name)
	}
	require.ErrorIs(t, topology.Declare(bounded(t), js, one), topology.ErrReplicas)

	leader, known := c.Leader(bounded(t), js, topology.Notebook)
	require.True(t, known)
	c.Kill(leader) // which had everything alone
	_, js = c.Dial(t, (leader+1)%bustest.Servers)
	var info *jetstream.StreamInfo
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		s, err := js.Stream(ctx, topology.Notebook)
		if err == nil {
			info = s.CachedInfo()
		}
		return err == nil
	}, patience, 50*time.Millisecond)
	require.EqualValues(t, 100, info.State.Msgs)
	var value []byte
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		kv, err := js.KeyValue(ctx, topology.BucketSettings)
		if err != nil {
			return false
		}
		entry, err := kv.Get(ctx, "a")
		if err == nil {
			value = entry.Value()
		}
		return err == nil
	}, patience, 50*time.Millisecond)
	require.Equal(t, "b", string(value))
}

// Five replicas on three servers: the wait for servers that may still come ends with the context, and says what was waited for.
func TestMoreReplicasThanServersAreSaid(t *testing.T) {
	c := bustest.StartCluster(t, nil)
	_, js := c.Dial(t, 0)
	opts := replicated3()
	opts.Replicas = 5
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	err := topology.Declare(ctx, js, opts)
	require.ErrorIs(t, err, topology.ErrReplicas)
	require.ErrorContains(t, err, "5 are asked for")
}
