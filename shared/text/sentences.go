package text

import (
	"strings"
	"unicode"
)

// Kind says what part of a Markdown report a sentence stands in.
type Kind string

// The parts of a report. Code blocks, rules and link definitions have no sentences.
const (
	Prose     Kind = "prose"
	Heading   Kind = "heading" // also a bold line that ends without a stop, and a few bold words that begin a paragraph
	Item      Kind = "item"    // of a list
	Quote     Kind = "quote"
	TableHead Kind = "table_head"
	TableRow  Kind = "table_row"
)

// Sentence is one sentence of a Markdown report, or a heading or table row, which are not divided.
type Sentence struct {
	Start, End int    // byte offsets into the report
	Text       string // literally report[Start:End], Markdown and markers included, no white space at the ends
	Markers    []int  // the numbers of its citation markers (see Markers), each once, in order; nil if none
	Kind       Kind
}

// Sentences divides a Markdown report in any language into its sentences, in order and without overlap.
//
// Headings, list items, quotes and table rows never share a sentence with their neighbours, and their marks ("## ",
// "- ", "> ", outer pipes) are outside it. Code blocks, rules, link definitions and HTML comments are left out, and so
// is what has neither letter nor digit; a fence marked "markdown" is read as the Markdown that it holds, and one that
// is never closed (a cut report) as plain text.
//
// A stop ends a sentence unless it stands in a number, URL, link or code span, after an abbreviation or initial, or
// before a word in lower case; quotes, brackets and citation markers after the stop belong to the sentence before.
// Stops of other scripts (。！？ ؟ ۔ । ። ...) need no space after them. Scripts that write without stops (Thai, Lao,
// Khmer, Burmese) have one unit a line. When in doubt two sentences stay one: an excerpt that is a little too long
// still holds its claim.
func Sentences(markdown string) []Sentence {
	var units []unit
	for _, b := range blocks(markdown) {
		units = append(units, divide(markdown, b)...)
	}
	snap(markdown, units)
	var out []Sentence
	for _, u := range units {
		t := markdown[u.start:u.end]
		if !strings.ContainsFunc(t, isWordRune) {
			continue
		}
		s := Sentence{Start: u.start, End: u.end, Text: t, Markers: Markers(t), Kind: u.kind}
		if s.Markers == nil && isRunInHeading(t) {
			s.Kind = Heading
		}
		out = append(out, s)
	}
	return out
}

// isRunInHeading accepts the few bold words that stand before a paragraph as its heading: **Cycle life.** The maker ...
func isRunInHeading(t string) bool {
	const most = 6 // words
	inner, opened := strings.CutPrefix(t, "**")
	inner, closed := strings.CutSuffix(inner, "**")
	return opened && closed && !strings.Contains(inner, "**") && strings.HasSuffix(inner, ".") &&
		!strings.ContainsAny(inner, "0123456789") && len(strings.Fields(inner)) <= most
}

// unit is a sentence before its text is taken.
type unit struct {
	span
	kind Kind
}

// divide cuts one block at the ends of its sentences.
func divide(text string, b block) []unit {
	r := newReader(text, b)
	if b.kind == Heading || b.kind == TableHead || b.kind == TableRow {
		return r.emit(nil, 0, len(r.chars))
	}
	var units []unit
	start := 0
	for i := 0; i < len(r.chars); {
		c := r.chars[i]
		if !c.fixed && isStop(c.r) {
			end, ends := r.sentenceEnd(start, i)
			if ends {
				units = r.emit(units, start, end)
				start = end
			}
			for ; i < end; i++ {
				r.note(i)
			}
			continue
		}
		r.note(i)
		i++
	}
	return r.emit(units, start, len(r.chars))
}

// char is one code point of a block. The break between two lines, with the marks at the start of the second, is one
// space.
type char struct {
	r     rune
	at    int  // its byte offset
	fixed bool // inside a link, code span or URL: ends nothing
}

// reader walks the characters of a block.
type reader struct {
	text  string
	block block
	chars []char
	// open says, for marks that open and close alike, whether an odd number of runs was seen so far. All are ASCII.
	open [0x80]bool
	// first is where the first word of the sentence begins that begins at firstOf.
	first, firstOf int
}

func newReader(text string, b block) *reader {
	r := &reader{text: text, block: b, chars: make([]char, 0, b.end-b.start), firstOf: -1}
	gaps := b.gaps
	for at, c := range text[b.start:b.end] {
		at += b.start
		for len(gaps) > 0 && at >= gaps[0].end {
			gaps = gaps[1:]
		}
		if len(gaps) > 0 && at >= gaps[0].start {
			if at == gaps[0].start {
				r.chars = append(r.chars, char{r: ' ', at: at})
			}
			continue
		}
		r.chars = append(r.chars, char{r: c, at: at})
	}
	r.fix(scanInline(text[b.start:b.end]))
	return r
}

