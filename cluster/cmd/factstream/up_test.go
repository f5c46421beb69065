package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheCommandLineOfThreeServers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args     []string
		code     int
		out, err string
	}{
		{[]string{"help"}, 0, "factstream up-cluster", ""},
		{[]string{"up-cluster", "--help"}, 0, "Three servers\n", ""},
		{[]string{"up-cluster", "--help"}, 0, "--nats-port", ""},
		{[]string{"up-cluster", "--verbose", "--help"}, 0, "--verbose", ""},
		{[]string{"up-cluster", "now"}, 2, "", "none are taken"},
		{[]string{"up-cluster", "--nats-replicas=5"}, 2, "", "NATS_REPLICAS must be 3"},
		{[]string{"up-cluster", "--lease-ttl=2s"}, 2, "", "at least 10s"},
		{[]string{"up-cluster", "--nats-url=nats://127.0.0.1:1"}, 1, "", "`factstream up`"},
		{[]string{"bus-member", "--number=9"}, 2, "", "not the arguments of a server"},
	} {
		var out, err bytes.Buffer
		if c.code == exitFailed { // it looks at no directory, but who knows
			c.args = append(c.args, "--data", filepath.Join(t.TempDir(), "data"))
		}
		require.Equal(t, c.code, run(c.args, &out, &err), "%v: %s", c.args, &err)
		require.Contains(t, out.String(), c.out)
		require.Contains(t, err.String(), c.err)
		if c.out == "" {
			require.Empty(t, out.String())
		}
		for _, useless := range []string{"--nats-url", "--nats-replicas"} {
			require.NotContains(t, out.String(), useless)
		}
	}
}
