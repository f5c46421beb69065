package backup_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/backup"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/config/testenv"
	"github.com/factstream/factstream/shared/deletion"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service"
	"github.com/factstream/factstream/shared/service/servicetest"
	"github.com/factstream/factstream/shared/settings"
)

func TestMain(m *testing.M) {
	testenv.Clear()
	goleak.VerifyTestMain(bustest.Leaks(m))
}

// open is a service on a bus of its own, with its tail running.
func open(t *testing.T) *service.Service {
	t.Helper()
	s := servicetest.NewBus(t).Open("test")
	servicetest.Run(t, s)
	return s
}

func placeOf(s *service.Service) backup.Place {
	return backup.Place{JS: s.JS, Artifacts: s.Artifacts, Settings: s.Settings}
}

func put(t *testing.T, s *service.Service, thread, content string) event.Blob {
	t.Helper()
	ref, err := s.Artifacts.Put(t.Context(), thread, []byte(content))
	require.NoError(t, err)
	return event.Blob{Ref: ref.Ref, SHA256: ref.SHA256, Size: ref.Size}
}

// fill makes a thread with one run whose distillation failed: report and raw answer are artifacts, the attempt is named, its trail is there.
func fill(t *testing.T, s *service.Service, thread string) (run string) {
	t.Helper()
	run = "run" + thread
	servicetest.Append(t, s, thread, notebook.CreateThread{Question: "What is " + thread + "?", Settings: servicetest.Settings()})
	servicetest.Append(t, s, thread, notebook.RequestRun{Run: run, Access: servicetest.Access})
	servicetest.Append(t, s, thread, notebook.StartAttempt{Run: run, Holder: "test", Max: 3})
	raw := put(t, s, thread, "event: complete\n\nof "+thread)
	ref := artifact.Ref{Ref: raw.Ref, SHA256: raw.SHA256, Size: raw.Size}
	require.NoError(t, s.Artifacts.Name(t.Context(), thread, artifact.AttemptName(run, 1), ref))
	_, err := s.JS.Publish(t.Context(), topology.TrailSubject(thread, run, 1), []byte(`{"seq":1,"name":"complete","data":{}}`))
	require.NoError(t, err)
	servicetest.Append(t, s, thread, notebook.CompleteRun{Run: run, Completed: event.RunCompleted{
		Attempt: 1, Cost: 250, Report: put(t, s, thread, "# Report of "+thread), Raw: raw, Replayed: true,
	}})
	servicetest.Append(t, s, thread, notebook.FailStage{Stage: event.StageDistill, Entity: run, Class: "model_away", Reason: "no model"})
	servicetest.Append(t, s, thread, notebook.Settle{ClosingStep: notebook.ClosingStep{Cycle: 1}})
	return run
}

// deleteThread deletes a thread as the gateway does.
func deleteThread(t *testing.T, s *service.Service, thread string) {
	t.Helper()
	servicetest.Append(t, s, thread, notebook.DeleteThread{})
	require.NoError(t, deletion.Purge(t.Context(), s.JS, s.Artifacts, thread))
}

func write(t *testing.T, s *service.Service, change ...func(*backup.Options)) (path string, m backup.Manifest) {
	t.Helper()
	opts := backup.Options{Now: time.Now}
	for _, c := range change {
		c(&opts)
	}
	path = filepath.Join(t.TempDir(), "notebook.zip")
	m, err := backup.Write(t.Context(), placeOf(s), path, opts)
	require.NoError(t, err)
	return path, m
}

