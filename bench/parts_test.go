package bench

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/text"
)

func TestDecodersFindTheSame(t *testing.T) {
	t.Parallel()
	all, err := tapes(32 << 10)
	require.NoError(t, err)
	require.Len(t, all, 3)
	for _, tape := range all {
		for _, piece := range []int{math.MaxInt, 512, 7} {
			for _, d := range decoders() {
				got, err := d.decode(tape.stream, piece)
				require.NoError(t, err)
				if d.exact {
					require.Equal(t, tape.holds, got, "%s by %d with %s", tape.size, piece, d.name)
				} else {
					require.Equal(t, strings.Count(string(tape.stream), "\n"), got.data, "%s by %d", tape.size, piece)
				}
			}
		}
	}
}

func TestADecoderThatLosesEventsIsNoMeasurement(t *testing.T) {
	t.Parallel()
	all, err := tapes(1 << 10)
	require.NoError(t, err)
	lossy := decoder{"lossy", true, func([]byte, int) (found, error) { return found{}, nil }}
	_, _, _, err = timeDecoder(lossy, all[0], 512, time.Millisecond)
	require.ErrorIs(t, err, errUnfit)
}

func TestPiecesAreNoLargerThanAsked(t *testing.T) {
	t.Parallel()
	p := &pieces{[]byte("abcdefg"), 3}
	var sizes []int
	for {
		n, err := p.Read(make([]byte, 64))
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		sizes = append(sizes, n)
	}
	require.Equal(t, []int{3, 3, 1}, sizes)
}

func TestBareHopsPassEveryMessageOnce(t *testing.T) {
	t.Parallel()
	srv, _, js := bustest.Start(t)
	h, err := openHops(t.Context(), &up{bus: srv.URL(), data: srv.Dir()})
	require.NoError(t, err)
	defer h.close()
	const passes = 5
	for range passes {
		took, err := h.pass(t.Context())
		require.NoError(t, err)
		require.Positive(t, took)
	}
	stream, err := js.Stream(t.Context(), hopStream)
	require.NoError(t, err)
	require.EqualValues(t, passes*hopCount, stream.CachedInfo().State.Msgs)
	notebook, err := js.Stream(t.Context(), topology.Notebook)
	require.NoError(t, err)
	require.Equal(t, notebook.CachedInfo().Config.Storage, stream.CachedInfo().Config.Storage)
	require.Equal(t, notebook.CachedInfo().Config.PersistMode, stream.CachedInfo().Config.PersistMode)
}

func TestCopiesOfAThreadShareNoId(t *testing.T) {
	t.Parallel()
	thread, fact := text.ID("thread"), text.ID("fact")
	s := newStencil([]notebook.Message{
		{Subject: "thread.created." + thread + ".0.0", Header: nats.Header{"Nats-Expected-Last-Subject-Sequence": {"0"}, "traceparent": {"00-1"}}, Data: []byte(`{"thread":"` + thread + `"}`)},
		{Subject: "fact.pinned." + thread + "." + fact + ".0", Data: []byte(`{"fact":"` + fact + `","again":"` + fact + `","text":"no id"}`)},
	})
	one, other := s.copy(1), s.copy(2)
	require.Equal(t, one, s.copy(1))
	require.Equal(t, nats.Header{"traceparent": {"00-1"}}, one[0].Header)
	p, err := topology.Parse(one[1].Subject)
	require.NoError(t, err)
	require.Equal(t, "thread.created."+p.Thread+".0.0", one[0].Subject)
	require.Equal(t, `{"fact":"`+p.ID+`","again":"`+p.ID+`","text":"no id"}`, string(one[1].Data))
	q, err := topology.Parse(other[1].Subject)
	require.NoError(t, err)
	for _, id := range []string{p.Thread, p.ID} {
		require.NotContains(t, []string{thread, fact, q.Thread, q.ID}, id)
	}
}

func TestAStreamIsFilledToTheEvent(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	var events []notebook.Message
	for i := range 7 {
		events = append(events, notebook.Message{Subject: fmt.Sprintf("ext.note.%s.x.%d", text.ID("thread"), i), Data: []byte("{}")})
	}
	last, err := fill(t.Context(), js, newStencil(events), 2500)
	require.NoError(t, err)
	require.EqualValues(t, 2500, last)
}

func TestAProcessThatEndsIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	r := &run{bin: "/bin", dir: t.TempDir()}
	p, err := r.spawn(t.Context(), "sh", nil, "-c", "echo it cannot; exit 4")
	require.NoError(t, err)
	defer p.stop()
	err = p.until(t.Context(), "it is ready", time.Millisecond, func(context.Context) bool { return false })
	require.ErrorIs(t, err, errEnded)
	require.ErrorContains(t, err, "exit status 4")
}
