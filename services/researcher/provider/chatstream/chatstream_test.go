package chatstream_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/fixtures"
	"github.com/factstream/factstream/services/researcher/provider"
	"github.com/factstream/factstream/services/researcher/provider/chatstream"
	"github.com/factstream/factstream/services/researcher/provider/providertest"
)

// read reads a stream one byte at a time.
func read(t *testing.T, stream []byte) (provider.Result, *provider.Error) {
	t.Helper()
	result, err := provider.Read(t.Context(), iotest.OneByteReader(bytes.NewReader(stream)), provider.Reading{
		Provider: "some", Protocol: new(chatstream.Events), Sink: new(providertest.Recorder), Now: time.Now, Billing: "It may be billed.",
	})
	if err != nil {
		require.NotNil(t, provider.AsError(err))
	}
	return result, provider.AsError(err)
}

func TestVectors(t *testing.T) {
	t.Parallel()
	vectors, err := fixtures.Vectors()
	require.NoError(t, err)
	ran := 0
	for _, v := range vectors {
		if !strings.HasPrefix(v.ID, "app-openai") {
			continue
		}
		ran++
		_, failure := read(t, v.Bytes())
		got := "complete"
		if failure != nil {
			got = string(failure.Code)
		}
		require.Equal(t, v.App, got, v.Note)
	}
	require.Equal(t, 3, ran)
}

func TestRecordedStreams(t *testing.T) {
	t.Parallel()
	stream := func(mode string) []byte {
		b, err := fixtures.Stream("brave", mode)
		require.NoError(t, err)
		return b
	}
	result, failure := read(t, stream("citations"))
	require.Nil(t, failure)
	require.True(t, strings.HasPrefix(result.Report, "Auralith Energy now plans series production of solid-state cells for 2030."))
	require.Contains(t, result.Report, `<citation>{`)
	require.Contains(t, result.Report, `"X-Request-Total-Cost":`)

	_, failure = read(t, stream("truncated"))
	require.Equal(t, provider.CodeTruncated, failure.Code)

	_, failure = read(t, stream("error"))
	require.Equal(t, provider.CodeTaskError, failure.Code)
	require.Contains(t, failure.Detail, "Request rate limit exceeded for plan.")
}

func TestHowAStreamMayEnd(t *testing.T) {
	t.Parallel()
	const text, stop, length = `data: {"choices":[{"delta":{"content":"Hi"}}]}` + "\n\n", `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n",
		`data: {"choices":[{"delta":{},"finish_reason":"length"}]}` + "\n\n"
	for _, c := range []struct {
		name, stream string
		code         provider.Code
	}{
		{"the mark alone", text + "data: [DONE]\n\n", ""},
		{"the mark without its line end", text + "data: [DONE]", ""},
		{"stop alone", text + stop, ""},
		{"neither", text, provider.CodeTruncated},
		{"length", text + length, provider.CodeTruncated},
		{"length and the mark", text + length + "data: [DONE]\n\n", provider.CodeTruncated},
		{"an error", text + `data: {"errors":[{"detail":"no"}]}` + "\n\n", provider.CodeTaskError},
		{"text that is no JSON", "data: gateway says no\n\n", provider.CodeTruncated},
	} {
		result, failure := read(t, []byte(c.stream))
		if c.code == "" {
			require.Nil(t, failure, c.name)
			require.Equal(t, "Hi", result.Report, c.name)
			continue
		}
		require.NotNil(t, failure, c.name)
		require.Equal(t, c.code, failure.Code, c.name)
	}
}

func FuzzTake(f *testing.F) {
	f.Add([]byte(`{"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}],"usage":{}}`))
	f.Add([]byte(`{"type":"ErrorResponse","error":{"detail":"no"}}`))
	f.Add([]byte(" [DONE] "))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s chatstream.Events
		final, failure := s.Take("message", data)
		require.False(t, final && failure != nil)
		require.Equal(t, final, string(bytes.TrimSpace(data)) == "[DONE]")
	})
}
