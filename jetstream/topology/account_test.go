package topology_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/topology"
)

// Each case is a server that somebody else runs and that cannot hold a notebook as it is configured: limits of the server and of the account,
// permissions of the user.
func TestWhatAServerHasNoRoomForIsSaidInOneLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server, account, permissions string
		opts                         topology.Options
		is                           error
		says                         string
	}{
		"replicas on one server":        {opts: topology.Options{Replicas: 3}, is: topology.ErrReplicas, says: "set NATS_REPLICAS=1"},
		"few streams":                   {account: "{max_streams: 4}", is: topology.ErrAccount, says: "max_streams is 4, must be 9"},
		"few consumers":                 {account: "{max_consumers: 5}", is: topology.ErrAccount, says: "max_consumers is 5, must be 32"},
		"few unacknowledged":            {account: "{max_ack_pending: 100}", is: topology.ErrAccount, says: "max_ack_pending is 100, must be 10000"},
		"few unacknowledged, server's":  {server: "limits: {max_ack_pending: 100}", is: topology.ErrAccount, says: "max_ack_pending"},
		"a small store":                 {account: "{max_store: 100MB}", is: topology.ErrAccount, says: "max_store is 104857600"},
		"a small store of the server":   {server: "max_file_store: 100MB", is: topology.ErrAccount, says: "max_file_store"},
		"streams must have an end":      {account: "{max_bytes_required: true}", is: topology.ErrAccount, says: "max_bytes_required"},
		"streams of some size":          {account: "{disk_max_stream_bytes: 1GB}", is: topology.ErrAccount, says: "disk_max_stream_bytes"},
		"buckets may not be written":    {permissions: `publish: {deny: ["$KV.settings.>"]}`, is: topology.ErrRights, says: `"$KV.settings.probe"`},
		"events may not be published":   {permissions: `publish: {deny: ["facts.>"]}`, is: topology.ErrRights, says: `"facts.probe._.0.0"`},
		"artifacts may not be kept":     {permissions: `publish: {deny: ["$O.>"]}`, is: topology.ErrRights, says: `"$O.artifacts.`},
		"streams may not be asked for":  {permissions: `publish: {deny: ["$JS.API.STREAM.>"]}`, is: topology.ErrRights, says: `"$JS.API.STREAM.INFO.NOTEBOOK"`},
		"consumers may not be made":     {permissions: `publish: {deny: ["$JS.API.CONSUMER.>"]}`, is: topology.ErrRights, says: `"$JS.API.CONSUMER.`},
		"nothing may be acknowledged":   {permissions: `publish: {deny: ["$JS.ACK.>"]}`, is: topology.ErrRights, says: `"$JS.ACK.NOTEBOOK.`},
		"a server that is large enough": {account: "{max_streams: 9, max_consumers: 32, max_ack_pending: 10000, max_store: 1GB, max_mem: 1MB}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.account == "" {
				c.account = "enabled"
			}
			js := operators(t, fmt.Sprintf("jetstream {store_dir: %q, %s}\naccounts {A {jetstream: %s\nusers: [{user: u, password: p, permissions: {%s}}]}}\n",
				t.TempDir(), c.server, c.account, c.permissions))
			opts := c.opts
			opts.TrailMaxBytes = 200 << 20
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			err := topology.Declare(ctx, js, opts)
			if c.is == nil {
				require.NoError(t, err)
				s, err := js.Stream(ctx, topology.Notebook)
				require.NoError(t, err)
				require.Zero(t, s.CachedInfo().State.LastSeq, "checking the rights leaves nothing behind")
				return
			}
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "\n")
			require.NoError(t, ctx.Err(), "a refusal is not waited for")
		})
	}
}

func TestSubjectsThatAnotherStreamTakesAreNamed(t *testing.T) {
	t.Parallel()
	js := operators(t, fmt.Sprintf("jetstream {store_dir: %q}\naccounts {A {jetstream: enabled\nusers: [{user: u, password: p}]}}\n", t.TempDir()))
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"run.>"}})
	require.NoError(t, err)
	err = topology.Declare(t.Context(), js, bustest.Options())
	require.ErrorIs(t, err, topology.ErrTaken)
	require.ErrorContains(t, err, "account of its own")
}

// operators is a connection to a server with a configuration of its own.
func operators(t *testing.T, conf string) jetstream.JetStream {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	url := strings.Replace(bustest.Configured(t, conf), "://", "://u:p@", 1)
	nc, js, err := connect.Dial(ctx, connect.Config{URL: url, Logger: zerolog.Nop()})
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return js
}

func TestLimitsOfTiersCountOnceForAllReplicas(t *testing.T) {
	t.Parallel()
	none := jetstream.AccountLimits{MaxMemory: -1, MaxStore: -1, MaxStreams: -1, MaxConsumers: -1, MaxAckPending: -1}
	enough := none
	enough.MaxStore = 300 << 20
	info := func(tiers map[string]jetstream.AccountLimits, limits jetstream.AccountLimits) jetstream.AccountInfo {
		out := jetstream.AccountInfo{Tiers: map[string]jetstream.Tier{}}
		out.Limits = limits
		for name, limits := range tiers {
			out.Tiers[name] = jetstream.Tier{Limits: limits}
		}
		return out
	}
	three := topology.Options{Replicas: 3}
	require.NoError(t, topology.CheckAccount(info(nil, none), three))
	require.NoError(t, topology.CheckAccount(info(nil, enough), topology.Options{}))
	require.ErrorContains(t, topology.CheckAccount(info(nil, enough), three), "max_store")
	require.NoError(t, topology.CheckAccount(info(map[string]jetstream.AccountLimits{"R3": enough}, jetstream.AccountLimits{}), three))
	err := topology.CheckAccount(info(map[string]jetstream.AccountLimits{"R1": none}, jetstream.AccountLimits{}), three)
	require.ErrorIs(t, err, topology.ErrAccount)
	require.ErrorContains(t, err, "no tier R3")
	off := none
	off.MaxMemory = 0
	require.ErrorContains(t, topology.CheckAccount(info(nil, off), topology.Options{}), "max_mem")
}
