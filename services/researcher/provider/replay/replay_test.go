package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/factstream/factstream/fixtures"
	"github.com/factstream/factstream/services/researcher/provider"
	"github.com/factstream/factstream/services/researcher/provider/providertest"
	"github.com/factstream/factstream/services/researcher/provider/replay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func fromFile(t *testing.T, stream []byte, delay time.Duration) provider.Provider {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stream.sse")
	require.NoError(t, os.WriteFile(file, stream, 0o600))
	p, err := replay.New(replay.Config{File: file, Delay: delay})
	require.NoError(t, err)
	return p
}

func TestConformance(t *testing.T) {
	t.Parallel()
	providertest.Run(t, providertest.Subject{
		Name:  "tabstack",
		Serve: func(t *testing.T, stream []byte) provider.Provider { return fromFile(t, stream, 0) },
		Hold:  func(t *testing.T, stream []byte) provider.Provider { return fromFile(t, stream, time.Hour) },
	})
}

// play replays and returns the result and everything that was kept.
func play(t *testing.T, p provider.Provider, mode, query string) (provider.Result, []byte, error) {
	t.Helper()
	sink := new(providertest.Recorder)
	result, err := p.Research(t.Context(), provider.Request{Query: query, Mode: mode}, sink)
	return result, sink.Kept(), err
}

func TestTheBuiltInRunsByMode(t *testing.T) {
	t.Parallel()
	p, err := replay.New(replay.Config{})
	require.NoError(t, err)
	require.Equal(t, "tabstack", p.Name())
	for mode, pages := range map[string]int{"": 5, "fast": 5, "balanced": 11} {
		result, _, err := play(t, p, mode, "How tall is it?")
		require.NoError(t, err)
		require.Len(t, result.Pages, pages)
	}
	_, _, err = play(t, p, "thorough", "q")
	require.ErrorIs(t, err, provider.CodeBadRequest)
	require.ErrorIs(t, err, fixtures.ErrNoStream)
	_, _, err = play(t, p, "error", "q")
	require.ErrorIs(t, err, provider.CodeTaskError)
	require.ErrorContains(t, err, "nothing is billed")
}

func TestTheQueryStandsInThePromptAndNowhereElse(t *testing.T) {
	t.Parallel()
	p, err := replay.New(replay.Config{})
	require.NoError(t, err)
	for _, mode := range []string{"fast", "balanced"} {
		for _, query := range []string{"How tall is it?", "Größe <1 m> & \"so\"\r\n  ?", "全固体電池", ""} {
			result, kept, err := play(t, p, mode, query)
			require.NoError(t, err)
			var metadata map[string]any
			require.NoError(t, json.Unmarshal(result.Metadata, &metadata))
			require.Equal(t, query, metadata["prompt"])

			was, err := fixtures.Stream("tabstack", mode)
			require.NoError(t, err)
			recordedPrompt := []byte(`"prompt":"State of solid-state batteries for cars in 2026: who will produce when, energy density, charging, cost, main technical obstacles"`)
			asked := bytes.NewBuffer([]byte(`"prompt":`))
			e := json.NewEncoder(asked)
			e.SetEscapeHTML(false)
			require.NoError(t, e.Encode(query))
			require.Equal(t, string(was), string(bytes.Replace(kept, bytes.TrimSpace(asked.Bytes()), recordedPrompt, 1)), "everything else is as it was recorded")
		}
	}
}

func TestPromptInStreamsOfOtherShapes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ stream, prompt string }{
		"pretty JSON over several lines": {"event: complete\ndata: {\ndata:  \"report\": \"R\",\ndata:  \"metadata\": {\ndata:   \"prompt\": \"old\",\ndata:   \"mode\": \"fast\"\ndata:  }\ndata: }\n\n", "Q"},
		"no prompt":                      {"event: complete\ndata: {\"report\":\"R\",\"metadata\":{\"mode\":\"fast\"}}\n\n", "Q"},
		"empty metadata":                 {"event: complete\ndata: {\"report\":\"R\",\"metadata\":{ }}\n\n", "Q"},
		"CRLF":                           {"event: complete\r\ndata: {\"report\":\"R\",\"metadata\":{\"prompt\":\"old\"}}\r\n\r\n", "Q"},
		"the same text elsewhere":        {"data: \"prompt\":\"old\"\n\nevent: complete\ndata: {\"prompt\":\"old\",\"report\":\"old\",\"metadata\":{\"x\":{\"prompt\":\"old\"},\"prompt\":\"old\"}}\n\n", "Q"},
		"a prompt that is no text":       {"event: complete\ndata: {\"report\":\"R\",\"metadata\":{\"prompt\":null}}\n\n", "Q"},
		"no blank line at the end":       {"event: complete\ndata: {\"report\":\"R\",\"metadata\":{\"prompt\":\"old\"}}", "Q"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, _, err := play(t, fromFile(t, []byte(c.stream), 0), "", "Q")
			require.NoError(t, err)
			require.NotEqual(t, "Q", result.Report)
			var metadata struct{ Prompt string }
			require.NoError(t, json.Unmarshal(result.Metadata, &metadata))
			require.Equal(t, c.prompt, metadata.Prompt)
		})
	}
}

