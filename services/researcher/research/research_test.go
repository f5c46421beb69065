package research

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/fixtures/standin"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service"
	"github.com/factstream/factstream/shared/service/servicetest"
	"github.com/factstream/factstream/shared/text"
)

const (
	key      = "tabstack-test-key"
	question = "How far are solid-state batteries?"
)

var liveAccess = notebook.Access{Live: true}

// live makes a service call the stand-in with a key from the environment.
func live(provider *standin.Server) func(*config.Config) {
	return func(c *config.Config) {
		c.Tabstack.BaseURL, c.Tabstack.APIKey = provider.URL(), config.Secret(key)
	}
}

// start runs a researcher on the bus until the test ends.
func start(t *testing.T, bus *servicetest.Bus, options Options, change ...func(*config.Config)) (r *Researcher, stop func()) {
	t.Helper()
	r = open(t, bus, options, change...)
	return r, servicetest.Run(t, r.Service, r.Parts()...)
}

// open opens a researcher that does not run yet.
func open(t *testing.T, bus *servicetest.Bus, options Options, change ...func(*config.Config)) *Researcher {
	t.Helper()
	r, err := New(bus.Open("researcher", change...), options)
	require.NoError(t, err)
	return r
}

// idle runs a service without parts: it folds the notebook and appends commands, as another process would.
func idle(t *testing.T, bus *servicetest.Bus) *service.Service {
	t.Helper()
	s := bus.Open("other")
	servicetest.Run(t, s)
	return s
}

var threads atomic.Int64

// newThread makes a thread.
func newThread(t *testing.T, s *service.Service, change ...func(*event.Settings)) string {
	t.Helper()
	id := fmt.Sprintf("t%d", threads.Add(1))
	settings := servicetest.Settings()
	for _, c := range change {
		c(&settings)
	}
	servicetest.Append(t, s, id, notebook.CreateThread{Question: question, Settings: settings})
	return id
}

// request asks a thread's question once more and gives the run.
func request(t *testing.T, s *service.Service, thread string, access notebook.Access) string {
	t.Helper()
	run := text.RandomID()
	servicetest.Append(t, s, thread, notebook.RequestRun{Run: run, Access: access})
	return run
}

// awaitRun waits until the run has its terminal event and gives the run as it is then.
func awaitRun(t *testing.T, s *service.Service, thread, run string) notebook.Run {
	t.Helper()
	servicetest.Until(t, s, thread, func(th *notebook.Thread) bool { return th.Runs[run] != nil && th.Runs[run].Terminal() })
	return runOf(s, thread, run)
}

func runOf(s *service.Service, thread, run string) (r notebook.Run) {
	s.Tail.View(thread, func(th *notebook.Thread) {
		if th.Runs[run] != nil {
			r = *th.Runs[run]
			r.Attempts = append([]notebook.Attempt(nil), r.Attempts...)
		}
	})
	return r
}

func stateOf(s *service.Service, thread string) (th *notebook.Thread) {
	s.Tail.View(thread, func(t *notebook.Thread) { th = t.Clone() })
	return th
}

func requireLedger(t *testing.T, s *service.Service, thread string, spent, reserved int) {
	t.Helper()
	th := stateOf(s, thread)
	require.Equal(t, spent, th.Ledger.Spent, "spent")
	require.Equal(t, reserved, th.Ledger.Held(), "reserved")
}

// await waits until the stand-in's counts fulfil a condition.
func await(t *testing.T, provider *standin.Server, fulfilled func(standin.Stats) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), servicetest.Wait)
	defer cancel()
	require.NoError(t, provider.Await(ctx, fulfilled))
}

func spooledFiles(t *testing.T, r *Researcher) []string {
	t.Helper()
	entries, err := os.ReadDir(string(r.spool))
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// leave puts a file into the spool, as a process that was killed would have left it.
func leave(t *testing.T, r *Researcher, a attempt, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(string(r.spool), a.file()), content, 0o600))
}

func withinWait(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), servicetest.Wait)
	t.Cleanup(cancel)
	return ctx
}

const soon = 20 * time.Millisecond

// requireOnlyTombstone waits until nothing is left of a thread but its tombstone.
func requireOnlyTombstone(t *testing.T, r *Researcher, thread string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return subjects(t, r, topology.Notebook, topology.ThreadFilter(thread)) == 1 &&
			subjects(t, r, topology.Trail, topology.ThreadTrail(thread)) == 0
	}, servicetest.Wait, soon)
	stream, err := r.JS.Stream(withinWait(t), topology.Notebook)
	require.NoError(t, err)
	_, err = stream.GetLastMsgForSubject(withinWait(t), "thread.deleted."+thread+".0.0")
	require.NoError(t, err)
}

// subjects counts the messages of a stream under a filter.
func subjects(t *testing.T, r *Researcher, name, filter string) int {
	t.Helper()
	stream, err := r.JS.Stream(withinWait(t), name)
	require.NoError(t, err)
	info, err := stream.Info(withinWait(t), jetstream.WithSubjectFilter(filter))
	require.NoError(t, err)
	count := 0
	for _, n := range info.State.Subjects {
		count += int(n)
	}
	return count
}
