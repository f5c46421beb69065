package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// span is a range of byte offsets, end exclusive.
type span struct{ start, end int }

// block is a run of text that shares no sentence with what stands around it.
type block struct {
	span
	kind Kind
	gaps []span // the line breaks inside, each with the marks at the start of the next line

	quoted bool // stands in a quote
}

// blocks finds the blocks of a Markdown text, in order. It reads line by line what LLM-written reports hold, and no
// more of CommonMark than sentences need: indented code is text, and nesting is not kept.
func blocks(text string) []block {
	p := blockParser{text: text, lines: lines(text)}
	for p.next = 0; p.next < len(p.lines); {
		p.line()
	}
	p.close()
	return p.blocks
}

type blockParser struct {
	text   string
	lines  []span
	next   int // the line to read
	blocks []block

	open     *block // a paragraph, list item or quote that may go on
	inTable  bool
	unclosed map[byte]int // fence character -> the shortest fence that is known to have no end
	openHTML bool         // no comment ends any more
}

// line reads the next line, or several that belong to it.
func (p *blockParser) line() {
	whole := p.lines[p.next]
	l := readMarks(p.text, whole, p.open != nil && p.open.kind != Item)
	body := p.text[l.start:l.end]
	p.next++
	switch {
	case body == "":
		p.close()
		if l.item { // "-" alone
			p.inTable = false
		}
	case p.skipFence(body), p.skipComment(l.start, body), isDefinition(body):
		p.close()
	case l.heading:
		p.close()
		p.add(block{span: l.span, kind: Heading})
	case isRule(body) && !l.item:
		p.underline(body)
		p.close()
	case p.tableRow(l.span, body):
	case l.item:
		p.start(l, Item)
	case l.quote && (p.open == nil || !p.open.quoted):
		p.start(l, Quote)
	case p.open == nil:
		p.start(l, Prose)
	case p.breaksAt(p.open.end, l.start):
		l.quote = p.open.quoted
		p.start(l, p.open.kind)
	default:
		p.open.gaps = append(p.open.gaps, span{p.open.end, l.start})
		p.open.end = l.end
	}
}

func (p *blockParser) add(b block) {
	p.inTable = false
	p.blocks = append(p.blocks, b)
}

// start closes the open block and opens another.
func (p *blockParser) start(l markedLine, kind Kind) {
	p.close()
	p.open = &block{span: l.span, kind: kind, quoted: l.quote}
}

func (p *blockParser) close() {
	if p.open == nil {
		p.inTable = false
		return
	}
	b := *p.open
	p.open = nil
	if b.kind == Prose && len(b.gaps) == 0 && isBoldTitle(p.text[b.start:b.end]) {
		b.kind = Heading
	}
	p.add(b)
}

// underline makes a heading of a paragraph of one line that is underlined. A rule right under a sentence is taken for
// the rule that was meant.
func (p *blockParser) underline(rule string) {
	b := p.open
	if b == nil || b.kind != Prose || len(b.gaps) > 0 || b.end-b.start > 120 || strings.ContainsAny(rule, "*_ ") {
		return
	}
	last, _ := utf8.DecodeLastRuneInString(p.text[b.start:b.end])
	if !isStop(last) && !isClosing(last) {
		b.kind = Heading
	}
}

