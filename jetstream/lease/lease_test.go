package lease_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/jetstream/lease"
	"github.com/factstream/factstream/jetstream/topology"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(bustest.Leaks(m))
}

const key = "provider.tabstack"

// process is another process's view of the leases.
func process(t *testing.T, srv *embedded.Server, name string) (*lease.Leases, jetstream.KeyValue) {
	_, js := bustest.Dial(t, srv)
	kv := bustest.Bucket(t, js, topology.BucketLeases)
	status, err := kv.Status(t.Context())
	require.NoError(t, err)
	return lease.New(kv, lease.Config{TTL: status.TTL(), Name: name, Logger: zerolog.Nop()}), kv
}

// immortal is the option of a bus on which no lease expires while the test runs.
func immortal(o *topology.Options) { o.LeaseTTL = time.Hour }

// holding runs Do in the background until release is called, and returns when the
// lease is held.
func holding(t *testing.T, l *lease.Leases, opts ...lease.Option) (work context.Context, release func() error) {
	t.Helper()
	began := make(chan context.Context, 1)
	done, result := make(chan struct{}), make(chan error, 1)
	go func() {
		result <- l.Do(t.Context(), key, lease.Batch, func(ctx context.Context) error {
			began <- ctx
			select {
			case <-done:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, opts...)
	}()
	release = sync.OnceValue(func() error {
		close(done)
		return <-result
	})
	t.Cleanup(func() { _ = release() })
	return <-began, release
}

func TestOneHolderAtATimeOverProcesses(t *testing.T) {
	t.Parallel()
	srv, _, _ := bustest.Start(t)
	var holders, most, total atomic.Int32
	var wg sync.WaitGroup
	for i := range 3 {
		l, _ := process(t, srv, fmt.Sprint("p", i))
		for range 5 {
			wg.Go(func() {
				err := l.Do(t.Context(), key, lease.Batch, func(context.Context) error {
					n := holders.Add(1)
					for {
						m := most.Load()
						if n <= m || most.CompareAndSwap(m, n) {
							break
						}
					}
					total.Add(1)
					<-time.After(time.Millisecond)
					holders.Add(-1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	require.EqualValues(t, 1, most.Load())
	require.EqualValues(t, 15, total.Load())
}

func TestErrorsOfTheWorkAreReturnedAndPanicsGiveUpTheLease(t *testing.T) {
	t.Parallel()
	srv, _, _ := bustest.Start(t)
	l, _ := process(t, srv, "a")
	broken := errors.New("broken")
	require.ErrorIs(t, l.Do(t.Context(), key, lease.Batch, func(context.Context) error { return broken }), broken)
	require.Panics(t, func() { _ = l.Do(t.Context(), key, lease.Batch, func(context.Context) error { panic("oh") }) })
	_, held, err := l.Holder(t.Context(), key)
	require.NoError(t, err)
	require.False(t, held)
}

func TestRenewalsHoldTheLeaseBeyondItsTTL(t *testing.T) {
	t.Parallel()
	srv, _, _ := bustest.Start(t, bustest.Mortal)
	a, _ := process(t, srv, "a")
	b, _ := process(t, srv, "b")
	work, release := holding(t, a)
	waiting, cancel := context.WithTimeout(t.Context(), 2*bustest.Short)
	defer cancel()
	var saw lease.Holder
	err := b.Do(waiting, key, lease.Batch, func(context.Context) error {
		t.Error("two holders")
		return nil
	}, lease.OnWait(func(h lease.Holder) { saw = h }))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, "a", saw.Name)
	require.NoError(t, work.Err())
	// The waiter that went away took nothing with it.
	h, held, err := b.Holder(t.Context(), key)
	require.NoError(t, err)
	require.True(t, held)
	require.Equal(t, "a", h.Name)
	require.WithinDuration(t, time.Now(), h.Since, time.Minute)
	require.NoError(t, release())
}

func TestWaiterHasTheLeaseSoonAfterItIsGivenUp(t *testing.T) {
	t.Parallel()
	srv, _, _ := bustest.Start(t, immortal)
	a, _ := process(t, srv, "a")
	b, _ := process(t, srv, "b")
	_, release := holding(t, a)
	waits, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- b.Do(t.Context(), key, lease.Batch, func(context.Context) error { return nil }, lease.OnWait(func(lease.Holder) { close(waits) }))
	}()
	<-waits
	require.NoError(t, release())
	require.NoError(t, <-ended)
}

func TestHolderThatDiedLosesTheLeaseAfterTheTTL(t *testing.T) {
	t.Parallel()
	srv, _, _ := bustest.Start(t, bustest.Mortal)
	b, kv := process(t, srv, "b")
	started := time.Now()
	_, err := kv.Create(t.Context(), key, []byte(`{"nonce":"of the dead","name":"a","since":"2026-01-01T00:00:00Z"}`))
	require.NoError(t, err)
	require.NoError(t, b.Do(t.Context(), key, lease.Batch, func(context.Context) error { return nil }))
	require.GreaterOrEqual(t, time.Since(started), bustest.Short)
}

func TestAnotherHolderEndsTheWork(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]lease.Option{"guarded": nil, "kept": {lease.KeepWhileBusAway()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, _, _ := bustest.Start(t)
			a, kv := process(t, srv, "a")
			work, release := holding(t, a, opts...)
			_, err := kv.Put(t.Context(), key, []byte(`{"nonce":"other","name":"b"}`))
			require.NoError(t, err)
			<-work.Done()
			require.ErrorIs(t, context.Cause(work), lease.ErrLost)
			require.ErrorIs(t, release(), lease.ErrLost)
			h, held, err := a.Holder(t.Context(), key)
			require.NoError(t, err)
			require.True(t, held, "the other's lease must stay")
			require.Equal(t, "b", h.Name)
		})
	}
}

// A renewal whose answer was lost leaves a newer revision with the own nonce.
func TestOwnRenewalThatSeemedToFailIsAdopted(t *testing.T) {
	t.Parallel()
	srv, _, _ := bustest.Start(t, bustest.Mortal)
	a, kv := process(t, srv, "a")
	work, release := holding(t, a)
	for range 3 {
		entry, err := kv.Get(t.Context(), key)
		require.NoError(t, err)
		revision, err := kv.Put(t.Context(), key, entry.Value())
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			entry, err := kv.Get(t.Context(), key)
			return err == nil && entry.Revision() > revision
		}, bustest.Patience, 5*time.Millisecond)
	}
	require.NoError(t, work.Err())
	require.NoError(t, release())
	_, held, err := a.Holder(t.Context(), key)
	require.NoError(t, err)
	require.False(t, held)
}

func TestGuardEndsTheWorkWhenTheBusIsAway(t *testing.T) {
	t.Parallel()
	srv, _, _ := bustest.Start(t, bustest.Mortal)
	a, _ := process(t, srv, "a")
	work, release := holding(t, a)
	srv.Shutdown()
	<-work.Done()
	require.ErrorIs(t, context.Cause(work), lease.ErrLost)
	require.ErrorIs(t, release(), lease.ErrLost)
}

func TestPaidCallGoesOnWhileTheBusIsAway(t *testing.T) {
	t.Parallel()
	srv, _, _ := bustest.Start(t, bustest.Mortal)
	a, kv := process(t, srv, "a")
	work, release := holding(t, a, lease.KeepWhileBusAway())
	srv = bustest.Restart(t, srv, func() {
		select { // longer than the TTL: the entry expires as the server starts
		case <-time.After(3 * bustest.Short / 2):
		case <-work.Done():
			t.Error("ended while the bus was away")
		}
	})
	require.Eventually(t, func() bool { // taken again
		entry, err := kv.Get(t.Context(), key)
		return err == nil && time.Since(entry.Created()) < bustest.Short/2
	}, bustest.Patience, 5*time.Millisecond)
	require.NoError(t, work.Err())

	b, _ := process(t, srv, "b")
	waiting, cancel := context.WithTimeout(t.Context(), bustest.Short)
	defer cancel()
	err := b.Do(waiting, key, lease.Batch, func(context.Context) error {
		t.Error("two holders")
		return nil
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, release())
}

// A bus that is away for long is told of when that begins and when it is over, however often a renewal is tried meanwhile.
func TestThatALeaseIsNotRenewedIsSaidOnceAndThatItIsAgain(t *testing.T) {
	t.Parallel()
	srv, _, _ := bustest.Start(t, immortal)
	_, kv := process(t, srv, "a")
	bus := &refusing{KeyValue: kv}
	var log bytes.Buffer // of the renewing alone, until release has waited for its end
	a := lease.New(bus, lease.Config{TTL: 500 * time.Millisecond, Name: "a", Logger: zerolog.New(zerolog.SyncWriter(&log))})
	_, release := holding(t, a, lease.KeepWhileBusAway())
	// further waits until n more renewals have begun: all but the last are over.
	further := func(n int32) {
		from := bus.renewals.Load()
		require.Eventually(t, func() bool { return bus.renewals.Load() >= from+n }, bustest.Patience, 5*time.Millisecond)
	}
	for range 2 {
		bus.away.Store(true)
		further(4)
		bus.away.Store(false)
		further(3)
	}
	require.NoError(t, release())
	const begins, over = "lease not renewed, trying again", "lease renewed again"
	var said []string
	for line := range strings.Lines(log.String()) {
		var entry struct{ Message string }
		require.NoError(t, json.Unmarshal([]byte(line), &entry))
		if entry.Message == begins || entry.Message == over {
			said = append(said, entry.Message)
		}
	}
	require.Equal(t, []string{begins, over, begins, over}, said)
}

// refusing is a bucket that renews nothing while it is away, and else anything at once.
type refusing struct {
	jetstream.KeyValue
	away     atomic.Bool
	renewals atomic.Int32
}

func (r *refusing) Update(context.Context, string, []byte, uint64) (uint64, error) {
	n := r.renewals.Add(1)
	if r.away.Load() {
		return 0, context.DeadlineExceeded
	}
	return uint64(n), nil
}

// A process that was stopped past the TTL, right before it would spend money, learns that the lease is another's.
func TestConfirmFindsOutThatTheLeaseIsLost(t *testing.T) {
	t.Parallel()
	srv, _, _ := bustest.Start(t)
	mine, kv := process(t, srv, "one")
	require.ErrorIs(t, lease.Confirm(t.Context()), lease.ErrLost, "a context of no lease")
	work, _ := holding(t, mine, lease.KeepWhileBusAway())
	require.NoError(t, lease.Confirm(work))

	require.NoError(t, kv.Delete(t.Context(), key))
	theirs, _ := process(t, srv, "two")
	holding(t, theirs)
	require.Eventually(t, func() bool { return errors.Is(lease.Confirm(work), lease.ErrLost) || context.Cause(work) != nil }, bustest.Patience, 5*time.Millisecond)
}

func TestBatchStandsBackWhileAPersonWaits(t *testing.T) {
	t.Parallel()
	srv, _, _ := bustest.Start(t)
	a, kv := process(t, srv, "a")
	_, release := holding(t, a)

	order := make(chan string, 10)
	var wg sync.WaitGroup
	wait := func(l *lease.Leases, name string, p lease.Priority) {
		waits := make(chan struct{})
		wg.Go(func() {
			err := l.Do(t.Context(), key, p, func(context.Context) error {
				order <- name
				return nil
			}, lease.OnWait(func(lease.Holder) { close(waits) }))
			if err != nil {
				t.Error(err)
			}
		})
		<-waits
	}
	for i := range 3 {
		l, _ := process(t, srv, "batch")
		wait(l, fmt.Sprint("batch", i), lease.Batch)
	}
	p, _ := process(t, srv, "gateway")
	wait(p, "person", lease.Interactive)
	require.Eventually(t, func() bool {
		_, err := kv.Get(t.Context(), key+".wait")
		return err == nil
	}, bustest.Patience, time.Millisecond)
	require.NoError(t, release())
	wg.Wait()
	require.Equal(t, "person", <-order)
	require.Len(t, order, 3)
	_, err := kv.Get(t.Context(), key+".wait")
	require.ErrorIs(t, err, jetstream.ErrKeyNotFound)
}

func TestPersonWhoGoesAwayHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	srv, _, _ := bustest.Start(t, bustest.Mortal)
	a, kv := process(t, srv, "a")
	// The entry of a gateway that died while somebody waited.
	_, err := kv.Put(t.Context(), key+".wait", []byte(`{"nonce":"dead"}`))
	require.NoError(t, err)
	require.NoError(t, a.Do(t.Context(), key, lease.Batch, func(context.Context) error { return nil }))
}

func TestWaitingEndsWithTheConnection(t *testing.T) {
	t.Parallel()
	srv, _, _ := bustest.Start(t)
	a, _ := process(t, srv, "a")
	_, release := holding(t, a)
	nc, js := bustest.Dial(t, srv)
	b := lease.New(bustest.Bucket(t, js, topology.BucketLeases), lease.Config{TTL: bustest.LeaseTTL})
	waits, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- b.Do(t.Context(), key, lease.Batch, func(context.Context) error { return nil },
			lease.OnWait(func(lease.Holder) { close(waits) }))
	}()
	<-waits
	nc.Close()
	require.Error(t, <-ended)
	require.NoError(t, release())
}

// A server that is killed with the request for a watch leaves it unanswered. Whoever waits looks again all the same.
func TestAWatchThatIsNeverMadeHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	srv, _, _ := bustest.Start(t)
	a, kv := process(t, srv, "a")
	_, release := holding(t, a)
	b := lease.New(unwatched{kv}, lease.Config{TTL: bustest.LeaseTTL, Name: "b", Logger: zerolog.Nop()})
	waits, ended := make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), bustest.Patience)
	defer cancel()
	go func() {
		ended <- b.Do(ctx, key, lease.Batch, func(context.Context) error { return nil }, lease.OnWait(func(lease.Holder) { close(waits) }))
	}()
	<-waits
	require.NoError(t, release())
	require.NoError(t, <-ended)
}

