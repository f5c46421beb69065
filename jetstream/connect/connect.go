// Package connect dials the bus, with the options that a connection needs here to
// lose nothing.
package connect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
)

// Config says where and how to connect.
type Config struct {
	// URL of one or more servers, separated by commas; it may carry user and
	// password.
	URL string
	// Name shows in the server's list of connections, for instance "researcher".
	Name string
	// CredentialsFile holds "user:password" and is used if the URL has none.
	CredentialsFile string
	// ReadOnly connects as the read-only user: with the inbox prefix that it is
	// allowed, and without asking for the account, which it may not.
	ReadOnly bool
	Logger   zerolog.Logger
	// Options are added last, for tests and for readers.
	Options []nats.Option
}

var (
	// ErrOldServer: the server lacks atomic batches, which came with 2.12.
	ErrOldServer = errors.New("the NATS server is too old")
	// ErrNoJetStream: the server, or this user's account, has no JetStream.
	ErrNoJetStream = errors.New("JetStream is not enabled")
	// ErrCredentials: the credentials file is missing or not of the form
	// user:password.
	ErrCredentials = errors.New("bad credentials file")
)

// ReaderInbox is the inbox prefix of the read-only user, so that it cannot listen
// to the replies that others get.
const ReaderInbox = "_INBOX_reader"

const (
	oldestMajor, oldestMinor = 2, 12

	reconnectWait = 250 * time.Millisecond
	// The library's own 2 minutes would take 4 to notice a server that hangs.
	pingInterval = 5 * time.Second
	pingsOut     = 2
	apiTimeout   = 5 * time.Second
)

// Dial connects and waits until a server answered, ctx ended, or the server
// refused the credentials. It then checks the version (ErrOldServer) and
// JetStream (ErrNoJetStream). The connection comes back by itself for ever;
// nothing published meanwhile is kept for later, so that what a publish returned
// is what happened, as far as can be known.
func Dial(ctx context.Context, cfg Config) (*nats.Conn, jetstream.JetStream, error) {
	opts, connected, err := options(cfg)
	if err != nil {
		return nil, nil, err
	}
	nc, err := nats.Connect(cfg.URL, opts...)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to NATS: %w", err)
	}
	if err := wait(ctx, nc, connected); err != nil {
		nc.Close()
		return nil, nil, fmt.Errorf("connect to NATS: %w", err)
	}
	js, err := check(ctx, nc, cfg.ReadOnly)
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	return nc, js, nil
}

func options(cfg Config) ([]nats.Option, <-chan struct{}, error) {
	connected := make(chan struct{}, 1)
	signal := func(*nats.Conn) {
		select {
		case connected <- struct{}{}:
		default:
		}
	}
	log := cfg.Logger
	opts := []nats.Option{
		nats.Name(cfg.Name),
		nats.ReconnectBufSize(-1), // a publish while disconnected fails at once, and is never sent later
		nats.MaxReconnects(-1),
		nats.RetryOnFailedConnect(true),
		nats.ReconnectWait(reconnectWait),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(pingsOut),
		nats.ConnectHandler(signal),
		nats.ClosedHandler(signal),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // nil is our own Close
				log.Warn().Err(err).Msg("disconnected from NATS, trying again")
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			log.Info().Str("server", nc.ConnectedAddr()).Msg("connected to NATS again")
		}),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			event := log.Warn().Err(err)
			if sub != nil {
				event = event.Str("subject", sub.Subject)
			}
			event.Msg("NATS reported an error")
		}),
	}
	if cfg.CredentialsFile != "" {
		user, password, err := ReadCredentials(cfg.CredentialsFile)
		if err != nil {
			return nil, nil, err
		}
		opts = append(opts, nats.UserInfo(user, password))
	}
	if cfg.ReadOnly {
		opts = append(opts, nats.CustomInboxPrefix(ReaderInbox))
	}
	return append(opts, cfg.Options...), connected, nil
}

// wait returns nil when nc is connected, else why it is not.
func wait(ctx context.Context, nc *nats.Conn, connected <-chan struct{}) error {
	for !nc.IsConnected() {
		if nc.IsClosed() { // the server refused the credentials twice
			if err := nc.LastError(); err != nil {
				return err
			}
			return nats.ErrConnectionClosed
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), nc.LastError())
		case <-connected:
		}
	}
	return nil
}

func check(ctx context.Context, nc *nats.Conn, readOnly bool) (jetstream.JetStream, error) {
	version := nc.ConnectedServerVersion()
	if !atLeast(version, oldestMajor, oldestMinor) {
		return nil, fmt.Errorf("%w: it is %s, but atomic batches need %d.%d", ErrOldServer, version, oldestMajor, oldestMinor)
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(apiTimeout))
	if err != nil {
		return nil, fmt.Errorf("use JetStream: %w", err)
	}
	if readOnly {
		return js, nil
	}
	_, err = js.AccountInfo(ctx)
	if errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
		return nil, fmt.Errorf("%w: %w", ErrNoJetStream, err)
	}
	if err != nil {
		return nil, fmt.Errorf("ask for the JetStream account: %w", err)
	}
	return js, nil
}

// ReadCredentials reads a file of the form user:password. Its errors wrap
// ErrCredentials and never hold what the file holds.
func ReadCredentials(path string) (user, password string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrCredentials, err)
	}
	user, password, ok := strings.Cut(strings.TrimSpace(string(text)), ":")
	if !ok || user == "" || password == "" {
		return "", "", fmt.Errorf("%w: %s is not user:password", ErrCredentials, path)
	}
	return user, password, nil
}

// atLeast compares a version like 2.15.2 or 2.14.0-RC.1; what cannot be read is
// too old.
func atLeast(version string, major, minor int) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	gotMajor, err1 := strconv.Atoi(parts[0])
	gotMinor, err2 := strconv.Atoi(parts[1])
	if err1 != nil || err2 != nil {
		return false
	}
	return gotMajor > major || gotMajor == major && gotMinor >= minor
}

// StoreFree is how many bytes the bus may still store on disk, by the limits of
// the account; known is false if it has no limit.
func StoreFree(ctx context.Context, js jetstream.JetStream) (free int64, known bool, err error) {
	info, err := js.AccountInfo(ctx)
	if err != nil {
		return 0, false, fmt.Errorf("ask for the free space of the store: %w", err)
	}
	if info.Limits.MaxStore <= 0 {
		return 0, false, nil
	}
	return max(0, info.Limits.MaxStore-int64(info.Store)), true, nil
}
