package dead_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/dead"
	"github.com/factstream/factstream/jetstream/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDeadLettersAreKeptListedAndForgotten(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	ctx := t.Context()
	items, more, err := dead.List(ctx, js, 0, 10)
	require.NoError(t, err)
	require.Empty(t, items)
	require.False(t, more)

	for i := range 5 {
		item := dead.Item{
			Reason: fmt.Sprintf("no JSON\nat byte %d", i), Durable: topology.Judge, Stream: topology.Notebook,
			StreamSeq: uint64(10 + i), Subject: "facts.distilled.t.r.0", Data: []byte{0, 255, byte(i)},
		}
		require.NoError(t, dead.Put(ctx, js, item))
		require.NoError(t, dead.Put(ctx, js, item), "the same again is kept once")
	}
	items, more, err = dead.List(ctx, js, 0, 3)
	require.NoError(t, err)
	require.Len(t, items, 3)
	require.True(t, more)
	require.Equal(t, "no JSON at byte 0", items[0].Reason)
	require.Equal(t, []byte{0, 255, 0}, items[0].Data)
	require.EqualValues(t, 10, items[0].StreamSeq)
	require.Equal(t, topology.Judge, items[0].Durable)
	require.False(t, items[0].Time.IsZero())

	rest, more, err := dead.List(ctx, js, items[2].Seq, 3)
	require.NoError(t, err)
	require.Len(t, rest, 2)
	require.False(t, more)

	got, err := dead.Get(ctx, js, rest[0].Seq)
	require.NoError(t, err)
	require.Equal(t, rest[0], got)
	require.NoError(t, dead.Delete(ctx, js, got.Seq))
	require.ErrorIs(t, dead.Delete(ctx, js, got.Seq), dead.ErrNotFound)
	require.ErrorIs(t, dead.Delete(ctx, js, 99), dead.ErrNotFound)
	_, err = dead.Get(ctx, js, got.Seq)
	require.ErrorIs(t, err, dead.ErrNotFound)
	_, err = dead.Get(ctx, js, 0)
	require.ErrorIs(t, err, dead.ErrNotFound, "the server takes 0 as no number at all")
	n, err := dead.Count(ctx, js)
	require.NoError(t, err)
	require.EqualValues(t, 4, n)
}

func TestWhatIsTooLargeToKeepTwiceIsKeptByReference(t *testing.T) {
	t.Parallel()
	_, nc, js := bustest.Start(t)
	require.NoError(t, dead.Put(t.Context(), js, dead.Item{
		Reason: strings.Repeat("ü", 2000), Durable: "judge", StreamSeq: 3, Data: make([]byte, nc.MaxPayload()),
	}))
	items, _, err := dead.List(t.Context(), js, 0, 1)
	require.NoError(t, err)
	require.Empty(t, items[0].Data)
	require.EqualValues(t, 3, items[0].StreamSeq)
	require.LessOrEqual(t, len(items[0].Reason), 1000)
}
