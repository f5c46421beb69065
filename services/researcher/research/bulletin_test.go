package research

import (
	"encoding/json"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/trail"
)

// readTrail reads the trail of an attempt, of which so many messages must come.
func readTrail(t *testing.T, r *Researcher, thread, run string, n, count int) []trail.Event {
	t.Helper()
	ctx := withinWait(t)
	consumer, err := r.JS.OrderedConsumer(ctx, topology.Trail, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{topology.TrailSubject(thread, run, n)},
	})
	require.NoError(t, err)
	messages, err := consumer.Messages()
	require.NoError(t, err)
	defer messages.Stop()
	var out []trail.Event
	for range count {
		m, err := messages.Next(jetstream.NextContext(ctx))
		require.NoError(t, err)
		var e trail.Event
		require.NoError(t, json.Unmarshal(m.Data(), &e))
		out = append(out, e)
	}
	return out
}
