package text

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/text/texttest"
)

func texts(sentences []Sentence) []string {
	out := []string{}
	for _, s := range sentences {
		out = append(out, s.Text)
	}
	return out
}

// In each case "|" stands where a sentence must end, and nowhere else.
func TestSentencesEndWhereAReaderWouldEndThem(t *testing.T) {
	t.Parallel()
	for _, c := range []string{
		"One sentence.| Another one!| A third?| And the last",
		// Numbers, dates, versions.
		"It grew 3.5 percent to 1,200.75 units.| Version 2.0 followed.",
		"It happened in 2024.| The rest is known.| There were 12.| Then none.",
		"Am 3. März 2024 begann es.| Im 19. Jahrhundert war es anders.| Am 5. 3. 2024 endete es.",
		"The steps are: 1. Heat the cell.| 2. Cool it down.",
		// Units of one letter.
		"It stores 900 Wh/L. |Samsung doubts it.| It was 25 °C. |Cells froze.| It takes 5 N·m. |Bolts hold.",
		"In 2024 J. Smith measured it.| In 2025 A. Jones did.",
		// Abbreviations and names.
		"Use e.g. Lithium or i.e. Sodium, approx. 5 g, vs. Iron.| Done.",
		"Es waren 9,6 Mio. Fahrgäste und 12 Mrd. Euro.| Kosten: 3 Mio.| Die Zahl steigt.",
		"Dr. Smith met Prof. Jones and Gen. Lee at St. Mary.| They left.",
		"J. R. Smith and George W. Bush agree.| It was plan B.| The end.",
		"See Fig. 2, Sec. IV, No. 5, pp. 12 and Eq. A1.| No.| The answer is no.",
		"The U.S. Army and the U.K. Government agree.| He lives in the U.S.| The law applies there.",
		"Foo Inc. Chairman Bar resigned.| He left Foo Inc.| The company declined.",
		"Apples, pears, etc. were sold.| They sold pears, etc.| The rest rotted.",
		"Smith et al. (2020) and Lee et al. found it.| It starts at 5 p.m. EST.",
		"Das ist z. B. Die Zeit oder d. h. eine Zeitung bzw. Ein Blatt.| Ende.",
		"On Jan. 5 and Dec. 24 it rained.| She has a Ph.D. in physics.",
		"Visit Node.js or example.com.| See https://a.example/x.y?q=1.2.| And www.b.example.| Bye.",
		"The iPhone sold.| iPads did too.| mRNA works.| pH matters.",
		// Quotes, brackets, ellipses.
		"He said: \"It works.\"| She said: “It does not.”| (They both left.)| Nobody came.",
		"\"Why?\" he asked.| \"Because!\" she cried out and Yahoo! rose.",
		"Il a dit : « Non. »| Elle est partie.",
		"Er sagte: „Nein.“| Sie ging.",
		"Well… it depends.| Wait...| What?!| He said [...] The end (...) Of it.",
		"This . . . is long. . . .| Indeed.",
		// Markdown inside sentences.
		"**Moisture.**| Sulfides react.| *Really.*| _Yes._| The `a. B` is code. c is not.",
		"See [Foo. Bar](https://x.example/a.b \"T. U\") for more.| Next.",
		"A ![Alt. Text](i.png) image.| Next.",
		// Citation markers belong to the sentence before them.
		"First claim [1].| Second claim.[2]| Third claim. [3]| Fourth. [4][5] [6]| Fifth.[7]|Sixth.",
		"A claim. [1, 2]| Another. [1-3]| A link. [1](https://x.example/)| Last. 【4】| eFuels are new.",
		"**Bold claim. [1]**| Next claim.¹| Last claim.",
		"Smith et al. [3] found it.| As approx. [4] says.",
		// Other languages.
		"全固体電池は安全です。|量産は2030年ごろです！| 本当ですか？| はい。",
		"这是第一句。[1]|这是第二句！|第三句？”|第四句",
		"「今日は雨だ。」と彼は言った。|次の日は晴れた。",
		"容量は3．5です．|次です．",
		"安全です。|**重要**です。|価格は高い[2]。|終わり",
		"هل هذا صحيح؟| نعم.| هذا صحيح۔| شكرا",
		"यह पहला वाक्य है।| यह दूसरा है॥| अंत",
		"Это т.е. Москва и др. Города.| В 2020 г. было 5 млн. Людей.| Но это конец.",
		"이것은 첫 번째 문장입니다.| 두 번째입니다.",
		"Sí.| ¿Qué es?| ¡Nada!| «Bueno.»| Fin.",
	} {
		in := strings.ReplaceAll(c, "|", "")
		want := []string{}
		for part := range strings.SplitSeq(c, "|") {
			want = append(want, strings.TrimSpace(part))
		}
		assert.Equal(t, want, texts(Sentences(in)), in)
	}
}