// fix marks the characters in which no stop counts.
func (r *reader) fix(in inline) {
	var spans []span
	spans = append(spans, in.code...)
	for _, l := range in.links {
		spans = append(spans, span{l.open, l.end})
	}
	spans = append(spans, bareURLs(r.text[r.block.start:r.block.end])...)
	if len(spans) == 0 {
		return
	}
	// A difference array: spans may nest, and marking each on its own could take quadratic time.
	depth := make([]int32, r.block.end-r.block.start+1)
	for _, s := range spans {
		depth[s.start]++
		depth[s.end]--
	}
	at, d := 0, int32(0)
	for i := range r.chars {
		for ; at <= r.chars[i].at-r.block.start; at++ {
			d += depth[at]
		}
		r.chars[i].fixed = d > 0
	}
}

// note keeps count of the marks that open and close alike.
func (r *reader) note(i int) {
	c := r.chars[i].r
	if isTwoWay(c) && (i == 0 || r.chars[i-1].r != c) {
		r.open[c] = !r.open[c]
	}
}

// at returns the character at i, or a space past the end.
func (r *reader) at(i int) rune {
	if i < 0 || i >= len(r.chars) {
		return ' '
	}
	return r.chars[i].r
}

// emit appends the unit of the characters from i up to j, without white space at its ends, unless nothing is left.
func (r *reader) emit(units []unit, i, j int) []unit {
	for i < j && unicode.IsSpace(r.chars[i].r) {
		i++
	}
	for j > i && unicode.IsSpace(r.chars[j-1].r) {
		j--
	}
	if i == j {
		return units
	}
	end := r.block.end
	if j < len(r.chars) {
		end = r.chars[j].at
	}
	return append(units, unit{span{r.chars[i].at, end}, r.block.kind})
}

// sentenceEnd looks at the stop at i, in a sentence that began at start. It returns where what belongs to the stop
// ends (further stops, closing marks, citation markers), and whether the sentence ends there.
func (r *reader) sentenceEnd(start, i int) (end int, ends bool) {
	stops, strong := r.stops(i)
	closed, quoted := r.closers(stops, strong)
	end, cited := r.markers(closed)
	if end >= len(r.chars) {
		return len(r.chars), true
	}
	spaced := unicode.IsSpace(r.at(end))
	next := r.nextWord(end)
	switch {
	case strong:
		// 「…。」と言った: after a quote the sentence goes on with a particle.
		ends = spaced || !quoted || !unicode.Is(unicode.Hiragana, r.at(end))
	case !spaced:
		ends = cited && (unicode.IsUpper(r.at(next)) || isHanOrKana(r.at(next))) ||
			isHanOrKana(r.at(end)) && (r.at(i) == '!' || r.at(i) == '?' || isHanOrKana(r.at(i-1)))
	case strings.ContainsRune(",;:)]}", r.at(next)):
		ends = false
	case r.lowerStart(next) && !cited:
		ends = false
	case stops == i+1 && r.at(i) == '.':
		ends = !r.abbreviates(start, i, next)
	default:
		// "[...] The": left-out words inside a sentence.
		ends = r.at(i-1) != '[' && r.at(i-1) != '('
	}
	return end, ends
}

// stops returns the end of the run of stops at i, and whether one of them ends a sentence without a space after it.
func (r *reader) stops(i int) (end int, strong bool) {
	for end = i; end < len(r.chars) && isStop(r.at(end)) && !r.chars[end].fixed; end++ {
		strong = strong || isStrongStop(r.at(end))
		// ". . ." is one ellipsis.
		if r.at(end) == '.' && r.at(end+1) == ' ' && r.at(end+2) == '.' && (r.at(end+3) == ' ' || r.at(end-1) == ' ') {
			end++
		}
	}
	if r.at(i) == '．' && unicode.IsDigit(r.at(end)) {
		strong = false
	}
	return end, strong
}

// closers returns the end of the closing marks from i on, and whether a quotation was closed.
func (r *reader) closers(i int, strong bool) (end int, quoted bool) {
	for ; i < len(r.chars); i++ {
		c := r.at(i)
		switch {
		case isClosing(c):
			quoted = quoted || strings.ContainsRune("」』”’»", c)
		case c == '“' && !strong: // German: „Nein.“
			quoted = true
		case isTwoWay(c):
			// Without spaces between sentences such a mark may open the next one: 。**重要**.
			first := r.at(i-1) != c
			if strong && first && !r.open[c] {
				return i, quoted
			}
			quoted = quoted || c == '"'
		case extends(c) || strings.ContainsRune("¹²³⁰⁴⁵⁶⁷⁸⁹", c):
		case unicode.IsSpace(c) && strings.ContainsRune("»›”", r.at(i+1)) && !isWordRune(r.at(i+2)):
			// French sets a space before its closing quotation mark.
		default:
			return i, quoted
		}
	}
	return i, quoted
}