func openFile(t *testing.T, path string) *backup.File {
	t.Helper()
	f, err := backup.Open(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// restore puts a backup into a new place and opens a service on it.
func restore(t *testing.T, path string) (*service.Service, backup.Restored) {
	t.Helper()
	bus := servicetest.NewBus(t)
	return restoreInto(t, bus, path)
}

func restoreInto(t *testing.T, bus *servicetest.Bus, path string) (*service.Service, backup.Restored) {
	t.Helper()
	require.NoError(t, backup.Prepare(t.Context(), bus.JS, bustest.Options()))
	s := bus.Open("test")
	r, err := backup.Restore(t.Context(), placeOf(s), openFile(t, path), backup.RestoreOptions{})
	require.NoError(t, err)
	servicetest.Run(t, s)
	_, err = s.Tail.CatchUp(t.Context())
	require.NoError(t, err)
	return s, r
}

// same fails when the stream of a place is not what a backup has, or an artifact is missing.
func same(t *testing.T, s *service.Service, path string) {
	t.Helper()
	f := openFile(t, path)
	look, err := backup.Look(t.Context(), s.JS)
	require.NoError(t, err)
	r, err := look.Compare(t.Context(), f.Copy("the backup"))
	require.NoError(t, err)
	require.Empty(t, r.Differences)
	require.Empty(t, r.Notes)
	require.Equal(t, f.Manifest().Counts.Events, r.Compared)
	artifacts, err := look.CheckArtifacts(t.Context(), s.Artifacts, nil)
	require.NoError(t, err)
	require.Empty(t, artifacts.Differences)
	names, err := look.CompareNames(t.Context(), s.Artifacts, f)
	require.NoError(t, err)
	require.Empty(t, names.Differences)
	require.Equal(t, f.Manifest().Counts.Names, names.Compared)
}

func TestARestoredNotebookIsTheOriginalAlsoWithDeletionsInItsHistory(t *testing.T) {
	t.Parallel()
	s := open(t)
	fill(t, s, "gone1") // the first messages of the stream are purged ones
	run := fill(t, s, "a")
	fill(t, s, "gone2")
	deleteThread(t, s, "gone1")
	fill(t, s, "b")
	deleteThread(t, s, "gone2")
	servicetest.Append(t, s, "b", notebook.AskQuestion{ID: "q1", Text: "First?"})
	servicetest.Append(t, s, "b", notebook.AskQuestion{ID: "q2", Text: "Second?"})
	servicetest.Append(t, s, "b", notebook.MoveQuestion{ID: "q2", Position: 0})
	path, m := write(t, s)
	require.Equal(t, backup.Counts{Events: 17, Threads: 4, Deleted: 2, Artifacts: 4, ArtifactBytes: m.Counts.ArtifactBytes, Names: 2, Trail: 2}, m.Counts)
	require.Empty(t, m.Missing)
	same(t, s, path)

	other, r := restore(t, path)
	require.EqualValues(t, 17, r.Events)
	require.Greater(t, r.First, m.LastSequence+backup.Margin, "no old sequence is given again")
	require.Empty(t, r.Missing)
	same(t, other, path)
	for _, thread := range []string{"a", "b", "gone1", "gone2"} {
		require.Equal(t, stateOf(t, s, thread), stateOf(t, other, thread), thread)
	}

	// It goes on: a condition holds, what failed is retried, what was deleted stays so, and a second restore is as good.
	servicetest.Append(t, other, "a", notebook.RetryStage{Stage: event.StageDistill, Entity: run})
	servicetest.Until(t, other, "a", func(t *notebook.Thread) bool { return t.Runs[run].Awaits() == event.StageDistill })
	report, err := other.Artifacts.Get(t.Context(), blobRef(servicetest.Event[event.RunCompleted](t, other, stateRun(other, "a", run).EndSeq).Report))
	require.NoError(t, err)
	require.Equal(t, "# Report of a", string(report))
	_, err = other.Appender.Append(t.Context(), "gone1", notebook.CreateThread{Question: "Again?", Settings: servicetest.Settings()}, notebook.Origin{})
	var refusal *notebook.Refusal
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, 410, refusal.Status)
	again, m2 := write(t, other)
	require.Greater(t, m2.LastSequence, r.Last)
	third, _ := restore(t, again)
	same(t, third, again)
	require.Equal(t, stateOf(t, other, "a"), stateOf(t, third, "a"))
}

func blobRef(b event.Blob) artifact.Ref {
	return artifact.Ref{Ref: b.Ref, SHA256: b.SHA256, Size: b.Size}
}

func stateRun(s *service.Service, thread, run string) (r notebook.Run) {
	s.Tail.View(thread, func(t *notebook.Thread) { r = *t.Runs[run] })
	return r
}

// stateOf is what a thread looks like to a person and to a decision, without positions in the stream.
func stateOf(t *testing.T, s *service.Service, thread string) (state string) {
	t.Helper()
	s.Tail.View(thread, func(th *notebook.Thread) {
		status, reason := th.Status()
		var b strings.Builder
		fmt.Fprintln(&b, status, reason, th.Question, th.Settings, th.Ledger.Spent, th.Ledger.Held(), th.Deleted, th.Created, th.Updated, th.KnowledgeError)
		for _, q := range th.Pending() {
			fmt.Fprintln(&b, q.ID, q.Text, q.Rank)
		}
		for _, id := range th.RunIDs {
			r := th.Runs[id]
			fmt.Fprintln(&b, id, r.Status, r.Open, r.Gen, r.Attempts, r.Completed, r.At, r.Ended)
		}
		fmt.Fprintln(&b, len(th.Cycles), notebook.Next(th) == nil)
		state = b.String()
	})
	return state
}

func TestARestoredNotebookKeepsTheTimesAtWhichItsEventsWereStored(t *testing.T) {
	t.Parallel()
	s := open(t)
	fill(t, s, "a")
	path, _ := write(t, s)
	other, _ := restore(t, path)
	require.Equal(t, times(t, s), times(t, other))
}

func times(t *testing.T, s *service.Service) (all []string) {
	t.Helper()
	last, err := s.Tail.CatchUp(t.Context())
	require.NoError(t, err)
	require.NoError(t, backup.Each(t.Context(), s.JS, topology.Notebook, last, func(messages []projector.Message) error {
		for _, m := range messages {
			all = append(all, fmt.Sprint(m.Original, m.Time.UTC().Format(time.RFC3339Nano)))
		}
		return nil
	}))
	return all
}

func TestABackupDuringAppendsIsAConsistentPrefix(t *testing.T) {
	t.Parallel()
	s := open(t)
	fill(t, s, "a")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		n := 0
		for ; ctx.Err() == nil; n++ {
			cmd := notebook.AskQuestion{ID: fmt.Sprint("q", n), Text: fmt.Sprintf("Question %d?", n)}
			if _, err := s.Appender.Append(context.WithoutCancel(ctx), "a", cmd, notebook.Origin{}); err != nil {
				panic(err)
			}
		}
		ended <- n
	}()
	servicetest.Until(t, s, "a", func(t *notebook.Thread) bool { return len(t.QIDs) > 20 })
	path, m := write(t, s)
	require.NoError(t, s.Tail.WaitFor(t.Context(), m.LastSequence+1))
	stop()
	asked := <-ended
	require.EqualValues(t, m.LastSequence, m.Counts.Events, "every event up to the position, and none behind it")
	require.Less(t, m.Counts.Events, int64(asked+7))
	other, _ := restore(t, path)
	other.Tail.View("a", func(th *notebook.Thread) {
		for i := range len(th.QIDs) - 1 { // question 0 is the root
			require.Contains(t, th.Questions, fmt.Sprint("q", i))
		}
	})
	look, err := backup.Look(t.Context(), s.JS)
	require.NoError(t, err)
	r, err := look.Compare(t.Context(), openFile(t, path).Copy("the backup"))
	require.NoError(t, err)
	require.Empty(t, r.Differences)
	require.Len(t, r.Notes, 1, "the notebook has gone on")
}

