package up

import (
	"context"
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
