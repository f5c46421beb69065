package servicetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/topology"
)

// Delivered waits until the worker of a durable has been given everything that is in the stream for it, and has done all of it.
func Delivered(t testing.TB, js jetstream.JetStream, durable string) {
	t.Helper()
	rows := topology.Durables()
	filters := rows[slices.IndexFunc(rows, func(row topology.Durable) bool { return row.Name == durable })].Filters
	require.Eventually(t, func() bool {
		stream, err := js.Stream(t.Context(), topology.Notebook)
		if err != nil {
			return false
		}
		last := uint64(0)
		for _, filter := range filters {
			m, err := stream.GetLastMsgForSubject(t.Context(), filter)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue
			}
			if err != nil {
				return false
			}
			last = max(last, m.Sequence)
		}
		consumer, err := js.Consumer(t.Context(), topology.Notebook, durable)
		if err != nil {
			return false
		}
		// A consumer may not have counted a message yet that the stream has; its ack floor cannot be ahead.
		info := consumer.CachedInfo() // just asked for
		return info.NumPending == 0 && info.NumAckPending == 0 && info.AckFloor.Stream >= last
	}, Wait, 5*time.Millisecond, "%s has done what there is", durable)
}
