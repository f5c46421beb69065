package text

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The size of passages in characters: long enough to hold an argument, short enough for an embedding to mean something.
const (
	passageSize    = 1400
	passageOverlap = 180
)

// Passage is a piece of a report, for retrieval.
type Passage struct {
	Index      int    // 0, 1, 2, ...
	Start, End int    // byte offsets into the report
	Text       string // literally report[Start:End], no white space at the ends
}

// Passages cuts a report into passages of at most 1,400 characters (more only for a single longer grapheme), of which
// each shares about 180 with the one before. A cut is put at the end of a paragraph in the last third, else at the end
// of a sentence in the last half, else at white space near the end, else between two graphemes. Everything but white
// space is in a passage. It is a pure function of the report: the same report has the same passages for ever.
func Passages(markdown string) []Passage {
	cuts := findCuts(markdown)
	var out []Passage
	for from := 0; from < len(cuts.at)-1; {
		to := cuts.end(from)
		start, end := cuts.at[from], cuts.at[to]
		if s, e := trimmed(markdown, start, end); s < e {
			out = append(out, Passage{Index: len(out), Start: s, End: e, Text: markdown[s:e]})
		}
		if to == len(cuts.at)-1 {
			break
		}
		from = cuts.resume(from, to)
	}
	return out
}

// trimmed narrows text[start:end] by the white space at its ends; a space that carries a combining mark is none.
func trimmed(text string, start, end int) (int, int) {
	for start < end {
		c, n := utf8.DecodeRuneInString(text[start:end])
		following, _ := utf8.DecodeRuneInString(text[start+n : end])
		if !unicode.IsSpace(c) || extends(following) {
			break
		}
		start += n
	}
	return start, start + len(strings.TrimRightFunc(text[start:end], unicode.IsSpace))
}

// cutQuality says how good a place for a cut a grapheme boundary is.
type cutQuality uint8

const (
	anywhere cutQuality = iota
	word
	sentence
	paragraph
)

// cutPlaces are the boundaries of all graphemes of a text.
type cutPlaces struct {
	at      []int        // byte offsets, 0 and len(text) among them
	chars   []int        // the characters before each
	quality []cutQuality // of each
}

func findCuts(text string) cutPlaces {
	c := cutPlaces{at: []int{0}, chars: []int{0}, quality: []cutQuality{paragraph}}
	sentences := Sentences(text)
	w := graphemeWalk{rest: text, state: -1}
	newlines, count := 0, 0
	underHeading := false
	for w.next() {
		cluster := text[w.start:w.end]
		quality := anywhere
		if strings.TrimSpace(cluster) == "" {
			quality = word
			if cluster[0] == '\n' || cluster[0] == '\r' {
				newlines++
			}
		} else {
			newlines = 0
		}
		for len(sentences) > 0 && sentences[0].End < w.end {
			underHeading = sentences[0].Kind == Heading
			sentences = sentences[1:]
		}
		if len(sentences) > 0 && (sentences[0].End == w.end || sentences[0].Start == w.end) {
			quality = sentence
		}
		if newlines >= 2 {
			quality = paragraph
		}
		// A heading goes with what it is the heading of.
		inHeading := len(sentences) > 0 && sentences[0].Kind == Heading && sentences[0].Start < w.end
		if inHeading || underHeading {
			quality = min(quality, word)
		}
		count += utf8.RuneCountInString(cluster)
		c.at = append(c.at, w.end)
		c.chars = append(c.chars, count)
		c.quality = append(c.quality, quality)
	}
	return c
}

// reach returns the last place at most n characters after the place from.
func (c cutPlaces) reach(from, n int) int {
	limit := c.chars[from] + n
	return sort.SearchInts(c.chars, limit+1) - 1
}

// end returns where the passage that begins at the place from ends.
func (c cutPlaces) end(from int) int {
	last := c.reach(from, passageSize)
	if last == len(c.at)-1 {
		return last
	}
	if last <= from {
		return from + 1 // one grapheme, longer than a passage
	}
	for _, want := range []struct {
		quality cutQuality
		least   int // how long the passage must be
	}{{paragraph, passageSize * 2 / 3}, {sentence, passageSize / 2}, {word, passageSize * 4 / 5}} {
		for to := last; to > from && c.chars[to]-c.chars[from] >= want.least; to-- {
			if c.quality[to] >= want.quality {
				return to
			}
		}
	}
	return last
}

// resume returns where the passage after the one from..to begins: at the best place near 180 characters before its end.
func (c cutPlaces) resume(from, to int) int {
	distance := func(i int) int {
		d := c.chars[i] - (c.chars[to] - passageOverlap)
		return max(d, -d)
	}
	best := to
	for i := to; i > from && c.chars[to]-c.chars[i] <= passageOverlap*3/2; i-- {
		if distance(i) > passageOverlap/2 {
			continue
		}
		if best == to || c.quality[i] > c.quality[best] || c.quality[i] == c.quality[best] && distance(i) < distance(best) {
			best = i
		}
	}
	return best
}