func TestADeletionDuringABackupIsNotHalfInIt(t *testing.T) {
	t.Parallel()
	s := open(t)
	fill(t, s, "a")
	fill(t, s, "b")
	deleted := false
	path, m := write(t, s, func(o *backup.Options) {
		o.Progress = func(what string, done, _ int64) {
			if !deleted && what == "artifacts" {
				deleted = true
				deleteThread(t, s, "b")
			}
		}
	})
	require.True(t, deleted)
	require.EqualValues(t, 1, m.Counts.Deleted)
	require.Empty(t, m.Missing)
	same(t, s, path)
	require.NotContains(t, contents(t, path), "What is b?")
}

func TestABackupGivesUpWhenDeletionsDoNotEnd(t *testing.T) {
	t.Parallel()
	s := open(t)
	fill(t, s, "a")
	n := 0
	path := filepath.Join(t.TempDir(), "x.zip")
	_, err := backup.Write(t.Context(), placeOf(s), path, backup.Options{Now: time.Now, Progress: func(what string, _, _ int64) {
		if what == "events" {
			n++
			fill(t, s, fmt.Sprint("t", n))
			deleteThread(t, s, fmt.Sprint("t", n))
		}
	}})
	require.ErrorIs(t, err, backup.ErrRestless)
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestTheReceiptOfADeletedRunIsLeftOut(t *testing.T) {
	t.Parallel()
	s := open(t)
	run := fill(t, s, "a")
	servicetest.Append(t, s, "a", notebook.DeleteRun{Run: run}) // its artifacts are not purged yet
	path, m := write(t, s)
	require.Zero(t, m.Counts.Artifacts)
	require.Zero(t, m.Counts.Names)
	require.Zero(t, m.Counts.Trail)
	other, r := restore(t, path)
	require.Empty(t, r.Missing, "it is gone for good reason")
	same(t, other, path)
}

func TestWhatIsMissingInTheNotebookIsNamedAndHoldsNothingUp(t *testing.T) {
	t.Parallel()
	s := open(t)
	run := fill(t, s, "a")
	report := servicetest.Event[event.RunCompleted](t, s, stateRun(s, "a", run).EndSeq).Report
	require.NoError(t, s.Artifacts.Delete(t.Context(), blobRef(report)))
	path, m := write(t, s)
	require.Equal(t, []string{report.Ref}, m.Missing)
	_, r := restore(t, path)
	require.Equal(t, []string{report.Ref}, r.Missing)
	look, err := backup.Look(t.Context(), s.JS)
	require.NoError(t, err)
	found, err := look.CheckArtifacts(t.Context(), s.Artifacts, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"artifact " + report.Ref + " is missing"}, found.Differences)
}

