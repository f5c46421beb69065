package text

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"
)

// StripMarkers returns s, a sentence or more of Markdown, as a person reads it: without citation markers (and the space
// or empty brackets they leave), emphasis, code marks, images' and links' targets (their text stays), HTML tags,
// backslash escapes and the marks of headings, lists, quotes and table rows; entities decoded, white space folded.
func StripMarkers(s string) string {
	var marked []string
	for _, l := range lines(s) {
		m := readMarks(s, l, len(marked) > 0)
		line := s[m.start:m.end]
		if _, n, _ := fence(line); n > 0 || isRule(line) || isDelimiterRow(line) {
			continue
		}
		if strings.HasPrefix(line, "|") {
			line = strings.Trim(line, "| \t")
		}
		marked = append(marked, line)
	}
	st := stripper{s: strings.Join(marked, "\n")}
	return FoldSpace(strings.ToValidUTF8(st.run(), "\uFFFD"))
}

type stripper struct {
	s   string
	i   int
	out []byte
	// noComment: no HTML comment ends after here.
	noComment bool
}

func (st *stripper) run() string {
	in := scanInline(st.s)
	opens, closes := map[int]bool{}, map[int]int{}
	for _, l := range in.links {
		opens[l.open] = true
		closes[l.close] = l.end
		if l.image {
			opens[l.open-1] = true
		}
	}
	st.out = make([]byte, 0, len(st.s))
	for st.i < len(st.s) {
		if len(in.code) > 0 && st.i >= in.code[0].start {
			st.codeSpan(in.code[0])
			in.code = in.code[1:]
			continue
		}
		if end := plainEnd(st.s, st.i); end > st.i {
			st.out = append(st.out, st.s[st.i:end]...)
			st.i = end
			continue
		}
		if end, ok := markerGroup(st.s, st.i); ok {
			st.dropMarkers(end)
			continue
		}
		if opens[st.i] {
			st.i++
			continue
		}
		if end, ok := closes[st.i]; ok {
			st.i = end
			continue
		}
		switch st.s[st.i] {
		case '*', '_', '~':
			st.emphasis()
		case '<':
			st.tag()
		case '&':
			st.entity()
		case '\\':
			st.escape()
		default:
			st.out = append(st.out, st.s[st.i])
			st.i++
		}
	}
	return string(st.out)
}

// plainEnd is the end of the bytes from i on with which nothing that is left out begins or ends: no mark, link, code span, tag, entity or
// escape. 0xe3 is the first byte of 【, and of many other characters.
func plainEnd(s string, i int) int {
	for ; i < len(s); i++ {
		switch s[i] {
		case '*', '_', '~', '<', '&', '\\', '`', '[', ']', '!', 0xe3:
			return i
		}
	}
	return i
}

func (st *stripper) codeSpan(code span) {
	n := runLength(st.s, code.start)
	st.out = append(st.out, st.s[code.start+n:code.end-n]...)
	st.i = code.end
}

// dropMarkers leaves out the markers up to end and closes the hole.
func (st *stripper) dropMarkers(end int) {
	st.i = end
	next := st.peek(end)
	before := len(strings.TrimRight(string(st.tail()), " \t\n\u00a0\u202f"))
	cut := len(st.tail()) - before
	switch {
	case unicode.IsSpace(next) || strings.ContainsRune(".,;:!?…)]}»”。，、；：！？）」", next):
		st.out = st.out[:len(st.out)-cut]
	case cut == 0:
		st.out = append(st.out, ' ')
	}
	if n := len(st.out); n > 0 && st.out[n-1] == '(' && next == ')' {
		st.i++
		st.out = []byte(strings.TrimRight(string(st.out[:n-1]), " "))
	}
}

// tail is the end of what was written, as far as a hole reaches.
func (st *stripper) tail() []byte { return st.out[max(0, len(st.out)-16):] }

// emphasis leaves out a run of * _ or ~ unless it stands for itself: "2 * 3", "a*b", snake_case, "~5".
func (st *stripper) emphasis() {
	mark := st.s[st.i]
	n := runLength(st.s, st.i)
	before, _ := utf8.DecodeLastRuneInString(st.s[:st.i])
	if st.i == 0 {
		before = ' '
	}
	after := st.peek(st.i + n)
	apart := unicode.IsSpace(before) && unicode.IsSpace(after)
	inside := isWordRune(before) && isWordRune(after)
	keep := false
	switch mark {
	case '*':
		keep = apart || inside && (n == 1 && before < 0x80 && after < 0x80 || unicode.IsDigit(before) && unicode.IsDigit(after))
	case '_':
		keep = apart || inside
	case '~':
		keep = n != 2
	}
	if keep {
		st.out = append(st.out, st.s[st.i:st.i+n]...)
	}
	st.i += n
}

// inlineTags are the HTML tags that reports use; any other "<" is text.
var inlineTags = WordSet(`a abbr b blockquote br cite code del details div em figure font h1 h2 h3 h4 h5 h6 hr i img ins kbd li
	mark ol p pre q s small span strong sub summary sup table tbody td th thead tr u ul`)

// tag leaves out an HTML tag or comment, and the brackets of <https://...>.
func (st *stripper) tag() {
	rest := st.s[st.i:]
	if strings.HasPrefix(rest, "<!--") && !st.noComment {
		if n := strings.Index(rest, "-->"); n >= 0 {
			st.i += n + len("-->")
			return
		}
		st.noComment = true
	}
	end := strings.IndexAny(rest[1:min(len(rest), 2048)], "<>") + 1
	if end == 0 || rest[end] != '>' {
		st.out = append(st.out, '<')
		st.i++
		return
	}
	body := rest[1:end]
	name := strings.TrimPrefix(body, "/")
	if n := strings.IndexFunc(name, func(c rune) bool { return c >= 0x80 || !isASCIIWord(byte(c)) }); n >= 0 {
		name = name[:n]
	}
	name = strings.ToLower(name)
	switch {
	case startsURL(body) && !strings.ContainsFunc(body, unicode.IsSpace):
		st.out = append(st.out, body...)
	case name == "br" || name == "p" || name == "li" || name == "td" || name == "div":
		st.out = append(st.out, ' ')
	case inlineTags[name]:
	default:
		st.out = append(st.out, '<')
		st.i++
		return
	}
	st.i += end + 1
}

// longestEntity: the longest names of HTML entities have 31 letters.
const longestEntity = 34

func (st *stripper) entity() {
	rest := st.s[st.i:min(len(st.s), st.i+longestEntity)]
	if n := strings.IndexByte(rest, ';'); n > 0 {
		if decoded := html.UnescapeString(rest[:n+1]); decoded != rest[:n+1] {
			st.out = append(st.out, decoded...)
			st.i += n + 1
			return
		}
	}
	st.out = append(st.out, '&')
	st.i++
}

func (st *stripper) escape() {
	st.i++
	if st.i < len(st.s) && strings.IndexByte("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", st.s[st.i]) >= 0 {
		st.out = append(st.out, st.s[st.i])
		st.i++
		return
	}
	st.out = append(st.out, '\\')
}

// peek returns the character at i, or a space past the end.
func (st *stripper) peek(i int) rune {
	if i >= len(st.s) {
		return ' '
	}
	c, _ := utf8.DecodeRuneInString(st.s[i:])
	return c
}
