package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/services/gateway/gatewaytest"
	"github.com/factstream/factstream/services/gateway/projection"
	book "github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service"
	"github.com/factstream/factstream/shared/service/servicetest"
)

// command runs a command in this process.
func command(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(args, &out, &errs)
	require.Equal(t, want, code, "%v\n%s\n%s", args, &out, &errs)
	return out.String(), errs.String()
}

// kept makes a data directory whose bus runs, with a finished thread, a running one and a deleted one, and its notebook.db.
func kept(t *testing.T) (s *service.Service, bus *servicetest.Bus, stop func()) {
	t.Helper()
	bus = servicetest.NewBus(t)
	s = bus.Open("gateway")
	stop = servicetest.Run(t, s)
	path := filepath.Join(bus.Server.Dir(), "notebook.db")
	p, err := projection.Open(t.Context(), projection.Config{Path: path, JS: s.JS, Artifacts: s.Artifacts, Log: s.Log})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	for _, thread := range []string{"gone", "a", "going"} {
		set := servicetest.Settings()
		set.Auto = thread == "going"
		servicetest.Append(t, s, thread, book.CreateThread{Question: "What is " + thread + "?", Settings: set})
		if thread == "going" {
			servicetest.Append(t, s, thread, book.Start{Access: servicetest.Access})
			continue
		}
		servicetest.Append(t, s, thread, book.RequestRun{Run: "run" + thread, Access: servicetest.Access})
		gatewaytest.Complete(t, s, thread, "run"+thread)
	}
	deleted := servicetest.Append(t, s, "gone", book.DeleteThread{})
	stream, err := s.JS.Stream(t.Context(), topology.Notebook)
	require.NoError(t, err)
	require.NoError(t, stream.Purge(t.Context(), jetstream.WithPurgeSubject(topology.ThreadFilter("gone")), jetstream.WithPurgeSequence(deleted.Seq)))
	last, err := s.Tail.CatchUp(t.Context())
	require.NoError(t, err)
	require.NoError(t, p.WaitFor(t.Context(), last))
	cancel()
	require.NoError(t, <-ended)
	require.NoError(t, p.Close())
	return s, bus, stop
}

func TestBackupRestoreAndVerifyOnADataDirectory(t *testing.T) {
	t.Parallel()
	s, bus, stop := kept(t)
	data, file := "--data="+bus.Server.Dir(), filepath.Join(t.TempDir(), "b.zip")

	// While it runs.
	out, _ := command(t, 0, "backup", file, data)
	require.Contains(t, out, "of 3 threads")
	require.Contains(t, out, "Left out:\n  API keys")
	_, errs := command(t, 1, "backup", file, data)
	require.Contains(t, errs, "--force replaces it")
	command(t, 0, "backup", data, "--force", file)
	out, _ = command(t, 0, "verify", file, data)
	require.Contains(t, out, "No differences.")
	require.NotContains(t, out, "Note:")
	_, errs = command(t, 1, "restore", file, data)
	require.Equal(t, fmt.Sprintf("factstream: the data directory is in use by a running factstream (%s, process %d): stop it first, or name another directory with FACTSTREAM_DATA or --data\n",
		bus.Server.Dir(), os.Getpid()), errs)
	require.NotContains(t, strings.TrimSpace(errs), "\n", "one line")

	// After it was stopped.
	stop()
	s.Close()
	bus.Server.Shutdown()
	command(t, 0, "verify", file, data)
	_, errs = command(t, 1, "restore", file, data)
	require.Contains(t, errs, "the place is not empty")

	// After the stream was lost.
	store := filepath.Join(bus.Server.Dir(), "store")
	require.NoError(t, os.RemoveAll(store))
	_, errs = command(t, 1, "verify", data)
	require.Contains(t, errs, "there is no notebook")
	command(t, 0, "restore", file, data)
	out, _ = command(t, 0, "verify", file, data)
	require.Contains(t, out, "notebook.db was not compared: it is of another stream")

	// From notebook.db alone.
	require.NoError(t, os.RemoveAll(store))
	out, _ = command(t, 0, "restore", "--from-db", filepath.Join(bus.Server.Dir(), "notebook.db"), data)
	require.Contains(t, out, "no raw answers")
	out, _ = command(t, 0, "verify", file, data)
	require.Contains(t, out, "No differences.")

	// In a new place, paused.
	other := "--data=" + filepath.Join(t.TempDir(), "new")
	out, _ = command(t, 0, "restore", file, "--paused", other)
	require.Contains(t, out, "1 thread paused.")
	out, _ = command(t, 0, "verify", file, other)
	require.Contains(t, out, "Note: the notebook has gone on since the backup")
}

