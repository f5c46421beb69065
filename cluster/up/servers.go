package up

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"github.com/factstream/factstream/cluster/supervisor"
	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/shared/lifeline"
)

// copies is how many processes there are of each service when there are three servers: one may die, and another is at
// work already.
const copies = 2

// ErrReplicas: another number of copies was asked for than there are servers.
var ErrReplicas = fmt.Errorf("NATS_REPLICAS must be %d here, the number of servers; unset it", embedded.Servers)

// RunServers is Run with three servers of the bus as processes below this one, each with all streams and its own store,
// and two processes of each service. The second gateway listens on the port after the first's and has a notebook.db of
// its own. opts.Config must ask for three replicas, and for no bus elsewhere.
func RunServers(ctx context.Context, opts Options) error {
	if opts.Config.NATS.Replicas != embedded.Servers {
		return ErrReplicas
	}
	if opts.Config.NATS.URL.Set() {
		return fmt.Errorf("%w, and `factstream up-cluster` starts servers of its own; unset it, or use `factstream up`", ErrBusElsewhere)
	}
	s, err := begin(opts)
	if err != nil {
		return err
	}
	defer s.out.close()
	gateways, err := freeAddresses(s.cfg.HTTP, copies)
	if err != nil {
		return err
	}
	bus, err := s.openServers(ctx, gateways)
	if err != nil {
		return err
	}
	defer bus.close()
	groups := make([][]process, len(Services))
	for i, names := range Services {
		for _, name := range names {
			for n := range copies {
				cfg := s.cfg
				if name == gateway {
					cfg.HTTP = gateways[n]
					if cfg.Data, err = GatewayDir(cfg.Data, n); err != nil {
						return err
					}
				}
				groups[i] = append(groups[i], process{Numbered(name, n), name, environment(cfg, bus, opts.Environ)})
			}
		}
	}
	s.cfg.HTTP = gateways[0]
	return s.serve(ctx, bus, groups, gateways[1:]...)
}

// gateway is the service whose processes share no directory: each has its own notebook.db. The researchers share their
// spool on purpose: what one had bought when it died, the other finds there.
const gateway = "gateway"

// GatewayDir makes the directory of the n-th gateway, from 0; the first has the data directory itself.
func GatewayDir(data string, n int) (string, error) {
	if n == 0 {
		return data, nil
	}
	dir := filepath.Join(data, Numbered(gateway, n))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the directory of a gateway: %w", err)
	}
	return dir, nil
}

// Numbered is the name of the n-th process of a program, from 0: judge, judge-2.
func Numbered(program string, n int) string {
	if n == 0 {
		return program
	}
	return program + "-" + strconv.Itoa(n+1)
}

// preferredRoute is the port that is tried first for servers among themselves, as NATS has it by convention.
const preferredRoute = 6222

// servers are those that run below this process.
type servers struct {
	stop      func() // and wait
	unwatched func() // ends the watch over them and waits; nil: there is none yet
	file      string // with their addresses
}

// watch tells in the log who of the members does not answer, until close.
func (s *servers) watch(members []Member, log zerolog.Logger) {
	ctx, cancel := context.WithCancel(context.Background()) // it goes on while the services save what they have
	done := make(chan struct{})
	s.unwatched = func() { cancel(); <-done }
	go func() {
		defer close(done)
		watchServers(ctx, members, look, log)
	}()
}

func (s *servers) close() {
	if s.unwatched != nil {
		s.unwatched()
	}
	s.stop()
	_ = os.Remove(s.file) // left behind it would mislead who does not look at the lock
}

// openServers starts the three servers, on ports other than those of the gateways, and declares everything on them. Its errors
// are one line for a person.
func (s *start) openServers(ctx context.Context, gateways []string) (_ *bus, err error) {
	b := &bus{}
	if b.release, err = embedded.Lock(s.cfg.Data); err != nil {
		return nil, explain(err, s.cfg)
	}
	defer func() {
		if err != nil {
			b.close()
			err = explain(err, s.cfg)
		}
	}()
	maxStore, err := embedded.PrepareCluster(s.cfg.Data)
	if err != nil {
		return nil, err
	}
	members, err := s.members(maxStore, gateways)
	if err != nil {
		return nil, err
	}
	var addresses []string
	for _, m := range members {
		addresses = append(addresses, "nats://"+net.JoinHostPort(embedded.DefaultHost, strconv.Itoa(m.Port)))
	}
	if err := b.reach(embedded.CredentialsFile(s.cfg.Data), addresses...); err != nil {
		return nil, err
	}
	if b.servers, err = s.startServers(members); err != nil {
		return nil, err
	}
	if err := os.WriteFile(b.servers.file, []byte(b.at+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("note where the servers are: %w", err)
	}
	if err := b.declare(ctx, s.cfg, s.log); err != nil {
		return nil, err
	}
	b.servers.watch(members, s.log)
	return b, b.pauseRunning(ctx, s.cfg, s.log)
}

// members gives each server its ports, none of them one that a gateway is to have.
func (s *start) members(maxStore int64, gateways []string) (members []Member, err error) {
	var held holds // each port that is found, until all are
	defer held.release()
	for _, gateway := range gateways {
		if err := held.take(gateway); err != nil {
			return nil, portProblem(gateway, "FACTSTREAM_HTTP", err)
		}
	}
	ports := make([]int, embedded.Servers)
	if first := s.cfg.NATS.Port; first != 0 {
		for i := range ports {
			ports[i] = first + i
		}
		if clash := slices.IndexFunc(gateways, func(gateway string) bool { return slices.Contains(ports, portOf(gateway)) }); clash >= 0 {
			return nil, fmt.Errorf("%w: a gateway is to listen on %s, and the servers on %d to %d; set NATS_PORT or FACTSTREAM_HTTP to another",
				ErrPortInUse, gateways[clash], ports[0], ports[len(ports)-1])
		}
	} else if ports, err = embedded.FreePorts(embedded.DefaultHost, preferredPort, len(ports)); err != nil {
		return nil, err
	}
	for _, port := range ports {
		address := net.JoinHostPort(embedded.DefaultHost, strconv.Itoa(port))
		if err := held.take(address); err != nil {
			return nil, portProblem(address, "NATS_PORT", err)
		}
	}
	routes, err := embedded.FreePorts(embedded.DefaultHost, preferredRoute, embedded.Servers)
	if err != nil {
		return nil, err
	}
	for i, port := range ports {
		members = append(members, Member{Number: i + 1, Port: port, Routes: [embedded.Servers]int(routes), MaxStore: maxStore})
	}
	return members, nil
}

// healthyServer is how long a server must run for its next start to come at once: far longer than one takes that cannot run.
const healthyServer = 5 * time.Second

// startServers keeps the servers running until what it returns is closed: longer than the services, which need them to
// finish.
func (s *start) startServers(members []Member) (*servers, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("where is this program? %w", err)
	}
	var group []supervisor.Spec
	for _, m := range members {
		writer, err := s.out.service(m.Name())
		if err != nil {
			return nil, err
		}
		env := append(inherited(s.Environ), "FACTSTREAM_DATA="+s.cfg.Data, "LOG_LEVEL="+s.cfg.LogLevel, lifeline.Variable+"="+lifeline.Stdin)
		group = append(group, supervisor.Spec{Name: m.Name(), Path: self, Args: m.Args(), Env: env, Output: writer})
	}
	times := s.times()
	times.Healthy = healthyServer
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		supervisor.Run(ctx, [][]supervisor.Spec{group}, times)
	}()
	return &servers{stop: func() { cancel(); <-done }, file: embedded.AddressFile(s.cfg.Data)}, nil
}