func TestSentencesKeepTheBlocksOfAReportApart(t *testing.T) {
	t.Parallel()
	report := strings.Join([]string{
		"# Title of it #",
		"A paragraph that",
		"goes on. And ends [1].",
		"- first item. With two sentences",
		"- second",
		"  continues here",
		"  1. nested one",
		"  2) nested two",
		"* [x] checked",
		"> quoted line",
		"> goes on. Ends.",
		"",
		"In the year",
		"30. cells failed",
		"",
		"Underlined",
		"----------",
		"A sentence above a rule.",
		"---",
		"| Head | Value [1] |",
		"|---|:-:|",
		"| a. B | 3.5 [2] |",
		"Col A | Col B",
		"--- | ---",
		"x | y",
		"",
		"```go",
		"code. Not text.",
		"```",
		"**Key findings:**",
		"",
		"**Note.** Bold start.",
		"Hard break  ",
		"next line",
		"<!-- a comment. -->",
		"[1]: https://example.com/ \"T\"",
		"***",
		"- ",
		"•\tbullet",
		"###### Deep",
		"#hashtag is text",
	}, "\n")
	type got struct {
		text string
		kind Kind
	}
	var found []got
	for _, s := range Sentences(report) {
		found = append(found, got{s.Text, s.Kind})
	}
	assert.Equal(t, []got{
		{"Title of it", Heading},
		{"A paragraph that\ngoes on.", Prose}, {"And ends [1].", Prose},
		{"first item.", Item}, {"With two sentences", Item},
		{"second\n  continues here", Item},
		{"nested one", Item}, {"nested two", Item}, {"checked", Item},
		{"quoted line\n> goes on.", Quote}, {"Ends.", Quote},
		{"In the year\n30. cells failed", Prose},
		{"Underlined", Heading},
		{"A sentence above a rule.", Prose},
		{"Head | Value [1]", TableHead}, {"a. B | 3.5 [2]", TableRow},
		{"Col A | Col B", TableHead}, {"x | y", TableRow},
		{"**Key findings:**", Heading},
		{"**Note.**", Heading}, {"Bold start.", Prose}, {"Hard break", Prose}, {"next line", Prose},
		{"bullet", Item},
		{"Deep", Heading},
		{"#hashtag is text", Prose},
	}, found)
}

func TestSentencesReadFencesByWhatTheyHold(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"Before.", "After."}, texts(Sentences("Before.\n~~~\ncode\n```\nmore\n~~~\nAfter.")))
	assert.Equal(t, []string{"The report.", "Its end."}, texts(Sentences("```markdown\nThe report. Its end.\n```")))
	assert.Equal(t, []string{"A cut", "report."}, texts(Sentences("A cut\n```\nreport.")))
	assert.Equal(t, []string{"Quoted.", "After."}, texts(Sentences("> Quoted.\n> ```\n> code\n> ```\nAfter.")))
}

func TestSentencesWithoutStopsAreLines(t *testing.T) {
	t.Parallel()
	thai := "แบตเตอรี่โซลิดสเตตมีความปลอดภัยมากกว่า [1]\nการผลิตจะเริ่มในปี 2030"
	assert.Len(t, Sentences(strings.ReplaceAll(thai, " [1]", "")), 2)
	assert.Equal(t, []string{"Line one", "line two"}, texts(Sentences("Line one\r\n\r\nline two\r")))
	assert.Empty(t, Sentences(""))
	assert.Empty(t, Sentences(" \n\t\n*** --- !!!\n```\n```\n"))
}

func TestSentencesCarryTheirMarkers(t *testing.T) {
	t.Parallel()
	s := Sentences("Both agree [2][1]. It grew in [2024] by `a[9]` units.[3-5] None here.")
	require.Len(t, s, 3)
	assert.Equal(t, []int{2, 1}, s[0].Markers)
	assert.Equal(t, []int{3, 4, 5}, s[1].Markers)
	assert.Nil(t, s[2].Markers)
}

