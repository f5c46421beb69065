// Package providertest is the conformance suite that every provider passes, live or replayed, and the sink that tests
// look at.
package providertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/fixtures"
	"github.com/factstream/factstream/fixtures/standin"
	"github.com/factstream/factstream/services/researcher/provider"
	"github.com/factstream/factstream/shared/sse"
)

// Secret is the key in every request of the suite. It must not turn up anywhere.
const Secret = "sk-test-5ecret-5ecret"

// Subject is the provider that is tested.
type Subject struct {
	// Name is what Provider.Name must return.
	Name string
	// Serve returns a provider whose calls are answered with the stream.
	Serve func(t *testing.T, stream []byte) provider.Provider
	// Hold returns a provider whose calls get the stream's first 512 bytes, and then nothing.
	Hold func(t *testing.T, stream []byte) provider.Provider
}

// Run runs the suite.
func Run(t *testing.T, s Subject) {
	t.Run("name", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, s.Name, s.Serve(t, nil).Name())
	})
	t.Run("vectors", func(t *testing.T) { t.Parallel(); s.vectors(t) })
	t.Run("recorded runs", func(t *testing.T) { t.Parallel(); s.recordedRuns(t) })
	t.Run("failures", func(t *testing.T) { t.Parallel(); s.failures(t) })
	t.Run("odd results", func(t *testing.T) { t.Parallel(); s.oddResults(t) })
	t.Run("a huge event and many pages", func(t *testing.T) { t.Parallel(); s.huge(t) })
	t.Run("an event that is too large", func(t *testing.T) { t.Parallel(); s.tooLarge(t) })
	t.Run("cancel", func(t *testing.T) { t.Parallel(); s.cancel(t) })
	t.Run("a sink that fails", func(t *testing.T) { t.Parallel(); s.failingSink(t) })
}

// call makes one call, checks what holds for every call, and decodes the kept bytes again to the same end.
func (s Subject) call(t *testing.T, stream []byte) (provider.Result, *provider.Error, *Recorder) {
	t.Helper()
	p := s.Serve(t, stream)
	sink := new(Recorder)
	result, err := p.Research(t.Context(), provider.Request{Query: "What is it?", Key: Secret}, sink)
	failure := s.check(t, result, err, sink)

	again := new(Recorder)
	result2, err2 := p.Decode(t.Context(), bytes.NewReader(sink.Kept()), again)
	failure2 := s.check(t, result2, err2, again)
	require.Equal(t, result, result2, "the kept bytes decode to the same result")
	require.Equal(t, failure == nil, failure2 == nil)
	if failure != nil {
		require.Equal(t, failure.Code, failure2.Code, "the kept bytes decode to the same failure")
	}
	require.Equal(t, untimed(sink.Events()), untimed(again.Events()))
	return result, failure, sink
}

func (s Subject) check(t *testing.T, result provider.Result, err error, sink *Recorder) *provider.Error {
	t.Helper()
	require.Empty(t, sink.early, "bytes are kept before they are decoded")
	for i, e := range sink.Events() {
		require.Equal(t, i+1, e.Seq)
		require.NotEmpty(t, e.Name)
		require.False(t, e.At.IsZero())
		require.NotContains(t, string(e.Data), Secret)
	}
	if err == nil {
		require.NotEmpty(t, strings.TrimSpace(result.Report))
		require.Equal(t, len(sink.Events()), result.Counts.Events)
		require.Equal(t, int64(len(sink.Kept())), result.Counts.Bytes)
		require.Equal(t, len(result.Pages), result.Counts.PagesCited)
		for i, p := range result.Pages {
			require.Equal(t, i+1, p.N)
		}
		return nil
	}
	require.Zero(t, result)
	failure := provider.AsError(err)
	require.NotNil(t, failure, "every failure is a *provider.Error: %v", err)
	require.ErrorIs(t, err, failure.Code)
	require.Equal(t, s.Name, failure.Provider)
	require.True(t, strings.HasSuffix(failure.Detail, "."), failure.Detail)
	require.NotContains(t, failure.Detail, "\n")
	require.Contains(t, failure.Detail, "bill", "a person is told what it may cost")
	require.NotContains(t, fmt.Sprintf("%v %+v", err, errors.Unwrap(err)), Secret)
	return failure
}

