package provider_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/services/researcher/provider"
	"github.com/factstream/factstream/services/researcher/provider/tabstack"
)

// counting keeps nothing but how much came.
type counting struct{ bytes int64 }

func (c *counting) Bytes(p []byte) error {
	c.bytes += int64(len(p))
	return nil
}

func (*counting) Event(provider.Event) error { return nil }

// endless repeats a text for ever, as a stream would that never comes to its report.
type endless struct{ text []byte }

func (e endless) Read(p []byte) (int, error) { return copy(p, e.text), nil }

func TestAnAnswerThatNeverEndsIsClosedBeforeItFillsTheDisk(t *testing.T) {
	t.Parallel()
	kept := &counting{}
	_, err := provider.Read(t.Context(), endless{[]byte(strings.Repeat(": still here\n", 2500))}, provider.Reading{
		Provider: "some", Protocol: new(tabstack.Events), Sink: kept, Now: time.Now, Billing: "It may be billed.",
	})
	failure := provider.AsError(err)
	require.Equal(t, provider.CodeAnswerTooLarge, failure.Code)
	require.False(t, failure.Retryable, "the next answer would be alike")
	require.Contains(t, failure.Detail, "256 MiB")
	require.Contains(t, failure.Detail, "It may be billed.")
	require.LessOrEqual(t, kept.bytes, int64(provider.MaxAnswer))
}

func TestAReportBehindMuchElseIsTaken(t *testing.T) {
	t.Parallel()
	stream := io.MultiReader(
		io.LimitReader(endless{[]byte(strings.Repeat("x", 1<<12-1) + "\n")}, provider.MaxAnswer-4096),
		strings.NewReader("\nevent: complete\ndata: {\"report\":\"R\",\"metadata\":{}}\n\n"),
	)
	result, err := provider.Read(t.Context(), stream, provider.Reading{
		Provider: "some", Protocol: new(tabstack.Events), Sink: &counting{}, Now: time.Now,
	})
	require.NoError(t, err)
	require.Equal(t, "R", result.Report)
}
