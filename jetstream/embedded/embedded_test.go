package embedded_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/jetstream/readers"
	"github.com/factstream/factstream/jetstream/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(bustest.Leaks(m)) }

func TestDataSurvivesARestartWithSyncOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 3 {
		srv, err := embedded.Start(t.Context(), embedded.Options{Dir: dir, MaxStore: 2 << 30, Logger: zerolog.Nop()})
		require.NoError(t, err)
		nc, js, err := connect.Dial(t.Context(), connect.Config{URL: srv.URL(), CredentialsFile: srv.CredentialsFile(), Logger: zerolog.Nop()})
		require.NoError(t, err)
		require.NoError(t, topology.Declare(t.Context(), js, topology.Options{}))
		ack, err := js.Publish(t.Context(), topology.Subject("run", "requested", "t", "r", 0), nil)
		require.NoError(t, err)
		require.EqualValues(t, i+1, ack.Sequence)
		free, known, err := connect.StoreFree(t.Context(), js)
		require.NoError(t, err)
		require.True(t, known)
		require.Greater(t, free, int64(1<<30))
		require.LessOrEqual(t, free, int64(2<<30))
		nc.Close()
		srv.Shutdown()
		srv.Shutdown() // harmless
	}
}

func TestSecondServerOnADirectoryNamesTheHolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	srv := bustest.Serve(t, embedded.Options{Dir: dir})
	_, err := embedded.Start(t.Context(), embedded.Options{Dir: dir})
	require.ErrorIs(t, err, embedded.ErrLocked)
	var locked *embedded.LockedError
	require.ErrorAs(t, err, &locked)
	require.Equal(t, os.Getpid(), locked.PID)
	require.ErrorContains(t, err, strconv.Itoa(os.Getpid()))
	require.NotContains(t, err.Error(), "\n")

	srv.Shutdown()
	bustest.Serve(t, embedded.Options{Dir: dir})
}

func TestNewerFormatIsRefusedAndLeftAlone(t *testing.T) {
	t.Parallel()
	for text, newer := range map[string]bool{"2\n": true, "99": true, "nonsense": false, "0": false, "": false} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "format"), []byte(text), 0o600))
		_, err := embedded.Start(t.Context(), embedded.Options{Dir: dir})
		if newer {
			require.ErrorIs(t, err, embedded.ErrNewerFormat)
		} else {
			require.ErrorContains(t, err, "format number")
		}
		require.NoDirExists(t, filepath.Join(dir, "store"))
		left, err := os.ReadFile(filepath.Join(dir, "format"))
		require.NoError(t, err)
		require.Equal(t, text, string(left))
	}
}

func TestPortInUseIsOneClearLine(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	port := l.Addr().(*net.TCPAddr).Port
	dir := t.TempDir()
	_, err = embedded.Start(t.Context(), embedded.Options{Dir: dir, Port: port})
	require.ErrorIs(t, err, embedded.ErrPortInUse)
	require.ErrorContains(t, err, strconv.Itoa(port))
	require.NotContains(t, err.Error(), "\n")
	bustest.Serve(t, embedded.Options{Dir: dir}) // the lock was given up
}

func TestStartThatCannotWorkSaysWhatTheServerSaid(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "store"), nil, 0o600)) // a file where the store should be
	_, err := embedded.Start(t.Context(), embedded.Options{Dir: dir, MaxStore: 1 << 30, Logger: zerolog.Nop()})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "\n")
	require.Contains(t, err.Error(), "storage directory is not a directory")
}

func TestCredentialsAreMadeOnceAndAreNeeded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	srv := bustest.Serve(t, embedded.Options{Dir: dir})
	files := []string{srv.CredentialsFile(), srv.ReaderCredentialsFile()}
	var before []string
	for i, user := range []string{readers.ServiceUser, readers.ReaderUser} {
		info, err := os.Stat(files[i])
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		text, err := os.ReadFile(files[i])
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(text), user+":"))
		before = append(before, string(text))
	}
	require.NotEqual(t, strings.SplitN(before[0], ":", 2)[1], strings.SplitN(before[1], ":", 2)[1])
	for _, opts := range [][]nats.Option{nil, {nats.UserInfo(readers.ServiceUser, "wrong")}, {nats.UserInfo("root", "x")}} {
		_, err := nats.Connect(srv.URL(), opts...)
		require.ErrorIs(t, err, nats.ErrAuthorization)
	}
	for _, opts := range [][]nats.Option{srv.ClientOptions(), srv.ReaderOptions()} {
		nc, err := nats.Connect(srv.URL(), opts...)
		require.NoError(t, err)
		nc.Close()
	}

	bustest.Restart(t, srv, nil)
	for i, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		require.Equal(t, before[i], string(text))
	}
}

func TestSpoiledCredentialsAreNamedNotReplaced(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "factstream", "factstream:", "other:secret", `factstream:a"b`} {
		dir := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(dir, "credentials"), 0o700))
		require.NoError(t, os.WriteFile(embedded.CredentialsFile(dir), []byte(text), 0o600))
		_, err := embedded.Start(t.Context(), embedded.Options{Dir: dir})
		require.ErrorContains(t, err, embedded.CredentialsFile(dir))
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestFullStoreRefusesAndSaysSo(t *testing.T) {
	t.Parallel()
	srv := bustest.Serve(t, embedded.Options{Dir: t.TempDir(), MaxStore: 80 << 20})
	_, js := bustest.Dial(t, srv)
	opts := bustest.Options()
	opts.TrailMaxBytes = 1 << 20
	require.NoError(t, topology.Declare(t.Context(), js, opts))
	chunk := make([]byte, 900<<10)
	ctx, cancel := context.WithTimeout(t.Context(), 2*bustest.Patience)
	defer cancel()
	for {
		if _, err := js.Publish(ctx, topology.Subject("run", "requested", "t", "r", 0), chunk); err != nil {
			require.NoError(t, ctx.Err())
			break
		}
	}
	free, known, err := connect.StoreFree(ctx, js)
	require.NoError(t, err)
	require.True(t, known)
	require.Less(t, free, int64(2<<20))
}
