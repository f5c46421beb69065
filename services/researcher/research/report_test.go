package research

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/factstream/factstream/services/researcher/provider"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
)

func TestAPageThatIsNoneOfTheWebKeepsItsNumberAndIsNoSource(t *testing.T) {
	t.Parallel()
	done := completed(job{thread: "t", asked: event.RunRequested{Cost: 350}}, answer{attempt: attempt{n: 2}, result: provider.Result{
		Report: "r", Pages: []provider.Page{
			{N: 1, URL: "http://WWW.Example.org/a/?utm_source=x#top", Title: "A"},
			{N: 2, URL: "javascript:alert(1)", Title: "B"},
			{N: 3, Title: "C"},
			{N: 4, URL: "data:image/png;base64," + strings.Repeat("A", 1<<20), Title: "D"},
			{N: 5, URL: "https://example.org/a", Title: "A again", Claims: []string{"It is so."}},
			{N: 6, URL: "https://bank.example:pw@example.org/b", Title: "E"},
		},
	}})
	require.Equal(t, 350, done.Cost)
	require.Equal(t, 2, done.Attempt)
	require.Equal(t, "https://example.org/a", done.Pages[0].Canonical)
	require.Equal(t, "http://WWW.Example.org/a/?utm_source=x#top", done.Pages[0].URL)
	require.Equal(t, notebook.SourceID("t", "https://example.org/a"), done.Pages[0].Source)
	require.Equal(t, done.Pages[0].Source, done.Pages[4].Source)
	require.Equal(t, []string{"It is so."}, done.Pages[4].Claims.Texts)
	require.Equal(t, "https://example.org/b", done.Pages[5].URL, "nobody's password is shown, nor a name that looks like the host")
	for i, title := range []string{"B", "C", "D"} {
		p := done.Pages[i+1]
		require.Equal(t, i+2, p.N)
		require.Equal(t, title, p.Title)
		require.Empty(t, p.Source)
		require.Empty(t, p.Canonical)
		require.LessOrEqual(t, len(p.URL), 4*maxNoURL)
	}
}

func TestGapsAreWhatTheLastLookFoundMissing(t *testing.T) {
	t.Parallel()
	require.Nil(t, gaps(nil))
	require.Equal(t, []string{"Prices are open.", "What do they cost? (Only estimates.)", "Who sells them?", "Who buys them?"}, gaps([]provider.GapEvaluation{
		{Description: "Everything is open."},
		{Description: "Prices are open.", Assessments: []provider.QuestionAssessment{
			{Question: "What do they cost?", Status: "partial", Findings: "Only estimates."}, {Question: "What are they?", Status: "answered"}, {Question: "Who sells them?"},
		}, NewQuestions: []string{"Who buys them?", " "}},
	}))
}

// Whatever comes, the event fits, and what it refers to has all that was moved out of it.
func TestTheEventAlwaysFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		long := func(name string, most int) string {
			return strings.Repeat("x", rapid.IntRange(0, most).Draw(t, name))
		}
		result := provider.Result{Report: "R" + long("report", 6000), Metadata: json.RawMessage(`"` + long("metadata", 6000) + `"`)}
		summary, title, url, claim := long("summary", 900), long("title", 600), long("url", 300), long("claim", 500)
		for i := range rapid.IntRange(0, 60).Draw(t, "pages") {
			result.Pages = append(result.Pages, provider.Page{N: i + 1, URL: fmt.Sprintf("https://example.org/%s/%d", url, i), Title: title, Summary: summary, Claims: []string{claim}})
		}
		kept := map[string]string{}
		const soft, hard = 4000, 12_000
		got, err := fit(completed(job{thread: "t"}, answer{result: result}), soft, hard, func(contents []string) ([]event.Blob, error) {
			blobs := make([]event.Blob, len(contents))
			for i, content := range contents {
				blobs[i].Ref = fmt.Sprintf("t/%d", len(kept))
				kept[blobs[i].Ref] = content
			}
			return blobs, nil
		})
		require.NoError(t, err)
		require.LessOrEqual(t, size(got), hard+1000) // the warnings about it
		back := func(b event.Blob) string {
			if b.Ref != "" {
				return kept[b.Ref]
			}
			return b.Text
		}
		require.Equal(t, result.Report, back(got.Report))
		require.Equal(t, string(result.Metadata), back(got.Metadata))
		for i, p := range got.Pages {
			require.Equal(t, i+1, p.N)
			require.NotEmpty(t, p.Source)
		}
		if size(got) <= soft && len(kept) == 0 {
			require.Empty(t, got.Warnings)
		}
		if len(got.Pages) < len(result.Pages) {
			require.NotEmpty(t, got.Warnings)
		}
	})
}
