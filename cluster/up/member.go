package up

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/shared/config"
)

// Member is one server of the three, which has a process of its own.
type Member struct {
	Number   int // 1 to embedded.Servers
	Port     int // for clients
	Routes   [embedded.Servers]int
	MaxStore int64 // bytes of all three together; the same for each
}

// MemberCommand is the first argument of the program when it is to be a server.
const MemberCommand = "bus-member"

// Name is that of the server's process.
func (m Member) Name() string { return "bus-" + strconv.Itoa(m.Number) }

// Args are the arguments of the program that make it this server. FACTSTREAM_DATA says where the three keep their data.
func (m Member) Args() []string {
	routes := make([]string, len(m.Routes))
	for i, port := range m.Routes {
		routes[i] = strconv.Itoa(port)
	}
	return []string{MemberCommand, "--number", strconv.Itoa(m.Number), "--port", strconv.Itoa(m.Port),
		"--routes", strings.Join(routes, ","), "--max-store", strconv.FormatInt(m.MaxStore, 10)}
}

// ErrMember: the arguments do not say which server is meant.
var ErrMember = errors.New("not the arguments of a server")

// ParseMember reads what Args made, without its first.
func ParseMember(args []string) (m Member, err error) {
	set := flag.NewFlagSet(MemberCommand, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.IntVar(&m.Number, "number", 0, "")
	set.IntVar(&m.Port, "port", 0, "")
	set.Int64Var(&m.MaxStore, "max-store", 0, "")
	routes := set.String("routes", "", "")
	if err := set.Parse(args); err != nil {
		return m, fmt.Errorf("%w: %w", ErrMember, err)
	}
	ports := strings.Split(*routes, ",")
	if len(ports) != len(m.Routes) || set.NArg() > 0 || m.Number < 1 || m.Number > embedded.Servers || m.Port <= 0 || m.MaxStore <= 0 {
		return m, fmt.Errorf("%w: %q", ErrMember, args)
	}
	for i, port := range ports {
		if m.Routes[i], err = strconv.Atoi(port); err != nil {
			return m, fmt.Errorf("%w: %w", ErrMember, err)
		}
	}
	return m, nil
}

// ErrStoreBroken: the store took no writes, as on a full disk, and has room again. The server must be started anew.
var ErrStoreBroken = errors.New("the disk was full and has room again: the store is opened again, so that it takes writes")

// Serve is the server until ctx ends. home is the data directory of the three.
func (m Member) Serve(ctx context.Context, home string, log zerolog.Logger) error {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	server, err := embedded.Start(ctx, embedded.Options{
		Dir: embedded.ServerDir(home, m.Number), Port: m.Port, MaxStore: m.MaxStore, Logger: log,
		Cluster: &embedded.Cluster{Number: m.Number, Home: home, Routes: m.Routes},
	})
	if err != nil {
		return explain(err, config.Config{NATS: config.NATS{Port: m.Port}})
	}
	defer server.Shutdown()
	ticks := time.NewTicker(look)
	defer ticks.Stop()
	return untilMendable(ctx, ticks.C, store{embedded.ServerDir(home, m.Number), embedded.DiskFree, server.Broken}) // each server may be on a disk of its own
}

// untilMendable returns nil when ctx ends, and ErrStoreBroken when the store is mendable at a tick.
func untilMendable(ctx context.Context, ticks <-chan time.Time, s store) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks:
		}
		if s.mendable() {
			return ErrStoreBroken
		}
	}
}
