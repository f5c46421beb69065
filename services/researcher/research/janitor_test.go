package research

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service/servicetest"
)

func TestWhatADeletionLeftBehindIsCleared(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	r := open(t, bus, Options{Sweep: time.Hour})
	parts := r.Parts()
	servicetest.Run(t, r.Service, parts[:3]...) // all but the janitor
	thread, kept := newThread(t, r.Service), newThread(t, r.Service)
	run := awaitRun(t, r.Service, thread, request(t, r.Service, thread, servicetest.Access))
	other := awaitRun(t, r.Service, kept, request(t, r.Service, kept, servicetest.Access))
	raw, othersRaw := brought(t, r.Service, run).Raw, brought(t, r.Service, other).Raw
	servicetest.Append(t, r.Service, thread, notebook.DeleteThread{})
	leave(t, r, attempt{thread, run.ID, 2}, []byte("late"))
	_, err := r.Artifacts.Put(withinWait(t), thread, []byte("saved too late"))
	require.NoError(t, err)

	done := map[string]int{}
	require.NoError(t, r.clearOnce(withinWait(t), done))
	requireOnlyTombstone(t, r, thread)
	require.Empty(t, spooledFiles(t, r))
	_, err = r.Artifacts.Get(withinWait(t), refOf(raw))
	require.ErrorIs(t, err, artifact.ErrMissing)
	_, err = r.Artifacts.Named(withinWait(t), thread, artifact.AttemptName(run.ID, 1))
	require.ErrorIs(t, err, artifact.ErrMissing)
	_, err = r.Artifacts.Get(withinWait(t), refOf(othersRaw))
	require.NoError(t, err)

	// Something is saved again before the second time; after that nobody is at work for it any more.
	late, err := r.Artifacts.Put(withinWait(t), thread, []byte("still at work"))
	require.NoError(t, err)
	require.NoError(t, r.clearOnce(withinWait(t), done))
	_, err = r.Artifacts.Get(withinWait(t), late)
	require.ErrorIs(t, err, artifact.ErrMissing)
	require.Equal(t, map[string]int{thread: purges}, done)
}

func TestADeletedRunLosesItsReceiptAndTheOtherKeepsWhatBothHave(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	r := open(t, bus, Options{Sweep: time.Hour})
	servicetest.Run(t, r.Service, r.Parts()[:3]...)
	thread := newThread(t, r.Service)
	var runs []notebook.Run // the same question to the same recording: the same raw answer
	for range 2 {
		run := request(t, r.Service, thread, servicetest.Access)
		chain(t, r.Service, thread, run, "")
		runs = append(runs, runOf(r.Service, thread, run))
	}
	require.Equal(t, brought(t, r.Service, runs[0]).Raw.Ref, brought(t, r.Service, runs[1]).Raw.Ref)
	for i, run := range runs {
		servicetest.Append(t, r.Service, thread, notebook.DeleteRun{Run: run.ID})
		require.NoError(t, r.clearOnce(withinWait(t), map[string]int{}))
		_, err := r.Artifacts.Named(withinWait(t), thread, artifact.AttemptName(run.ID, 1))
		require.ErrorIs(t, err, artifact.ErrMissing)
		_, err = r.Artifacts.Get(withinWait(t), refOf(brought(t, r.Service, run).Raw))
		if i == 0 {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, artifact.ErrMissing)
		}
	}
	requireLedger(t, r.Service, thread, 500, 0)
}

func TestTheSpoolKeepsWhatMayStillBeWanted(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	r := open(t, bus, Options{})
	servicetest.Run(t, r.Service)
	thread := newThread(t, r.Service)
	open, ended := request(t, r.Service, thread, servicetest.Access), request(t, r.Service, thread, servicetest.Access)
	servicetest.Append(t, r.Service, thread, notebook.StartAttempt{Run: open, Max: 3})
	servicetest.Append(t, r.Service, thread, notebook.CancelRun{Run: ended})
	wanted, unknown, old := attempt{thread, open, 1}, attempt{"unknown", "run", 1}, attempt{"unknown", "run", 2}
	for _, a := range []attempt{wanted, unknown, old, {thread, ended, 1}} {
		leave(t, r, a, []byte("answer"))
	}
	long := time.Now().Add(-2 * keepUnknown)
	require.NoError(t, os.Chtimes(filepath.Join(string(r.spool), old.file()), long, long))
	require.NoError(t, os.WriteFile(filepath.Join(string(r.spool), "README"), []byte("a person's own"), 0o600))
	require.NoError(t, r.clearSpool())
	require.ElementsMatch(t, []string{wanted.file(), unknown.file(), "README"}, spooledFiles(t, r))
}
