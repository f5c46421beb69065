package distil

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model"
)

var (
	march = time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)
	pages = []event.Page{
		{N: 1, Source: "s1", URL: "https://a.example/x", Canonical: "https://a.example/x", Summary: "of a"},
		{N: 2, Source: "s1", URL: "https://a.example/x/", Canonical: "https://a.example/x", Title: "A  page", PublishedAt: &march},
		{N: 3, Source: "s2", URL: "https://b.example.co.uk/y", Canonical: "https://b.example.co.uk/y", Title: "Another"},
		{N: 4, URL: "file:///etc/passwd", Title: "No page of the web"},
	}
)

const report = `# Cells

The first cell holds 450 Wh/kg [1][2]. It was built in 2026 [3]. It weighs 2 kg.

## Prices

- The second cell costs 90 euros [4], as others say [9].
- Nobody buys it [3][9].
`

// The sentences of report: 1 "Cells" (heading), 2 to 4, 5 "Prices" (heading), 6 and 7.

func TestPagesThatAreOnePageAreOneSource(t *testing.T) {
	t.Parallel()
	got := sources(pages)
	require.Same(t, got[1], got[2])
	require.Equal(t, event.Source{ID: "s1", URL: "https://a.example/x", Canonical: "https://a.example/x", Site: "a.example", Title: "A page", PublishedAt: &march}, *got[1])
	require.Equal(t, "example.co.uk", got[3].Site)
	require.Nil(t, got[4], "what is not of the web cannot be cited")
}

func TestEverySentenceIsShownOnceWithItsMarks(t *testing.T) {
	t.Parallel()
	m := read(report, pages)
	require.Len(t, m.chunks, 1)
	require.Equal(t, []model.Numbered{
		{N: 1, Text: "# Cells"},
		{N: 2, Text: "The first cell holds 450 Wh/kg [1][2].", Markers: []int{1, 2}},
		{N: 3, Text: "It was built in 2026 [3].", Markers: []int{3}},
		{N: 4, Text: "It weighs 2 kg."},
		{N: 5, Text: "## Prices"},
		{N: 6, Text: "- The second cell costs 90 euros [4], as others say [9].", Markers: []int{4, 9}, Depth: 1},
		{N: 7, Text: "- Nobody buys it [3][9].", Markers: []int{3, 9}, Depth: 1},
	}, m.chunks[0])
	require.Equal(t, 3, m.unresolved, "[4] names no page of the web, [9] no page at all, twice")
	require.Len(t, m.pages, 3)
}

func TestTheSourceOfAFact(t *testing.T) {
	t.Parallel()
	m := read(report, pages)
	for name, c := range map[string]struct {
		page         int
		sentences    []int
		source       string
		contradicted bool
	}{
		"named and cited":                         {3, []int{2, 3}, "s2", false},
		"named under its other URL":               {2, []int{2}, "s1", false},
		"not named, one page under two URLs":      {0, []int{2}, "s1", false},
		"not named, two pages":                    {0, []int{2, 3}, "", false},
		"not named, none cited":                   {0, []int{4}, "", false},
		"named, none cited":                       {1, []int{4}, "s1", false},
		"named, another one cited":                {1, []int{3}, "s2", true},
		"named, two others cited":                 {4, []int{2, 3}, "", false},
		"cites one page, and marks without pages": {0, []int{7}, "s2", false},
	} {
		source, contradicted := m.source(c.page, c.sentences)
		require.Equal(t, c.contradicted, contradicted, name)
		if c.source == "" {
			require.Nil(t, source, name)
		} else {
			require.Equal(t, c.source, source.ID, name)
		}
	}
}

func TestAnExcerptIsALiteralPartOfTheReport(t *testing.T) {
	t.Parallel()
	m := read(report, pages)
	for name, c := range map[string]struct {
		statement string
		sentences []int
		want      string
	}{
		"one":                {"x", []int{3}, "It was built in 2026 [3]."},
		"neighbours":         {"x", []int{3, 2}, "The first cell holds 450 Wh/kg [1][2]. It was built in 2026 [3]."},
		"over a break":       {"x", []int{6, 7}, "The second cell costs 90 euros [4], as others say [9].\n- Nobody buys it [3][9]."},
		"apart, the best":    {"The cell costs 90 euros.", []int{2, 6}, "The second cell costs 90 euros [4], as others say [9]."},
		"apart, all as good": {"Nothing alike.", []int{3, 7}, "It was built in 2026 [3]."},
		"named twice":        {"x", []int{4, 4}, "It weighs 2 kg."},
	} {
		got := m.excerpt(c.statement, c.sentences, nil)
		require.Equal(t, c.want, got.Text, name)
		require.Equal(t, report[got.Start:got.End], got.Text, name)
	}
}

func TestAnExcerptIsWhatCitesTheSource(t *testing.T) {
	t.Parallel()
	m := read("- The sodium cells of the Halden mill in Moss [1]:\n  - weigh 9 kg [2]\n  - cost 40 euros [3]\n", pages)
	for _, c := range []struct {
		source *event.Source
		want   string
	}{
		{m.sources[3], "cost 40 euros [3]"},
		{nil, "The sodium cells of the Halden mill in Moss [1]:"},
	} {
		got := m.excerpt("The sodium cells of the Halden mill in Moss cost 40 euros.", []int{1, 3}, c.source)
		require.Equal(t, c.want, got.Text, "the label has more words of the statement")
	}
}

