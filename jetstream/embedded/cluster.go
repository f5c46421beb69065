package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
)

// Servers is how many servers keep a notebook together: the least of which one may
// be away.
const Servers = 3

// Cluster says which of the servers this one is and where the others are.
type Cluster struct {
	// Number is 1 to Servers. The server's name is made of it, by which the others
	// know it again after a restart.
	Number int
	// Home is the data directory that the servers share. It has the credentials,
	// which PrepareCluster made.
	Home string
	// Routes are the ports of this host on which the servers, 1 to Servers, listen
	// for each other.
	Routes [Servers]int
}

// clusterName is what the servers call themselves together.
const clusterName = "factstream"

// ServerName is the name of a server in the cluster, as its log and JetStream say it.
func ServerName(number int) string { return clusterName + "-" + strconv.Itoa(number) }

// ServerDir is the directory of one of the servers, 1 to Servers, below the data
// directory that they share.
func ServerDir(home string, number int) string {
	return filepath.Join(home, "bus"+strconv.Itoa(number))
}

// Kept says whether there is a store below dir, of one server or of several.
func Kept(dir string) bool { return exists(storeOf(dir)) || OfCluster(dir) }

// OfCluster says whether the stores of several servers are below dir.
func OfCluster(dir string) bool { return exists(ServerDir(dir, 1)) }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Together are all servers of a data directory, in one process.
type Together struct {
	servers []*Server
	lock    *lock
}

// StartTogether starts all servers of home in this process, on free ports, for a
// command that needs what they keep while nobody runs them. Errors are those of
// Start and PrepareCluster; *LockedError when somebody does.
func StartTogether(ctx context.Context, home string, log zerolog.Logger) (_ *Together, err error) {
	t := &Together{servers: make([]*Server, Servers)}
	if t.lock, err = acquire(home); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			t.Shutdown()
		}
	}()
	limit, err := PrepareCluster(home)
	if err != nil {
		return nil, err
	}
	routes, err := AnyPorts(DefaultHost, Servers)
	if err != nil {
		return nil, err
	}
	faults := make([]error, Servers)
	var starting sync.WaitGroup
	for i := range t.servers {
		starting.Go(func() {
			t.servers[i], faults[i] = Start(ctx, Options{
				Dir: ServerDir(home, i+1), MaxStore: limit, Logger: log,
				Cluster: &Cluster{Number: i + 1, Home: home, Routes: [Servers]int(routes)},
			})
		})
	}
	starting.Wait()
	return t, errors.Join(faults...)
}

// URL is where clients connect to, all servers, separated by commas and without
// credentials, which ClientOptions are.
func (t *Together) URL() string {
	urls := make([]string, len(t.servers))
	for i, server := range t.servers {
		urls[i] = server.URL()
	}
	return strings.Join(urls, ",")
}

// ClientOptions are the credentials of the services.
func (t *Together) ClientOptions() []nats.Option { return t.servers[0].ClientOptions() }

// Shutdown stops all servers.
func (t *Together) Shutdown() {
	var stopping sync.WaitGroup
	for _, server := range t.servers {
		if server != nil {
			stopping.Go(server.Shutdown)
		}
	}
	stopping.Wait()
	t.lock.release()
}

// PrepareCluster makes what the servers of a cluster find below home, the data
// directory that they share: their directories and the credentials. It returns the
// limit, in bytes, of all that they keep together, every copy of a message counted:
// three quarters of what is free, and what they hold already. The caller has locked
// home, and no server runs.
//
// Errors wrap ErrOfOne if home has the store of a server that is alone, beside which
// several would begin an empty notebook, or ErrNewerFormat.
func PrepareCluster(home string) (maxStore int64, err error) {
	if err := absent(storeOf(home), fmt.Errorf("%w: %s", ErrOfOne, home)); err != nil {
		return 0, err
	}
	if err := makeCredentials(home); err != nil {
		return 0, err
	}
	var used int64
	for n := range Servers {
		dir := ServerDir(home, n+1)
		if err := os.MkdirAll(storeOf(dir), 0o700); err != nil {
			return 0, fmt.Errorf("make the store: %w", err)
		}
		if err := checkFormat(dir); err != nil {
			return 0, err
		}
		size, err := measure(storeOf(dir))
		if err != nil {
			return 0, err
		}
		used += size
	}
	free, err := DiskFree(home)
	if err != nil {
		return 0, err
	}
	return storeLimit(used, free, Servers), nil
}

func absent(path string, otherwise error) error {
	switch _, err := os.Stat(path); {
	case err == nil:
		return otherwise
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("look at the data directory: %w", err)
	}
	return nil
}

func storeOf(dir string) string { return filepath.Join(dir, "store") }

// apply makes a server one of the cluster. Routes ask for a password, since whoever
// joins has every account.
func (c *Cluster) apply(opts *server.Options, host, password string) error {
	if c.Number < 1 || c.Number > Servers {
		return fmt.Errorf("there is no server %d: they are 1 to %d", c.Number, Servers)
	}
	opts.ServerName = ServerName(c.Number)
	opts.Cluster = server.ClusterOpts{Name: clusterName, Host: host, Port: c.Routes[c.Number-1], Username: routeUser, Password: password}
	for _, port := range c.Routes {
		opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats-route", User: url.UserPassword(routeUser, password), Host: net.JoinHostPort(host, strconv.Itoa(port))})
	}
	return nil
}
