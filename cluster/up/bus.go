package up

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/factstream/factstream/cluster/place"
	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/config"
)

// bus is what the services use: a NATS server in this process, three below it, or one elsewhere.
type bus struct {
	url      config.Secret // with user and password
	at       string        // where servers of this data directory listen, without user and password
	release  func()        // of the data directory, when no server in this process holds it
	password string
	servers  *servers // nil: they are not processes below this one

	mu     sync.Mutex
	server *embedded.Server // nil: it is elsewhere, or just being opened again
	mended func()           // ends the watch over the store and waits for its end
}

// preferredPort is taken for the embedded server if it is free, since clients look there first.
const preferredPort = 4222

// patience bounds the wait for a server elsewhere, and for what is declared on it; longPatience that for three servers that
// are started, find each other and elect their leaders, for which they pause some seconds each time.
const (
	patience     = 20 * time.Second
	longPatience = time.Minute
)

// openBus starts or finds the server and declares streams, buckets and consumers on it. Its errors are one line for a
// person: a locked or newer data directory, a port in use, a server too old or out of reach.
func openBus(ctx context.Context, cfg config.Config, log zerolog.Logger) (_ *bus, err error) {
	b := &bus{url: cfg.NATS.URL}
	if cfg.NATS.URL.Set() {
		b.release, err = embedded.Lock(cfg.Data)
	} else {
		err = b.embed(ctx, cfg, log)
	}
	if err != nil {
		return nil, explain(err, cfg)
	}
	if err := b.declare(ctx, cfg, log); err != nil {
		b.close()
		return nil, explain(err, cfg)
	}
	if err := b.pauseRunning(ctx, cfg, log); err != nil {
		b.close()
		return nil, explain(err, cfg)
	}
	if b.at != "" {
		b.watch(ctx, cfg, log)
	}
	return b, nil
}

// close is called when every service is gone.
func (b *bus) close() {
	if b.mended != nil {
		b.mended()
	}
	if b.server != nil {
		b.server.Shutdown()
	}
	if b.servers != nil {
		b.servers.close()
	}
	if b.release != nil {
		b.release()
	}
}

// address is where the server is, for people: without user and password.
func (b *bus) address() string {
	if b.at != "" {
		return b.at
	}
	if u, err := url.Parse(b.url.Reveal()); err == nil && u.Host != "" {
		return u.Scheme + "://" + u.Host
	}
	return "the servers of NATS_URL"
}

func (b *bus) patience() time.Duration {
	if b.servers != nil {
		return longPatience
	}
	return patience
}

func (b *bus) secrets() []string { return []string{b.url.Reveal(), b.password} }

func (b *bus) embed(ctx context.Context, cfg config.Config, log zerolog.Logger) (err error) {
	opts := embedded.Options{Dir: cfg.Data, Port: cfg.NATS.Port, Logger: log}
	if opts.Port == 0 {
		opts.Port = preferredPort
	}
	b.server, err = embedded.Start(ctx, opts)
	if portTaken(err) && cfg.NATS.Port == 0 { // nobody asked for a certain one
		ports, perr := embedded.AnyPorts(embedded.DefaultHost, 1)
		if perr != nil {
			return perr
		}
		opts.Port = ports[0]
		b.server, err = embedded.Start(ctx, opts)
	}
	if err != nil {
		b.server = nil
		return err
	}
	if err := b.reach(b.server.CredentialsFile(), b.server.URL()); err != nil {
		b.close()
		return err
	}
	return nil
}

// reach notes how servers of this data directory are reached.
func (b *bus) reach(credentialsFile string, addresses ...string) error {
	user, password, err := connect.ReadCredentials(credentialsFile)
	if err != nil {
		return err
	}
	with := make([]string, len(addresses))
	for i, address := range addresses {
		u, err := url.Parse(address)
		if err != nil {
			return fmt.Errorf("address of the NATS server: %w", err)
		}
		u.User = url.UserPassword(user, password)
		with[i] = u.String()
	}
	b.at, b.url, b.password = strings.Join(addresses, ","), config.Secret(strings.Join(with, ",")), password
	return nil
}

func (b *bus) declare(ctx context.Context, cfg config.Config, log zerolog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, b.patience())
	defer cancel()
	// What the user may not do is in the error that comes of it, once.
	told := nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if !errors.Is(err, nats.ErrPermissionViolation) {
			log.Warn().Err(err).Msg("NATS reported an error")
		}
	})
	nc, js, err := connect.Dial(ctx, connect.Config{URL: b.url.Reveal(), Name: "factstream", Logger: log, Options: []nats.Option{told}})
	if err != nil {
		return err
	}
	defer nc.Close()
	return topology.Declare(ctx, js, topology.Options{Replicas: cfg.NATS.Replicas, AckWait: cfg.AckWait, LeaseTTL: cfg.LeaseTTL})
}

// pauseRunning does what ON_RESTART=pause asks for, before any service is there to go on. On a bus elsewhere it does nothing: other machines may be at
// work on it, so this is no start of everything.
func (b *bus) pauseRunning(ctx context.Context, cfg config.Config, log zerolog.Logger) error {
	if cfg.OnRestart != "pause" || b.at == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, b.patience())
	defer cancel()
	nc, js, err := connect.Dial(ctx, connect.Config{URL: b.url.Reveal(), Name: "factstream", Logger: log})
	if err != nil {
		return err
	}
	defer nc.Close()
	paused, err := place.PauseAll(ctx, js, "Everything was started again, with ON_RESTART=pause.", log)
	if err != nil {
		return fmt.Errorf("pause what was running (ON_RESTART=pause): %w", err)
	}
	if paused > 0 {
		log.Warn().Int("threads", paused).Msg("running threads were paused, as ON_RESTART says")
	}
	return nil
}

// portTaken also knows the words of a server that lost the port to another program between the check and its start.
func portTaken(err error) bool {
	return errors.Is(err, embedded.ErrPortInUse) || err != nil && strings.Contains(err.Error(), syscall.EADDRINUSE.Error())
}

// explain adds what a person can do about it.
func explain(err error, cfg config.Config) error {
	switch {
	case errors.Is(err, embedded.ErrLocked):
		return fmt.Errorf("%w; another Factstream runs on it: stop that one, or set FACTSTREAM_DATA to another directory", err)
	case errors.Is(err, embedded.ErrOfCluster):
		return fmt.Errorf("%w; start it by `factstream up-cluster`, or set FACTSTREAM_DATA to another directory", err)
	case errors.Is(err, embedded.ErrOfOne):
		return fmt.Errorf("%w; start it by `factstream up`, or set FACTSTREAM_DATA to another directory", err)
	case portTaken(err):
		return portProblem(net.JoinHostPort(embedded.DefaultHost, strconv.Itoa(cfg.NATS.Port)), "NATS_PORT", err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrAuthorization):
		if cfg.NATS.URL.Set() {
			return fmt.Errorf("%w; is NATS_URL right, and is the server there?", oneLine{err})
		}
	}
	return err
}

// oneLine shows errors that were joined by lines as one line.
type oneLine struct{ error }

func (e oneLine) Error() string {
	text := []byte(e.error.Error())
	for i, c := range text {
		if c == '\n' {
			text[i] = ' '
		}
	}
	return string(text)
}

func (e oneLine) Unwrap() error { return e.error }
