package bustest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/jetstream/readers"
	"github.com/factstream/factstream/jetstream/topology"
)

// Passwords of the users of a Cluster, and of any configuration that stands in for
// an operator's own.
const (
	ServicePassword = "secret1"
	ReaderPassword  = "secret2"
)

// Servers is how many servers a Cluster has.
const Servers = 3

// ClusterLeaseTTL is the TTL of the leases on a Cluster: the least that several
// servers allow, since an election may take that long.
const ClusterLeaseTTL = 10 * time.Second

// patience is for what takes a second on an idle machine.
const patience = 2 * time.Minute

// Cluster is three NATS servers on loopback, each a process of its own, so that
// killing one is what a crash of a machine's NATS is: nothing is flushed, said or
// handed over. Its methods are not for concurrent use, other than Dial and URL.
type Cluster struct {
	nodes [Servers]*node
}

type node struct {
	config string // path
	at     string // host:port for clients
	child  *exec.Cmd
	alive  io.Closer // closing it ends the child
}

// Conf returns the configuration of one server: it must listen for clients on the
// address and keep its store in the directory. Name and cluster are added to it.
type Conf func(listen, store string) string

// childVariable names the configuration that a process of the test binary serves.
const childVariable = "BUSTEST_SERVE"

// maySpawn is set where a child of this process would serve. Without that it would run
// the tests, and these would start children of their own, without end.
var maySpawn bool

// ServeIfAsked turns this process into a server when StartCluster started it, and
// then does not return. A TestMain calls it first, or Leaks, which does, in each
// package that starts a cluster.
func ServeIfAsked() {
	maySpawn = true
	config := os.Getenv(childVariable)
	if config == "" {
		return
	}
	opts, err := server.ProcessConfigFile(config)
	if err == nil {
		opts.NoSigs, opts.NoLog = true, true
		var srv *server.Server
		if srv, err = server.NewServer(opts); err == nil {
			go srv.Start()
			if srv.ReadyForConnections(patience) {
				fmt.Println("ready")
				_, _ = io.Copy(io.Discard, os.Stdin) // ends with the test, however that ends
				os.Exit(0)
			}
			err = fmt.Errorf("not ready in %v", patience)
		}
	}
	fmt.Println(err)
	os.Exit(1)
}

// StartCluster starts three servers, waits until JetStream has a leader, and ends
// them with the test. conf may be nil: then they have the accounts of the project
// and nothing else of note. There is no topology yet; see Declare.
func StartCluster(t testing.TB, conf Conf) *Cluster {
	t.Helper()
	require.True(t, maySpawn, "TestMain must call bustest.ServeIfAsked")
	if conf == nil {
		conf = plainConf
	}
	c := &Cluster{}
	var at []string
	for _, port := range freePorts(t, 2*Servers) {
		at = append(at, net.JoinHostPort(embedded.DefaultHost, strconv.Itoa(port)))
	}
	clients, others := at[:Servers], at[Servers:]
	routes := make([]string, Servers)
	for i := range routes {
		routes[i] = fmt.Sprintf("%q", "nats-route://"+others[i])
	}
	for i := range c.nodes {
		dir := t.TempDir()
		n := &node{config: filepath.Join(dir, "nats.conf"), at: clients[i]}
		text := conf(n.at, filepath.Join(dir, "store")) + fmt.Sprintf("\nserver_name: %s\ncluster {name: bustest, listen: %q, routes: [%s]}\n",
			nodeName(i), others[i], strings.Join(routes, ", "))
		require.NoError(t, os.WriteFile(n.config, []byte(text), 0o600))
		c.nodes[i] = n
		c.Run(t, i)
		t.Cleanup(n.kill)
	}
	c.Dial(t, 0) // which waits for the leader
	return c
}

// Declare declares the topology with three replicas, and returns its options.
func (c *Cluster) Declare(t testing.TB) topology.Options {
	t.Helper()
	opts := Options()
	opts.Replicas, opts.LeaseTTL = Servers, ClusterLeaseTTL
	_, js := c.Dial(t, 0)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, topology.Declare(ctx, js, opts))
	return opts
}

// URLs names all servers, with the services' user, server first ahead of the others:
// what a service is given.
func (c *Cluster) URLs(first int) string {
	urls := make([]string, Servers)
	for i := range urls {
		urls[i] = c.ServiceURL((first + i) % Servers)
	}
	return strings.Join(urls, ",")
}

