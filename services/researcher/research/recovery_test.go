package research

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/fixtures"
	"github.com/factstream/factstream/fixtures/standin"
	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service/servicetest"
	"github.com/factstream/factstream/shared/telemetry"
)

// Each case leaves what a process that was killed would have left: an open attempt, and its answer, or a part of it, in
// the spool or among the artifacts.
func TestAnAnswerThatWasBoughtIsUsedAndNotBoughtAgain(t *testing.T) {
	t.Parallel()
	whole, err := fixtures.Stream("tabstack", "fast")
	require.NoError(t, err)
	refused, err := fixtures.Stream("tabstack", "error")
	require.NoError(t, err)
	cut := whole[:len(whole)-100]

	cases := map[string]struct {
		spool, artifact []byte
		status          string
		calls           int
		attempts        []string
	}{
		"whole in the spool":        {spool: whole, status: "completed", calls: 0, attempts: []string{""}},
		"whole but its last byte":   {spool: whole[:len(whole)-1], status: "completed", calls: 0, attempts: []string{""}},
		"saved and not settled":     {artifact: whole, status: "completed", calls: 0, attempts: []string{""}},
		"cut here and saved there":  {spool: cut, artifact: whole, status: "completed", calls: 0, attempts: []string{""}},
		"the provider's own error":  {spool: refused, status: "failed", calls: 0, attempts: []string{"task_error"}},
		"cut in the spool":          {spool: cut, status: "completed", calls: 1, attempts: []string{"lost", ""}},
		"not a byte":                {spool: []byte{}, status: "completed", calls: 1, attempts: []string{"lost", ""}},
		"nothing, on any machine":   {status: "completed", calls: 1, attempts: []string{"lost", ""}},
		"cut, and saved so as well": {spool: cut, artifact: cut, status: "completed", calls: 1, attempts: []string{"lost", ""}},
	}
	bus := servicetest.NewBus(t)
	other := idle(t, bus)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			provider := standin.Start(t, standin.Options{})
			thread := newThread(t, other)
			r := open(t, bus, Options{}, live(provider))
			run := request(t, other, thread, liveAccess)
			servicetest.Append(t, other, thread, notebook.StartAttempt{Run: run, Holder: "killed", Max: 3})
			if c.spool != nil {
				leave(t, r, attempt{thread, run, 1}, c.spool)
			}
			if c.artifact != nil {
				ref, err := r.Artifacts.Put(t.Context(), thread, c.artifact)
				require.NoError(t, err)
				require.NoError(t, r.Artifacts.Name(t.Context(), thread, artifact.AttemptName(run, 1), ref))
			}
			stop := servicetest.Run(t, r.Service, r.Parts()...)
			defer stop()
			got := awaitRun(t, other, thread, run)
			require.Equal(t, c.status, got.Status, "%+v", got.Failure)
			require.Equal(t, c.calls, provider.Stats().Calls)
			var codes []string
			for _, a := range got.Attempts {
				codes = append(codes, a.Code)
			}
			require.Equal(t, c.attempts, codes)
			if c.status == "completed" {
				requireLedger(t, other, thread, 250, 0)
				require.Equal(t, len(got.Attempts), got.Completed.Attempt)
			} else {
				require.Contains(t, got.Failure.Detail, "may still bill")
			}
			require.Eventually(t, func() bool { return len(spooledFiles(t, r)) == 0 }, servicetest.Wait, soon)
		})
	}
}

func TestAfterThreeLostAttemptsTheRunFails(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	other := idle(t, bus)
	thread := newThread(t, other)
	run := request(t, other, thread, liveAccess)
	for n := range 3 {
		servicetest.Append(t, other, thread, notebook.StartAttempt{Run: run, Holder: "killed", Max: 3, After: n})
	}
	provider := standin.Start(t, standin.Options{})
	start(t, bus, Options{}, live(provider))
	got := awaitRun(t, other, thread, run)
	require.Equal(t, event.CodeAttemptsExhausted, got.Failure.Code)
	require.Zero(t, provider.Stats().Calls)
	requireLedger(t, other, thread, 0, 0)
}

