package artifact

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAnOperationEndsLongBeforeACallerThatHasMuchTime(t *testing.T) {
	t.Parallel()
	patient, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for size, within := range map[int64]time.Duration{0: requestTime, 6 << 10: requestTime + time.Second, 64 << 20: requestTime + 64*time.Second} {
		ctx, cancel := bounded(patient, size)
		deadline, has := ctx.Deadline()
		cancel()
		require.True(t, has)
		require.LessOrEqual(t, time.Until(deadline), within)
	}
	hurried, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	ctx, cancel := bounded(hurried, 1<<30)
	defer cancel()
	deadline, _ := ctx.Deadline()
	require.LessOrEqual(t, time.Until(deadline), time.Second, "who has less time is not kept longer")
}