// outcome is how the vectors name the end of a call.
func outcome(result provider.Result, failure *provider.Error) string {
	switch {
	case failure != nil:
		return string(failure.Code)
	case len(result.Warnings) > 0:
		return "complete+warning"
	}
	return "complete"
}

func (s Subject) vectors(t *testing.T) {
	vectors, err := fixtures.Vectors()
	require.NoError(t, err)
	ran := 0
	for _, v := range vectors {
		if v.Layer != fixtures.LayerApp || v.End != "eof" || strings.HasPrefix(v.ID, "app-openai") {
			continue
		}
		ran++
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			result, failure, _ := s.call(t, v.Bytes())
			require.Equal(t, v.App, outcome(result, failure), v.Note)
		})
	}
	require.Greater(t, ran, 10)
}

func (s Subject) recordedRuns(t *testing.T) {
	fast, failure, sink := s.call(t, recorded(t, "fast"))
	require.Nil(t, failure)
	require.Len(t, sink.Events(), 10)
	require.Len(t, fast.Pages, 5)
	require.Contains(t, fast.Report, "series production of sulfide-based solid-state cells in 2027 [1]")
	require.Contains(t, string(fast.Metadata), `"queryComplexity":"simple"`)
	require.Equal(t, "https://example.org/ssb/auralith-roadmap/", fast.Pages[1].URL, "pages are as the provider gave them")
	require.Equal(t, 8, fast.Counts.PagesAnalyzed)
	require.Equal(t, 6, fast.Counts.Queries)
	require.Empty(t, fast.Gaps)
	require.Empty(t, fast.Warnings)

	balanced, failure, sink := s.call(t, recorded(t, "balanced"))
	require.Nil(t, failure)
	require.Len(t, sink.Events(), 36)
	require.Positive(t, balanced.Counts.Comments)
	require.Len(t, balanced.Pages, 11)
	require.Equal(t, "Prüfbericht: Festkörperzellen bei 0 °C, 25 °C und 60 °C", balanced.Pages[2].Title)
	require.NotEmpty(t, balanced.Pages[0].Claims)
	require.NotEmpty(t, balanced.Pages[0].Summary)
	require.Equal(t, 1, balanced.Pages[9].Depth)
	require.Equal(t, "https://docs.example.io/", balanced.Pages[9].ParentURL)
	require.Len(t, balanced.Gaps, 3)
	require.True(t, balanced.Gaps[0].ShouldContinue)
	require.Len(t, balanced.Gaps[0].Assessments, 4)
	require.Len(t, balanced.Gaps[0].SearchQueries, 4)
	require.Equal(t, "Stack pressure and recycling are open.", balanced.Gaps[1].Description)
	dates := map[int]string{}
	for _, p := range balanced.Pages {
		if p.PublishedAt != nil {
			dates[p.N] = p.PublishedAt.Format(time.RFC3339)
		}
	}
	require.Equal(t, map[int]string{
		1: "2026-03-04T09:00:00Z", 2: "2026-03-06T00:00:00Z", 3: "2026-05-19T00:00:00Z", 6: "2026-04-12T00:00:00Z",
		7: "2026-04-02T00:00:00Z", 8: "2025-11-27T00:00:00Z",
	}, dates, "dates in every spelling, and none invented")
}

