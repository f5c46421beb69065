package projection_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/services/gateway/gatewaytest"
	"github.com/factstream/factstream/services/gateway/projection"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/backup"
	"github.com/factstream/factstream/shared/deletion"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service"
	"github.com/factstream/factstream/shared/service/servicetest"
)

// held is a projection with a finished thread, one whose report came by reference, and a deleted one.
func held(t *testing.T) (s *service.Service, path string) {
	t.Helper()
	s = servicetest.NewBus(t).Open("gateway")
	servicetest.Run(t, s)
	path = filepath.Join(t.TempDir(), "notebook.db")
	p, closed := open(t, s, path)
	for _, thread := range []string{"a", "b", "gone"} {
		servicetest.Append(t, s, thread, notebook.CreateThread{Question: "What is " + thread + "?", Settings: servicetest.Settings()})
		servicetest.Append(t, s, thread, notebook.RequestRun{Run: "run" + thread, Access: servicetest.Access})
		if thread == "b" {
			ref, err := s.Artifacts.Put(t.Context(), thread, []byte(gatewaytest.Report))
			require.NoError(t, err)
			completed := gatewaytest.Completed(thread)
			completed.Report = event.Blob{Ref: ref.Ref, SHA256: ref.SHA256, Size: ref.Size}
			servicetest.Append(t, s, thread, notebook.StartAttempt{Run: "runb", Holder: "test", Max: 3})
			servicetest.Append(t, s, thread, notebook.CompleteRun{Run: "runb", Completed: completed})
			gatewaytest.Derive(t, s, thread, "runb")
			continue
		}
		gatewaytest.Complete(t, s, thread, "run"+thread)
	}
	servicetest.Append(t, s, "gone", notebook.DeleteThread{})
	require.NoError(t, deletion.Purge(t.Context(), s.JS, s.Artifacts, "gone"))
	caughtUp(t, s, p, path)
	closed()
	return s, path
}

// differences of the file from the stream, rows first.
func differences(t *testing.T, s *service.Service, path string) []string {
	t.Helper()
	h, err := projection.Hold(t.Context(), path)
	require.NoError(t, err)
	defer func() { require.NoError(t, h.Close()) }()
	look, err := backup.Look(t.Context(), s.JS)
	require.NoError(t, err)
	fresh := filepath.Join(t.TempDir(), "fresh.db")
	require.NoError(t, projection.Fold(t.Context(), fresh, h.Created(), func(do func([]notebook.Message) error) error {
		return look.Each(t.Context(), h.Position(), do)
	}))
	found, err := h.Differences(t.Context(), fresh)
	require.NoError(t, err)
	r, err := look.Compare(t.Context(), backup.Copy{Name: "notebook.db", Messages: h.Messages,
		Has: func(m notebook.Message) bool { return m.Seq <= h.Position() }})
	require.NoError(t, err)
	return append(found, r.Differences...)
}

func TestAFileThatFollowsTheStreamHasNoDifferences(t *testing.T) {
	t.Parallel()
	s, path := held(t)
	require.Empty(t, differences(t, s, path))
}

