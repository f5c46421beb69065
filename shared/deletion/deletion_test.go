package deletion

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/config/testenv"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/replies"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service"
	"github.com/factstream/factstream/shared/service/servicetest"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func setup(t *testing.T) *service.Service {
	t.Helper()
	s := servicetest.NewBus(t).Open("gateway")
	servicetest.Run(t, s)
	return s
}

// fill makes a thread with a little of everything.
func fill(t *testing.T, s *service.Service, thread string) artifact.Ref {
	t.Helper()
	servicetest.Append(t, s, thread, notebook.CreateThread{Question: "q", Settings: servicetest.Settings()})
	_, err := s.JS.Publish(t.Context(), topology.TrailSubject(thread, "r", 1), []byte("{}"))
	require.NoError(t, err)
	bucket, err := s.JS.KeyValue(t.Context(), topology.BucketReplies)
	require.NoError(t, err)
	_, err = replies.New(bucket).Do(t.Context(), model.Key{Thread: thread, Digest: "d", Cause: "c", Step: "s"}, model.Request{}, func(context.Context) (model.Reply, error) {
		return model.Reply{}, nil
	})
	require.NoError(t, err)
	ref, err := s.Artifacts.Put(t.Context(), thread, []byte("report"))
	require.NoError(t, err)
	return ref
}

// left counts what there is of a thread in a stream.
func left(t *testing.T, s *service.Service, stream, filter string) int {
	t.Helper()
	st, err := s.JS.Stream(t.Context(), stream)
	require.NoError(t, err)
	info, err := st.Info(t.Context(), jetstream.WithSubjectFilter(filter))
	require.NoError(t, err)
	return len(info.State.Subjects)
}

func keptReplies(t *testing.T, s *service.Service, thread string) int {
	t.Helper()
	bucket, err := s.JS.KeyValue(t.Context(), topology.BucketReplies)
	require.NoError(t, err)
	n, err := replies.New(bucket).DeleteThread(t.Context(), thread)
	require.NoError(t, err)
	return n
}

func TestAPurgeLeavesTheTombstoneAndOtherThreads(t *testing.T) {
	t.Parallel()
	s := setup(t)
	gone, kept := fill(t, s, "gone"), fill(t, s, "kept")
	servicetest.Append(t, s, "gone", notebook.DeleteThread{})
	// Somebody else's event behind the tombstone does not take the tombstone with it.
	ext := event.Event{ID: "x", Type: "ext", Thread: "gone"}
	_, err := s.JS.PublishMsg(t.Context(), &nats.Msg{Subject: "ext.note.gone.0.0", Data: []byte(`{"id":"` + ext.ID + `"}`)})
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, Purge(t.Context(), s.JS, s.Artifacts, "gone"))
		require.Equal(t, 1, left(t, s, topology.Notebook, "thread.*.gone.>"))
		require.Equal(t, 1, left(t, s, topology.Notebook, "thread.deleted.gone.>"))
		require.Zero(t, left(t, s, topology.Trail, topology.ThreadTrail("gone")))
		require.Zero(t, keptReplies(t, s, "gone"))
		_, err = s.Artifacts.Get(t.Context(), gone)
		require.ErrorIs(t, err, artifact.ErrMissing)
	}
	_, err = s.Artifacts.Get(t.Context(), kept)
	require.NoError(t, err)
	require.Equal(t, 1, left(t, s, topology.Notebook, topology.ThreadFilter("kept")))
	require.Equal(t, 1, left(t, s, topology.Trail, topology.ThreadTrail("kept")))
	require.Equal(t, 1, keptReplies(t, s, "kept"))

	// A process that starts now knows the thread as deleted.
	fresh := notebook.NewTail(s.JS, s.Log)
	ctx, cancel := context.WithTimeout(t.Context(), servicetest.Wait)
	defer cancel()
	ended := make(chan error, 1)
	reading, stop := context.WithCancel(ctx)
	go func() { ended <- fresh.Run(reading) }()
	_, err = fresh.CatchUp(ctx)
	require.NoError(t, err)
	fresh.View("gone", func(th *notebook.Thread) { require.True(t, th.Deleted) })
	stop()
	require.NoError(t, <-ended)
}

