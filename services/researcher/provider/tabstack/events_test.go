package tabstack

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/fixtures"
)

// Whatever a complete event holds: it is a report or a named failure, and every page keeps its place.
func FuzzComplete(f *testing.F) {
	for _, mode := range []string{"fast", "balanced"} {
		stream, err := fixtures.Stream("tabstack", mode)
		require.NoError(f, err)
		_, complete, found := strings.Cut(string(stream), "event: complete\ndata: ")
		require.True(f, found)
		f.Add([]byte(strings.TrimSpace(complete)))
	}
	f.Add([]byte(`{"report":"R","metadata":{"citedPages":[null,{"url":"u","published":1790000000,"fullText":"t"}],"gapEvaluations":[[]],"executedQueries":[["a"],1]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s Events
		final, failure := s.Take("complete", data)
		require.NotEqual(t, final, failure != nil)
		if !final {
			require.NotEmpty(t, failure.Detail)
			return
		}
		r := s.Result()
		require.NotEmpty(t, strings.TrimSpace(r.Report))
		require.True(t, r.Metadata == nil || json.Valid(r.Metadata))
		for i, p := range r.Pages {
			require.Equal(t, i+1, p.N)
			require.True(t, p.Raw == nil || json.Valid(p.Raw))
			require.Equal(t, p.PublishedAt == nil, p.PublishedPrecision == "")
			require.GreaterOrEqual(t, p.Depth, 0)
		}
		require.NotEmpty(t, taskError(data).Detail)
	})
}

func TestWhatAnErrorEventSaysIsShortAndWithoutControlCharacters(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(map[string]any{
		"error":    map[string]string{"name": "Bad\x1b[31m" + strings.Repeat("x", 100_000), "message": "no\x07 luck\r\nat all"},
		"activity": "search\x1b[2Jing " + strings.Repeat("y", 100_000),
	})
	require.NoError(t, err)
	said := taskError(data).Detail
	require.Contains(t, said, "no luck at all")
	require.Contains(t, said, "Bad[31mxxx")
	require.False(t, strings.ContainsFunc(said, unicode.IsControl))
	require.Less(t, len(said), 1000)
}