func TestKeysAreInTheFileOnlyWhenAskedFor(t *testing.T) {
	t.Parallel()
	s := open(t)
	require.NoError(t, s.Settings.Save(t.Context(), settings.Patch{
		Mode: settings.Set("balanced"), TabstackKey: settings.Set[config.Secret]("tab-secret-1"), Ollama: settings.OllamaPatch{NumCtx: settings.Set(4096)},
	}))
	without, m := write(t, s)
	require.False(t, m.Keys)
	require.Contains(t, strings.Join(m.LeftOut, "\n"), "API keys")
	require.NotContains(t, contents(t, without), "tab-secret-1")
	with, m := write(t, s, func(o *backup.Options) { o.WithKeys = true })
	require.True(t, m.Keys)
	info, err := os.Stat(with)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())

	for path, key := range map[string]string{without: "", with: "tab-secret-1"} {
		other, _ := restore(t, path)
		saved, err := other.Settings.Load(t.Context())
		require.NoError(t, err)
		require.Equal(t, "balanced", *saved.Mode)
		require.Equal(t, 4096, *saved.OllamaNumCtx)
		require.Equal(t, key, saved.TabstackKey.Reveal())
	}
	require.NoError(t, os.Remove(s.Config.KeyFile))
	_, err = backup.Write(t.Context(), placeOf(s), filepath.Join(t.TempDir(), "x"), backup.Options{WithKeys: true, Now: time.Now})
	require.ErrorIs(t, err, backup.ErrKeys)
	write(t, s) // without them it does not matter
}

