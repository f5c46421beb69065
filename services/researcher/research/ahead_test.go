package research

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/fixtures"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service/servicetest"
	"github.com/factstream/factstream/shared/telemetry"
)

// replayed asks for a replay that nobody does yet.
func replayed(t *testing.T, r *Researcher) job {
	t.Helper()
	thread := newThread(t, r.Service)
	run := request(t, r.Service, thread, servicetest.Access)
	j := job{cause: "requested " + run, thread: thread, run: run, asked: runOf(r.Service, thread, run).Requested}
	require.True(t, j.asked.Replay)
	return j
}

// objects lists what is kept, of all threads.
func objects(t *testing.T, r *Researcher) (names []string) {
	t.Helper()
	store, err := r.JS.ObjectStore(t.Context(), topology.StoreArtifacts)
	require.NoError(t, err)
	all, err := store.List(t.Context())
	if err != nil {
		require.ErrorIs(t, err, jetstream.ErrNoObjectsFound)
	}
	for _, o := range all {
		names = append(names, o.Name)
	}
	return names
}

func playNow(t *testing.T, r *Researcher, j job) (string, error) {
	t.Helper()
	watching := r.publish(t.Context(), j)
	defer watching.end()
	return r.playAhead(t.Context(), t.Context(), j, watching)
}

// The answer of a replay that is played in one go is never in the spool: the file of an attempt is that of the process which has claimed it.
func TestAReplayIsPlayedWhileItIsClaimed(t *testing.T) {
	t.Parallel()
	r := open(t, servicetest.NewBus(t), Options{})
	servicetest.Run(t, r.Service)
	j := replayed(t, r)
	others := []byte("what another process writes into its file")
	leave(t, r, attempt{j.thread, j.run, 1}, others)
	outcome, err := playNow(t, r, j)
	require.NoError(t, err)
	require.Equal(t, telemetry.OutcomeDone, outcome)
	run := runOf(r.Service, j.thread, j.run)
	require.Equal(t, "completed", run.Status)
	require.Equal(t, 1, run.Completed.Attempt)
	require.Len(t, run.Attempts, 1)
	whole, err := r.Artifacts.Get(t.Context(), refOf(brought(t, r.Service, run).Raw))
	require.NoError(t, err)
	require.NotEmpty(t, whole)
	said := readTrail(t, r, j.thread, j.run, 1, run.Completed.Events)
	for i, e := range said {
		require.Equal(t, i+1, e.Seq)
	}
}

// Whatever keeps the claim from being this process's, nothing is left of what was played meanwhile, and nothing of another's is taken.
func TestAPlayedReplayWhoseClaimComesToNothingIsVoid(t *testing.T) {
	t.Parallel()
	whole, err := fixtures.Stream("tabstack", "fast")
	require.NoError(t, err)
	cases := map[string]struct {
		before  func(t *testing.T, r *Researcher, j job)
		outcome string
		err     error
		left    bool // what is kept
	}{
		"cancelled": {outcome: telemetry.OutcomeSkipped, before: func(t *testing.T, r *Researcher, j job) {
			servicetest.Append(t, r.Service, j.thread, notebook.CancelRun{Run: j.run})
		}},
		"its thread is gone": {outcome: telemetry.OutcomeSkipped, before: func(t *testing.T, r *Researcher, j job) {
			servicetest.Append(t, r.Service, j.thread, notebook.DeleteThread{})
		}},
		"another has claimed it": {err: errOvertaken, left: true, before: func(t *testing.T, r *Researcher, j job) {
			servicetest.Append(t, r.Service, j.thread, notebook.StartAttempt{Run: j.run, Holder: "another", Max: 3})
		}},
		"another has settled it": {outcome: telemetry.OutcomeSkipped, left: true, before: func(t *testing.T, r *Researcher, j job) {
			outcome, err := playNow(t, r, j)
			require.NoError(t, err)
			require.Equal(t, telemetry.OutcomeDone, outcome)
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := open(t, servicetest.NewBus(t), Options{})
			servicetest.Run(t, r.Service)
			j := replayed(t, r)
			c.before(t, r, j)
			leave(t, r, attempt{j.thread, j.run, 1}, whole)
			outcome, err := playNow(t, r, j)
			require.ErrorIs(t, err, c.err)
			require.Equal(t, c.outcome, outcome)
			if c.left {
				require.Len(t, objects(t, r), 1)
			} else {
				require.Empty(t, objects(t, r))
			}
			require.Len(t, spooledFiles(t, r), 1, "another's file")
			r.Tail.View(j.thread, func(th *notebook.Thread) {
				if run := th.Runs[j.run]; run != nil {
					require.LessOrEqual(t, len(run.Attempts), 1)
				}
			})
		})
	}
}

