package text

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPassagesAreCutWhereAReaderWouldCut(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 30 {
		for j := range 6 {
			fmt.Fprintf(&b, "Sentence %d of paragraph %d says something about batteries. ", j, i)
		}
		b.WriteString("\n\n")
	}
	passages := Passages(b.String())
	require.Greater(t, len(passages), 7)
	for i, p := range passages {
		assert.Equal(t, i, p.Index)
		assert.True(t, strings.HasSuffix(p.Text, "batteries."), "ends at a sentence: %q", p.Text)
		assert.True(t, strings.HasPrefix(p.Text, "Sentence"), "begins at a sentence: %q", p.Text)
		if i == 0 {
			continue
		}
		overlap := passages[i-1].End - p.Start
		assert.InDelta(t, passageOverlap, overlap, passageOverlap/2)
	}
}

func TestPassagesKeepAHeadingWithItsText(t *testing.T) {
	t.Parallel()
	in := strings.Repeat("A sentence of thirty letters. ", 45) + "\n\n## Heading\n\n" + strings.Repeat("Another sentence, longer. ", 30)
	first := Passages(in)[0]
	assert.NotContains(t, first.Text, "Heading")
	assert.True(t, strings.HasSuffix(first.Text, "letters."))
}

func TestPassagesOfShortAndOddTexts(t *testing.T) {
	t.Parallel()
	assert.Empty(t, Passages(""))
	assert.Empty(t, Passages(" \n\n\t"))
	assert.Equal(t, []Passage{{0, 2, 7, "Short"}}, Passages("\n\nShort\n"))

	// No white space at all, then one grapheme that is longer than a passage.
	assert.Greater(t, len(Passages(strings.Repeat("電池", 2000))), 2)
	long := "x" + strings.Repeat("\u0301", 3000)
	passages := Passages(long + " end")
	assert.Equal(t, long, passages[0].Text)
	checkPassages(t, strings.Repeat(long, 3))
	checkPassages(t, strings.Repeat("🇩🇪", 3000))
}

func checkPassages(t *testing.T, in string) {
	t.Helper()
	boundaries := map[int]bool{0: true}
	longest := 0
	for at, g := 0, uniseg.NewGraphemes(in); g.Next(); {
		at += len(g.Str())
		boundaries[at] = true
		longest = max(longest, len(g.Runes()))
	}
	covered := 0
	for i, p := range Passages(in) {
		require.Equal(t, i, p.Index)
		require.Equal(t, in[p.Start:p.End], p.Text, "literal")
		require.True(t, boundaries[p.Start] && boundaries[p.End], "graphemes whole")
		require.LessOrEqual(t, utf8.RuneCountInString(p.Text), max(passageSize, longest))
		require.Greater(t, p.End, covered, "each goes on")
		if p.Start > covered {
			require.Empty(t, strings.TrimFunc(in[covered:p.Start], unicode.IsSpace), "nothing is left out")
		}
		covered = p.End
	}
	require.Empty(t, strings.TrimFunc(in[covered:], unicode.IsSpace))
}

func FuzzPassages(f *testing.F) {
	f.Add("Some text. With sentences.\n\nAnd paragraphs", uint16(200))
	f.Add("e\u0301 👩‍👩‍👧 ", uint16(500))
	f.Add("\r\n \u0308", uint16(3000))
	f.Add("電池。", uint16(900))
	f.Fuzz(func(t *testing.T, in string, times uint16) {
		checkPassages(t, in)
		checkPassages(t, strings.Repeat(in, min(int(times), 6_000/(len(in)+1))))
	})
}
