package worker

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A request within a step is one of many: the library must not wait for its answer as long as the whole step may take.
func TestAStepsEndIsNotTheDeadlineOfItsRequests(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t.Context(), time.Millisecond)
	defer cancel()
	_, has := ctx.Deadline()
	require.False(t, has)
	<-ctx.Done()
	require.ErrorIs(t, context.Cause(ctx), ErrDeadline)

	endless, cancel := limited(t.Context(), -1)
	require.NoError(t, endless.Err())
	cancel()
	require.NotErrorIs(t, context.Cause(endless), ErrDeadline)
}
