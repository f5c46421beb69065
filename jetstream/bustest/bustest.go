// Package bustest starts a bus for tests: a real server in this process, with the
// whole topology and short times.
package bustest

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/jetstream/topology"
)

// Times of the bus of a test. What is only slow must never pass for dead: a machine
// that is busy with other tests may hold a process up for seconds.
const (
	AckWait  = 10 * time.Second
	LeaseTTL = 10 * time.Second
	// Short is both for tests in which somebody is dead and others wait until it shows.
	Short = 3 * time.Second
)

// Mortal is the option of Start for such a test.
func Mortal(o *topology.Options) { o.AckWait, o.LeaseTTL = Short, Short }

// Patience is how long a test waits for what must come; it comes far earlier.
const Patience = 60 * time.Second

// Start starts a server in a temporary directory on a free port, declares the
// topology, and returns a connection as the services' user. All ends with the
// test. Writes are not synced: what a test kills is a process, not the machine.
func Start(t testing.TB, change ...func(*topology.Options)) (*embedded.Server, *nats.Conn, jetstream.JetStream) {
	t.Helper()
	srv := Serve(t, embedded.Options{Dir: t.TempDir()})
	nc, js := Dial(t, srv)
	require.NoError(t, topology.Declare(t.Context(), js, Options(change...)))
	return srv, nc, js
}

// Options is the topology that Start declares.
func Options(change ...func(*topology.Options)) topology.Options {
	o := topology.Options{AckWait: AckWait, LeaseTTL: LeaseTTL, TrailMaxBytes: 64 << 20}
	for _, c := range change {
		c(&o)
	}
	return o
}

// Serve starts a server, without a topology, until the test ends.
func Serve(t testing.TB, opts embedded.Options) *embedded.Server {
	t.Helper()
	opts.NoSync = true
	if opts.MaxStore == 0 {
		opts.MaxStore = 4 << 30
	}
	opts.Logger = zerolog.Nop()
	anyPort := opts.Port == 0
	for {
		if anyPort {
			opts.Port = freePorts(t, 1)[0]
		}
		srv, err := embedded.Start(t.Context(), opts)
		if anyPort && errors.Is(err, embedded.ErrPortInUse) {
			continue // another test was faster
		}
		require.NoError(t, err)
		t.Cleanup(srv.Shutdown)
		return srv
	}
}

// freePorts returns ports of loopback that nobody listened on a moment ago. They stay
// the servers' while a test has these away: no connection is given one.
func freePorts(t testing.TB, n int) []int {
	t.Helper()
	ports, err := embedded.AnyPorts(embedded.DefaultHost, n)
	require.NoError(t, err)
	return ports
}

// Configured starts a server with a configuration of its own, as of an operator
// who runs NATS already, and returns its URL. It listens on a free port of loopback
// unless conf says otherwise, and ends with the test.
func Configured(t testing.TB, conf string) string {
	t.Helper()
	opts := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT}
	require.NoError(t, opts.ProcessConfigString(conf))
	opts.NoSigs, opts.NoLog = true, true
	srv, err := server.NewServer(opts)
	require.NoError(t, err)
	go srv.Start()
	t.Cleanup(func() {
		srv.Shutdown()
		srv.WaitForShutdown()
	})
	require.True(t, srv.ReadyForConnections(Patience))
	return srv.ClientURL()
}

// Dial opens another connection as the services' user until the test ends.
func Dial(t testing.TB, srv *embedded.Server, opts ...nats.Option) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
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
