// Package servicetest opens services in tests: on a real bus in this process, with short times and without a provider.
package servicetest

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/logging"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service"
)

// Bus is a server that several services of a test share.
type Bus struct {
	Server *embedded.Server
	JS     jetstream.JetStream
	times  topology.Options
	t      testing.TB
}

// NewBus starts a server that ends with the test. A test in which a process dies gives bustest.Mortal.
func NewBus(t testing.TB, change ...func(*topology.Options)) *Bus {
	t.Helper()
	srv, _, js := bustest.Start(t, change...)
	return &Bus{Server: srv, JS: js, times: bustest.Options(change...), t: t}
}

// Config is that of a service on the bus: offline, extractive, no keys, a data directory of its own, times of a test. change may alter it.
func (b *Bus) Config(name string, change ...func(*config.Config)) config.Config {
	b.t.Helper()
	env := map[string]string{
		"NATS_URL": b.URL(), "OFFLINE": "1", "MODEL_ENGINE": "extractive", "FACTSTREAM_DATA": b.t.TempDir(),
		"RETRY_DELAYS": "250ms,500ms", "ACK_WAIT": b.times.AckWait.String(), "LEASE_TTL": b.times.LeaseTTL.String(), "LOG_LEVEL": "warn",
	}
	cfg, err := config.Load(nil, func(key string) string { return env[key] }, name)
	require.NoError(b.t, err)
	for _, c := range change {
		c(&cfg)
	}
	return cfg
}

// URL of the bus with the services' credentials in it.
func (b *Bus) URL() string {
	b.t.Helper()
	user, password, err := connect.ReadCredentials(b.Server.CredentialsFile())
	require.NoError(b.t, err)
	u, err := url.Parse(b.Server.URL())
	require.NoError(b.t, err)
	u.User = url.UserPassword(user, password)
	return u.String()
}

// Open opens a service on the bus. It is closed with the test.
func (b *Bus) Open(name string, change ...func(*config.Config)) *service.Service {
	b.t.Helper()
	redactor := logging.NewRedactor()
	cfg := b.Config(name, change...)
	log := zerolog.New(zerolog.NewTestWriter(b.t)).Level(zerolog.WarnLevel)
	s, err := service.Open(b.t.Context(), cfg, log, redactor)
	require.NoError(b.t, err)
	b.t.Cleanup(s.Close)
	return s
}

// Run runs the parts of a service until the test ends or stop is called, which waits for them.
func Run(t testing.TB, s *service.Service, parts ...service.Part) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, parts...) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			require.NoError(t, err)
		case <-time.After(Wait):
			t.Errorf("the service did not stop within %s", Wait)
		}
	}
	t.Cleanup(stop)
	return stop
}

// Wait is how long a test waits for something that must come; it passes far earlier.
const Wait = 3 * bustest.Patience

// Listens waits until the bus shows that the tail of a service that runs reads there. The tail can be up to date before: then it has read directly.
func Listens(t testing.TB, s *service.Service) {
	t.Helper()
	stream, err := s.JS.Stream(t.Context(), topology.Notebook)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		listens := false
		for consumer := range stream.ListConsumers(t.Context()).Info() {
			listens = listens || consumer.Config.Durable == "" && consumer.NumWaiting > 0
		}
		return listens
	}, Wait, 5*time.Millisecond)
}

// Append does a command as its caller would and fails the test when it is refused.
func Append(t testing.TB, s *service.Service, thread string, cmd notebook.Command) notebook.Appended {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Wait)
	defer cancel()
	appended, err := s.Appender.Append(ctx, thread, cmd, notebook.Origin{})
	require.NoError(t, err)
	return appended
}

// Until waits until a condition holds for a thread.
func Until(t testing.TB, s *service.Service, thread string, holds func(*notebook.Thread) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Wait)
	defer cancel()
	if err := s.Tail.Until(ctx, thread, holds); err != nil {
		s.Tail.View(thread, func(th *notebook.Thread) {
			status, reason := th.Status()
			t.Fatalf("thread %s did not get there: %v (status %s %v, next %+v)", thread, err, status, reason, notebook.Next(th))
		})
	}
}

// Event reads the data of the event of a sequence: what the state of a thread does not keep.
func Event[D event.Data](t testing.TB, s *service.Service, seq uint64) D {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Wait)
	defer cancel()
	m, err := projector.Get(ctx, s.JS, topology.Notebook, seq)
	require.NoError(t, err)
	e, err := event.Parse(m.Subject, m.Data)
	require.NoError(t, err)
	data, ok := e.Data.(D)
	require.True(t, ok, "event %d is %s", seq, e.Type)
	return data
}

// Whole folds the stream anew with everything that a Tail leaves out, the excerpts.
func Whole(t testing.TB, s *service.Service, thread string) *notebook.Thread {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Wait)
	defer cancel()
	last, err := s.Tail.CatchUp(ctx)
	require.NoError(t, err)
	whole := notebook.NewNotebook()
	for seq := uint64(1); seq <= last; seq++ {
		m, err := projector.Get(ctx, s.JS, topology.Notebook, seq)
		require.NoError(t, err)
		whole.Apply(m)
	}
	bad, _ := whole.Bad()
	require.Empty(t, bad)
	return whole.Thread(thread)
}

// Settings of a thread for tests: Tabstack, fast, autopilot off.
func Settings() event.Settings {
	return event.Settings{Provider: event.Tabstack, Mode: event.Fast, Depth: 3, Batch: 1, Auto: false, Engine: "extractive", Budget: 2000}
}

// Access of tests: recorded streams only.
var Access = notebook.Access{Replay: true}