func TestVerifyNamesDifferencesAndExitsWithOne(t *testing.T) {
	t.Parallel()
	s, bus, _ := kept(t)
	data, file := "--data="+bus.Server.Dir(), filepath.Join(t.TempDir(), "b.zip")
	command(t, 0, "backup", file, data)
	db, err := sql.Open("sqlite3", filepath.Join(bus.Server.Dir(), "notebook.db"))
	require.NoError(t, err)
	_, err = db.Exec(`UPDATE threads SET spent = 7 WHERE id = 'a'`)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	out, _ := command(t, 1, "verify", data)
	require.Contains(t, out, "Different: notebook.db: table threads: row a: spent is 7, should be 250\n1 difference.\n")

	stream, err := s.JS.Stream(t.Context(), topology.Notebook)
	require.NoError(t, err)
	info, err := stream.Info(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.DeleteMsg(t.Context(), info.State.LastSeq-3))
	out, _ = command(t, 1, "verify", file, data)
	require.Contains(t, out, "is in notebook.db and missing in the stream")
	require.Contains(t, out, "is in the backup and missing in the stream")
	cut, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, cut[:len(cut)/2], 0o600))
	_, errs := command(t, 1, "verify", file, data)
	require.Contains(t, errs, "or it is cut")
}

func TestAServerOfNATSURLIsBackedUpAndRestoredInto(t *testing.T) {
	_, bus, stop := kept(t)
	file := filepath.Join(t.TempDir(), "b.zip")
	none := "--data=" + t.TempDir() // the server is elsewhere
	t.Setenv("NATS_URL", bus.URL())
	out, _ := command(t, 0, "backup", file, none)
	require.NotContains(t, out, "factstream:", "no password is shown")
	_, errs := command(t, 1, "restore", file, none)
	require.Contains(t, errs, "the place is not empty")
	stop()

	empty := servicetest.NewBus(t)
	t.Setenv("NATS_URL", empty.URL())
	s := empty.Open("judge")
	stop = servicetest.Run(t, s)
	servicetest.Listens(t, s)
	_, errs = command(t, 1, "restore", file, none)
	require.Contains(t, errs, "stop all services and readers first")
	stop()
	command(t, 0, "restore", file, none)
	out, _ = command(t, 0, "verify", file, none)
	require.Contains(t, out, "No differences.")
	_, js := bustest.Dial(t, empty.Server)
	require.NoError(t, topology.Declare(t.Context(), js, bustest.Options()))
}

func TestTheCommandLineOfTheJobsIsChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"backup"}, 2, "backup needs a file"},
		{[]string{"restore", "--from-db"}, 2, "restore needs a file"},
		{[]string{"backup", "--no-such-flag", "x"}, 2, "no-such-flag"},
		{[]string{"verify", "a", "b"}, 2, "none are taken besides flags"},
		{[]string{"backup", "--help"}, 0, "--with-keys"},
		{[]string{"restore", "--help"}, 0, "--from-db"},
		{[]string{"verify", "--help"}, 0, "exit code is 1"},
		{[]string{"restore", "/no/such/file", "--data=" + t.TempDir()}, 1, "no such file"},
		{[]string{"restore", "/no/such/file", "--from-db", "--data=" + t.TempDir()}, 1, "no notebook.db"},
		{[]string{"verify", "nothere.zip"}, 1, "the backup cannot be read: open nothere.zip: no such file"},
		{[]string{"verify", "--data=" + t.TempDir()}, 1, "there is no notebook"},
	} {
		out, errs := command(t, c.code, c.args...)
		require.Contains(t, out+errs, c.want, c.args)
	}
	require.Equal(t, 2, run([]string{"nonsense"}, io.Discard, io.Discard))
}
