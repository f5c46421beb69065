// Package embedded runs a NATS server with JetStream in this process, for a
// notebook on one machine: alone, or as one of several that each have a process of
// their own.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/readers"
)

// Defaults of Options.
const (
	DefaultHost      = "127.0.0.1"
	DefaultMaxMemory = 64 << 20 // the bucket of progress is all that lives in memory
	readyWithin      = 30 * time.Second
)

// Options say where the server keeps its data and listens.
type Options struct {
	// Dir is the data directory; it is made if missing and held under a lock.
	Dir string
	// Host is the address to listen on (default 127.0.0.1), Port the port; 0 takes
	// any free one.
	Host string
	Port int
	// MaxStore limits the bytes on disk, MaxMemory those in memory. MaxStore 0
	// takes three quarters of the space that is free at start, counting what the
	// store already holds.
	MaxStore  int64
	MaxMemory int64
	// NoSync leaves flushing to the operating system (every 2 minutes). Only for
	// tests: a power failure then loses acknowledged events.
	NoSync bool
	// Cluster makes the server one of several with the same notebook; nil: it is
	// alone.
	Cluster *Cluster
	Logger  zerolog.Logger
}

// Errors of Start that a person can do something about.
var (
	// ErrLocked: another server holds the data directory. See LockedError.
	ErrLocked = errors.New("the data directory is in use")
	// ErrNewerFormat: a later version of this program wrote the data directory.
	ErrNewerFormat = errors.New("the data directory was written by a newer version")
	// ErrPortInUse: something else listens on the address.
	ErrPortInUse = errors.New("the port is in use")
	// ErrOfCluster: several servers keep their stores below the data directory, and
	// one alone would begin an empty notebook beside them.
	ErrOfCluster = errors.New("the data directory belongs to three servers")
	// ErrOfOne: the data directory has the store of a server that is alone.
	ErrOfOne = errors.New("the data directory belongs to a single server")
)

// Server is a running server.
type Server struct {
	nats  *server.Server
	log   *serverLog
	lock  *lock
	users credentials
	opts  Options
	home  string // has the credentials
	url   string
	store string

	once sync.Once
}

// Start locks opts.Dir, starts a server on it and waits until it is ready. All
// writes are synced to disk before they are acknowledged. The server sets no
// signal handlers; end it by Shutdown. Ending ctx only ends the waiting.
//
// Errors wrap ErrLocked (as *LockedError), ErrNewerFormat, ErrPortInUse or
// ErrOfCluster, or say in one line what the server itself said last.
func Start(ctx context.Context, opts Options) (_ *Server, err error) {
	if opts.Host == "" {
		opts.Host = DefaultHost
	}
	if opts.MaxMemory <= 0 {
		opts.MaxMemory = DefaultMaxMemory
		if opts.Cluster != nil {
			opts.MaxMemory *= Servers // every copy counts
		}
	}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	// Two servers on one store both start and both lose data, so the lock comes
	// before anything else is touched.
	lock, err := acquire(opts.Dir)
	if err != nil {
		return nil, err
	}
	s := &Server{lock: lock, opts: opts, home: opts.Dir, store: storeOf(opts.Dir)}
	defer func() {
		if err != nil {
			s.Shutdown()
		}
	}()
	if opts.Cluster == nil {
		if err := absent(ServerDir(opts.Dir, 1), fmt.Errorf("%w: %s", ErrOfCluster, opts.Dir)); err != nil {
			return nil, err
		}
	}
	if err := checkFormat(opts.Dir); err != nil {
		return nil, err
	}
	if opts.Cluster != nil {
		s.home = opts.Cluster.Home
		if s.users.route, err = loadRoutePassword(s.home); err != nil {
			return nil, err
		}
	}
	if s.users.service, s.users.reader, err = loadCredentials(s.home); err != nil {
		return nil, err
	}
	if s.opts.MaxStore <= 0 {
		if s.opts.MaxStore, err = defaultMaxStore(s.store); err != nil {
			return nil, err
		}
	}
	if err := portFree(opts.Host, opts.Port); err != nil {
		return nil, err
	}
	return s, s.run(ctx)
}

