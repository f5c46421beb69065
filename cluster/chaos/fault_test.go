package chaos

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/cluster/supervisor"
)

// shell is a field of one real process, which runs a script again and again; log is where its fault points are noted.
func shell(t *testing.T, name, script, log string) *Field {
	t.Helper()
	f := &Field{processes: map[string]*process{name: {log: log}}, changed: make(chan struct{})}
	stop := f.keep([][]supervisor.Spec{{{Name: name, Path: "/bin/sh", Args: []string{"-c", script}, Output: io.Discard, Each: func() []string { return f.arm(name) }}}})
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

func TestOnlyAFaultPointThatWasHitSinceTheStartExplainsAnEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		does  string // $log is that of the fault points
		point string // that ended it
	}{
		"its point killed it":   {"echo researcher.streaming kill >> $log; kill -9 $$", "researcher.streaming kill"},
		"its point failed it":   {"echo researcher.kept fail >> $log; exit 1", "researcher.kept fail"},
		"it gave up":            {"exit 3", ""},
		"something killed it":   {"kill -9 $$", ""},
		"another point was hit": {"echo judge.made kill >> $log; exit 1", ""},
		"a point held it up":    {"echo researcher.kept delay:1s >> $log; exit 1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := filepath.Join(t.TempDir(), "struck")
			require.NoError(t, os.WriteFile(log, []byte("researcher.leased kill\njudge.made kill\n"), 0o600))
			f := shell(t, "researcher", strings.ReplaceAll(c.does, "$log", log), log)
			f.run(t, "researcher", 2)
			if c.point == "" {
				require.Empty(t, f.Faults())
				require.NotEmpty(t, f.Unasked())
				return
			}
			require.Contains(t, f.Faults()[0].What, "ended by its fault point ("+c.point+")")
			require.Empty(t, f.Unasked())
		})
	}
}

func TestAnEndThatNobodyAskedForIsAFindingUnlessTheBusOrTheDiskWasStruck(t *testing.T) {
	t.Parallel()
	at := func(s float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second))) }
	end := unasked{"judge: exit status 3", at(100), at(110)}
	for name, c := range map[string]struct {
		fault Fault
		found int
	}{
		"nothing was done":          {Fault{Target: "judge-2", From: at(101), To: at(102)}, 1},
		"the bus was away":          {Fault{Target: Bus, From: at(95), To: at(101)}, 0},
		"the disk was full":         {Fault{Target: theDisk, From: at(105)}, 0},
		"the bus was away long ago": {Fault{Target: Bus, From: at(10), To: at(20)}, 1},
	} {
		var found findings
		found.ended([]unasked{end}, evidence{[]Fault{c.fault}, []string{Bus}})
		require.Len(t, found, c.found, name)
	}
}
