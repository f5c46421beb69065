package text

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"The Cells' energy, doesn’t fall!":     "the cells energy doesn't fall",
		"3.5 and 1,200.75, 25% or 25 % in 5.":  "3.5 and 1,200.75 25% or 25% in 5",
		"450Wh/kg at 25 °C and −10°C, 5G 10th": "450 wh kg at 25 c and 10 c 5g 10th",
		"H2S CO₂ m² lithium-ion C/3 90s":       "h2s co2 m2 lithium ion c 3 90s",
		"全固体 EV電池は2030年":                       "全 固 体 ev 電 池 は 2030 年",
		"Größe ΑΘΗΝΑ Москва 한국어 문장":            "größe αθηνα москва 한국어 문장",
		"ดีมาก":                                "ดี ม า ก",
		"हिन्दी शब्द":                          "हिन्दी शब्द",
		"ﬁne ２０２４":                             "fine 2024",
		"":                                     "",
		"--- !? 'x'":                           "x",
		"\xff a":                               "a",
	} {
		assert.Equal(t, strings.Fields(want), append([]string{}, Words(in)...), in)
	}
}

func TestTruncateKeepsGraphemesWhole(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		max  int
		want string
	}{
		{"short", 5, "short"}, {"longer", 5, "long…"}, {"one two", 5, "one…"}, {"abc", 1, "…"}, {"abc", 0, ""}, {"", 3, ""},
		{"e\u0301e\u0301e\u0301", 4, "e\u0301…"}, {"👩‍👩‍👧!", 5, "…"}, {"電池は", 2, "電…"},
	} {
		assert.Equal(t, c.want, Truncate(c.in, c.max), c.in)
	}
	rapid.Check(t, func(t *rapid.T) {
		in, limit := rapid.String().Draw(t, "s"), rapid.IntRange(0, 20).Draw(t, "max")
		got := Truncate(in, limit)
		assert.LessOrEqual(t, utf8.RuneCountInString(got), limit)
		kept := strings.TrimSuffix(got, "…")
		assert.True(t, strings.HasPrefix(in, kept))
		assert.LessOrEqual(t, uniseg.GraphemeClusterCount(kept), uniseg.GraphemeClusterCount(in))
	})
}

func TestWordsOneByOneAreTheSameAndCanBeLeft(t *testing.T) {
	t.Parallel()
	const s = "The 450Wh cell’s share rose 25 % in 東京, by 3.5 points."
	assert.Equal(t, Words(s), slices.Collect(WordsSeq(s)))
	for n := range Words(s) {
		var some []string
		for w := range WordsSeq(s) {
			if len(some) == n {
				break
			}
			some = append(some, w)
		}
		assert.Len(t, some, n)
	}
}

func TestFoldedTextStaysAsItIsAndOtherIsFolded(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", " ", "a", "a b", " a", "a ", "a  b", "a\tb", "a\u00a0b", "a\u3000b", "a\u2028b", "é\u0301 ü", "a\x00b", "a\xffb", "\xff", "a\u0085b", "a\x7fb", "a\u200bb"} {
		assert.Equal(t, strings.Join(strings.Fields(s), " "), FoldSpace(s), "%q", s)
	}
}
