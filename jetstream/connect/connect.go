// Package connect dials the bus, with the options that a connection needs here to
// lose nothing.
package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
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
	// RequestTimeout is how long one request waits for its answer; by default
	// DefaultRequestTimeout.
	RequestTimeout time.Duration
	Logger         zerolog.Logger
	// Options are added last, for tests and for readers.
	Options []nats.Option
}

// What a server must be and allow. Each is the reason of an error that says in one
// line what was found and what to set.
var (
	// ErrUnreachable: no server was there until the context ended. It is wrapped beside
	// the context's cause and, where it is known, what the last try came to.
	ErrUnreachable = errors.New("no server answers")
	// ErrOldServer: the server lacks atomic batches, which came with 2.12.
	ErrOldServer = errors.New("the NATS server is too old")
	// ErrSmallPayload: the server takes messages only below MinPayload.
	ErrSmallPayload = errors.New("the NATS server takes too small messages")
	// ErrNoJetStream: the server, or this user's account, has no JetStream.
	ErrNoJetStream = errors.New("JetStream is not enabled")
	// ErrNoAnswer: JetStream said nothing, or that it cannot, until the context
	// ended: a cluster without a leader. It is wrapped beside the context's cause.
	ErrNoAnswer = errors.New("JetStream does not answer")
	// ErrPermission: the user may not use the JetStream API or get its answers.
	ErrPermission = errors.New("the user lacks a permission")
	// ErrCredentials: the credentials file is missing or not of the form
	// user:password.
	ErrCredentials = errors.New("bad credentials file")
)

// ReaderInbox is the inbox prefix of the read-only user, so that it cannot listen
// to the replies that others get.
const ReaderInbox = "_INBOX_reader"

// MinPayload is the least max_payload of a server, in bytes: the default of NATS,
// and what events, trail messages and pieces of artifacts were cut to fit.
const MinPayload = 1 << 20

const (
	oldestMajor, oldestMinor = 2, 12

	reconnectWait = 250 * time.Millisecond
	// The library's own 2 minutes would take 4 to notice a server that hangs.
	pingInterval = 5 * time.Second
	pingsOut     = 2

	// A cluster without a leader answers nothing at all, or says so at once: each
	// question is given this long and asked again after the pause.
	askFor, askPause = 1500 * time.Millisecond, 250 * time.Millisecond
	// A server that is going down, or just coming up, has no JetStream for a moment;
	// what it says this often in a row is true.
	offTimes  = 4
	sayWaitIn = 5 * time.Second
)

// Dial connects and waits until a server answered, ctx ended, or the server
// refused the credentials. It then checks the version (ErrOldServer), the size of
// messages (ErrSmallPayload) and JetStream (ErrNoJetStream, ErrPermission), and
// waits while a cluster elects its leader (ErrNoAnswer when ctx ends first; without
// an end it waits for ever, and says so in the log). The connection comes back by
// itself for ever; nothing published meanwhile is kept for later, so that what a
// publish returned is what happened, as far as can be known.
//
// No request of the JetStream that is returned, nor of the streams, consumers and
// buckets that it gives, waits longer than cfg.RequestTimeout for an answer (plus 2 s
// if it only reads: then it is asked again), however late ctx ends: the error is
// context.DeadlineExceeded or nats.ErrTimeout, and of a write it is not known
// whether it was done.
func Dial(ctx context.Context, cfg Config) (*nats.Conn, jetstream.JetStream, error) {
	var failed lastFailure
	opts, connected, err := options(cfg, &failed)
	if err != nil {
		return nil, nil, err
	}
	nc, err := nats.Connect(cfg.URL, opts...)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to NATS: %w", err)
	}
	if err := wait(ctx, nc, connected, &failed); err != nil {
		nc.Close()
		return nil, nil, fmt.Errorf("connect to NATS: %w", err)
	}
	js, err := check(ctx, nc, cfg)
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	return nc, js, nil
}

// lastFailure is what the last try to connect came to; the library keeps it to
// itself until a connection was there once.
type lastFailure struct {
	mu  sync.Mutex
	err error
}

