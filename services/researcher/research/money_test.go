package research

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/fixtures/standin"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service/servicetest"
)

func TestEightDispatchersReserveWhatTheBudgetAllowsAndNoMore(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	first := idle(t, bus)
	thread := newThread(t, first, func(s *event.Settings) { s.Budget = 500 })
	var refused atomic.Int64
	var dispatchers sync.WaitGroup
	for i := range 8 {
		s := idle(t, bus)
		dispatchers.Go(func() {
			_, err := s.Appender.Append(withinWait(t), thread, notebook.RequestRun{Run: "run" + string(rune('a'+i)), Access: servicetest.Access}, notebook.Origin{})
			var refusal *notebook.Refusal
			if errors.As(err, &refusal) && refusal.Status == 402 {
				refused.Add(1)
			}
		})
	}
	dispatchers.Wait()
	require.Equal(t, int64(6), refused.Load())
	_, err := first.Tail.CatchUp(withinWait(t))
	require.NoError(t, err)
	require.Len(t, stateOf(first, thread).RunIDs, 2)
	requireLedger(t, first, thread, 0, 500)
}

func TestTheSameRequestTwiceReservesOnce(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	a, b := idle(t, bus), idle(t, bus)
	thread := newThread(t, a)
	var both sync.WaitGroup
	for _, s := range []func(){
		func() { servicetest.Append(t, a, thread, notebook.RequestRun{Run: "same", Access: servicetest.Access}) },
		func() { servicetest.Append(t, b, thread, notebook.RequestRun{Run: "same", Access: servicetest.Access}) },
	} {
		both.Go(s)
	}
	both.Wait()
	_, err := a.Tail.CatchUp(withinWait(t))
	require.NoError(t, err)
	requireLedger(t, a, thread, 0, 250)
}

func TestCancelClosesTheConnectionAndReleases(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	gate := make(chan struct{})
	provider := standin.Start(t, standin.Options{Then: standin.Answer{Gate: gate, After: 500}})
	r, _ := start(t, bus, Options{}, live(provider))
	thread := newThread(t, r.Service)
	run := request(t, r.Service, thread, liveAccess)
	await(t, provider, func(s standin.Stats) bool { return s.Bytes >= 500 })
	waiting := request(t, r.Service, thread, liveAccess)
	servicetest.Append(t, r.Service, thread, notebook.CancelRun{Run: run})
	await(t, provider, func(s standin.Stats) bool { return s.Left == 1 && s.InFlight == 0 })
	cancelled := awaitRun(t, r.Service, thread, run)
	require.Equal(t, event.CodeCancelled, cancelled.Failure.Code)
	require.Contains(t, cancelled.Failure.Detail, "the provider may still bill")
	require.Equal(t, "withdrawn", awaitRun(t, r.Service, thread, waiting).Status)
	requireLedger(t, r.Service, thread, 0, 0)
	require.Eventually(t, func() bool { return len(spooledFiles(t, r)) == 0 }, servicetest.Wait, soon)
	require.Equal(t, 1, provider.Stats().Calls)
}

func TestPauseLetsTheCallFinishAndWithdrawsWhatWaits(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	gate := make(chan struct{})
	provider := standin.Start(t, standin.Options{Then: standin.Answer{Gate: gate, After: 500}})
	r, _ := start(t, bus, Options{}, live(provider))
	thread := newThread(t, r.Service)
	running := request(t, r.Service, thread, liveAccess)
	await(t, provider, func(s standin.Stats) bool { return s.Bytes >= 500 })
	waiting := request(t, r.Service, thread, liveAccess)
	servicetest.Append(t, r.Service, thread, notebook.Pause{})
	require.Equal(t, "withdrawn", awaitRun(t, r.Service, thread, waiting).Status)
	requireLedger(t, r.Service, thread, 0, 250)
	close(gate)
	require.Equal(t, "completed", awaitRun(t, r.Service, thread, running).Status)
	requireLedger(t, r.Service, thread, 250, 0)
	require.Equal(t, notebook.Paused, stateOf(r.Service, thread).Standing)
	require.Equal(t, 1, provider.Stats().Calls)
}

func TestARunOfACyclePausedBetweenAttemptsIsWithdrawn(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	gate := make(chan struct{})
	provider := standin.Start(t, standin.Options{Then: standin.Answer{Gate: gate, After: 500, Fault: standin.Reset}})
	r, _ := start(t, bus, Options{}, live(provider))
	thread := newThread(t, r.Service)
	servicetest.Append(t, r.Service, thread, notebook.Start{Access: liveAccess})
	await(t, provider, func(s standin.Stats) bool { return s.Bytes >= 500 })
	servicetest.Append(t, r.Service, thread, notebook.Pause{})
	close(gate)
	run := awaitRun(t, r.Service, thread, stateOf(r.Service, thread).RunIDs[0])
	require.Equal(t, "withdrawn", run.Status)
	requireLedger(t, r.Service, thread, 0, 0)
	require.Equal(t, 1, provider.Stats().Calls)
}

