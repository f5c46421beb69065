package text

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestChunksPackWholeSentences(t *testing.T) {
	t.Parallel()
	s := Sentences("Aaaa. Bbbb. Cccc. Dd.")
	var got [][]string
	for _, c := range Chunks(s, 11) { // "Aaaa." and "Bbbb." and the space between
		got = append(got, texts(c))
	}
	assert.Equal(t, [][]string{{"Aaaa.", "Bbbb."}, {"Cccc.", "Dd."}}, got)
	assert.Empty(t, Chunks(nil, 100))
}

func TestChunksCutALongSentenceAtWords(t *testing.T) {
	t.Parallel()
	in := "# H\n\nOne two three four five [7]"
	chunks := Chunks(Sentences(in), 10)
	var got []string
	for _, c := range chunks {
		for _, s := range c {
			got = append(got, s.Text)
			assert.Equal(t, in[s.Start:s.End], s.Text)
			if s.Kind == Prose {
				assert.Equal(t, []int{7}, s.Markers, "the markers stand for every piece")
			}
		}
	}
	assert.Equal(t, []string{"H", "One two", "three four", "five [7]"}, got)

	family := "👩‍👩‍👧"
	for _, c := range Chunks([]Sentence{{End: 3 * len(family), Text: strings.Repeat(family, 3)}}, 6) {
		require.Len(t, c, 1)
		assert.Equal(t, family, c[0].Text, "never inside a grapheme")
	}
	assert.Equal(t, family, Chunks([]Sentence{{End: len(family), Text: family}}, 1)[0][0].Text)
}

func TestChunksKeepEverythingInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.StringOfN(rapid.RuneFrom([]rune("ab .\n#-界é\u0301👧🏽")), 0, 300, -1).Draw(t, "text")
		limit := rapid.IntRange(1, 40).Draw(t, "max")
		sentences := Sentences(in)
		want, got := "", ""
		for _, s := range sentences {
			want += strings.Join(strings.Fields(s.Text), "")
		}
		at := 0
		for _, chunk := range Chunks(sentences, limit) {
			require.NotEmpty(t, chunk)
			size := -1
			for _, s := range chunk {
				require.Equal(t, in[s.Start:s.End], s.Text)
				require.GreaterOrEqual(t, s.Start, at)
				at = s.End
				size += utf8.RuneCountInString(s.Text) + 1
				got += strings.Join(strings.Fields(s.Text), "")
			}
			if len(chunk) > 1 {
				require.LessOrEqual(t, size, limit)
			}
		}
		require.Equal(t, want, got)
	})
}
