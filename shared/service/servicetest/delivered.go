package servicetest

import (
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
	row := rows[slices.IndexFunc(rows, func(row topology.Durable) bool { return row.Name == durable })]
	require.Eventually(t, func() bool { return row.Drained(t.Context(), js) == nil }, Wait, 5*time.Millisecond, "%s has done what there is", durable)
}