func TestAThreadWithoutTombstoneIsNotPurged(t *testing.T) {
	t.Parallel()
	s := setup(t)
	ref := fill(t, s, "alive")
	require.ErrorIs(t, Purge(t.Context(), s.JS, s.Artifacts, "alive"), ErrNoTombstone)
	require.ErrorIs(t, Purge(t.Context(), s.JS, s.Artifacts, "never"), ErrNoTombstone)
	_, err := s.Artifacts.Get(t.Context(), ref)
	require.NoError(t, err)
	require.Equal(t, 1, left(t, s, topology.Notebook, topology.ThreadFilter("alive")))
}

// completed is what the state keeps of an answer, as far as it matters here.
func completed(c event.RunCompleted) *notebook.Completion {
	return &notebook.Completion{Kept: c.Kept()}
}

func TestTheReceiptOfARunIsWhatNoOtherRunHas(t *testing.T) {
	t.Parallel()
	blob := func(name string) event.Blob { return event.Blob{Ref: name, SHA256: name, Size: 1} }
	claims := blob("claims")
	th := notebook.NewThread("t")
	th.Runs["a"] = &notebook.Run{ID: "a", Attempts: []notebook.Attempt{{N: 1}, {N: 2}}, Completed: completed(event.RunCompleted{
		Raw: blob("raw a"), Report: event.Blob{Text: "inline"}, Metadata: blob("metadata"),
		Pages: []event.Page{{FullText: blob("page 1"), Claims: event.Claims{Blob: &claims}}, {FullText: blob("page 2")}, {FullText: blob("page 2")}},
	})}
	th.Runs["b"] = &notebook.Run{ID: "b", Completed: completed(event.RunCompleted{Raw: blob("raw b"), Pages: []event.Page{{FullText: blob("page 1")}}})}
	th.Runs["c"] = &notebook.Run{ID: "c", Deleted: true, Completed: completed(event.RunCompleted{Raw: blob("raw a")})}
	receipt := ReceiptOf(th, "a")
	require.Equal(t, 2, receipt.Attempts)
	var names []string
	for _, ref := range receipt.Refs {
		names = append(names, ref.Ref)
	}
	require.ElementsMatch(t, []string{"raw a", "metadata", "claims", "page 2"}, names)
	require.Equal(t, Receipt{Thread: "t", Run: "none"}, ReceiptOf(th, "none"))

	ref := func(name string) artifact.Ref { return artifact.Ref{Ref: name, SHA256: name, Size: 1} }
	for name, refers := range map[string]bool{"raw a": true, "page 1": true, "raw b": true, "raw c": false} {
		require.Equal(t, refers, Refers(th, ref(name)), name)
	}
	delete(th.Runs, "a")
	require.False(t, Refers(th, ref("raw a")), "a run without its receipt refers to nothing")
}

func TestWhatWasKeptForAnAnswerThatIsVoidIsWhatNoRunHas(t *testing.T) {
	t.Parallel()
	blob := func(name string) event.Blob { return event.Blob{Ref: name, SHA256: name, Size: 1} }
	answer := event.RunCompleted{
		Raw: blob("raw"), Report: blob("report"), Pages: []event.Page{{FullText: blob("page 1")}, {FullText: blob("page 2")}, {FullText: blob("page 2")}},
	}
	th := notebook.NewThread("t")
	void := func() (names []string) {
		for _, ref := range VoidOf(th, "r", answer) {
			names = append(names, ref.Ref)
		}
		return names
	}
	require.Empty(t, void(), "a run that nobody knows")
	th.Runs["r"] = &notebook.Run{ID: "r"}
	require.Empty(t, void(), "the next attempt may settle it")
	th.Runs["r"] = &notebook.Run{ID: "r", EndSeq: 1, Completed: completed(answer)}
	require.Empty(t, void(), "another attempt has settled it")
	th.Runs["r"] = &notebook.Run{ID: "r", EndSeq: 1, Failure: &event.RunFailed{Code: event.CodeCancelled}}
	require.Equal(t, []string{"report", "page 1", "page 2"}, void(), "all but the trail of the attempt")
	th.Runs["r"].Requested.Replay = true
	require.Equal(t, []string{"report", "raw", "page 1", "page 2"}, void(), "nothing else would find what a replay brought")
	th.Runs["r"].Requested.Replay = false
	th.Runs["b"] = &notebook.Run{ID: "b", EndSeq: 2, Completed: completed(event.RunCompleted{Pages: []event.Page{{FullText: blob("page 1")}}})}
	require.Equal(t, []string{"report", "page 2"}, void())
	th.Runs["c"] = &notebook.Run{ID: "c"}
	require.Empty(t, void(), "one that is open may be keeping the same at this moment")
}