func TestSettingsAreComparedAndKeysNotShown(t *testing.T) {
	t.Parallel()
	s := open(t)
	save := func(s *service.Service, patch settings.Patch) {
		require.NoError(t, s.Settings.Save(t.Context(), patch))
	}
	save(s, settings.Patch{
		Mode: settings.Set("balanced"), Depth: settings.Set(4), TabstackKey: settings.Set[config.Secret]("tab-secret-1"),
		Ollama: settings.OllamaPatch{NumCtx: settings.Set(4096)},
	})
	without, _ := write(t, s)
	with, _ := write(t, s, func(o *backup.Options) { o.WithKeys = true })
	compare := func(s *service.Service, path string) backup.Report {
		look, err := backup.Look(t.Context(), s.JS)
		require.NoError(t, err)
		r, err := look.CompareSettings(t.Context(), s.Settings, openFile(t, path))
		require.NoError(t, err)
		require.NotRegexp(t, `tab-secret|brave-secret`, fmt.Sprint(r))
		return r
	}
	for _, path := range []string{without, with} {
		r := compare(s, path)
		require.Empty(t, append(r.Differences, r.Notes...))
		require.Positive(t, r.Compared)
	}
	restored, _ := restore(t, with)
	r := compare(restored, with)
	require.Empty(t, append(r.Differences, r.Notes...))

	change := settings.Patch{
		Mode: settings.Forget[string](), Depth: settings.Set(7), TabstackKey: settings.Set[config.Secret]("tab-secret-2"),
		BraveKey: settings.Set[config.Secret]("brave-secret"), Ollama: settings.OllamaPatch{Host: settings.Set("http://127.0.0.1:1")},
	}
	told := []string{
		"depth is 7, and 4 in the backup", `mode is not set, and "balanced" in the backup`, `ollama.host is "http://127.0.0.1:1", and not set in the backup`,
		"brave_key is set, and not in the backup", "tabstack_key is another than in the backup",
	}
	save(restored, change)
	r = compare(restored, with)
	require.Equal(t, told, r.Differences, "a place into which the backup was restored is to have its settings")
	require.Equal(t, told[:3], compare(restored, without).Differences, "keys that the backup has not are not compared")
	save(s, change)
	r = compare(s, with)
	require.Empty(t, r.Differences)
	require.Len(t, r.Notes, len(told))
	require.Equal(t, "since the backup the settings were changed: "+told[0], r.Notes[0], "the notebook has gone on")

	save(restored, settings.Patch{BraveKey: settings.Forget[config.Secret](), TabstackKey: settings.Forget[config.Secret]()})
	require.Contains(t, compare(restored, with).Differences, "tabstack_key is not set, and is in the backup")
	save(restored, settings.Patch{TabstackKey: settings.Set[config.Secret]("tab-secret-1")})
	require.NoError(t, os.Remove(restored.Config.KeyFile))
	r = compare(restored, with)
	require.Contains(t, r.Differences[len(r.Differences)-1], "cannot be compared")
}

// contents is everything in an archive, unpacked.
func contents(t *testing.T, path string) string {
	t.Helper()
	archive, err := zip.OpenReader(path)
	require.NoError(t, err)
	defer archive.Close() //nolint:errcheck // only read
	var all bytes.Buffer
	for _, f := range archive.File {
		r, err := f.Open()
		require.NoError(t, err)
		_, err = io.Copy(&all, r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
	}
	return all.String()
}

func TestAFileThatIsThereIsReplacedOnlyByForce(t *testing.T) {
	t.Parallel()
	s := open(t)
	path := filepath.Join(t.TempDir(), "b.zip")
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	_, err := backup.Write(t.Context(), placeOf(s), path, backup.Options{Now: time.Now})
	require.ErrorIs(t, err, backup.ErrExists)
	kept, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "mine", string(kept))
	m, err := backup.Write(t.Context(), placeOf(s), path, backup.Options{Now: time.Now, Force: true})
	require.NoError(t, err)
	require.Zero(t, m.Counts.Events, "an empty notebook is one too")
	openFile(t, path)
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1)
}

