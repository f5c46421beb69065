package research

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/fixtures"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service/servicetest"
	"github.com/factstream/factstream/shared/telemetry"
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

// Two processes that keep equal content at the same moment leave the pieces of one under no name, so that no deletion of their thread finds them.
func TestOfADeletedThreadNoPieceIsLeft(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	r := open(t, bus, Options{Left: time.Nanosecond})
	servicetest.Run(t, r.Service)
	thread, kept := newThread(t, r.Service), newThread(t, r.Service)
	for i, id := range []string{thread, kept} {
		content := []byte("the text of a page")
		ref, err := artifact.RefOf(id, bytes.NewReader(content))
		require.NoError(t, err)
		other, err := artifact.Open(withinWait(t), r.JS)
		require.NoError(t, err)
		may, ended := make(chan struct{}), make(chan error, 1)
		go func() { ended <- other.PutNew(withinWait(t), ref, io.MultiReader(bytes.NewReader(content), gate(may))) }()
		require.Eventually(t, func() bool { return subjects(t, r, objectStream, pieces) == 2*i+1 }, servicetest.Wait, soon)
		_, err = r.Artifacts.Put(withinWait(t), id, content)
		require.NoError(t, err)
		close(may)
		require.NoError(t, <-ended)
	}
	require.Equal(t, 4, subjects(t, r, objectStream, pieces))
	servicetest.Append(t, r.Service, thread, notebook.DeleteThread{})
	require.NoError(t, r.clearOnce(withinWait(t), map[string]int{}))
	require.Equal(t, 1, subjects(t, r, objectStream, pieces), "what the other thread has")
	ref, err := artifact.RefOf(kept, strings.NewReader("the text of a page"))
	require.NoError(t, err)
	got, err := r.Artifacts.Get(withinWait(t), ref)
	require.NoError(t, err)
	require.Equal(t, "the text of a page", string(got))
}

const (
	objectStream = "OBJ_" + topology.StoreArtifacts
	pieces       = "$O." + topology.StoreArtifacts + ".C.*"
)

// gate is content without a byte that ends when the channel is closed.
type gate chan struct{}

func (g gate) Read([]byte) (int, error) {
	<-g
	return 0, io.EOF
}

