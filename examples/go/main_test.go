package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/readers"
	"github.com/factstream/factstream/jetstream/topology"
)

type notebook struct {
	t    *testing.T
	js   jetstream.JetStream
	data string
}

func open(t *testing.T) notebook {
	t.Helper()
	srv, nc, js := bustest.Start(t)
	gate, err := readers.Open(nc, zerolog.Nop())
	require.NoError(t, err)
	t.Cleanup(gate.Close)
	return notebook{t, js, srv.Dir()}
}

func (n notebook) publish(thread string, ids ...string) {
	n.t.Helper()
	for _, id := range ids {
		body := fmt.Sprintf(`{"id":%q,"type":"factstream.run.requested.v1","time":"2026-01-31T12:00:00Z","thread":%q,"n":0,"data":{}}`, id, thread)
		_, err := n.js.Publish(n.t.Context(), topology.Subject("run", "requested", thread, "r", 0), []byte(body))
		require.NoError(n.t, err)
	}
}

// read runs the program with --once and gives the sequences that it printed.
func (n notebook) read(args ...string) []int {
	n.t.Helper()
	o, err := parse(append([]string{"--data", n.data, "--once"}, args...))
	require.NoError(n.t, err)
	ctx, cancel := context.WithTimeout(n.t.Context(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	require.NoError(n.t, subscribe(ctx, o, &out))
	return sequences(n.t, out.String())
}

func sequences(t *testing.T, text string) []int {
	t.Helper()
	var got []int
	for line := range strings.Lines(text) {
		number, _, _ := strings.Cut(line, " ")
		n, err := strconv.Atoi(number)
		require.NoError(t, err, line)
		got = append(got, n)
	}
	return got
}

func TestWhereReadingBegins(t *testing.T) {
	t.Parallel()
	n := open(t)
	require.Empty(t, n.read())
	n.publish("t", "a", "b")
	n.publish("u", "c")
	require.Equal(t, []int{1, 2, 3}, n.read())
	require.Equal(t, []int{3}, n.read("--thread", "u"))
	require.Equal(t, []int{1, 2, 3}, n.read("--since", "1h"))
	require.Empty(t, n.read("--since", time.Now().Add(time.Hour).Format(time.RFC3339)))
	require.Empty(t, n.read("--new"))
}

func TestReadingGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	n := open(t)
	cursor := filepath.Join(t.TempDir(), "cursor")
	n.publish("t", "a", "b")
	require.Equal(t, []int{1, 2}, n.read("--cursor", cursor))
	require.Equal(t, []int{1, 2}, n.read("--name", "ext-mine"))
	require.Empty(t, n.read("--cursor", cursor))
	require.Empty(t, n.read("--name", "ext-mine"))
	n.publish("t", "c")
	require.Equal(t, []int{3}, n.read("--cursor", cursor))
	require.Equal(t, []int{3}, n.read("--name", "ext-mine"))

	text, err := os.ReadFile(cursor)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cursor, bytes.ReplaceAll(text, []byte("20"), []byte("19")), 0o600)) // of another stream
	require.Equal(t, []int{1, 2, 3}, n.read("--cursor", cursor))
}

func TestWhatIsKnownOrNoEventIsPassed(t *testing.T) {
	t.Parallel()
	n := open(t)
	n.publish("t", "a", "a")
	_, err := n.js.Publish(t.Context(), "ext.note.t.x.0", []byte("no JSON"))
	require.NoError(t, err)
	_, err = n.js.Publish(t.Context(), "ext.note.t.x.1", []byte(`{"anything":1}`))
	require.NoError(t, err)
	require.Equal(t, []int{1, 3, 4}, n.read())
}

func TestLive(t *testing.T) {
	t.Parallel()
	n := open(t)
	n.publish("t", "a")
	o, err := parse([]string{"--data", n.data, "--new"})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	out, done := &lines{}, make(chan error, 1)
	go func() { done <- subscribe(ctx, o, out) }()
	require.Eventually(t, func() bool { // until it listens
		n.publish("t", fmt.Sprint(time.Now().UnixNano()))
		return out.String() != ""
	}, time.Minute, 50*time.Millisecond)
	stop()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Greater(t, sequences(t, out.String())[0], 1)
}

type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func TestWrongArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--cursor", "x", "--name", "y"}, {"--data", t.TempDir()}, {"--nothing"},
	} {
		_, err := parse(args)
		require.Error(t, err, args)
	}
	n := open(t)
	o, err := parse([]string{"--data", n.data, "--since", "yesterday"})
	require.NoError(t, err)
	require.ErrorContains(t, subscribe(t.Context(), o, &lines{}), "yesterday")
}

func TestWithoutAFactstreamItIsSaidWhatToDo(t *testing.T) {
	t.Parallel()
	_, err := parse([]string{"--data", t.TempDir()})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "no Factstream runs on")
	require.ErrorContains(t, err, "start it (factstream up), or give --data or --url")
}

func TestTheDataDirectoryIsThatOfFactstream(t *testing.T) { // not in parallel: it sets the environment
	set, given := t.TempDir(), t.TempDir()
	for dir, address := range map[string]string{set: "nats://127.0.0.1:1", given: "nats://127.0.0.1:2"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "address"), []byte(address+"\n"), 0o600))
	}
	for name, c := range map[string]struct {
		variable  string
		args      []string
		data, url string
	}{
		"by the variable": {variable: set, data: set, url: "nats://127.0.0.1:1"},
		"by the argument, whatever the variable says": {variable: set, args: []string{"--data", given}, data: given, url: "nats://127.0.0.1:2"},
		"the credentials alone":                       {variable: set, args: []string{"--url", "nats://127.0.0.1:3"}, data: set, url: "nats://127.0.0.1:3"},
		"by neither":                                  {args: []string{"--url", "nats://127.0.0.1:3"}, data: "data", url: "nats://127.0.0.1:3"},
	} {
		t.Setenv("FACTSTREAM_DATA", c.variable)
		o, err := parse(c.args)
		require.NoError(t, err, name)
		require.Equal(t, c.url, o.url, name)
		require.Equal(t, filepath.Join(c.data, "credentials", "reader"), o.credentials, name)
	}
}
