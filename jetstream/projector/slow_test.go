package projector_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/jetstream/topology"
)

// A handler that takes long (notebook.db made again on a slow disk) holds the deliveries up: nothing is dropped on the way, and nothing asked for again.
func TestAHandlerThatTakesLongHoldsDeliveriesUp(t *testing.T) {
	t.Parallel()
	_, nc, js := bustest.Start(t)
	last := publish(t, js, 300)
	var dropped atomic.Int64
	nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if errors.Is(err, nats.ErrSlowConsumer) {
			dropped.Add(1)
		}
	})
	created, err := nc.SubscribeSync("$JS.EVENT.ADVISORY.CONSUMER.CREATED." + topology.Notebook + ".>")
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), topology.Notebook)
	require.NoError(t, err)

	var got seen
	p, _ := run(t, js, projector.Config{Batch: 16, Handler: func(ctx context.Context, messages []projector.Message) error {
		if messages[len(messages)-1].Seq < last {
			untilHeldUp(ctx, stream, last)
		}
		return got.handle(ctx, messages)
	}})
	waitFor(t, p, last)
	require.Equal(t, ascending(1, last), got.all())
	require.Zero(t, dropped.Load())
	require.NoError(t, nc.Flush())
	n, _, err := created.Pending()
	require.NoError(t, err)
	require.Equal(t, 1, n, "consumers made")
}

// untilHeldUp returns when no consumer of a stream delivers any more, or one has delivered everything.
func untilHeldUp(ctx context.Context, stream jetstream.Stream, last uint64) {
	for before := uint64(0); ctx.Err() == nil; {
		delivered := uint64(0)
		for info := range stream.ListConsumers(ctx).Info() {
			delivered = max(delivered, info.Delivered.Stream)
		}
		if delivered > 0 && (delivered == before || delivered == last) {
			return
		}
		before = delivered
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}
