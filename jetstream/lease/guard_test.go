package lease

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The work ends before the server can give the lease to another, counted from before the request that renewed it.
func TestTheGuardEndsTheWorkWithinTheTTL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &hold{Leases: &Leases{cfg: Config{TTL: 10 * time.Second}}}
		renewed := time.Now()
		time.Sleep(time.Second) // the answer took its time
		work, end := context.WithCancelCause(t.Context())
		h.guard(renewed, end)
		<-work.Done()
		require.ErrorIs(t, context.Cause(work), ErrLost)
		require.Equal(t, 8*time.Second, time.Since(renewed))

		kept, end := context.WithCancelCause(t.Context())
		h.keep = true
		h.guard(time.Now(), end)
		time.Sleep(time.Hour)
		require.NoError(t, kept.Err(), "a paid call goes on while nobody else can have the lease either")
	})
}