// breaksAt reports whether the break between two lines of a paragraph ends a unit: a hard break of Markdown, or a
// script that is written without stops.
func (p *blockParser) breaksAt(end, next int) bool {
	between := p.text[end:next]
	if strings.HasPrefix(between, "  ") || strings.HasSuffix(p.text[:end], `\`) {
		return true
	}
	last, _ := utf8.DecodeLastRuneInString(p.text[:end])
	return unicode.In(last, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// skipFence passes a fenced code block whose first line is body.
func (p *blockParser) skipFence(body string) bool {
	mark, length, info := fence(body)
	if length == 0 {
		return false
	}
	language, _, _ := strings.Cut(strings.ToLower(info), " ")
	if known, ok := p.unclosed[mark]; ok && length >= known || language == "markdown" || language == "md" {
		return true // only this line is left out
	}
	for i := p.next; i < len(p.lines); i++ {
		l := readMarks(p.text, p.lines[i], false)
		m, n, rest := fence(p.text[l.start:l.end])
		if m == mark && n >= length && rest == "" {
			p.next = i + 1
			return true
		}
	}
	if p.unclosed == nil {
		p.unclosed = map[byte]int{}
	}
	p.unclosed[mark] = length
	return true
}

// longestFence is the length from which on fences are taken for equal: so few lengths are looked for, and a text of
// many different fences without ends still takes linear time.
const longestFence = 8

// fence reads ``` or ~~~ with what follows it; length 0 if line is no fence.
func fence(line string) (mark byte, length int, info string) {
	if line == "" || line[0] != '`' && line[0] != '~' {
		return 0, 0, ""
	}
	rest := strings.TrimLeft(line, line[:1])
	n := len(line) - len(rest)
	if n < 3 || line[0] == '`' && strings.Contains(rest, "`") {
		return 0, 0, ""
	}
	return line[0], min(n, longestFence), strings.TrimSpace(rest)
}

// skipComment passes an HTML comment that begins a line, with all of its last line.
func (p *blockParser) skipComment(start int, body string) bool {
	if p.openHTML || !strings.HasPrefix(body, "<!--") {
		return false
	}
	n := strings.Index(p.text[start:], "-->")
	if n < 0 {
		p.openHTML = true
		return false
	}
	for p.next < len(p.lines) && p.lines[p.next].start < start+n {
		p.next++
	}
	return true
}

// tableRow takes a row of a table; the row of dashes under the head is left out.
func (p *blockParser) tableRow(s span, body string) bool {
	if !strings.Contains(body, "|") {
		if p.inTable {
			p.close()
		}
		return false
	}
	head := false
	if p.next < len(p.lines) {
		below := readMarks(p.text, p.lines[p.next], false)
		head = isDelimiterRow(p.text[below.start:below.end])
	}
	if !head && !p.inTable && (body[0] != '|' || strings.Count(body, "|") < 2) {
		return false
	}
	p.close()
	if !isDelimiterRow(body) {
		for s.start < s.end && (p.text[s.start] == '|' || isBlank(p.text[s.start])) {
			s.start++
		}
		for s.end > s.start && (p.text[s.end-1] == '|' || isBlank(p.text[s.end-1])) {
			s.end--
		}
		kind := TableRow
		if head {
			kind = TableHead
		}
		p.add(block{span: s, kind: kind})
	}
	p.inTable = true
	return true
}

func isDelimiterRow(s string) bool {
	return strings.Contains(s, "|") && strings.Contains(s, "-") && strings.Trim(s, "|:- \t") == ""
}

// isRule accepts ---, ***, ___ and the underlines of headings.
func isRule(s string) bool {
	bare := strings.ReplaceAll(strings.ReplaceAll(s, " ", ""), "\t", "")
	return len(bare) >= 3 && strings.IndexByte("-*_=", bare[0]) >= 0 && strings.Trim(bare, bare[:1]) == ""
}

// isDefinition accepts a link definition: [label]: https://...
func isDefinition(s string) bool {
	if s[0] != '[' {
		return false
	}
	_, target, found := strings.Cut(s, "]:")
	if !found {
		return false
	}
	target = strings.TrimSpace(target)
	for _, prefix := range []string{"http://", "https://", "<", "/", "#", "www."} {
		if strings.HasPrefix(target, prefix) {
			return !strings.ContainsAny(target, " \t") || strings.ContainsAny(target, `"'(`)
		}
	}
	return false
}

// isBoldTitle accepts a line that is bold from end to end and is no sentence: **Key findings**, **Key findings:**.
func isBoldTitle(s string) bool {
	inner, opened := strings.CutPrefix(s, "**")
	inner = strings.TrimSuffix(inner, ":")
	inner, closed := strings.CutSuffix(inner, "**")
	if !opened || !closed || inner == "" || strings.Contains(inner, "**") {
		return false
	}
	last, _ := utf8.DecodeLastRuneInString(inner)
	return !isStop(last)
}

// markedLine is a line without the marks at its start and the white space at its end.
type markedLine struct {
	span
	quote, item, heading bool
}

// deepestMarks is how many quote and list marks one line may begin with; what follows is text.
const deepestMarks = 12

// readMarks reads the marks at the start of a line: quotes, list items with their check boxes, headings. Inside a
// paragraph a number begins a list only if it is 1, as in CommonMark: a wrapped line may begin with "30. ".
func readMarks(text string, s span, inParagraph bool) markedLine {
	l := markedLine{span: s}
	for l.end > l.start && isBlank(text[l.end-1]) {
		l.end--
	}
	for range deepestMarks {
		for l.start < l.end && isBlank(text[l.start]) {
			l.start++
		}
		rest := text[l.start:l.end]
		n := 0
		switch {
		case strings.HasPrefix(rest, ">"):
			l.quote, n = true, 1
		case isRule(rest):
			return l
		default:
			n = itemMark(rest, inParagraph)
			l.item = l.item || n > 0
		}
		if n == 0 {
			break
		}
		l.start += n
	}
	for l.start < l.end && isBlank(text[l.start]) {
		l.start++
	}
	rest := text[l.start:l.end]
	if l.item && len(rest) >= 4 && rest[0] == '[' && strings.IndexByte(" xX", rest[1]) >= 0 && rest[2] == ']' && rest[3] == ' ' {
		l.start += 4
		return l
	}
	if n := len(rest) - len(strings.TrimLeft(rest, "#")); n >= 1 && n <= 6 && (n == len(rest) || isBlank(rest[n])) {
		l.heading = true
		l.start += n
		for l.start < l.end && isBlank(text[l.start]) {
			l.start++
		}
		closing := strings.TrimRight(text[l.start:l.end], "#")
		if closing == "" || isBlank(closing[len(closing)-1]) {
			l.end = l.start + len(strings.TrimRight(closing, " \t"))
		}
	}
	return l
}

// itemMark returns the length of the list mark at the start of s, 0 if there is none.
func itemMark(s string, inParagraph bool) int {
	n := 0
	for n < len(s) && n < 4 && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	switch {
	case n > 0:
		if n > 3 || inParagraph && s[:n] != "1" || n == len(s) || s[n] != '.' && s[n] != ')' {
			return 0
		}
		n++
	case s != "" && strings.IndexByte("-*+", s[0]) >= 0:
		n = 1
	default:
		for _, bullet := range []string{"•", "‣", "◦", "▪", "●"} {
			if strings.HasPrefix(s, bullet) {
				n = len(bullet)
			}
		}
	}
	if n == 0 || n < len(s) && !isBlank(s[n]) {
		return 0
	}
	return n
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// lines returns the lines of text without their ends, which are \n, \r\n or \r.
func lines(text string) []span {
	var out []span
	start := 0
	for start < len(text) {
		n := strings.IndexAny(text[start:], "\r\n")
		if n < 0 {
			return append(out, span{start, len(text)})
		}
		out = append(out, span{start, start + n})
		start += n + 1
		if text[start-1] == '\r' && start < len(text) && text[start] == '\n' {
			start++
		}
	}
	return out
}