func TestItIsPlayedInSmallPieces(t *testing.T) {
	t.Parallel()
	p, err := replay.New(replay.Config{})
	require.NoError(t, err)
	sizes := pieceSizes{}
	_, err = p.Research(t.Context(), provider.Request{Query: "q"}, &sizes)
	require.NoError(t, err)
	require.Greater(t, len(sizes.all), 5)
	for _, n := range sizes.all[:len(sizes.all)-1] {
		require.Equal(t, replay.PieceSize, n)
	}
}

type pieceSizes struct{ all []int }

func (s *pieceSizes) Bytes(p []byte) error { s.all = append(s.all, len(p)); return nil }

func (s *pieceSizes) Event(provider.Event) error { return nil }

func TestTheDelayEndsWithItsContext(t *testing.T) {
	t.Parallel()
	p, err := replay.New(replay.Config{Delay: time.Millisecond})
	require.NoError(t, err)
	start := time.Now()
	_, kept, err := play(t, p, "fast", "q")
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(start), time.Duration(len(kept)/replay.PieceSize)*time.Millisecond)

	slow, err := replay.New(replay.Config{Delay: time.Hour})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = slow.Research(ctx, provider.Request{Query: "q"}, new(providertest.Recorder))
	require.ErrorIs(t, err, provider.CodeCancelled)
}

func TestWhatCannotBePlayed(t *testing.T) {
	t.Parallel()
	_, err := replay.New(replay.Config{Provider: "other"})
	require.ErrorIs(t, err, replay.ErrProvider)
	_, err = replay.New(replay.Config{File: filepath.Join(t.TempDir(), "none")})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func FuzzPrompt(f *testing.F) {
	f.Add([]byte("event: complete\ndata: {\"report\":\"R\",\"metadata\":{\"prompt\":\"old\"}}\n\n"), "Q")
	f.Add([]byte("event: complete\ndata: {\ndata: \"report\":\"R\",\"metadata\":{}}\n\n"), "\x00\u2028")
	f.Fuzz(func(t *testing.T, stream []byte, query string) {
		file := filepath.Join(t.TempDir(), "s")
		require.NoError(t, os.WriteFile(file, stream, 0o600))
		p, err := replay.New(replay.Config{File: file})
		require.NoError(t, err)
		as := new(providertest.Recorder)
		plain, plainErr := p.Decode(t.Context(), bytes.NewReader(stream), as)
		result, _, err := play(t, p, "", query)
		require.Equal(t, plainErr == nil, err == nil, "the query never changes whether a stream is whole")
		require.Equal(t, plain.Report, result.Report)
		require.Equal(t, len(plain.Pages), len(result.Pages))
	})
}

func TestWhatIsPlayedAtOnce(t *testing.T) {
	t.Parallel()
	file := func(size int) string {
		path := filepath.Join(t.TempDir(), "recorded.sse")
		require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte(":"), size), 0o600))
		return path
	}
	cases := map[string]struct {
		config replay.Config
		mode   string
		want   bool
	}{
		"a built-in recording":  {mode: "fast", want: true},
		"of the default mode":   {want: true},
		"with pauses":           {config: replay.Config{Delay: time.Nanosecond}, mode: "fast"},
		"no such recording":     {mode: "thorough"},
		"a file of 1 MiB":       {config: replay.Config{File: file(1 << 20)}, want: true},
		"a file of a byte more": {config: replay.Config{File: file(1<<20 + 1)}},
	}
	for name, c := range cases {
		r, err := replay.New(c.config)
		require.NoError(t, err)
		require.Equal(t, c.want, r.AtOnce(c.mode), name)
	}
}