func (f *lastFailure) note(_ *nats.Conn, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *lastFailure) last() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

func options(cfg Config, failed *lastFailure) ([]nats.Option, <-chan struct{}, error) {
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
		nats.ReconnectErrHandler(failed.note),
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
func wait(ctx context.Context, nc *nats.Conn, connected <-chan struct{}, failed *lastFailure) error {
	for !nc.IsConnected() {
		if nc.IsClosed() { // the server refused the credentials twice
			if err := nc.LastError(); err != nil {
				return err
			}
			return nats.ErrConnectionClosed
		}
		select {
		case <-ctx.Done():
			if why := cmp.Or(failed.last(), nc.LastError()); why != nil {
				return fmt.Errorf("%w (%w): %w", ErrUnreachable, why, context.Cause(ctx))
			}
			return fmt.Errorf("%w: %w", ErrUnreachable, context.Cause(ctx))
		case <-connected:
		}
	}
	return nil
}

func check(ctx context.Context, nc *nats.Conn, cfg Config) (jetstream.JetStream, error) {
	version := nc.ConnectedServerVersion()
	if !atLeast(version, oldestMajor, oldestMinor) {
		return nil, fmt.Errorf("%w: it is %s, but atomic batches need %d.%d or newer: update it", ErrOldServer, version, oldestMajor, oldestMinor)
	}
	timeout := cfg.RequestTimeout
	if timeout <= 0 {
		timeout = DefaultRequestTimeout
	}
	raw, err := jetstream.New(nc, jetstream.WithDefaultTimeout(timeout), jetstream.WithPublishAsyncTimeout(timeout))
	if err != nil {
		return nil, fmt.Errorf("use JetStream: %w", err)
	}
	js := bus{raw}
	if cfg.ReadOnly {
		return js, nil
	}
	if most := nc.MaxPayload(); most < MinPayload {
		return nil, fmt.Errorf("%w: its max_payload is %d bytes, set it to %d or more", ErrSmallPayload, most, MinPayload)
	}
	return js, awaitJetStream(ctx, nc, js, cfg.Logger)
}

// awaitJetStream asks for the account until it is told, or until it is clear that
// it never will be.
func awaitJetStream(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, log zerolog.Logger) error {
	said := time.Now()
	for off := 0; ; {
		err := ask(ctx, js)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
			if off++; off == offTimes {
				return notEnabled(nc)
			}
		case errors.Is(nc.LastError(), nats.ErrPermissionViolation): // the request itself hears nothing of it
			return fmt.Errorf("%w: the services need to publish to $JS.API.> and to subscribe to _INBOX.>: %w", ErrPermission, nc.LastError())
		case nc.IsClosed(), refusal(err):
			return fmt.Errorf("ask for the JetStream account: %w", err)
		default:
			off = 0
		}
		if time.Since(said) > sayWaitIn {
			said = time.Now()
			log.Warn().Err(err).Str("server", nc.ConnectedAddr()).Msg("JetStream does not answer, waiting: has the cluster a leader?")
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %s (last said: %w): %w", ErrNoAnswer,
				"the cluster has no leader, so more than half of its servers must be up and reach each other; their logs and `nats server report jetstream` show who is missing",
				err, context.Cause(ctx))
		case <-time.After(askPause):
		}
	}
}

// notEnabled tells the two cases apart by what the server said of itself, since the
// same silence answers in both.
func notEnabled(nc *nats.Conn) error {
	if on, _ := nc.ConnectedServerJetStream(); on {
		return fmt.Errorf("%w for this user's account: set jetstream: enabled in the account's configuration", ErrNoJetStream)
	}
	return fmt.Errorf("%w on the server: start it with jetstream {store_dir: DIR} in its configuration, or with -js -sd DIR", ErrNoJetStream)
}

func ask(ctx context.Context, js jetstream.JetStream) error {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	_, err := js.AccountInfo(ctx)
	return err
}

// refusal tells whether the server answered with something that stays; 5xx is what
// a cluster says while it has no leader.
func refusal(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.Code < 500
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