func (s Subject) failures(t *testing.T) {
	_, failure, sink := s.call(t, recorded(t, "error"))
	require.Equal(t, provider.CodeTaskError, failure.Code)
	require.False(t, failure.Retryable, "the provider's own error stands")
	require.Contains(t, failure.Detail, "SearchProviderError: All search providers failed for iteration 1")
	require.Equal(t, "error", sink.Events()[len(sink.Events())-1].Name)

	_, failure, sink = s.call(t, recorded(t, "truncated"))
	require.Equal(t, provider.CodeTruncated, failure.Code)
	require.True(t, failure.Retryable)
	require.NotEqual(t, "complete", sink.Events()[len(sink.Events())-1].Name, "half an event is none")

	for _, c := range []struct {
		name, stream string
		code         provider.Code
		says         string
	}{
		{"nothing at all", "", provider.CodeTruncated, "0 events"},
		{"only comments", ": hm\n\n: hm\n\n", provider.CodeTruncated, "0 events"},
		{"complete with an empty report", "event: complete\ndata: {\"report\":\" \"}\n\n", provider.CodeProtocolError, "without sending a report"},
		{"complete with a report that is no text", "event: complete\ndata: {\"report\":7}\n\n", provider.CodeProtocolError, "without sending a report"},
		{"complete with half its JSON", "event: complete\ndata: {\"report\":\"x\n\n", provider.CodeProtocolError, "not a JSON object"},
		{"complete with a list", "event: complete\ndata: []\n\n", provider.CodeProtocolError, "not a JSON object"},
		{"an error without its blank line", "event: error\ndata: {\"error\":{\"message\":\"no\"}}", provider.CodeTaskError, "no"},
		{"an error that is text", "event: error\ndata: out of order\n\n", provider.CodeTaskError, "out of order"},
		{"an error that says nothing", "event: error\ndata: {}\n\n", provider.CodeTaskError, "no reason given"},
		{"a proxy's message", "data: upstream connect error\n\n", provider.CodeTruncated, "upstream connect error"},
		{"an error that repeats the key", "event: error\ndata: {\"error\":\"bad key\"}\n\n", provider.CodeTaskError, "bad key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, failure, _ := s.call(t, []byte(c.stream))
			require.NotNil(t, failure)
			require.Equal(t, c.code, failure.Code)
			require.Contains(t, failure.Detail, c.says)
		})
	}
}

func (s Subject) oddResults(t *testing.T) {
	complete := func(rest string) []byte {
		return []byte("event: complete\ndata: {\"report\":\"R [1]\"" + rest + "}\n\n")
	}
	for _, c := range []struct {
		name, rest string
		check      func(t *testing.T, r provider.Result)
	}{
		{"no metadata", "", func(t *testing.T, r provider.Result) {
			require.Nil(t, r.Metadata)
			require.Len(t, r.Warnings, 1)
		}},
		{"metadata that is no object", `,"metadata":"none"`, func(t *testing.T, r provider.Result) {
			require.JSONEq(t, `"none"`, string(r.Metadata))
			require.Len(t, r.Warnings, 1)
		}},
		{"pages that are no list", `,"metadata":{"prompt":"What is it?","citedPages":{"url":"x"}}`, func(t *testing.T, r provider.Result) {
			require.Empty(t, r.Pages)
			require.Len(t, r.Warnings, 1)
		}},
		{"a broken page keeps its number", `,"metadata":{"prompt":"What is it?","citedPages":[{"url":"https://a.example"},null,7,{"url":"https://d.example","title":5,"claims":["x",1,""],"depth":"deep"}]}`,
			func(t *testing.T, r provider.Result) {
				require.Len(t, r.Pages, 4)
				require.Equal(t, "https://d.example", r.Pages[3].URL)
				require.Equal(t, []string{"x"}, r.Pages[3].Claims)
				require.Empty(t, r.Pages[3].Title)
				require.Len(t, r.Warnings, 1)
				require.Contains(t, r.Warnings[0], "2, 3")
			}},
		{"usage", `,"usage":{"credits":250},"metadata":{"prompt":"What is it?"}`, func(t *testing.T, r provider.Result) {
			require.JSONEq(t, `{"credits":250}`, string(r.Usage))
		}},
		{"a date that cannot be read", `,"metadata":{"prompt":"What is it?","citedPages":[{"url":"https://a.example","published":"last spring"}]}`,
			func(t *testing.T, r provider.Result) {
				require.Nil(t, r.Pages[0].PublishedAt)
				require.Empty(t, r.Pages[0].PublishedPrecision)
				require.Equal(t, "last spring", r.Pages[0].PublishedRaw)
			}},
		{"full text is kept apart", `,"metadata":{"prompt":"What is it?","citedPages":[{"url":"https://a.example/?a=1&b=2","n":10000000000000000001,"fullText":"long"}]}`,
			func(t *testing.T, r provider.Result) {
				require.Equal(t, "long", r.Pages[0].FullText)
				require.JSONEq(t, `{"url":"https://a.example/?a=1&b=2","n":10000000000000000001}`, string(r.Pages[0].Raw))
				require.Contains(t, string(r.Pages[0].Raw), "a=1&b=2")
				require.Contains(t, string(r.Metadata), "fullText", "metadata is whole")
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, failure, _ := s.call(t, complete(c.rest))
			require.Nil(t, failure)
			require.Equal(t, "R [1]", r.Report)
			c.check(t, r)
		})
	}
}