func TestMarkers(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]int{
		"[3]": {3}, "[1][2]": {1, 2}, "[1, 2]": {1, 2}, "[1;2]": {1, 2}, "[ 1 ]": {1}, "[1-3]": {1, 2, 3}, "[1–3, 7]": {1, 2, 3, 7},
		"[2] and [2] and [1]": {2, 1}, "[^4]": {4}, "【5】": {5}, `\[6\]`: {6}, "[[7]]": {7}, "[[7]](https://x.example)": {7},
		"[8](https://x.example/a_(b))": {8}, "[8](<u> \"[9]\")": {8}, "[999]": {999}, "[1-900]": {1, 900}, "[5-2]": {5, 2},
		"word[1]": {1}, "【1、2】": {1, 2},
		"[2024]": nil, "[0]": nil, "[01]": nil, "[0, 1]": nil, "[x]": nil, "[ ]": nil, "[]": nil, "[sic]": nil, "[1": nil, "1]": nil,
		"![1](i.png)": nil, "`[1]`": nil, "[1.5]": nil, "[-1]": nil, "[1,]": nil, "[12 studies](u)": nil, "[a1]": nil,
		"Wow![1]": {1}, "``a ` [1]`` [2]": {2}, "` [1]": {1},
	} {
		assert.Equal(t, want, Markers(in), in)
	}
}

func TestStripMarkersLeavesWhatAPersonReads(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Cells reach 450 Wh/kg [1][2].":                       "Cells reach 450 Wh/kg.",
		"Text.[1] Next [2], [3]; more.":                       "Text. Next; more.",
		"Text.[1]Next":                                        "Text. Next",
		"A claim ([1], [2]).":                                 "A claim.",
		"A claim (see [1]).":                                  "A claim (see).",
		"価格は高い[2]。":                                           "価格は高い。",
		"**Bold** and *it* and __b__ and _i_ ~~x~~.":          "Bold and it and b and i x.",
		"5 * 3 and 2*3 and 2**8 and snake_case and ~5.":       "5 * 3 and 2*3 and 2**8 and snake_case and ~5.",
		"重要な**部分**です":                                         "重要な部分です",
		"See [the study](https://x.example/a_(b) \"T\") now.": "See the study now.",
		"An ![alt text](i.png) image.":                        "An alt text image.",
		"[1](https://x.example) says [2](u).":                 "says.",
		"Keep [sic] and [2024] and a[i].":                     "Keep [sic] and [2024] and a[i].",
		"Code `a*b [1]` stays.":                               "Code a*b [1] stays.",
		"## Heading [1]":                                      "Heading",
		"- item *one*":                                        "item one",
		"> quoted\n> text":                                    "quoted text",
		"| a | b [1] |":                                       "a | b",
		"A &amp; B &lt; C&nbsp;D &unknown; &":                 "A & B < C D &unknown; &",
		"H<sub>2</sub>O<br/>x < y and z > w <https://a.example/> <!-- no -->": "H2O x < y and z > w https://a.example/",
		`\*not\* \[1\] a\b \_`: "*not* a\\b _",
		" folded \n\t space ":  "folded space",
		"":                     "",
		"[1]":                  "",
		"broken \xff byte":     "broken \uFFFD byte",
	} {
		assert.Equal(t, want, StripMarkers(in), in)
	}
}

// checkSentences holds for every text.
func checkSentences(t *testing.T, in string) {
	t.Helper()
	boundaries := map[int]bool{0: true}
	for at, g := 0, uniseg.NewGraphemes(in); g.Next(); {
		at += len(g.Str())
		boundaries[at] = true
	}
	last := 0
	for _, s := range Sentences(in) {
		require.GreaterOrEqual(t, s.Start, last, "in order, without overlap")
		require.Greater(t, s.End, s.Start)
		require.Equal(t, in[s.Start:s.End], s.Text, "literal")
		require.True(t, boundaries[s.Start] && boundaries[s.End], "graphemes whole: %q", s.Text)
		require.True(t, strings.ContainsFunc(s.Text, isWordRune))
		last = s.End
	}
}