// A call goes on while the bus is away, and what it brought is settled when the bus is back, by the same process and
// without a second call.
func TestAPaidCallOutlivesTheBus(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t, bustest.Mortal)
	// The answer takes longer than the lease would outlive its holder.
	provider := standin.Start(t, standin.Options{Then: standin.Answer{Piece: 512, Hold: bustest.Short * 3 / 2}})
	r, _ := start(t, bus, Options{}, live(provider))
	thread := newThread(t, r.Service)
	run := request(t, r.Service, thread, liveAccess)
	await(t, provider, func(s standin.Stats) bool { return s.Bytes >= 500 })
	bustest.Restart(t, bus.Server, func() {
		await(t, provider, func(s standin.Stats) bool { return s.Whole == 1 })
	})
	got := awaitRun(t, r.Service, thread, run)
	require.Equal(t, "completed", got.Status, "%+v", got.Failure)
	require.Len(t, got.Attempts, 1)
	require.Equal(t, 1, provider.Stats().Calls)
	requireLedger(t, r.Service, thread, 250, 0)
}

// A worker that was overtaken closes its call, and its answer is void.
func TestACallThatWasOvertakenIsClosed(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	gate := make(chan struct{})
	provider := standin.Start(t, standin.Options{Answers: []standin.Answer{{Gate: gate, After: 500}}})
	r, _ := start(t, bus, Options{}, live(provider))
	thread := newThread(t, r.Service)
	run := request(t, r.Service, thread, liveAccess)
	await(t, provider, func(s standin.Stats) bool { return s.Bytes >= 500 })
	servicetest.Append(t, r.Service, thread, notebook.StartAttempt{Run: run, Holder: "another", Max: 3, After: 1})
	await(t, provider, func(s standin.Stats) bool { return s.Left == 1 })
	got := awaitRun(t, r.Service, thread, run)
	require.Equal(t, "completed", got.Status, "%+v", got.Failure)
	require.Equal(t, 3, got.Completed.Attempt)
	requireLedger(t, r.Service, thread, 250, 0)
}

func TestAProcessThatStopsInACallLeavesTheAttemptToTheNext(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	provider := standin.Start(t, standin.Options{Answers: []standin.Answer{{Fault: standin.Stall, After: 500}}})
	other := idle(t, bus)
	one, stop := start(t, bus, Options{Grace: 2 * time.Second}, live(provider))
	thread := newThread(t, other)
	run := request(t, other, thread, liveAccess)
	await(t, provider, func(s standin.Stats) bool { return s.Bytes >= 500 })
	stop()
	await(t, provider, func(s standin.Stats) bool { return s.InFlight == 0 })
	require.Len(t, spooledFiles(t, one), 1)
	start(t, bus, Options{}, live(provider))
	got := awaitRun(t, other, thread, run)
	require.Equal(t, "completed", got.Status, "%+v", got.Failure)
	require.Len(t, got.Attempts, 2)
	require.Equal(t, event.CodeLost, got.Attempts[0].Code)
}

// meanwhile is a raw answer during whose keeping something happens.
type meanwhile struct {
	raw
	happens func()
}

func (m meanwhile) keep(ctx context.Context, store *artifact.Store, thread, name string, known func(artifact.Ref) bool) (artifact.Ref, error) {
	m.happens()
	return m.raw.keep(ctx, store, thread, name, known)
}

func TestWhatIsKeptForARunThatIsCancelledMeanwhileIsRemoved(t *testing.T) {
	t.Parallel()
	whole, err := fixtures.Stream("tabstack", "fast")
	require.NoError(t, err)
	bus := servicetest.NewBus(t)
	r := open(t, bus, Options{})
	servicetest.Run(t, r.Service)
	thread := newThread(t, r.Service)
	run := request(t, r.Service, thread, liveAccess)
	servicetest.Append(t, r.Service, thread, notebook.StartAttempt{Run: run, Holder: "this", Max: 3})
	leave(t, r, attempt{thread, run, 1}, whole)
	j := job{cause: "requested", thread: thread, run: run, asked: runOf(r.Service, thread, run).Requested}
	answer, err := r.findAnswer(t.Context(), j, attempt{thread, run, 1})
	require.NoError(t, err)
	require.NotNil(t, answer)
	defer answer.close()
	answer.result.Pages[0].FullText = "The full text of a page."
	answer.raw = meanwhile{answer.raw, func() { servicetest.Append(t, r.Service, thread, notebook.CancelRun{Run: run}) }}
	outcome, err := r.settle(t.Context(), j, *answer)
	require.NoError(t, err)
	require.Equal(t, telemetry.OutcomeSkipped, outcome)
	raw, err := r.Artifacts.Named(t.Context(), thread, artifact.AttemptName(run, 1))
	require.NoError(t, err)
	objects, err := bus.JS.ObjectStore(t.Context(), topology.StoreArtifacts)
	require.NoError(t, err)
	all, err := objects.List(t.Context())
	require.NoError(t, err)
	var names []string
	for _, object := range all {
		names = append(names, object.Name)
	}
	require.ElementsMatch(t, []string{raw.Ref, thread + "/" + artifact.AttemptName(run, 1)}, names, "the trail of the attempt and no more")
	requireLedger(t, r.Service, thread, 0, 0)
}

