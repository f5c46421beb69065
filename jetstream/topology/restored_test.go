package topology_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/topology"
)

func TestAMessageKeepsItsFirstSequenceAndTime(t *testing.T) {
	t.Parallel()
	first, later := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	header := nats.Header{}
	seq, at := topology.Original(header, 7, later)
	require.EqualValues(t, 7, seq)
	require.Equal(t, later, at)
	seq, at = topology.Original(nil, 7, later)
	require.EqualValues(t, 7, seq)
	require.Equal(t, later, at)

	topology.SetOriginal(header, 3, first)
	seq, at = topology.Original(header, 7, later)
	require.EqualValues(t, 3, seq)
	require.Equal(t, first, at)
	for name := range header {
		require.True(t, topology.IsOriginal(name))
		header.Set(name, "nonsense")
	}
	require.Len(t, header, 2)
	seq, at = topology.Original(header, 7, later)
	require.EqualValues(t, 7, seq, "what cannot be read counts as absent")
	require.Equal(t, later, at)
}

func TestWhereARestoredNotebookBeginsIsInTheMetadata(t *testing.T) {
	t.Parallel()
	require.Zero(t, topology.Begins(nil))
	require.Zero(t, topology.Begins(map[string]string{topology.MetaBegins: "x"}))
	require.EqualValues(t, 100_001, topology.Begins(map[string]string{topology.MetaBegins: "100001"}))
}