func TestAPlaceThatIsNotEmptyIsRefused(t *testing.T) {
	t.Parallel()
	s := servicetest.NewBus(t).Open("test")
	_, err := s.JS.Publish(t.Context(), topology.Subject("thread", "created", "t", "0", 0), []byte(`{}`))
	require.NoError(t, err)
	err = backup.Prepare(t.Context(), s.JS, bustest.Options())
	require.ErrorIs(t, err, backup.ErrNotEmpty)
	require.ErrorContains(t, err, "threads created: 1; events: 1, from sequence 1 to 1")
}

func TestAPlaceInUseIsRefused(t *testing.T) {
	t.Parallel()
	t.Run("a worker waits", func(t *testing.T) {
		t.Parallel()
		_, _, js := bustest.Start(t)
		consumer, err := js.Consumer(t.Context(), topology.Notebook, topology.Judge)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = consumer.Fetch(1, jetstream.FetchContext(ctx))
		}()
		defer func() { cancel(); <-ended }()
		require.Eventually(t, func() bool {
			info, err := consumer.Info(t.Context())
			return err == nil && info.NumWaiting > 0
		}, servicetest.Wait, 5*time.Millisecond)
		err = backup.Prepare(t.Context(), js, bustest.Options())
		require.ErrorIs(t, err, backup.ErrInUse)
		require.ErrorContains(t, err, topology.Judge)
	})
	t.Run("a service tails", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		servicetest.Listens(t, s)
		require.ErrorIs(t, backup.Prepare(t.Context(), s.JS, bustest.Options()), backup.ErrInUse)
	})
	t.Run("a lease is held", func(t *testing.T) {
		t.Parallel()
		_, _, js := bustest.Start(t)
		_, err := bustest.Bucket(t, js, topology.BucketLeases).Create(t.Context(), "provider.tabstack", []byte("x"))
		require.NoError(t, err)
		require.ErrorIs(t, backup.Prepare(t.Context(), js, bustest.Options()), backup.ErrInUse)
	})
}

// interfering writes an event of its own in the middle of a restore.
type interfering struct {
	*backup.File
	js jetstream.JetStream
}

func (i interfering) Messages(ctx context.Context, do func(projector.Message) error) error {
	n := 0
	return i.File.Messages(ctx, func(m projector.Message) error {
		if n++; n == 3 {
			if _, err := i.js.Publish(ctx, "ext.noise.x.0.0", nil); err != nil {
				return err
			}
		}
		return do(m)
	})
}

func TestARestoreThatWasCutShortIsSeenAndBegunAnew(t *testing.T) {
	t.Parallel()
	s := open(t)
	fill(t, s, "a")
	path, _ := write(t, s)
	bus := servicetest.NewBus(t)
	other := bus.Open("test")
	require.NoError(t, backup.Prepare(t.Context(), bus.JS, bustest.Options()))
	_, err := backup.Restore(t.Context(), placeOf(other), interfering{openFile(t, path), bus.JS}, backup.RestoreOptions{})
	require.ErrorIs(t, err, backup.ErrInterfered)
	other.Close()

	require.ErrorIs(t, topology.Declare(t.Context(), bus.JS, bustest.Options()), topology.ErrUnfinishedRestore, "no service starts on a part")
	_, err = backup.Look(t.Context(), bus.JS)
	require.ErrorIs(t, err, topology.ErrUnfinishedRestore)
	again, r := restoreInto(t, bus, path)
	require.EqualValues(t, 6, r.Events)
	same(t, again, path)
	require.NoError(t, topology.Declare(t.Context(), bus.JS, bustest.Options()))
}