func TestAnExcerptOfManySentencesIsBounded(t *testing.T) {
	t.Parallel()
	sentence := "The cell was measured " + strings.Repeat("again ", 100) + "and again [1]. "
	m := read(strings.Repeat(sentence, 9)+"The answer is 42 volts [1].", pages)
	all := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	got := m.excerpt("The answer is 42 volts.", all, nil)
	require.LessOrEqual(t, len(got.Text), maxExcerpt)
	require.Contains(t, got.Text, "42 volts")

	endless := read(strings.Repeat("and so on ", 900)+"until it reached 42 volts [1].", pages)
	got = endless.excerpt("It reached 42 volts.", []int{1}, nil)
	require.LessOrEqual(t, len(got.Text), maxExcerpt)
	require.Contains(t, got.Text, "42 volts", "the piece of the sentence that says it")
}

func TestRepeatsAreSupportWithinBounds(t *testing.T) {
	t.Parallel()
	h := newHarvest("t", read("A sentence [1].", pages))
	for range 10 {
		h.add(model.Distilled{Facts: []model.Fact{{Statement: "a", Confidence: 0.5, Sentences: []int{1}}}})
	}
	facts, left := h.surest(3)
	require.Len(t, facts, 4)
	require.Zero(t, left)
	require.Equal(t, map[string]int{model.DropDuplicate: 6}, h.dropped)
}

func TestNumbersThatTheReportDoesNotHave(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		report, statement string
		known             bool
	}{
		{"It holds 450 Wh/kg.", "The cell holds 450 Wh/kg.", true},
		{"It holds 450 Wh/kg.", "The cell holds 475 Wh/kg.", false},
		{"It costs 2,000 euros.", "It costs 2000 euros.", true},
		{"It costs 2 000 euros.", "It costs 2,000 euros.", true},
		{"It costs 2000 euros.", "It costs 2.000 euros.", true},
		{"It lost 3,5 percent.", "It lost 3.5 %.", true},
		{"It lost 4 percent.", "It lost 4.0 percent.", true},
		{"It sold 3.5 million cells.", "It sold 3,500,000 cells.", true},
		{"It takes about three times as long.", "It takes about 3 times as long.", true},
		{"In 2027 12 cars and 14 vans come.", "In 2027, 14 vans come.", true},
		{"It was built in 2026, 450 were sold.", "450 were sold.", true},
		{"It was built in 2026.", "It was built in 2025.", false},
		{"It holds ４５０ Wh/kg.", "It holds 450 Wh/kg.", true},
		{"تحتوي على ٤٥٠ واط.", "It holds 450 Wh/kg.", true},
		{"No number.", "No number.", true},
		{"Page [13].", "Thirteen.", true},
	} {
		require.Equal(t, c.known, read(c.report, nil).knowsFigures(c.statement), "%s -> %s", c.report, c.statement)
	}
}

func TestTheSurestFactsOfAllChunksAreTaken(t *testing.T) {
	t.Parallel()
	h := newHarvest("t", read(strings.Repeat("A sentence [1]. ", 9), pages))
	add := func(statement string, confidence float64) {
		h.add(model.Distilled{Facts: []model.Fact{{Statement: statement, Confidence: confidence, Sentences: []int{1}}}})
	}
	add("a", 0.5)
	add("b", 0.9)
	add("c", 0.9)
	add("d", 0.7)
	add("B", 0.4) // said again
	add("e", 0.1)
	h.add(model.Distilled{Outcome: model.Outcome{Drops: model.Drops{model.DropOverLimit: 3, model.DropEmpty: 1}}})
	facts, left := h.surest(3)
	var got []string
	for _, f := range facts {
		got = append(got, f.Statement)
	}
	require.Equal(t, []string{"b", "c", "d", "B"}, got)
	require.Equal(t, 5, left, "a, e, and three that a chunk had no room for")
	require.Equal(t, map[string]int{model.DropEmpty: 1}, h.dropped)
}

func FuzzWhateverIsNamedIsLiteral(f *testing.F) {
	f.Add(report, "The first cell holds 450 Wh/kg.", uint16(3), uint16(9))
	f.Add("", "", uint16(0), uint16(0))
	f.Add("固体电池 [1]。第二个【3】！\n\n| a | b [2] |\n|---|---|\n| 1 | 2 |", "固体", uint16(1), uint16(4))
	f.Fuzz(func(t *testing.T, report, statement string, a, b uint16) {
		m := read(report, pages)
		if len(m.sentences) == 0 {
			return
		}
		numbers := []int{int(a)%len(m.sentences) + 1, int(b)%len(m.sentences) + 1}
		got := m.excerpt(statement, numbers, m.sources[int(a)%4])
		if report[got.Start:got.End] != got.Text || got.Text == "" {
			t.Fatalf("excerpt %d..%d is not %q", got.Start, got.End, got.Text)
		}
		if utf8.ValidString(report) && !utf8.ValidString(got.Text) {
			t.Fatal("cut inside a character")
		}
		m.source(int(a)%6, numbers)
		if !m.knowsFigures(report) {
			t.Fatal("a report does not know its own numbers")
		}
	})
}