// ServiceURL is where one server is, with the services' user; ReaderURL with the
// read-only one.
func (c *Cluster) ServiceURL(i int) string { return c.url(i, readers.ServiceUser, ServicePassword) }
func (c *Cluster) ReaderURL(i int) string  { return c.url(i, readers.ReaderUser, ReaderPassword) }

func (c *Cluster) url(i int, user, password string) string {
	return (&url.URL{Scheme: "nats", User: url.UserPassword(user, password), Host: c.nodes[i].at}).String()
}

// Dial connects as the services' user until the test ends: to server first, and to
// the others when that is away.
func (c *Cluster) Dial(t testing.TB, first int, opts ...nats.Option) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	nc, js, err := connect.Dial(ctx, connect.Config{
		URL: c.URLs(first), Name: t.Name(), Logger: zerolog.Nop(), Options: append([]nats.Option{nats.DontRandomize()}, opts...),
	})
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc, js
}

// Run starts server i, for the first time or after Kill, on the store and the
// addresses that it had, and returns when it takes connections.
func (c *Cluster) Run(t testing.TB, i int) {
	t.Helper()
	n := c.nodes[i]
	require.Empty(t, os.Getenv(childVariable), "TestMain must call ServeIfAsked: this process was to be a server, not to start more of them")
	self, err := os.Executable()
	require.NoError(t, err)
	child := exec.Command(self)
	child.Env = append(os.Environ(), childVariable+"="+n.config)
	alive, err := child.StdinPipe()
	require.NoError(t, err)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	n.child, n.alive = child, alive
	said, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "server %d ended before it was ready", i)
	require.Equal(t, "ready\n", said)
}

// Kill ends server i with SIGKILL and returns when it is gone. A server that is
// already gone stays so.
func (c *Cluster) Kill(i int) { c.nodes[i].kill() }

func (n *node) kill() {
	if n.child == nil {
		return
	}
	_ = n.child.Process.Kill()
	_ = n.child.Wait() // says only that it was killed
	_ = n.alive.Close()
	n.child = nil
}

// Leader is the server that leads a stream, asked through js; false while there is
// none that is known.
func (c *Cluster) Leader(ctx context.Context, js jetstream.JetStream, stream string) (server int, known bool) {
	s, err := js.Stream(ctx, stream)
	if err != nil || s.CachedInfo().Cluster == nil {
		return 0, false
	}
	for i := range c.nodes {
		if s.CachedInfo().Cluster.Leader == nodeName(i) {
			return i, true
		}
	}
	return 0, false
}

// StepDown makes the leader of a stream give up its part to another server. The
// error is that of the request: in the middle of an election there is nobody to
// answer it.
func (c *Cluster) StepDown(ctx context.Context, nc *nats.Conn, stream string) error {
	answer, err := nc.RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil)
	if err != nil {
		return fmt.Errorf("step down as leader of %s: %w", stream, err)
	}
	var body struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &body); err != nil {
		return fmt.Errorf("step down as leader of %s: %w", stream, err)
	}
	if body.Error != nil {
		return fmt.Errorf("step down as leader of %s: %w", stream, body.Error)
	}
	return nil
}

// AwaitWhole waits until each of the streams has a leader and all its replicas are
// there and have everything. Only then may another server be killed: with two of
// three away, or behind, a cluster rightly stops.
func (c *Cluster) AwaitWhole(ctx context.Context, js jetstream.JetStream, streams ...string) error {
	for _, name := range streams {
		for !whole(ctx, js, name) {
			select {
			case <-ctx.Done():
				return fmt.Errorf("wait for all replicas of %s: %w", name, context.Cause(ctx))
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return nil
}

func whole(ctx context.Context, js jetstream.JetStream, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	s, err := js.Stream(ctx, name)
	if err != nil || s.CachedInfo().Cluster == nil || s.CachedInfo().Cluster.Leader == "" {
		return false
	}
	replicas := s.CachedInfo().Cluster.Replicas
	for _, r := range replicas {
		if r.Offline || !r.Current {
			return false
		}
	}
	return len(replicas) == Servers-1
}

func nodeName(i int) string { return "n" + strconv.Itoa(i) }

func plainConf(listen, store string) string {
	return fmt.Sprintf("listen: %q\njetstream {store_dir: %q, max_memory_store: 64MB, max_file_store: 4GB}\n%s", listen, store,
		readers.Accounts(readers.Values{JetStream: "enabled", ServicePassword: ServicePassword, ReaderPassword: ReaderPassword}))
}