func TestDifferencesAreNamed(t *testing.T) {
	t.Parallel()
	s := open(t)
	fill(t, s, "a")
	path, m := write(t, s)
	stream, err := s.JS.Stream(t.Context(), topology.Notebook)
	require.NoError(t, err)
	require.NoError(t, stream.DeleteMsg(t.Context(), 2))
	look, err := backup.Look(t.Context(), s.JS)
	require.NoError(t, err)
	f := openFile(t, path)
	alter := f.Copy("the copy")
	alter.Messages = func(ctx context.Context, do func(projector.Message) error) error {
		return f.Messages(ctx, func(m projector.Message) error {
			switch m.Seq {
			case 3:
				m.Data = []byte("{}")
			case 4:
				return nil
			case 5:
				m.Time, m.Header = m.Time.Add(time.Second), nats.Header{"X": {"y"}}
			}
			return do(m)
		})
	}
	r, err := look.Compare(t.Context(), alter)
	require.NoError(t, err)
	require.EqualValues(t, m.Counts.Events-2, r.Compared)
	require.Len(t, r.Differences, 5)
	require.Contains(t, r.Differences[0], "event 2 (run.requested.a.runa.0) is in the copy and missing in the stream")
	require.Contains(t, r.Differences[1], "event 3 (attempt.started.a.runa.1): its body in the copy is not that in the stream")
	require.Contains(t, r.Differences[2], "event 4 (run.completed.a.runa.0) is missing in the copy")
	require.Contains(t, r.Differences[3], "its time")
	require.Contains(t, r.Differences[4], "its header")
}

func TestAThreadDeletedSinceTheBackupIsANoteAndNoDifference(t *testing.T) {
	t.Parallel()
	s := open(t)
	fill(t, s, "a")
	fill(t, s, "b")
	path, _ := write(t, s)
	deleteThread(t, s, "a")
	look, err := backup.Look(t.Context(), s.JS)
	require.NoError(t, err)
	r, err := look.Compare(t.Context(), openFile(t, path).Copy("the backup"))
	require.NoError(t, err)
	require.Empty(t, r.Differences)
	require.Equal(t, []string{"the notebook has gone on since the backup: events behind its end: 1",
		"thread a was deleted since the backup: events of it that are only there: 6"}, r.Notes)
}

func TestOddMessagesAreKeptByteForByte(t *testing.T) {
	t.Parallel()
	s := open(t)
	for i, body := range []string{"", "{}", "no json <&> \u2028", "\xff\xfe not text", `{"ref":"x","sha256":7}`} {
		msg := &nats.Msg{Subject: fmt.Sprintf("ext.odd.x.%d.0", i), Data: []byte(body), Header: nats.Header{"X-Own": {"a", "b"}}}
		_, err := s.JS.PublishMsg(t.Context(), msg)
		require.NoError(t, err)
	}
	path, _ := write(t, s)
	other, _ := restore(t, path)
	same(t, other, path)
}

func TestADamagedFileIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t)
	fill(t, s, "a")
	path, _ := write(t, s)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	check := func(name string, body []byte, want ...error) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "b.zip")
		require.NoError(t, os.WriteFile(file, body, 0o600))
		f, err := backup.Open(t.Context(), file)
		if err == nil {
			_ = f.Close()
		}
		require.Error(t, err, name)
		for _, w := range want {
			require.ErrorIs(t, err, w, name)
		}
	}
	for cut := 0; cut < len(whole); cut += 1 + len(whole)/60 {
		check(fmt.Sprint("cut at ", cut), whole[:cut], backup.ErrNotBackup)
	}
	check("no archive", []byte("hello"), backup.ErrNotBackup)
	_, err = backup.Open(t.Context(), filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)

	check("another archive", rewrite(t, path, func(name string, body []byte) (string, []byte) { return "x" + name, body }), backup.ErrNotBackup)
	for name, change := range map[string]func(name string, body []byte) (string, []byte){
		"an event changed": replace("notebook.jsonl", "What is a?", "What is b?"),
		"artifact changed": replace("artifacts/", "Report", "report"),
		"settings changed": replace("settings.json", "{", "{ "),
		"manifest changed": replace("manifest.json", `"events": 6`, `"events": 7`),
		"manifest broken":  replace("manifest.json", `{`, ``),
		"an artifact gone": func(name string, body []byte) (string, []byte) {
			if strings.HasPrefix(name, "artifacts/") {
				return "", nil
			}
			return name, body
		},
	} {
		check(name, rewrite(t, path, change), backup.ErrDamaged)
	}
	check("newer", rewrite(t, path, replace("manifest.json", `"version": 1`, `"version": 2`)), backup.ErrNewer)
	check("other format", rewrite(t, path, replace("manifest.json", backup.Format, "other")), backup.ErrNotBackup)
	check("one more member", rewrite(t, path, func(name string, body []byte) (string, []byte) {
		if name == "README.txt" {
			return "../escape", body
		}
		return name, body
	}), backup.ErrDamaged)
	for at := 40; at < len(whole); at += 1 + len(whole)/80 { // a flipped byte is seen, unless it is one that means nothing
		flipped := bytes.Clone(whole)
		flipped[at] ^= 0x55
		file := filepath.Join(t.TempDir(), "b.zip")
		require.NoError(t, os.WriteFile(file, flipped, 0o600))
		if f, err := backup.Open(t.Context(), file); err == nil {
			require.Equal(t, contents(t, path), contents(t, file))
			require.NoError(t, f.Close())
		}
	}
}

func replace(member, old, with string) func(string, []byte) (string, []byte) {
	return func(name string, body []byte) (string, []byte) {
		if strings.HasPrefix(name, member) {
			body = []byte(strings.Replace(string(body), old, with, 1))
		}
		return name, body
	}
}

// rewrite makes the archive again with changed members; one without a name is left out.
func rewrite(t *testing.T, path string, change func(name string, body []byte) (string, []byte)) []byte {
	t.Helper()
	archive, err := zip.OpenReader(path)
	require.NoError(t, err)
	defer archive.Close() //nolint:errcheck // only read
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range archive.File {
		r, err := f.Open()
		require.NoError(t, err)
		body, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		name, body := change(f.Name, body)
		if name == "" {
			continue
		}
		into, err := w.Create(name)
		require.NoError(t, err)
		_, err = into.Write(body)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func TestTheFileIsReadByHand(t *testing.T) {
	t.Parallel()
	s := open(t)
	fill(t, s, "a")
	path, m := write(t, s)
	archive, err := zip.OpenReader(path)
	require.NoError(t, err)
	defer archive.Close() //nolint:errcheck // only read
	names := map[string]bool{}
	for _, f := range archive.File {
		names[f.Name] = true
	}
	for _, name := range []string{"README.txt", "manifest.json", "notebook.jsonl", "names.jsonl", "trail.jsonl", "settings.json"} {
		require.Contains(t, names, name)
	}
	file, err := archive.Open("notebook.jsonl")
	require.NoError(t, err)
	defer file.Close() //nolint:errcheck // only read
	var first struct {
		Seq           uint64
		Subject, Body string
	}
	require.NoError(t, json.NewDecoder(file).Decode(&first))
	require.Equal(t, "thread.created.a.0.0", first.Subject)
	e, err := event.Parse(first.Subject, []byte(first.Body))
	require.NoError(t, err)
	require.Equal(t, "What is a?", e.Data.(event.ThreadCreated).Question)
	require.Equal(t, len(names), len(m.Members)+1)
}
