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
	require.NoError(t, dial(t, 5*time.Second, connect.Config{URL: srv.URL(), CredentialsFile: srv.CredentialsFile()}))
	user, password, err := connect.ReadCredentials(srv.CredentialsFile())
	require.NoError(t, err)
	withUser := strings.Replace(srv.URL(), "nats://", "nats://"+user+":"+password+"@", 1)
	require.NoError(t, dial(t, 5*time.Second, connect.Config{URL: withUser}))
	require.NoError(t, dial(t, 5*time.Second, connect.Config{URL: srv.URL(), CredentialsFile: srv.ReaderCredentialsFile(), ReadOnly: true}))
}

func TestWrongCredentialsAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	srv := bustest.Serve(t, embedded.Options{Dir: t.TempDir()})
	err := dial(t, 5*time.Second, connect.Config{URL: strings.Replace(srv.URL(), "nats://", "nats://a:b@", 1)})
	require.ErrorIs(t, err, nats.ErrAuthorization)
}

func TestBadCredentialsFileIsNamedWithoutItsContent(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	require.ErrorIs(t, dial(t, time.Second, connect.Config{URL: "nats://127.0.0.1:1", CredentialsFile: missing}), connect.ErrCredentials)
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
			done <- dial(t, 10*time.Second, connect.Config{URL: srv.URL(), CredentialsFile: srv.CredentialsFile()})
		}()
	})
	require.NoError(t, <-done)
}

func TestNothingPublishedWhileDisconnectedIsKept(t *testing.T) {
	t.Parallel()
	srv, nc, _ := bustest.Start(t)
	bustest.Restart(t, srv, func() {
		require.Eventually(t, func() bool { return !nc.IsConnected() }, 5*time.Second, time.Millisecond)
		require.ErrorIs(t, nc.Publish("x", nil), nats.ErrReconnectBufExceeded)
	})
	require.Eventually(t, nc.IsConnected, 10*time.Second, 5*time.Millisecond)
}

func TestOldServersAreRefused(t *testing.T) {
	t.Parallel()
	for version, old := range map[string]bool{"2.11.9": true, "1.99.0": true, "garbage": true, "2.x": true, "2.12.0": false, "2.14.0-RC.1": false, "3.0.0": false} {
		err := dial(t, 300*time.Millisecond, connect.Config{URL: pretend(t, version), ReadOnly: true})
		if old {
			require.ErrorIs(t, err, connect.ErrOldServer, version)
			require.ErrorContains(t, err, version)
		} else {
			require.NoError(t, err, version)
		}
	}
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