func TestWhatIsUnwantedIsWhatNobodyRefersToOrMayKeep(t *testing.T) {
	t.Parallel()
	blob := func(name string) event.Blob { return event.Blob{Ref: name, SHA256: name, Size: 1} }
	has := func(names ...string) *notebook.Completion {
		var kept []event.Blob
		for _, name := range names {
			kept = append(kept, blob(name))
		}
		return &notebook.Completion{Kept: kept}
	}
	cancelled := notebook.Run{EndSeq: 1, Failure: &event.RunFailed{Code: event.CodeCancelled}}
	well := notebook.Run{EndSeq: 2, Completed: has("page 1")}
	cases := map[string]struct {
		runs     []notebook.Run
		gone     bool
		unwanted []string // of page 1 and page 2
	}{
		"no run":                               {},
		"one that ended well":                  {runs: []notebook.Run{well}},
		"one that was cancelled":               {runs: []notebook.Run{cancelled}, unwanted: []string{"page 1", "page 2"}},
		"and another that ended well":          {runs: []notebook.Run{cancelled, well}, unwanted: []string{"page 2"}},
		"and another that waits":               {runs: []notebook.Run{cancelled, well, {Open: true}}},
		"and another that is distilled":        {runs: []notebook.Run{cancelled, well, {EndSeq: 3, Open: true, Completed: has()}}},
		"an attempt before the one that ended": {runs: []notebook.Run{{EndSeq: 1, Attempts: make([]notebook.Attempt, 2), Completed: has("page 2")}}, unwanted: []string{"page 1"}},
		"one whose receipt was deleted":        {runs: []notebook.Run{cancelled, {EndSeq: 1, Deleted: true, Completed: has("page 1")}}, unwanted: []string{"page 1", "page 2"}},
		"a thread that was deleted":            {runs: []notebook.Run{cancelled}, gone: true},
	}
	for name, c := range cases {
		th := notebook.NewThread("t")
		th.Standing, th.Deleted = notebook.Idle, c.gone
		for i := range c.runs {
			th.Runs[string(rune('a'+i))] = &c.runs[i]
		}
		var unwanted []string
		for _, page := range []string{"page 1", "page 2"} {
			if Unwanted(th, artifact.Ref{Ref: page, SHA256: page, Size: 1}) {
				unwanted = append(unwanted, page)
			}
		}
		require.Equal(t, c.unwanted, unwanted, name)
	}
}

func TestADeletedRunTakesItsAttemptsAndItsTrailWithIt(t *testing.T) {
	t.Parallel()
	s := setup(t)
	put := func(content string) artifact.Ref {
		ref, err := s.Artifacts.Put(t.Context(), "t", []byte(content))
		require.NoError(t, err)
		return ref
	}
	cut, raw, report, others := put("cut"), put("raw"), put("report"), put("of another run")
	require.NoError(t, s.Artifacts.Name(t.Context(), "t", artifact.AttemptName("r", 1), cut))
	require.NoError(t, s.Artifacts.Name(t.Context(), "t", artifact.AttemptName("r", 2), raw))
	for _, run := range []string{"r", "other"} {
		_, err := s.JS.Publish(t.Context(), topology.TrailSubject("t", run, 1), []byte("{}"))
		require.NoError(t, err)
	}
	th := notebook.NewThread("t")
	asBlob := func(r artifact.Ref) event.Blob { return event.Blob{Ref: r.Ref, SHA256: r.SHA256, Size: r.Size} }
	th.Runs["r"] = &notebook.Run{ID: "r", Attempts: make([]notebook.Attempt, 3), Completed: completed(event.RunCompleted{Raw: asBlob(raw), Report: asBlob(report)})}
	th.Runs["other"] = &notebook.Run{ID: "other", Completed: completed(event.RunCompleted{Raw: asBlob(others)})}
	for range 2 {
		require.NoError(t, PurgeRun(t.Context(), s.JS, s.Artifacts, ReceiptOf(th, "r")))
	}
	for _, ref := range []artifact.Ref{cut, raw, report} {
		_, err := s.Artifacts.Get(t.Context(), ref)
		require.ErrorIs(t, err, artifact.ErrMissing)
	}
	_, err := s.Artifacts.Get(t.Context(), others)
	require.NoError(t, err)
	require.Zero(t, left(t, s, topology.Trail, topology.RunTrail("t", "r")))
	require.Equal(t, 1, left(t, s, topology.Trail, topology.RunTrail("t", "other")))
}
