package connect_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/embedded"
)

func dial(t *testing.T, within time.Duration, cfg connect.Config) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	cfg.Logger = zerolog.Nop()
	nc, _, err := connect.Dial(ctx, cfg)
	if err == nil {
		nc.Close()
	}
	return err
}

func TestCredentialsComeFromTheFileOrTheURL(t *testing.T) {
	t.Parallel()
	srv := bustest.Serve(t, embedded.Options{Dir: t.TempDir()})
	require.NoError(t, dial(t, bustest.Patience, connect.Config{URL: srv.URL(), CredentialsFile: srv.CredentialsFile()}))
	user, password, err := connect.ReadCredentials(srv.CredentialsFile())
	require.NoError(t, err)
	withUser := strings.Replace(srv.URL(), "nats://", "nats://"+user+":"+password+"@", 1)
	require.NoError(t, dial(t, bustest.Patience, connect.Config{URL: withUser}))
	require.NoError(t, dial(t, bustest.Patience, connect.Config{URL: srv.URL(), CredentialsFile: srv.ReaderCredentialsFile(), ReadOnly: true}))
}

func TestWrongCredentialsAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	srv := bustest.Serve(t, embedded.Options{Dir: t.TempDir()})
	err := dial(t, bustest.Patience, connect.Config{URL: strings.Replace(srv.URL(), "nats://", "nats://a:b@", 1)})
	require.ErrorIs(t, err, nats.ErrAuthorization)
}