func (s *Server) run(ctx context.Context) error {
	port := s.opts.Port
	if port == 0 {
		port = server.RANDOM_PORT
	}
	opts := &server.Options{}
	if err := opts.ProcessConfigString(s.accounts()); err != nil {
		return fmt.Errorf("configure the NATS server: %w", err)
	}
	opts.ServerName = "factstream"
	if s.opts.Cluster != nil {
		if err := s.opts.Cluster.apply(opts, s.opts.Host, s.users.route); err != nil {
			return err
		}
	}
	opts.Host, opts.Port = s.opts.Host, port
	opts.JetStream, opts.StoreDir = true, s.store
	opts.SyncAlways = !s.opts.NoSync
	opts.JetStreamMaxStore, opts.JetStreamMaxMemory = serverLimit(s.opts.MaxStore), serverLimit(s.opts.MaxMemory)
	opts.NoSigs = true
	opts.NoLog = true // no logger of its own: SetLoggerV2 gives it ours
	opts.DisableJetStreamBanner = true
	ns, err := server.NewServer(opts)
	if err != nil {
		return fmt.Errorf("configure the NATS server: %w", err)
	}
	log := newServerLog(s.opts.Logger)
	s.nats, s.log = ns, log
	ns.SetLoggerV2(log, false, false, false)
	go ns.Start()

	deadline := time.Now().Add(readyWithin)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	for !ns.ReadyForConnections(50 * time.Millisecond) {
		// The server says neither that it gave up nor why, so its log is asked.
		if fatal := log.fatal(); fatal != "" {
			return startFailed(s.opts, fatal)
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return startFailed(s.opts, log.lastError())
		}
	}
	if !ns.JetStreamEnabled() {
		return startFailed(s.opts, log.lastError())
	}
	s.url = ns.ClientURL()
	return writeDurably(AddressFile(s.opts.Dir), s.url+"\n")
}

// accounts is the part of the server's configuration that says who may do what.
func (s *Server) accounts() string {
	return readers.Accounts(readers.Values{
		JetStream:       fmt.Sprintf("{max_mem: %d, max_file: %d}", s.opts.MaxMemory, s.opts.MaxStore),
		ServicePassword: strconv.Quote(s.users.service),
		ReaderPassword:  strconv.Quote(s.users.reader),
	})
}

// AddressFile holds the URL of the server that runs on a data directory. It is only of use while the directory is locked.
func AddressFile(dir string) string { return filepath.Join(dir, "address") }

// Broken says that a write to the store has failed, as on a full disk. Streams it
// happened to refuse every write from then on (nats-server 2.15.2), also when there
// is room again: what helps is Shutdown, and Start on the same directory.
func (s *Server) Broken() bool {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return s.log.broken
}

// Dir is the data directory.
func (s *Server) Dir() string { return s.opts.Dir }

// URL is where clients connect to, without credentials.
func (s *Server) URL() string { return s.url }

// ClientOptions are the credentials of the services, for a connection from this
// process: authentication applies in process too.
func (s *Server) ClientOptions() []nats.Option {
	return []nats.Option{nats.UserInfo(readers.ServiceUser, s.users.service)}
}

// ReaderOptions are the credentials and the inbox of the read-only user.
func (s *Server) ReaderOptions() []nats.Option {
	return []nats.Option{nats.UserInfo(readers.ReaderUser, s.users.reader), nats.CustomInboxPrefix(connect.ReaderInbox)}
}

// CredentialsFile is the file with the services' "user:password", for another
// process of this machine; ReaderCredentialsFile that of the read-only user.
func (s *Server) CredentialsFile() string       { return CredentialsFile(s.home) }
func (s *Server) ReaderCredentialsFile() string { return ReaderCredentialsFile(s.home) }

// Shutdown stops the server, waits until its store is closed, and gives up the
// lock. It may be called more than once.
func (s *Server) Shutdown() {
	s.once.Do(func() {
		if s.nats != nil {
			s.log.close()
			s.nats.Shutdown()
			s.nats.WaitForShutdown()
		}
		if s.url != "" {
			_ = os.Remove(AddressFile(s.opts.Dir)) // left behind it would only mislead who does not look at the lock
		}
		s.lock.release()
	})
}

// serverLimit is the server's own limit for an account's: room for the account and
// for what its streams reserved before a restart, since the server counts both
// before it accepts the account's limit, which is the one that bounds the store.
func serverLimit(account int64) int64 { return 2*account + 1 }

func startFailed(opts Options, said string) error {
	if said == "" {
		said = "it was not ready in time"
	}
	addr := net.JoinHostPort(opts.Host, strconv.Itoa(opts.Port))
	return fmt.Errorf("the NATS server did not start on %s with %s: %s", addr, opts.Dir, said)
}

// portFree fails with ErrPortInUse before the store is opened, since the server
// reports a taken port late and only in its log.
func portFree(host string, port int) error {
	if port == 0 {
		return nil
	}
	addr := net.JoinHostPort(host, strconv.Itoa(port))
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: something else listens on %s", ErrPortInUse, addr)
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", addr, err)
	}
	return l.Close()
}