// What could not be kept ahead is kept when the answer is settled.
func TestWhatCouldNotBeKeptAheadIsKeptLater(t *testing.T) {
	t.Parallel()
	r := open(t, servicetest.NewBus(t), Options{})
	servicetest.Run(t, r.Service)
	j := replayed(t, r)
	got := r.play(t.Context(), j)
	require.NoError(t, got.err)
	require.NotNil(t, got.kept)
	require.NoError(t, r.Artifacts.Delete(t.Context(), refOf(got.kept.Raw)))
	got.kept = nil
	claim, _, err := r.claim(t.Context(), j, 0)
	require.NoError(t, err)
	require.Equal(t, got.attempt, claim)
	outcome, err := r.settle(t.Context(), j, got.answer)
	require.NoError(t, err)
	require.Equal(t, telemetry.OutcomeDone, outcome)
	_, err = r.Artifacts.Get(t.Context(), refOf(brought(t, r.Service, runOf(r.Service, j.thread, j.run)).Raw))
	require.NoError(t, err)
}

// A recording that ends in a failure fails the attempt, with what came of it in its trail.
func TestAReplayThatFailsAtOnceFailsItsAttempt(t *testing.T) {
	t.Parallel()
	cut, err := fixtures.Stream("tabstack", "truncated")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "cut.sse")
	require.NoError(t, os.WriteFile(file, cut, 0o600))
	r := open(t, servicetest.NewBus(t), Options{}, func(c *config.Config) { c.Replay.File = file })
	servicetest.Run(t, r.Service)
	j := replayed(t, r)
	_, err = playNow(t, r, j)
	require.Error(t, err, "it comes back later")
	run := runOf(r.Service, j.thread, j.run)
	require.Len(t, run.Attempts, 1)
	require.Equal(t, "truncated", run.Attempts[0].Code)
	require.Len(t, objects(t, r), 2, "the raw answer and its name")
}

// A run that is cancelled while it is played ends without a trace.
func TestAReplayThatIsCancelledWhileItIsPlayed(t *testing.T) {
	t.Parallel()
	r := open(t, servicetest.NewBus(t), Options{})
	servicetest.Run(t, r.Service)
	j := replayed(t, r)
	servicetest.Append(t, r.Service, j.thread, notebook.CancelRun{Run: j.run})
	held, cancel := context.WithCancelCause(t.Context())
	cancel(errOver)
	watching := r.publish(t.Context(), j)
	defer watching.end()
	_, err := r.playAhead(t.Context(), held, j, watching)
	require.ErrorIs(t, err, errOver)
	require.Empty(t, objects(t, r))
	require.Equal(t, event.CodeCancelled, runOf(r.Service, j.thread, j.run).Failure.Code)
}

// A run that ends between its claim and the settling of what was kept ahead leaves nothing: nobody else would know of it.
func TestWhatWasKeptAheadGoesWhenItsRunEndsAfterTheClaim(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(j job) notebook.Command{
		"cancelled":          func(j job) notebook.Command { return notebook.CancelRun{Run: j.run} },
		"its thread is gone": func(job) notebook.Command { return notebook.DeleteThread{} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := open(t, servicetest.NewBus(t), Options{})
			servicetest.Run(t, r.Service)
			j := replayed(t, r)
			got := r.play(t.Context(), j)
			require.NotNil(t, got.kept)
			claim, _, err := r.claim(t.Context(), j, 0)
			require.NoError(t, err)
			require.Equal(t, 1, claim.n)
			servicetest.Append(t, r.Service, j.thread, end(j))
			_, err = r.settle(t.Context(), j, got.answer)
			require.NoError(t, err)
			require.Empty(t, objects(t, r))
		})
	}
}

// Whenever a run is cancelled while it is played, neither an object is left nor a piece of one.
func TestARunThatIsCancelledAtAnyMomentLeavesNothing(t *testing.T) {
	t.Parallel()
	r := open(t, servicetest.NewBus(t), Options{})
	servicetest.Run(t, r.Service)
	stream, err := r.JS.Stream(t.Context(), "OBJ_"+topology.StoreArtifacts)
	require.NoError(t, err)
	for n := range 60 {
		j := replayed(t, r)
		held, release := r.until(t.Context(), j.thread, errOver, func(th *notebook.Thread) bool { return over(th, j.run) })
		watching := r.publish(t.Context(), j)
		cancelled := make(chan struct{})
		time.AfterFunc(time.Duration(n)*100*time.Microsecond, func() { // from before the claim to behind the end
			defer close(cancelled)
			_, _ = r.Appender.Append(t.Context(), j.thread, notebook.CancelRun{Run: j.run}, notebook.Origin{Seed: j.run})
		})
		_, _ = r.playAhead(t.Context(), held, j, watching)
		<-cancelled
		release()
		watching.end()
		run := runOf(r.Service, j.thread, j.run)
		require.True(t, run.Terminal())
		if run.Completed != nil {
			require.NoError(t, r.Artifacts.Delete(t.Context(), refOf(run.Completed.Kept[0])))
		}
	}
	require.Empty(t, objects(t, r))
	info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter("$O."+topology.StoreArtifacts+".C.>"))
	require.NoError(t, err)
	require.Empty(t, info.State.Subjects)
}
