package topology_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/jetstream/topology"
)

func TestProcessesThatDeclareAtOnceAgree(t *testing.T) {
	t.Parallel()
	srv := bustest.Serve(t, embedded.Options{Dir: t.TempDir()})
	var wg sync.WaitGroup
	errs := make([]error, 6)
	for i := range errs {
		_, js := bustest.Dial(t, srv)
		wg.Go(func() { errs[i] = topology.Declare(t.Context(), js, bustest.Options()) })
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

func TestDeclareIsWhatTheTableSays(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	ctx := t.Context()

	nb, err := js.Stream(ctx, topology.Notebook)
	require.NoError(t, err)
	require.NoError(t, topology.CheckNotebook(nb.CachedInfo().Config))

	for _, d := range topology.Durables() {
		c, err := js.Consumer(ctx, topology.Notebook, d.Name)
		require.NoError(t, err)
		cfg := c.CachedInfo().Config
		require.Equal(t, d.Filters, cfg.FilterSubjects, d.Name)
		require.Equal(t, jetstream.AckExplicitPolicy, cfg.AckPolicy)
		require.Equal(t, bustest.AckWait, cfg.AckWait)
		require.Equal(t, -1, cfg.MaxDeliver)
		require.Equal(t, 10_000, cfg.MaxAckPending)
		require.Empty(t, cfg.BackOff)
	}
	leases, err := bustest.Bucket(t, js, topology.BucketLeases).Status(ctx)
	require.NoError(t, err)
	require.Equal(t, bustest.LeaseTTL, leases.TTL())
	_, err = js.ObjectStore(ctx, topology.StoreArtifacts)
	require.NoError(t, err)
}

func TestDeclareUpdatesTimesAndKeepsMessages(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	ctx := t.Context()
	_, err := js.Publish(ctx, topology.Subject("run", "requested", "t", "r", 0), []byte("{}"))
	require.NoError(t, err)

	opts := bustest.Options()
	opts.AckWait, opts.LeaseTTL = 7*time.Second, 9*time.Second
	require.NoError(t, topology.Declare(ctx, js, opts))

	c, err := js.Consumer(ctx, topology.Notebook, topology.RunsTabstack)
	require.NoError(t, err)
	require.Equal(t, 7*time.Second, c.CachedInfo().Config.AckWait)
	require.Eventually(t, func() bool { // the server tells consumers after it has answered the publisher
		info, err := c.Info(ctx)
		return err == nil && info.NumPending == 1
	}, bustest.Patience, 5*time.Millisecond)
	leases, err := bustest.Bucket(t, js, topology.BucketLeases).Status(ctx)
	require.NoError(t, err)
	require.Equal(t, 9*time.Second, leases.TTL())
}

func TestDeclareAddsSubjectsAndKeepsWhatAnOperatorSet(t *testing.T) {
	t.Parallel()
	srv := bustest.Serve(t, embedded.Options{Dir: t.TempDir()})
	_, js := bustest.Dial(t, srv)
	cfg := topology.Streams(topology.Options{})[0]
	cfg.Subjects = cfg.Subjects[:3]
	cfg.Compression = jetstream.S2Compression
	_, err := js.CreateStream(t.Context(), cfg)
	require.NoError(t, err)

	require.NoError(t, topology.Declare(t.Context(), js, bustest.Options()))
	s, err := js.Stream(t.Context(), topology.Notebook)
	require.NoError(t, err)
	require.Contains(t, s.CachedInfo().Config.Subjects, "ext.*.*.*.*")
	require.Equal(t, jetstream.S2Compression, s.CachedInfo().Config.Compression)
}

func TestNotebookWithAnyLimitIsRefusedByName(t *testing.T) {
	t.Parallel()
	cases := []struct {
		spoil func(*jetstream.StreamConfig)
		says  string
	}{
		{func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, "max age"},
		{func(c *jetstream.StreamConfig) { c.MaxMsgs = 5 }, "max messages"},
		{func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 20 }, "max bytes"},
		{func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1 }, "per subject"},
		{func(c *jetstream.StreamConfig) { c.MaxMsgSize = 100 }, "message size"},
		{func(c *jetstream.StreamConfig) { c.MaxConsumers = 3 }, "max consumers"},
		{func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy }, "retention"},
		{func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy }, "retention"},
		{func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }, "storage"},
		{func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = false }, "atomic"},
		{func(c *jetstream.StreamConfig) { c.AllowDirect = false }, "direct"},
		{func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode }, "async"},
		{func(c *jetstream.StreamConfig) { c.NoAck = true }, "acknowledgements"},
		{func(c *jetstream.StreamConfig) { c.Sealed = true }, "sealed"},
		{func(c *jetstream.StreamConfig) { c.DenyPurge = true }, "purging"},
		{func(c *jetstream.StreamConfig) { c.AllowRollup = true }, "rollup"},
		{func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true }, "TTLs"},
		{func(c *jetstream.StreamConfig) { c.Sources = []*jetstream.StreamSource{{Name: "X"}} }, "sources"},
		{func(c *jetstream.StreamConfig) { c.AllowMsgCounter = true }, "counter"},
		{func(c *jetstream.StreamConfig) { c.AllowMsgSchedules = true }, "schedules"},
		{func(c *jetstream.StreamConfig) { c.ConsumerLimits.MaxAckPending = 100 }, "max ack pending is 100"},
		{func(c *jetstream.StreamConfig) { c.ConsumerLimits.InactiveThreshold = time.Hour }, "inactive threshold"},
		{func(c *jetstream.StreamConfig) { c.Subjects = append(c.Subjects, "orders.*") }, "orders.*"},
		{func(c *jetstream.StreamConfig) { c.Subjects = []string{">"} }, "subject >"},
		{func(c *jetstream.StreamConfig) { c.SubjectTransform = &jetstream.SubjectTransformConfig{} }, "transforms"},
	}
	for _, c := range cases {
		cfg := topology.Streams(topology.Options{})[0]
		require.NoError(t, topology.CheckNotebook(cfg))
		c.spoil(&cfg)
		err := topology.CheckNotebook(cfg)
		require.ErrorIs(t, err, topology.ErrNotebook)
		require.ErrorContains(t, err, c.says)
	}

	srv := bustest.Serve(t, embedded.Options{Dir: t.TempDir()})
	_, js := bustest.Dial(t, srv)
	cfg := topology.Streams(topology.Options{})[0]
	cfg.MaxAge, cfg.AllowAtomicPublish = time.Hour, false
	_, err := js.CreateStream(t.Context(), cfg)
	require.NoError(t, err)
	err = topology.Declare(t.Context(), js, bustest.Options())
	require.ErrorIs(t, err, topology.ErrNotebook)
	require.ErrorContains(t, err, "max age")
	require.ErrorContains(t, err, "atomic")
	require.NotContains(t, err.Error(), "\n")
}

func TestAFamilyOfALaterVersionIsSound(t *testing.T) {
	t.Parallel()
	cfg := topology.Streams(topology.Options{})[0]
	cfg.Subjects = append(cfg.Subjects, "dream.*.*.*.*")
	require.NoError(t, topology.CheckNotebook(cfg))
}

func TestFewerReplicasThanThereAreAreRefused(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	err := topology.Declare(t.Context(), replicated{js}, bustest.Options())
	require.ErrorIs(t, err, topology.ErrReplicas)
	require.ErrorContains(t, err, "set NATS_REPLICAS=3")
}

// replicated is a bus whose NOTEBOOK has three replicas.
type replicated struct{ jetstream.JetStream }

func (r replicated) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	s, err := r.JetStream.Stream(ctx, name)
	if err == nil {
		s.CachedInfo().Config.Replicas = 3
	}
	return s, err
}