func TestDeletingAThreadEndsItsCallAndLeavesTheTombstone(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	gate := make(chan struct{})
	provider := standin.Start(t, standin.Options{Answers: []standin.Answer{{Gate: gate, After: 500}}})
	r, _ := start(t, bus, Options{Janitor: soon}, live(provider))
	thread := newThread(t, r.Service)
	request(t, r.Service, thread, liveAccess)
	await(t, provider, func(s standin.Stats) bool { return s.Bytes >= 500 })
	servicetest.Append(t, r.Service, thread, notebook.DeleteThread{})
	await(t, provider, func(s standin.Stats) bool { return s.Left == 1 && s.InFlight == 0 })
	require.Eventually(t, func() bool { return len(spooledFiles(t, r)) == 0 }, servicetest.Wait, soon)
	requireOnlyTombstone(t, r, thread)
	// The researcher goes on.
	next := newThread(t, r.Service)
	require.Equal(t, "completed", awaitRun(t, r.Service, next, request(t, r.Service, next, liveAccess)).Status)
}

func TestALoweredBudgetWithdrawsWhatWasNotStarted(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	gate := make(chan struct{})
	provider := standin.Start(t, standin.Options{Then: standin.Answer{Gate: gate, After: 500}})
	r, _ := start(t, bus, Options{}, live(provider))
	thread := newThread(t, r.Service)
	running := request(t, r.Service, thread, liveAccess)
	await(t, provider, func(s standin.Stats) bool { return s.Bytes >= 500 })
	waiting := request(t, r.Service, thread, liveAccess)
	budget := 250
	servicetest.Append(t, r.Service, thread, notebook.Configure{Changes: event.ThreadConfigured{Budget: &budget}})
	require.Equal(t, "withdrawn", awaitRun(t, r.Service, thread, waiting).Status)
	close(gate)
	require.Equal(t, "completed", awaitRun(t, r.Service, thread, running).Status)
	requireLedger(t, r.Service, thread, 250, 0)
}

func TestNoCallStartsWhileThereIsNoRoomAndItGoesOnByItself(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	provider := standin.Start(t, standin.Options{})
	var free, looks atomic.Int64
	r, _ := start(t, bus, Options{Room: soon, Free: func(context.Context) (int64, error) {
		looks.Add(1)
		return free.Load(), nil
	}}, live(provider))
	thread := newThread(t, r.Service)
	run := request(t, r.Service, thread, liveAccess)
	require.Eventually(t, func() bool { return looks.Load() > 0 }, servicetest.Wait, soon)
	require.Eventually(t, func() bool {
		entries, err := r.Progress.Read(withinWait(t), thread)
		return err == nil && len(entries) == 1 && entries[0].State.State == "waiting" && entries[0].Entity == run
	}, servicetest.Wait, soon)
	require.Zero(t, provider.Stats().Calls)
	require.Empty(t, runOf(r.Service, thread, run).Attempts)
	free.Store(1 << 30)
	require.Equal(t, "completed", awaitRun(t, r.Service, thread, run).Status)
}

func TestASpoolThatIsGoneIsMadeAgain(t *testing.T) {
	t.Parallel()
	bus := servicetest.NewBus(t)
	provider := standin.Start(t, standin.Options{})
	r, _ := start(t, bus, Options{}, live(provider))
	require.NoError(t, os.RemoveAll(string(r.spool)))
	thread := newThread(t, r.Service)
	require.Equal(t, "completed", awaitRun(t, r.Service, thread, request(t, r.Service, thread, liveAccess)).Status)
	require.DirExists(t, string(r.spool))
	requireLedger(t, r.Service, thread, 250, 0)
}

func TestReplaysTakeTheirTimeAndDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	const pause = 400 * time.Millisecond // before each of a dozen pieces: far longer than the second one takes to begin
	bus := servicetest.NewBus(t)
	r, _ := start(t, bus, Options{}, func(c *config.Config) { c.Replay.Delay = pause })
	a, b := newThread(t, r.Service), newThread(t, r.Service)
	runA, runB := request(t, r.Service, a, servicetest.Access), request(t, r.Service, b, servicetest.Access)
	first, second := awaitRun(t, r.Service, a, runA), awaitRun(t, r.Service, b, runB)
	pauses := time.Duration(brought(t, r.Service, first).Bytes/512 - 1)
	require.Greater(t, first.Ended.Sub(first.Attempts[0].Started), pause*pauses)
	require.True(t, second.Attempts[0].Started.Before(first.Ended), "the second one began while the first was played")
}
