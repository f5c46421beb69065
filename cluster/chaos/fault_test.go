package chaos

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/cluster/supervisor"
)

// shell is a field of one real process, which runs a script again and again; log is where its fault points are noted.
func shell(t *testing.T, name, script, log string) *Field {
	t.Helper()
	f := &Field{processes: map[string]*process{name: {log: log}}, changed: make(chan struct{})}
	stop := f.keep([][]supervisor.Spec{{{Name: name, Path: "/bin/sh", Args: []string{"-c", script}, Output: io.Discard}}})
	t.Cleanup(func() {
		f.Continue(name)
		stop()
	})
	return f
}

// run waits until the process runs for the nth time, and gives its id.
func (f *Field) run(t *testing.T, name string, nth int) int {
	t.Helper()
	require.NoError(t, f.await(t.Context(), "it runs", func() bool { return f.processes[name].starts >= nth && f.processes[name].pid != 0 }))
	return f.PID(name)
}

func TestAFieldKnowsWhatWasDoneToWhichProcessAndWhen(t *testing.T) {
	t.Parallel()
	const name = "researcher-2"
	f := shell(t, name, "exec sleep 1000", "")
	began := time.Now()
	first := f.run(t, name, 1)
	require.True(t, f.Stop(name))
	require.True(t, f.Faults()[0].To.IsZero(), "it lasts")
	require.True(t, f.Continue(name))
	require.True(t, f.Kill(name))
	second := f.run(t, name, 2)
	require.True(t, f.Stop(name))
	require.True(t, f.Kill(name), "while it is stopped")
	third := f.run(t, name, 3)
	back := f.Away(name)
	f.run(t, name, 5)
	back()
	var faults []Fault
	require.Eventually(t, func() bool {
		faults = f.Faults()
		return !slices.ContainsFunc(faults, func(one Fault) bool { return one.To.IsZero() })
	}, startWithin, 5*time.Millisecond, "it is there again")
	type struck struct {
		pid  int
		what string
	}
	var all []struck
	for i, one := range faults {
		require.Equal(t, name, one.Target)
		require.False(t, one.From.Before(began))
		require.False(t, one.To.Before(one.From), "%s", one)
		if i > 0 {
			require.False(t, one.From.Before(faults[i-1].From))
		}
		all = append(all, struck{one.PID, one.What})
	}
	require.Equal(t, []struck{{first, "stopped"}, {first, "killed"}, {second, "stopped"}, {second, "killed"}, {third, "kept away"}}, all[:5])
	for _, one := range all[5:] {
		require.Equal(t, "kept away", one.what)
	}
}

func TestAFieldKnowsWhichFaultPointEndedAProcessAndThatItWentByItself(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "struck")
	require.NoError(t, os.WriteFile(log, []byte("researcher.leased fail\nresearcher.streaming kill\n"), 0o600))
	f := shell(t, "researcher", "kill -9 $$", log)
	f.run(t, "researcher", 2)
	require.Contains(t, f.Faults()[0].What, "ended by its fault point (researcher.streaming kill)")

	g := shell(t, "judge", "exit 3", log)
	g.run(t, "judge", 2)
	require.Equal(t, "gone by itself", g.Faults()[0].What)
	require.NotZero(t, g.Faults()[0].PID)
}