func TestBadCredentialsFileIsNamedWithoutItsContent(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	require.ErrorIs(t, dial(t, bustest.Patience, connect.Config{URL: "nats://127.0.0.1:1", CredentialsFile: missing}), connect.ErrCredentials)
	for _, text := range []string{"", "secret", ":secret", "user:"} {
		path := filepath.Join(t.TempDir(), "c")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, _, err := connect.ReadCredentials(path)
		require.ErrorIs(t, err, connect.ErrCredentials)
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestDialWaitsForTheServer(t *testing.T) {
	t.Parallel()
	srv := bustest.Serve(t, embedded.Options{Dir: t.TempDir()})
	done := make(chan error, 1)
	bustest.Restart(t, srv, func() {
		require.Error(t, dial(t, 50*time.Millisecond, connect.Config{URL: srv.URL(), CredentialsFile: srv.CredentialsFile()}))
		go func() {
			done <- dial(t, bustest.Patience, connect.Config{URL: srv.URL(), CredentialsFile: srv.CredentialsFile()})
		}()
	})
	require.NoError(t, <-done)
}

func TestWhyNoServerAnswersIsSaid(t *testing.T) {
	t.Parallel()
	web, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer web.Close() //nolint:errcheck // a test's listener
	go func() {
		for {
			c, err := web.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			_ = c.Close()
		}
	}()
	for url, says := range map[string]string{
		"nats://127.0.0.1:1":                                "dial tcp 127.0.0.1:1: connect: connection refused",
		"nats://" + web.Addr().String():                     "INFO not received",
		"nats://user:secret@127.0.0.1:1,nats://127.0.0.1:1": "connection refused",
	} {
		var err error
		require.Eventually(t, func() bool { // the library tells of a try a moment after it
			err = dial(t, time.Second, connect.Config{URL: url})
			return strings.Contains(err.Error(), says)
		}, bustest.Patience, time.Millisecond, url)
		require.ErrorIs(t, err, connect.ErrUnreachable)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotContains(t, err.Error(), "secret")
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestNothingPublishedWhileDisconnectedIsKept(t *testing.T) {
	t.Parallel()
	srv, nc, _ := bustest.Start(t)
	bustest.Restart(t, srv, func() {
		require.Eventually(t, func() bool { return !nc.IsConnected() }, bustest.Patience, time.Millisecond)
		require.ErrorIs(t, nc.Publish("x", nil), nats.ErrReconnectBufExceeded)
	})
	require.Eventually(t, nc.IsConnected, bustest.Patience, 5*time.Millisecond)
}

func TestOldServersAreRefused(t *testing.T) {
	t.Parallel()
	for version, old := range map[string]bool{"2.11.9": true, "1.99.0": true, "garbage": true, "2.x": true, "2.12.0": false, "2.14.0-RC.1": false, "3.0.0": false} {
		err := dial(t, bustest.Patience, connect.Config{URL: pretend(t, version), ReadOnly: true})
		if old {
			require.ErrorIs(t, err, connect.ErrOldServer, version)
			require.ErrorContains(t, err, version)
		} else {
			require.NoError(t, err, version)
		}
	}
}

// Each case is a server that somebody else runs and that cannot hold a notebook as it is configured.
func TestWhatTheServerLacksIsSaidInOneLine(t *testing.T) {
	t.Parallel()
	const users = "accounts {A {%s\nusers: [{user: u, password: p%s}]}}\n"
	for name, c := range map[string]struct {
		conf string // %s is a store
		is   error
		says string
	}{
		"no JetStream":                  {"max_connections: 100", connect.ErrNoJetStream, "-js -sd"},
		"no JetStream in the account":   {"jetstream {store_dir: %q}\n" + fmt.Sprintf(users, "", ""), connect.ErrNoJetStream, "jetstream: enabled"},
		"small messages":                {"jetstream {store_dir: %q}\nmax_payload: 512KB", connect.ErrSmallPayload, "set it to 1048576 or more"},
		"the API may not be used":       {"jetstream {store_dir: %q}\n" + fmt.Sprintf(users, "jetstream: enabled", `, permissions: {publish: ["run.>"]}`), connect.ErrPermission, `"$JS.API.INFO"`},
		"the answers may not be heard":  {"jetstream {store_dir: %q}\n" + fmt.Sprintf(users, "jetstream: enabled", `, permissions: {subscribe: ["run.>"]}`), connect.ErrPermission, "_INBOX."},
		"a cluster that has no leader":  {"jetstream {store_dir: %q}\nserver_name: a\n" + alone, connect.ErrNoAnswer, "no leader"},
		"a cluster, and nobody may ask": {"jetstream {store_dir: %q}\nserver_name: a\n" + alone + fmt.Sprintf(users, "jetstream: enabled", `, permissions: {publish: ["run.>"]}`), connect.ErrPermission, `"$JS.API.INFO"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conf := c.conf
			if strings.Contains(conf, "%q") {
				conf = fmt.Sprintf(conf, t.TempDir())
			}
			url := strings.Replace(bustest.Configured(t, conf), "://", "://u:p@", 1)
			within := bustest.Patience
			if c.is == connect.ErrNoAnswer {
				within = 6 * time.Second
			}
			err := dial(t, within, connect.Config{URL: url})
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// alone is one server of a cluster whose others never come.
const alone = "cluster {name: c, listen: \"127.0.0.1:-1\", routes: [\"nats-route://127.0.0.1:1\"]}\n"

func TestTheWaitForALeaderEndsWithItsContext(t *testing.T) {
	t.Parallel()
	url := bustest.Configured(t, fmt.Sprintf("jetstream {store_dir: %q}\nserver_name: a\n%s", t.TempDir(), alone))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	_, _, err := connect.Dial(ctx, connect.Config{URL: url, Logger: zerolog.Nop()})
	require.ErrorIs(t, err, context.Canceled)
}

// pretend greets like a server of the given version.
func pretend(t *testing.T, version string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		_, _ = fmt.Fprintf(c, "INFO {\"server_id\":\"x\",\"version\":%q,\"proto\":1,\"headers\":true,\"max_payload\":1048576}\r\n", version)
		for in := bufio.NewScanner(c); in.Scan(); {
			if strings.HasPrefix(in.Text(), "PING") {
				_, _ = fmt.Fprint(c, "PONG\r\n")
			}
		}
	}()
	return "nats://" + l.Addr().String()
}