func TestWhatACancelledReplayLeftGoesWhenNothingOfItsThreadIsOpen(t *testing.T) {
	t.Parallel()
	whole, err := fixtures.Stream("tabstack", "fast")
	require.NoError(t, err)
	answerOf := func(t *testing.T, r *Researcher, thread, run string) (job, *answer) {
		servicetest.Append(t, r.Service, thread, notebook.StartAttempt{Run: run, Holder: "this", Max: 3})
		leave(t, r, attempt{thread, run, 1}, whole)
		j := job{cause: "requested " + run, thread: thread, run: run, asked: runOf(r.Service, thread, run).Requested}
		got, err := r.findAnswer(t.Context(), j, attempt{thread, run, 1})
		require.NoError(t, err)
		require.NotNil(t, got)
		t.Cleanup(got.close)
		return j, got
	}
	cases := map[string]struct {
		end  func(t *testing.T, r *Researcher, thread, other string)
		left int // artifacts
	}{
		"the other is cancelled, too": {end: func(t *testing.T, r *Researcher, thread, other string) {
			servicetest.Append(t, r.Service, thread, notebook.CancelRun{Run: other})
		}},
		"the other had the same answer, of another text": {left: 2, end: func(t *testing.T, r *Researcher, thread, other string) {
			j, got := answerOf(t, r, thread, other)
			got.result.Pages[0].FullText = "Another text of the page."
			outcome, err := r.settle(t.Context(), j, *got)
			require.NoError(t, err)
			require.Equal(t, telemetry.OutcomeDone, outcome)
			require.NoError(t, r.clearOnce(withinWait(t), map[string]int{}))
			require.Len(t, objects(t, r), 3, "it is still distilled")
			chain(t, r.Service, thread, other, "")
		}},
		"its thread is deleted": {end: func(t *testing.T, r *Researcher, thread, _ string) {
			servicetest.Append(t, r.Service, thread, notebook.DeleteThread{})
		}},
		"an event of the thread cannot be read": {left: 2, end: func(t *testing.T, r *Researcher, thread, other string) {
			servicetest.Append(t, r.Service, thread, notebook.CancelRun{Run: other})
			ack, err := r.JS.Publish(t.Context(), "run.renewed."+thread+"."+other+".0",
				[]byte(`{"id":"x","type":"factstream.run.renewed.v1","time":"2026-01-31T12:00:00Z","thread":"`+thread+`","n":0,"data":{}}`))
			require.NoError(t, err)
			require.NoError(t, r.Tail.WaitFor(withinWait(t), ack.Sequence))
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := open(t, servicetest.NewBus(t), Options{Left: time.Nanosecond})
			servicetest.Run(t, r.Service)
			thread := newThread(t, r.Service)
			run, other := request(t, r.Service, thread, servicetest.Access), request(t, r.Service, thread, servicetest.Access)
			servicetest.Append(t, r.Service, thread, notebook.StartAttempt{Run: other, Holder: "another", Max: 3})
			j, got := answerOf(t, r, thread, run)
			got.result.Pages[0].FullText = "The full text of a page."
			got.raw = meanwhile{got.raw, func() { servicetest.Append(t, r.Service, thread, notebook.CancelRun{Run: run}) }}
			outcome, err := r.settle(t.Context(), j, *got)
			require.NoError(t, err)
			require.Equal(t, telemetry.OutcomeSkipped, outcome)
			require.NoError(t, r.clearOnce(withinWait(t), map[string]int{}))
			require.Len(t, objects(t, r), 2, "the other run may be keeping the same at this moment")

			c.end(t, r, thread, other)
			require.NoError(t, r.clearOnce(withinWait(t), map[string]int{}))
			require.Len(t, objects(t, r), c.left)
			r.Tail.View(thread, func(th *notebook.Thread) {
				for _, run := range th.Runs {
					if run.Completed != nil {
						for _, blob := range run.Completed.Kept {
							_, err := r.Artifacts.Get(withinWait(t), refOf(blob))
							require.NoError(t, err)
						}
					}
				}
			})
		})
	}
}

// What is removed as nobody's while an equal answer is kept and not settled is there again when that is settled.
func TestAnAnswerHasWhatWasRemovedAsNobodysWhileItWasKept(t *testing.T) {
	t.Parallel()
	whole, err := fixtures.Stream("tabstack", "fast")
	require.NoError(t, err)
	r := open(t, servicetest.NewBus(t), Options{})
	servicetest.Run(t, r.Service)
	thread := newThread(t, r.Service)
	servicetest.Append(t, r.Service, thread, notebook.CancelRun{Run: request(t, r.Service, thread, servicetest.Access)})
	run := request(t, r.Service, thread, servicetest.Access)
	servicetest.Append(t, r.Service, thread, notebook.StartAttempt{Run: run, Holder: "this", Max: 3})
	leave(t, r, attempt{thread, run, 1}, whole)
	j := job{cause: "requested", thread: thread, run: run, asked: runOf(r.Service, thread, run).Requested}
	got, err := r.findAnswer(t.Context(), j, attempt{thread, run, 1})
	require.NoError(t, err)
	defer got.close()
	ref, err := artifact.RefOf(thread, bytes.NewReader(whole))
	require.NoError(t, err)
	once := sync.OnceFunc(func() { require.NoError(t, r.Artifacts.Delete(withinWait(t), ref)) }) // as decided before the run was asked for
	got.raw = kept{got.raw, once}
	outcome, err := r.settle(t.Context(), j, *got)
	require.NoError(t, err)
	require.Equal(t, telemetry.OutcomeDone, outcome)
	_, err = r.Artifacts.Get(withinWait(t), refOf(brought(t, r.Service, runOf(r.Service, thread, run)).Raw))
	require.NoError(t, err)
}