// unwatched is a bucket that does not answer who wants to watch it.
type unwatched struct{ jetstream.KeyValue }

func (unwatched) WatchFiltered(ctx context.Context, _ []string, _ ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// When the bus comes back, the entry of a paid call that went on may have expired. Its holder looks for it within one request; who waits leaves it that time.
func TestWhoWaitsLeavesTheHolderTimeWhenTheBusIsBack(t *testing.T) {
	t.Parallel()
	srv, _, _ := bustest.Start(t, bustest.Mortal)
	_, kv := process(t, srv, "a")
	bus := &silent{KeyValue: kv}
	bus.away.Store(true)
	b := lease.New(bus, lease.Config{TTL: bustest.Short, Name: "b", Logger: zerolog.Nop()})
	waits, has := make(chan struct{}), make(chan time.Time, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- b.Do(t.Context(), key, lease.Batch, func(context.Context) error {
			has <- time.Now()
			return nil
		}, lease.OnWait(func(lease.Holder) { close(waits) }))
	}()
	<-waits
	back := time.Now()
	bus.away.Store(false)
	const request, retry = bustest.Short / 5, 500 * time.Millisecond
	require.GreaterOrEqual(t, (<-has).Sub(back), request+retry)
	require.NoError(t, <-ended)
}

// silent is a bucket that does not answer while it is away.
type silent struct {
	jetstream.KeyValue
	away atomic.Bool
}

func (s *silent) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	if s.away.Load() {
		return nil, context.DeadlineExceeded
	}
	return s.KeyValue.Get(ctx, key)
}

func (s *silent) Status(ctx context.Context) (jetstream.KeyValueStatus, error) {
	if s.away.Load() {
		return nil, context.DeadlineExceeded
	}
	return s.KeyValue.Status(ctx)
}
