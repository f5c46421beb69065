package trail_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/fixtures"
	"github.com/factstream/factstream/shared/trail"
)

var at = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func TestDataIsShownAsItCame(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", trail.MaxData)
	cases := []struct{ name, event, data, want string }{
		{"JSON", "start", `{"a":1}`, `{"a":1}`},
		{"text", "start", "upstream reset", `{"raw":"upstream reset"}`},
		{"nothing", "start", "", `{"raw":""}`},
		{"complete without its report", "complete", `{"message":"Done","timestamp":"t","report":"# Long"}`, `{"message":"Done","timestamp":"t"}`},
		{"complete that is no object", "complete", `[1]`, `{}`},
		{"too large", "progress", `{"message":"Still here","pages":"` + long + `"}`, `{"message":"Still here","trimmed":262179,"note":"The event is too large for the trail; the whole of it is in the raw answer."}`},
		{"too large, a list", "odd", `["` + long + `"]`, `{"trimmed":262148,"note":"The event is too large for the trail; the whole of it is in the raw answer."}`},
		{"too large in its message", "progress", `{"message":"` + long + `"}`, `{"trimmed":262158,"note":"The event is too large for the trail; the whole of it is in the raw answer."}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := trail.New(3, c.event, at, []byte(c.data))
			require.Equal(t, c.want, string(e.Data))
			require.True(t, json.Valid(e.Data))
			require.Equal(t, 3, e.Seq)
		})
	}
}

func TestARecordedAnswerIsReadAgain(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]int{"fast": 10, "balanced": 36} {
		raw, err := fixtures.Stream("tabstack", mode)
		require.NoError(t, err)
		events, err := trail.Decode(iotest.HalfReader(bytes.NewReader(raw)), at)
		require.NoError(t, err)
		require.Len(t, events, want)
		require.Equal(t, "start", events[0].Name)
		require.Equal(t, "complete", events[want-1].Name)
		require.NotContains(t, string(events[want-1].Data), "report")
		require.Equal(t, want, events[want-1].Seq)
	}
}

func TestWhatCouldBeReadIsGivenWithTheError(t *testing.T) {
	t.Parallel()
	broken := iotest.ErrReader(iotest.ErrTimeout)
	events, err := trail.Decode(iotest.TimeoutReader(strings.NewReader("event: start\ndata: {}\n\n")), at)
	require.ErrorIs(t, err, iotest.ErrTimeout)
	require.Len(t, events, 1)
	_, err = trail.Decode(broken, at)
	require.ErrorIs(t, err, iotest.ErrTimeout)
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("event: a\ndata: {}\n\ndata: x"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		events, err := trail.Decode(bytes.NewReader(raw), at)
		require.NoError(t, err)
		for i, e := range events {
			require.True(t, json.Valid(e.Data))
			require.Equal(t, i+1, e.Seq)
		}
	})
}
