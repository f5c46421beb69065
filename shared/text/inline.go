package text

import (
	"strings"
	"unicode"
)

// inline holds what the inside of a block is made of, as byte offsets into it.
type inline struct {
	code  []span // code spans, with their backticks
	links []link
}

// link is [text](target) or ![text](target).
type link struct {
	open  int // of the "["
	close int // of the "]"
	end   int // after the ")"
	image bool
}

// scanInline finds code spans and links in one pass.
func scanInline(s string) inline {
	var in inline
	if !strings.ContainsAny(s, "`]") {
		return in
	}
	runs := backtickRuns(s)
	var brackets []int
	for i := 0; i < len(s); {
		switch s[i] {
		case '\\':
			i += 2
			continue
		case '`':
			n := runLength(s, i)
			if end, ok := runs.closing(i, n); ok {
				in.code = append(in.code, span{i, end + n})
				i = end + n
			} else {
				i += n
			}
			continue
		case '[':
			brackets = append(brackets, i)
		case ']':
			if len(brackets) == 0 {
				break
			}
			open := brackets[len(brackets)-1]
			brackets = brackets[:len(brackets)-1]
			if end, ok := linkTarget(s, i+1); ok {
				in.links = append(in.links, link{open: open, close: i, end: end, image: open > 0 && s[open-1] == '!'})
				i = end
				continue
			}
		}
		i++
	}
	return in
}

// linkTarget reads "(target)" or "(target "title")" at i and returns its end. It stops at the next "](", which no
// target holds: so all the targets that are tried and fail take linear time together.
func linkTarget(s string, i int) (end int, ok bool) {
	if i >= len(s) || s[i] != '(' {
		return 0, false
	}
	depth := 0
	var quote byte // of the title that is open
	for ; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\n' || c == '\r' || c == ']' && strings.HasPrefix(s[i:], "]("):
			return 0, false
		case c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case isBlank(c):
			rest := strings.TrimLeft(s[i:min(len(s), i+8)], " \t")
			if rest == "" || strings.IndexByte(`"')`, rest[0]) < 0 {
				return 0, false
			}
			if rest[0] != ')' {
				quote = rest[0]
			}
			i = i + len(s[i:min(len(s), i+8)]) - len(rest) - 1
			if quote != 0 {
				i++
			}
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 {
				return i + 1, true
			}
		}
	}
	return 0, false
}

// backticks knows where runs of backticks begin, by their length.
type backticks map[int][]int

func backtickRuns(s string) backticks {
	runs := backticks{}
	for i := strings.IndexByte(s, '`'); i >= 0 && i < len(s); {
		n := runLength(s, i)
		runs[n] = append(runs[n], i)
		next := strings.IndexByte(s[i+n:], '`')
		if next < 0 {
			break
		}
		i += n + next
	}
	return runs
}

// closing returns the next run of n backticks after the one at i. Calls must come in rising order of i.
func (b backticks) closing(i, n int) (at int, ok bool) {
	starts := b[n]
	for len(starts) > 0 && starts[0] <= i {
		starts = starts[1:]
	}
	b[n] = starts
	if len(starts) == 0 {
		return 0, false
	}
	return starts[0], true
}

// runLength returns how often the byte at i stands in a row.
func runLength(s string, i int) int {
	n := 1
	for i+n < len(s) && s[i+n] == s[i] {
		n++
	}
	return n
}

// bareURLs finds the URLs that stand in the text as they are, without the punctuation after them.
func bareURLs(s string) []span {
	var out []span
	for i := 0; i < len(s); {
		next := strings.IndexAny(s[i:], "hHwW")
		if next < 0 {
			break
		}
		i += next
		if !startsURL(s[i:]) || i > 0 && isASCIIWord(s[i-1]) {
			i++
			continue
		}
		end := len(s)
		if n := strings.IndexFunc(s[i:], endsURL); n >= 0 {
			end = i + n
		}
		trimmed := i + len(strings.TrimRight(s[i:end], ".,;:!?'\")]}*_~"))
		out = append(out, span{i, trimmed})
		i = max(end, i+1)
	}
	return out
}

func startsURL(s string) bool {
	if len(s) < 4 || s[1]|' ' != 't' && s[1]|' ' != 'w' { // most words with an h or w in them
		return false
	}
	head := strings.ToLower(s[:min(len(s), 8)])
	return strings.HasPrefix(head, "http://") || strings.HasPrefix(head, "https://") || strings.HasPrefix(head, "www.")
}

func endsURL(c rune) bool {
	return unicode.IsSpace(c) || strings.ContainsRune("<>\"`|，、）」』】《》", c) || isStrongStop(c)
}

func isASCIIWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
