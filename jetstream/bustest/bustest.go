// Package bustest starts a bus for tests: a real server in this process, with the
// whole topology and short times.
package bustest

import (
	"context"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/jetstream/topology"
)

// Times of the bus of a test.
const (
	AckWait  = time.Second
	LeaseTTL = time.Second
)

// Start starts a server in a temporary directory on a free port, declares the
// topology, and returns a connection as the services' user. All ends with the
// test. Writes are not synced: what a test kills is a process, not the machine.
func Start(t testing.TB) (*embedded.Server, *nats.Conn, jetstream.JetStream) {
	t.Helper()
	srv := Serve(t, embedded.Options{Dir: t.TempDir()})
	nc, js := Dial(t, srv)
	require.NoError(t, topology.Declare(t.Context(), js, Options()))
	return srv, nc, js
}

// Options are the times of the topology that Start declares.
func Options() topology.Options {
	return topology.Options{AckWait: AckWait, LeaseTTL: LeaseTTL, TrailMaxBytes: 64 << 20}
}

// Serve starts a server, without a topology, until the test ends.
func Serve(t testing.TB, opts embedded.Options) *embedded.Server {
	t.Helper()
	opts.NoSync = true
	if opts.MaxStore == 0 {
		opts.MaxStore = 4 << 30
	}
	opts.Logger = zerolog.Nop()
	srv, err := embedded.Start(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(srv.Shutdown)
	return srv
}

// Dial opens another connection as the services' user until the test ends.
func Dial(t testing.TB, srv *embedded.Server, opts ...nats.Option) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	nc, js, err := connect.Dial(ctx, connect.Config{
		URL: srv.URL(), Name: t.Name(), CredentialsFile: srv.CredentialsFile(), Logger: zerolog.Nop(), Options: opts,
	})
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc, js
}

// Restart stops srv and starts it again on the same directory and port, running
// between in the time when there is no server; between may be nil.
func Restart(t testing.TB, srv *embedded.Server, between func()) *embedded.Server {
	t.Helper()
	u, err := url.Parse(srv.URL())
	require.NoError(t, err)
	port, err := strconv.Atoi(u.Port())
	require.NoError(t, err)
	srv.Shutdown()
	if between != nil {
		between()
	}
	return Serve(t, embedded.Options{Dir: srv.Dir(), Port: port})
}

// Bucket opens a bucket of the topology.
func Bucket(t testing.TB, js jetstream.JetStream, name string) jetstream.KeyValue {
	t.Helper()
	kv, err := js.KeyValue(t.Context(), name)
	require.NoError(t, err)
	return kv
}
