package research

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/fixtures"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service/servicetest"
	"github.com/factstream/factstream/shared/telemetry"
)

// Two researchers of one machine share the spool. One that was stopped until another had claimed the next attempt finds its own
// answer void; the answer that the other is just paying for stays where it is.
func TestWhoseAnswerIsVoidLeavesTheNextAttemptsFileAlone(t *testing.T) {
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
	requested := runOf(r.Service, thread, run).Requested
	j := job{cause: "requested", thread: thread, run: run, asked: requested}
	void, err := r.findAnswer(t.Context(), j, attempt{thread, run, 1})
	require.NoError(t, err)
	require.NotNil(t, void)
	defer void.close()

	servicetest.Append(t, r.Service, thread, notebook.StartAttempt{Run: run, Holder: "the other", Max: 3, After: 1})
	next := attempt{thread, run, 2}
	leave(t, r, next, whole[:1000])
	_, err = r.settle(t.Context(), j, *void)
	require.ErrorIs(t, err, errOvertaken)
	require.Equal(t, []string{next.file()}, spooledFiles(t, r))

	// And once the run has ended, nothing of it is left.
	leave(t, r, next, whole)
	bought, err := r.findAnswer(t.Context(), j, next)
	require.NoError(t, err)
	require.NotNil(t, bought)
	defer bought.close()
	outcome, err := r.settle(t.Context(), j, *bought)
	require.NoError(t, err)
	require.Equal(t, telemetry.OutcomeDone, outcome)
	require.Equal(t, "completed", awaitRun(t, r.Service, thread, run).Status)
	require.Empty(t, spooledFiles(t, r))
}
