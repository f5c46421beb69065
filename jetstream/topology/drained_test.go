package topology_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/topology"
)

func TestAWorkerIsDrainedWhenItHasAcknowledgedAllThatIsForIt(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	ctx := t.Context()
	var judge topology.Durable
	for _, d := range topology.Durables() {
		require.NoError(t, d.Drained(ctx, js), "%s: nothing is in the stream", d.Name)
		if d.Name == topology.Judge {
			judge = d
		}
	}
	publish := func(family, verb string) {
		t.Helper()
		_, err := js.Publish(ctx, topology.Subject(family, verb, "t", "r", 0), []byte("{}"))
		require.NoError(t, err)
	}
	publish("run", "requested")
	require.NoError(t, judge.Drained(ctx, js), "what another worker has to do")

	consumer, err := js.Consumer(ctx, topology.Notebook, judge.Name)
	require.NoError(t, err)
	for _, kind := range [][2]string{{"facts", "distilled"}, {"stage", "retried"}} { // one of each filter
		publish(kind[0], kind[1])
		require.ErrorIs(t, judge.Drained(ctx, js), topology.ErrBusy, "not delivered")
		m, err := consumer.Next()
		require.NoError(t, err)
		require.ErrorIs(t, judge.Drained(ctx, js), topology.ErrBusy, "delivered")
		require.NoError(t, m.DoubleAck(ctx))
		require.NoError(t, judge.Drained(ctx, js))
	}
	err = topology.Durable{Name: "nobody"}.Drained(ctx, js)
	require.Error(t, err)
	require.NotErrorIs(t, err, topology.ErrBusy)
}