// markers returns the end of the citation markers from i on, each with white space or a comma before it, and whether
// there was one.
func (r *reader) markers(i int) (end int, cited bool) {
	end = i
	for {
		j := end
		for j < len(r.chars) && (unicode.IsSpace(r.at(j)) || cited && (r.at(j) == ',' || r.at(j) == ';')) {
			j++
		}
		if j >= len(r.chars) {
			return end, cited
		}
		_, stop, ok := parseMarker(r.text[:r.block.end], r.chars[j].at)
		if !ok {
			return end, cited
		}
		for j < len(r.chars) && r.chars[j].at < stop {
			j++
		}
		// Marks and stops that follow a marker directly end with it: **Text.[1]** and Text.[1].
		for j < len(r.chars) && (isClosing(r.at(j)) || isTwoWay(r.at(j)) || isStop(r.at(j)) || extends(r.at(j))) {
			j++
		}
		end, cited = j, true
	}
}

// nextWord returns the first character from i on that is neither space, nor dash, nor a mark that opens something.
func (r *reader) nextWord(i int) int {
	for i < len(r.chars) && (unicode.IsSpace(r.at(i)) || isTwoWay(r.at(i)) || isOpening(r.at(i))) {
		i++
	}
	return i
}

// lowerStart reports whether the word at i is written small; iPhone, eFuel and mRNA begin sentences as they are.
func (r *reader) lowerStart(i int) bool {
	if !unicode.IsLower(r.at(i)) {
		return false
	}
	return !unicode.IsUpper(r.at(i + 1))
}

// abbreviates reports whether the single full stop at i belongs to its word, so that the sentence that began at start
// goes on with the word at next.
func (r *reader) abbreviates(start, i, next int) bool {
	from := i
	for from > start && i-from < longestAbbreviation && (isWordRune(r.at(from-1)) || r.at(from-1) == '.') {
		from--
	}
	if i-from == longestAbbreviation || from == i {
		return false
	}
	to := next
	for to < len(r.chars) && to-next < longestAbbreviation && isWordRune(r.at(to)) {
		to++
	}
	if r.firstOf != start {
		r.firstOf, r.first = start, r.nextWord(start)
	}
	return stopOfWord(wordBeforeStop{
		word:        r.string(from, i),
		next:        r.string(next, to),
		nextStopped: r.at(to) == '.',
		first:       r.first == from || r.at(from-1) == ' ' && r.at(from-2) == ':',
		// "z. B.", "d. h.": the second half of an abbreviation written with a space.
		second: r.at(from-1) == ' ' && r.at(from-2) == '.' && unicode.IsLower(r.at(from-3)) && !isWordRune(r.at(from-4)),
		unit:   strings.ContainsRune("/°·", r.at(from-1)),
	})
}

func (r *reader) string(i, j int) string {
	var b strings.Builder
	for ; i < j; i++ {
		b.WriteRune(r.chars[i].r)
	}
	return b.String()
}

// isStop reports whether c can end a sentence.
func isStop(c rune) bool {
	if c < 0x80 { // all but a few characters of most texts
		return c == '.' || c == '!' || c == '?'
	}
	return strings.ContainsRune(".!?…‼⁇⁈⁉", c) || isStrongStop(c)
}

// isStrongStop reports whether c ends a sentence also without a space after it.
func isStrongStop(c rune) bool {
	return c >= 0x0589 && strings.ContainsRune("。！？．｡؟۔।॥։።፧፨။៕", c)
}

func isClosing(c rune) bool {
	if c < 0x80 {
		return c == ')' || c == ']' || c == '}'
	}
	return strings.ContainsRune(")]}”’»›」』】）》〉］｝〕", c)
}

func isOpening(c rune) bool {
	if c < 0x80 {
		return c == '(' || c == '[' || c == '{' || c == '-'
	}
	return strings.ContainsRune("([{“‘«‹„‚「『【（《〈［｛〔¿¡-–—•", c)
}

// isTwoWay reports whether c opens as well as closes.
func isTwoWay(c rune) bool {
	switch c {
	case '"', '\'', '*', '_', '~', '`':
		return true
	}
	return false
}

func isWordRune(c rune) bool {
	return unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c) && c > 0x7f
}

func isHanOrKana(c rune) bool {
	return c >= 0x2e80 && unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana)
}