func FuzzSentences(f *testing.F) {
	for _, s := range []string{
		"A. B [1]. C\n\n- d\n> e\n| f | g |\n|---|\n", "```\ncode\n", "“Q.” x… y", "e\u0301.\u0301 \u0308x", "🇩🇪.🇫🇷 👩‍👩‍👧! a",
		"[a](b.c) `d. e` https://f.g/h.i", "全。半！「は。」と", "\r\n.\r\nA", "\xff. A", "<!-- x\n-->\n", "\u0600. A",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		checkSentences(t, in)
		// No letter or digit of a plain paragraph is lost.
		plain := strings.Map(func(c rune) rune {
			if strings.ContainsRune("\r\n>#`~<|[]-*_=+•‣◦▪●", c) {
				return ' '
			}
			return c
		}, in)
		plain = "x " + strings.ToValidUTF8(plain, "")
		at := 0
		for _, s := range Sentences(plain) {
			require.False(t, strings.ContainsFunc(plain[at:s.Start], isLetterOrDigit), "lost %q", plain[at:s.Start])
			at = s.End
		}
		require.False(t, strings.ContainsFunc(plain[at:], isLetterOrDigit), "lost %q", plain[at:])
	})
}

func isLetterOrDigit(c rune) bool { return isWordRune(c) && !extends(c) }

func FuzzStripMarkers(f *testing.F) {
	for _, s := range []string{"**a** [1]. [b](c)", "`[1]` \\[2\\] &amp; <br>", "[[1]](x) 【2】", "| a |\n|---|", "![x](y)[1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out := StripMarkers(in)
		require.Equal(t, FoldSpace(out), out, "folded")
		require.Equal(t, strings.ToValidUTF8(out, ""), out, "valid")
		require.LessOrEqual(t, len(out), 3*len(in), "never much longer: a broken byte takes three")
		if utf8.ValidString(in) && !strings.ContainsAny(in, "*_~`[]【\\<>&|#-+=!•‣◦▪●") && !strings.ContainsAny(in, "0123456789.)") {
			require.Equal(t, FoldSpace(strings.ToValidUTF8(in, "\uFFFD")), out, "plain text stays")
		}
	})
}

// hostile texts are of the kind that makes parsers take quadratic time.
func hostile(size int) map[string]string {
	out := map[string]string{}
	for _, unit := range []string{
		"A sentence of usual length, with a marker [1]. ", "Ein Satz.\n", "全固体電池は安全です。", "a.", ". ", ".[1]", ".[1].x", ".[1] ",
		"[", "]", "[1](", "[a](b ", "![1](", `\[1\](`, "【1】(", "`", "` ``", "**", "<", "<!--", "&", "&amp", "> ", "- ", "> - ", "| ",
		"|-", "http://", "h", "www.", "e\u0301", "\u0301", "🇩🇪", "((((. ", "A. ", "a. b. ", "\"", "```\n", "~~~x\n", "1. ", "\\", "* _ ",
		"\r", "\u200d", "…", "?!", "x\n", "\n", "z. B. ", "[1-9", "[[1]", "a|b\n---|---\n", "\xff",
	} {
		out[unit] = strings.Repeat(unit, size/len(unit))
	}
	var fences strings.Builder
	for n := int(math.Sqrt(0.75 * float64(size))); n > 3; n-- {
		fences.WriteString(strings.Repeat("`", n) + "\n")
	}
	out["falling fences"] = fences.String() + strings.Repeat("a\n", (size-fences.Len())/2)
	out["openers, then stops"] = strings.Repeat("(", size/2) + strings.Repeat("a.b ", size/8)
	out["spaces after stops"] = strings.Repeat(".", size/2) + strings.Repeat(" ", size/2)
	return out
}

func TestTextOfAnyKindTakesLinearTime(t *testing.T) {
	t.Parallel()
	const size = 120_000
	texts := map[int]map[string]string{size: hostile(size), size / 4: hostile(size / 4)}
	for what, run := range map[string]func(in string){
		"Sentences":     func(in string) { Sentences(in) },
		"StripMarkers":  func(in string) { StripMarkers(in) },
		"Passages":      func(in string) { Passages(in) },
		"Markers":       func(in string) { Markers(in) },
		"Words":         func(in string) { Words(in) },
		"Chunks":        func(in string) { Chunks([]Sentence{{End: len(in), Text: in}}, 12_000) },
		"CanonicalURL":  func(in string) { _, _ = CanonicalURL("https://example.com/" + in + "?" + in) },
		"CanonicalHost": func(in string) { _, _ = CanonicalURL("https://" + in) },
	} {
		for name := range texts[size] {
			texttest.Linear(t, fmt.Sprintf("%s of %q", what, name), size, func(size int) { run(texts[size][name]) })
		}
	}
}

func BenchmarkSentences(b *testing.B) {
	in := strings.Repeat("A sentence of usual length, with a marker [1]. Größe und Höhe. ", 1<<20/66)
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		Sentences(in)
	}
}
