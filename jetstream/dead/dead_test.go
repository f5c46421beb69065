package dead_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/dead"
	"github.com/factstream/factstream/jetstream/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(bustest.Leaks(m)) }

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

func TestTheLettersOfOneMessageAreFoundAmongAllOthers(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	letter := func(durable, stream string, seq uint64) {
		require.NoError(t, dead.Put(t.Context(), js, dead.Item{Reason: "bad", Durable: durable, Stream: stream, StreamSeq: seq, Subject: "x"}))
	}
	of := func(seq uint64) (workers []string) {
		items, err := dead.Of(t.Context(), js, topology.Notebook, seq)
		require.NoError(t, err)
		for _, item := range items {
			workers = append(workers, item.Durable)
		}
		return workers
	}
	require.Empty(t, of(7))
	letter(topology.Judge, topology.Notebook, 7)
	for i := range 600 { // more than are read at once
		letter(topology.Distil, topology.Notebook, uint64(100+i))
	}
	letter(topology.Brief, topology.Trail, 7)
	letter(topology.Brief, topology.Notebook, 7)
	require.Equal(t, []string{topology.Judge, topology.Brief}, of(7))
}

func TestWhatWasPassedIsRemembered(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	passed := func() []uint64 {
		seqs, err := dead.Passed(t.Context(), js)
		require.NoError(t, err)
		return seqs
	}
	require.Empty(t, passed())
	for _, seq := range []uint64{7, 3, 7, 100_001} {
		require.NoError(t, dead.Pass(t.Context(), js, seq))
	}
	require.Equal(t, []uint64{3, 7, 100_001}, passed())
}

func TestAListThatDoesNotComeIsNotAnEmptyOne(t *testing.T) {
	t.Parallel()
	srv, _, _ := bustest.Start(t)
	line := bustest.Between(t, srv)
	dialing, cancel := context.WithTimeout(t.Context(), bustest.Patience)
	defer cancel()
	nc, js, err := connect.Dial(dialing, connect.Config{URL: line.URL(), CredentialsFile: srv.CredentialsFile(), Logger: zerolog.Nop()})
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	line.LoseAll()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	_, _, err = dead.List(ctx, js, 0, 10)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, ctx.Err())
}