// Nothing names what a replay brought, so that the deletion of its run would not find it.
func TestOfAReplayThatIsCancelledMeanwhileNothingIsLeft(t *testing.T) {
	t.Parallel()
	whole, err := fixtures.Stream("tabstack", "fast")
	require.NoError(t, err)
	bus := servicetest.NewBus(t)
	r := open(t, bus, Options{})
	servicetest.Run(t, r.Service)
	thread := newThread(t, r.Service)
	run := request(t, r.Service, thread, servicetest.Access)
	servicetest.Append(t, r.Service, thread, notebook.StartAttempt{Run: run, Holder: "this", Max: 3})
	leave(t, r, attempt{thread, run, 1}, whole)
	j := job{cause: "requested", thread: thread, run: run, asked: runOf(r.Service, thread, run).Requested}
	require.True(t, j.asked.Replay)
	answer, err := r.findAnswer(t.Context(), j, attempt{thread, run, 1})
	require.NoError(t, err)
	require.NotNil(t, answer)
	defer answer.close()
	answer.raw = meanwhile{answer.raw, func() { servicetest.Append(t, r.Service, thread, notebook.CancelRun{Run: run}) }}
	outcome, err := r.settle(t.Context(), j, *answer)
	require.NoError(t, err)
	require.Equal(t, telemetry.OutcomeSkipped, outcome)
	objects, err := bus.JS.ObjectStore(t.Context(), topology.StoreArtifacts)
	require.NoError(t, err)
	_, err = objects.List(t.Context())
	require.ErrorIs(t, err, jetstream.ErrNoObjectsFound)
}

// kept is a raw answer after whose keeping something happens.
type kept struct {
	raw
	happens func()
}

func (k kept) keep(ctx context.Context, store *artifact.Store, thread, name string, known func(artifact.Ref) bool) (artifact.Ref, error) {
	defer k.happens()
	return k.raw.keep(ctx, store, thread, name, known)
}

func TestARunThatIsDeletedWhileItsEqualIsSettledTakesNothingFromIt(t *testing.T) {
	t.Parallel()
	whole, err := fixtures.Stream("tabstack", "fast")
	require.NoError(t, err)
	r := open(t, servicetest.NewBus(t), Options{})
	servicetest.Run(t, r.Service)
	thread := newThread(t, r.Service)
	settle := func(wrap func(raw) raw) notebook.Run {
		run := request(t, r.Service, thread, servicetest.Access)
		servicetest.Append(t, r.Service, thread, notebook.StartAttempt{Run: run, Holder: "this", Max: 3})
		leave(t, r, attempt{thread, run, 1}, whole)
		j := job{cause: "requested " + run, thread: thread, run: run, asked: runOf(r.Service, thread, run).Requested}
		answer, err := r.findAnswer(t.Context(), j, attempt{thread, run, 1})
		require.NoError(t, err)
		require.NotNil(t, answer)
		defer answer.close()
		answer.raw = wrap(answer.raw)
		outcome, err := r.settle(t.Context(), j, *answer)
		require.NoError(t, err)
		require.Equal(t, telemetry.OutcomeDone, outcome)
		return runOf(r.Service, thread, run)
	}
	first := settle(func(its raw) raw { return its })
	chain(t, r.Service, thread, first.ID, "")
	second := settle(func(its raw) raw {
		return kept{its, func() {
			servicetest.Append(t, r.Service, thread, notebook.DeleteRun{Run: first.ID})
			require.NoError(t, r.clearOnce(withinWait(t), map[string]int{}))
		}}
	})
	_, err = r.Artifacts.Get(withinWait(t), refOf(brought(t, r.Service, second).Raw))
	require.NoError(t, err)
}
