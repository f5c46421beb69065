package up

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/topology"
)

// A store that refuses writes is opened again where it was, by itself: clients only lose their connection for a moment.
func TestABrokenStoreIsOpenedAgain(t *testing.T) {
	t.Parallel()
	cfg := load(t, "FACTSTREAM_DATA", t.TempDir())
	b, err := openBus(t.Context(), cfg, zerolog.Nop())
	require.NoError(t, err)
	t.Cleanup(b.close)
	require.False(t, b.broken())

	ctx, cancel := context.WithTimeout(t.Context(), 2*bustest.Patience)
	defer cancel()
	nc, js, err := connect.Dial(ctx, connect.Config{URL: b.url.Reveal(), Name: "test", Logger: zerolog.Nop()})
	require.NoError(t, err)
	defer nc.Close()
	subject := topology.Subject("ext", "noted", "t", "r", 0)
	_, err = js.Publish(ctx, subject, []byte("before"))
	require.NoError(t, err)

	at := b.address()
	b.mu.Lock()
	b.server.Shutdown()
	b.server = nil // as after a try that failed
	b.mu.Unlock()
	require.True(t, b.broken())
	require.Eventually(t, func() bool {
		trying, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := js.Publish(trying, subject, []byte("after"))
		return err == nil
	}, bustest.Patience, 20*time.Millisecond)
	require.False(t, b.broken())
	require.Equal(t, at, b.address())
	stream, err := js.Stream(ctx, topology.Notebook)
	require.NoError(t, err)
	kept, err := stream.GetMsg(ctx, 1)
	require.NoError(t, err)
	require.Equal(t, "before", string(kept.Data))
	_, err = js.KeyValue(ctx, topology.BucketProgress)
	require.NoError(t, err, "what lives in memory is declared again")
}

func TestAStoreIsOpenedAgainWhenItTakesNoWritesAndItsOwnDiskHasRoom(t *testing.T) {
	t.Parallel()
	const none = "/home/servers/1"
	for name, c := range map[string]struct {
		free     int64
		err      error
		broken   bool
		mendable bool
	}{
		"it is well":                    {leastFree, nil, false, false},
		"it is well and the disk full":  {0, nil, false, false},
		"it takes no writes":            {leastFree, nil, true, true},
		"the disk is still full":        {leastFree - 1, nil, true, false},
		"nobody can tell what is free":  {leastFree, errors.New("no such directory"), true, false},
		"there is room, and much of it": {1 << 40, nil, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := store{none, func(dir string) (int64, error) {
				require.Equal(t, none, dir, "the disk of this store, whatever others have")
				return c.free, c.err
			}, func() bool { return c.broken }}
			require.Equal(t, c.mendable, s.mendable())
		})
	}
}

func TestAServerOfThreeEndsToBeStartedAgainWhenItsStoreIsMendable(t *testing.T) {
	t.Parallel()
	var free atomic.Int64
	looked := make(chan struct{})
	s := store{t.TempDir(), func(string) (int64, error) {
		looked <- struct{}{}
		return free.Load(), nil
	}, func() bool { return true }}
	ticks, ended := make(chan time.Time), make(chan error, 1)
	go func() { ended <- untilMendable(t.Context(), ticks, s) }()
	for range 3 { // it serves what it has for as long as the disk is full
		ticks <- time.Now()
		<-looked
	}
	ticks <- time.Now()
	free.Store(leastFree)
	<-looked
	require.ErrorIs(t, <-ended, ErrStoreBroken)

	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, untilMendable(over, nil, s), "it was told to stop")
}
