// Package place finds the bus of a notebook for a command that looks at it from beside: that of NATS_URL, that of the factstream which runs on the
// data directory, or, when none runs, one that it starts on the directory for as long as the command takes.
package place

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/backup"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/settings"
)

var (
	// ErrRunning: a factstream runs on the data directory, and the command needs it for itself.
	ErrRunning = errors.New("the data directory is in use by a running factstream")
	// ErrNothing: there is no notebook.
	ErrNothing = errors.New("there is no notebook")
)

// patience bounds the wait for a server.
const patience = time.Minute

// askFor bounds one request to a server that may not answer yet, and askPause lies before the next.
const askFor, askPause = time.Second, 50 * time.Millisecond

// Place is an open bus.
type Place struct {
	JS   jetstream.JetStream
	Name string // for people: an address without password, or the data directory

	cfg    config.Config
	nc     *nats.Conn
	server server // that was started for the command; nil: none was
}

// Use opens the place of an existing notebook, whether a factstream runs on it or not. Errors: ErrNothing, or why the bus cannot be reached.
func Use(ctx context.Context, cfg config.Config, log zerolog.Logger) (*Place, error) {
	if cfg.NATS.URL.Set() {
		return dial(ctx, cfg, cfg.NATS.URL.Reveal(), nil, log)
	}
	if !embedded.Kept(cfg.Data) {
		return nil, fmt.Errorf("%w in %s; FACTSTREAM_DATA or --data names another directory", ErrNothing, cfg.Data)
	}
	p, err := start(ctx, cfg, log)
	if errors.Is(err, embedded.ErrLocked) {
		return running(ctx, cfg, log)
	}
	return p, err
}

// Take opens a place for a command that must be alone there; it may be empty or new. A server of NATS_URL cannot be taken: who uses it is for the command
// to see. Errors: ErrRunning, or why the bus cannot be reached.
func Take(ctx context.Context, cfg config.Config, log zerolog.Logger) (*Place, error) {
	if cfg.NATS.URL.Set() {
		return dial(ctx, cfg, cfg.NATS.URL.Reveal(), nil, log)
	}
	p, err := start(ctx, cfg, log)
	if errors.Is(err, embedded.ErrLocked) {
		return nil, fmt.Errorf("%w (%s): stop it first, or name another directory with FACTSTREAM_DATA or --data", ErrRunning, holder(cfg.Data, err))
	}
	return p, err
}

// holder names the directory that is held and, where it is known, the process to stop.
func holder(dir string, err error) string {
	var locked *embedded.LockedError
	if errors.As(err, &locked) && locked.PID != 0 {
		return fmt.Sprintf("%s, process %d", dir, locked.PID)
	}
	return dir
}

// Open opens what is kept on the bus beside the streams. The topology must be declared.
func (p *Place) Open(ctx context.Context) (backup.Place, error) {
	artifacts, err := artifact.Open(ctx, p.JS)
	if err != nil {
		return backup.Place{}, err
	}
	saved, err := settings.Open(ctx, p.JS, p.cfg)
	if err != nil {
		return backup.Place{}, err
	}
	return backup.Place{JS: p.JS, Artifacts: artifacts, Settings: saved}, nil
}

// Close leaves the bus, and stops it if it was started for this.
func (p *Place) Close() {
	p.nc.Close()
	if p.server != nil {
		p.server.Shutdown()
	}
}

// server is one server, or three together.
type server interface {
	URL() string
	ClientOptions() []nats.Option
	Shutdown()
}

func start(ctx context.Context, cfg config.Config, log zerolog.Logger) (*Place, error) {
	server, err := serve(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	p, err := dial(ctx, cfg, server.URL(), server.ClientOptions(), log)
	if err != nil {
		server.Shutdown()
		return nil, err
	}
	p.server, p.Name = server, cfg.Data
	if err := awaitLeaders(ctx, p.JS); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// awaitLeaders waits until every stream that there is has a leader: until then requests to it are not answered, and what a command
// asks it asks once.
func awaitLeaders(ctx context.Context, js jetstream.JetStream) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	names := []string{topology.Notebook, topology.Trail, topology.Dead, "OBJ_" + topology.StoreArtifacts}
	for _, bucket := range topology.Buckets(topology.Options{}) {
		names = append(names, "KV_"+bucket.Bucket)
	}
	for _, name := range names {
		for {
			asking, cancel := context.WithTimeout(ctx, askFor)
			_, err := js.Stream(asking, name)
			cancel()
			if err == nil || errors.Is(err, jetstream.ErrStreamNotFound) {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("wait for the leader of %s: %w", name, err)
			case <-time.After(askPause): // some answer at once that they have none
			}
		}
	}
	return nil
}

// serve starts what the data directory is of.
func serve(ctx context.Context, cfg config.Config, log zerolog.Logger) (server, error) {
	if embedded.OfCluster(cfg.Data) {
		together, err := embedded.StartTogether(ctx, cfg.Data, log)
		if err != nil {
			return nil, err
		}
		return together, nil
	}
	alone, err := embedded.Start(ctx, embedded.Options{Dir: cfg.Data, Logger: log})
	if err != nil {
		return nil, err
	}
	return alone, nil
}

// Replicas is how many copies the place is made for: those of the configuration, or one on each of its servers.
func (p *Place) Replicas() int {
	if _, together := p.server.(*embedded.Together); together {
		return embedded.Servers
	}
	return p.cfg.NATS.Replicas
}

// running reaches the server of the factstream that runs on the data directory.
func running(ctx context.Context, cfg config.Config, log zerolog.Logger) (*Place, error) {
	address, err := os.ReadFile(embedded.AddressFile(cfg.Data))
	if err != nil {
		return nil, fmt.Errorf("a factstream runs on %s, but not with a bus of its own, or is only just starting; set NATS_URL as it has it: %w", cfg.Data, err)
	}
	user, password, err := connect.ReadCredentials(embedded.CredentialsFile(cfg.Data))
	if err != nil {
		return nil, err
	}
	p, err := dial(ctx, cfg, strings.TrimSpace(string(address)), []nats.Option{nats.UserInfo(user, password)}, log)
	if err != nil {
		return nil, err
	}
	p.Name = cfg.Data
	return p, nil
}

func dial(ctx context.Context, cfg config.Config, address string, opts []nats.Option, log zerolog.Logger) (*Place, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	nc, js, err := connect.Dial(ctx, connect.Config{URL: address, Name: cfg.Service, Logger: log, Options: opts})
	if err != nil {
		return nil, err
	}
	return &Place{JS: js, Name: shown(address), cfg: cfg, nc: nc}, nil
}

// shown is an address without user and password.
func shown(address string) string {
	parts := strings.Split(address, ",")
	for i, part := range parts {
		if u, err := url.Parse(strings.TrimSpace(part)); err == nil && u.Host != "" {
			parts[i] = u.Scheme + "://" + u.Host
		} else {
			parts[i] = "(an address)"
		}
	}
	return strings.Join(parts, ",")
}