func TestEveryDifferenceOfTheFileIsNamed(t *testing.T) {
	t.Parallel()
	s, path := held(t)
	original, err := os.ReadFile(path)
	require.NoError(t, err)
	for statement, want := range map[string]string{
		`UPDATE threads SET spent = 1 WHERE id = 'a'`:                        `table threads: row a: spent is 1, should be 250`,
		`UPDATE facts SET dismissed = 1 WHERE thread = 'b' AND run = 'runb'`: `dismissed is 1, should be 0`,
		`DELETE FROM questions WHERE thread = 'a'`:                           `is missing`,
		`INSERT INTO links VALUES ('a', 'x', 'y', 'b', 'duplicate')`:         `table links: row a/x/y/duplicate should not be there`,
		`UPDATE reports SET markdown = 'other' WHERE run = 'runb'`:           `the report of run runb is not the one`,
		`DELETE FROM events WHERE seq = 3`:                                   `event 3 (attempt.started.a.runa.1) is missing in notebook.db`,
		`UPDATE events SET body = '{}' WHERE seq = 3`:                        `event 3 (attempt.started.a.runa.1): its body in notebook.db`,
		`INSERT INTO events SELECT seq + 1000, original, subject, id, type, time, stored, thread, cause, traceparent, problem, unknown, body FROM events WHERE seq = 1`: `event 1001 (thread.created.a.0.0) is in notebook.db and missing in the stream`,
	} {
		copied := filepath.Join(t.TempDir(), "notebook.db")
		require.NoError(t, os.WriteFile(copied, original, 0o600))
		db, err := sql.Open("sqlite3", "file:"+copied)
		require.NoError(t, err)
		_, err = db.Exec(statement)
		require.NoError(t, err)
		require.NoError(t, db.Close())
		found := differences(t, s, copied)
		require.NotEmpty(t, found, statement)
		require.Contains(t, found[0], want, statement)
	}
}

func TestTheFileAloneHasEveryEventAndTheTextsThatItShows(t *testing.T) {
	t.Parallel()
	s, path := held(t)
	h, err := projection.Hold(t.Context(), path)
	require.NoError(t, err)
	defer func() { require.NoError(t, h.Close()) }()
	var texts []string
	require.NoError(t, h.Texts(t.Context(), func(ref artifact.Ref, content []byte) error {
		require.True(t, ref.Valid("b"))
		texts = append(texts, string(content))
		return nil
	}))
	require.Equal(t, []string{gatewaytest.Report}, texts)
	var n int64
	require.NoError(t, h.Messages(t.Context(), func(notebook.Message) error { n++; return nil }))
	stream, err := s.JS.Stream(t.Context(), topology.Notebook)
	require.NoError(t, err)
	require.EqualValues(t, stream.CachedInfo().State.Msgs, n)
}

func TestAFileThatIsNoneOfThisVersionIsSaidToBeNone(t *testing.T) {
	t.Parallel()
	_, err := projection.Hold(t.Context(), filepath.Join(t.TempDir(), "notebook.db"))
	require.ErrorIs(t, err, projection.ErrNoFile)
	empty := filepath.Join(t.TempDir(), "notebook.db")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	_, err = projection.Hold(t.Context(), empty)
	require.ErrorIs(t, err, projection.ErrNoFile)
}

// A restored notebook that comes into the same stream must not be put on top of what the file had.
func TestAFileOfTheTimeBeforeARestoreIsMadeAgain(t *testing.T) {
	t.Parallel()
	s, path := held(t)
	file := filepath.Join(t.TempDir(), "b.zip")
	place := backup.Place{JS: s.JS, Artifacts: s.Artifacts, Settings: s.Settings}
	_, err := backup.Write(t.Context(), place, file, backup.Options{Now: time.Now})
	require.NoError(t, err)
	f, err := backup.Open(t.Context(), file)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	stream, err := s.JS.Stream(t.Context(), topology.Notebook)
	require.NoError(t, err)
	require.NoError(t, stream.Purge(t.Context()))
	restored, err := backup.Restore(t.Context(), place, f, backup.RestoreOptions{})
	require.NoError(t, err)

	p, closed := open(t, s, path)
	require.Equal(t, restored.First, p.Begins())
	ctx, cancel := context.WithTimeout(t.Context(), servicetest.Wait)
	defer cancel()
	require.NoError(t, p.WaitFor(ctx, restored.Last))
	past, err := p.AsOf(ctx, "", time.Now().Add(-time.Hour))
	require.NoError(t, err)
	require.Empty(t, past.Threads())
	now, err := p.AsOf(ctx, "a", f.Manifest().Created)
	require.NoError(t, err)
	require.True(t, now.Thread("a").Exists(), "as of a time before the restore, by the time of the first storing")
	closed()
	require.Empty(t, differences(t, s, path))
}