func (s Subject) huge(t *testing.T) {
	report := standin.Report{Prompt: "What is it?", Markdown: "Much [1][200].", Padding: 4 << 20}
	for i := range 200 {
		report.Pages = append(report.Pages, standin.Page{URL: fmt.Sprintf("https://example.org/%d", i), FullText: strings.Repeat("text ü ", 500)})
	}
	result, failure, sink := s.call(t, report.Stream())
	require.Nil(t, failure)
	require.Len(t, result.Pages, 200)
	require.Len(t, []rune(result.Pages[199].FullText), 3_500)
	longest := 0
	for _, e := range sink.Events() {
		if e.Name != "complete" {
			longest = max(longest, len(e.Data))
		}
	}
	require.Greater(t, longest, 4<<20)
}

func (s Subject) tooLarge(t *testing.T) {
	stream := append([]byte("event: start\ndata: {}\n\ndata: "), bytes.Repeat([]byte("x"), sse.MaxEvent+1)...)
	_, failure, sink := s.call(t, stream)
	require.Equal(t, provider.CodeEventTooLarge, failure.Code)
	require.ErrorIs(t, failure, sse.ErrEventTooLarge)
	require.False(t, failure.Retryable)
	require.Len(t, sink.Events(), 1)
}

func (s Subject) cancel(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	sink := new(Recorder)
	ended := make(chan error, 1)
	p := s.Hold(t, recorded(t, "fast"))
	go func() {
		_, err := p.Research(ctx, provider.Request{Query: "What is it?", Key: Secret}, sink)
		ended <- err
	}()
	require.NoError(t, sink.Await(t.Context(), 1))
	why := errors.New("the run was cancelled")
	cancel(why)
	err := <-ended
	failure := s.check(t, provider.Result{}, err, sink)
	require.Equal(t, provider.CodeCancelled, failure.Code)
	require.False(t, failure.Retryable)
	require.ErrorIs(t, err, why, "the cause is in the chain")

	_, err = p.Decode(ctx, bytes.NewReader(sink.Kept()), new(Recorder))
	require.ErrorIs(t, err, provider.CodeCancelled)
}

func (s Subject) failingSink(t *testing.T) {
	full := errors.New("no space left")
	for name, sink := range map[string]*Recorder{
		"bytes, at once": {BytesError: func(int) error { return full }},
		"bytes, later": {BytesError: func(before int) error {
			if before == 0 {
				return nil
			}
			return full
		}},
		"an event": {EventError: func(before int) error {
			if before < 3 {
				return nil
			}
			return full
		}},
	} {
		t.Run(name, func(t *testing.T) {
			stream := standin.Report{Prompt: "What is it?", Markdown: "x", Padding: 200_000}.Stream() // more than one read
			result, err := s.Serve(t, stream).Research(t.Context(), provider.Request{Query: "What is it?", Key: Secret}, sink)
			failure := s.check(t, result, err, sink)
			require.Equal(t, provider.CodeNotKept, failure.Code)
			require.False(t, failure.Retryable)
			require.ErrorIs(t, err, full)
		})
	}
	t.Run("the terminal event: the report is whole", func(t *testing.T) {
		stream := standin.Report{Prompt: "What is it?", Markdown: "x"}.Stream()
		sink := &Recorder{EventError: func(before int) error {
			if before < bytes.Count(stream, []byte("event: "))-1 {
				return nil
			}
			return full
		}}
		result, err := s.Serve(t, stream).Research(t.Context(), provider.Request{Query: "What is it?", Key: Secret}, sink)
		require.NoError(t, err)
		require.Equal(t, "x", result.Report)
	})
}

func recorded(t *testing.T, mode string) []byte {
	t.Helper()
	b, err := fixtures.Stream("tabstack", mode)
	require.NoError(t, err)
	return b
}
