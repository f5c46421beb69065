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
	for size, within := range map[int64]time.Duration{
		0: requestTime, 6 << 10: requestTime + time.Second, 64 << 20: requestTime + 64*time.Second, 1 << 40: longestTime, 1 << 62: longestTime,
	} {
		ctx, cancel := bounded(patient, size)
		deadline, has := ctx.Deadline()
		cancel()
		require.True(t, has)
		require.Positive(t, time.Until(deadline))
		require.LessOrEqual(t, time.Until(deadline), within)
	}
	hurried, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	ctx, cancel := bounded(hurried, 1<<30)
	defer cancel()
	deadline, _ := ctx.Deadline()
	require.LessOrEqual(t, time.Until(deadline), time.Second, "who has less time is not kept longer")
}

func TestWhatIsSweptIsOlderThanAnyPutMayBe(t *testing.T) {
	t.Parallel()
	ctx, cancel := bounded(t.Context(), 1<<62)
	defer cancel()
	deadline, _ := ctx.Deadline()
	require.Less(t, time.Until(deadline), SafeAge)
	largest, cancel := bounded(t.Context(), 256<<20)
	defer cancel()
	deadline, _ = largest.Deadline()
	require.Greater(t, time.Until(deadline), 256*time.Second, "the largest answer has all of its time")
}
