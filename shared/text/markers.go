package text

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Markers returns the numbers of the citation markers in s, each once, in the order of their first appearance; nil if
// there are none.
//
// A marker is a pair of square brackets around numbers of one to three digits (1 to 999): [3], [1, 2], [1; 2], [1-3]
// (the numbers between too, if they are at most 50 apart), [^3], 【3】, \[3\], [[3]], and each of these as the text
// of a link. So [2024], [0], [x], [sic] and images are none, nor is anything in a code span. Which numbers have a page
// only the caller knows.
func Markers(s string) []int {
	if !strings.ContainsAny(s, "[【") {
		return nil
	}
	code := scanInline(s).code
	var out []int
	for i := 0; i < len(s); {
		if len(code) > 0 && i >= code[0].start {
			i, code = code[0].end, code[1:]
			continue
		}
		numbers, end, ok := parseMarker(s, i)
		if !ok {
			i++
			continue
		}
		for _, n := range numbers {
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
		i = end
	}
	return out
}

// widestRange is how far apart the ends of [a-b] may be for the numbers between to count.
const widestRange = 50

// parseMarker reads the citation marker at i, with its link target if it has one, and returns its numbers and end.
func parseMarker(s string, i int) (numbers []int, end int, ok bool) {
	if i > 0 && s[i-1] == '!' && s[i] == '[' && linked(s, i) {
		return nil, 0, false
	}
	p := markerParser{s: s, i: i}
	closers := p.opening()
	if closers == nil {
		return nil, 0, false
	}
	for {
		p.space()
		p.accept("^")
		n := p.number()
		if n == 0 {
			return nil, 0, false
		}
		numbers = append(numbers, n)
		p.space()
		if p.accept("-") || p.accept("–") || p.accept("—") || p.accept("‑") {
			p.space()
			last := p.number()
			if last == 0 {
				return nil, 0, false
			}
			if last-n <= widestRange {
				for between := n + 1; between < last; between++ {
					numbers = append(numbers, between)
				}
			}
			numbers = append(numbers, last)
			p.space()
		}
		if p.accept(",") || p.accept(";") || p.accept("、") || p.accept("，") {
			continue
		}
		break
	}
	for _, c := range closers {
		if !p.accept(c) {
			return nil, 0, false
		}
	}
	if closers[0] == "]" { // only these make links, and only for these linkTarget is linear
		if end, isLink := linkTarget(s, p.i); isLink {
			p.i = end
		}
	}
	return numbers, p.i, true
}

// linked reports whether the bracket at i is the text of a link.
func linked(s string, i int) bool {
	n := strings.IndexAny(s[i+1:min(len(s), i+64)], "[]")
	if n < 0 || s[i+1+n] != ']' {
		return false
	}
	_, ok := linkTarget(s, i+n+2)
	return ok
}

type markerParser struct {
	s string
	i int
}

// opening reads what opens a marker and returns what must close it, nil if nothing opens here.
func (p *markerParser) opening() []string {
	switch {
	case p.accept(`\[`):
		return []string{`\]`}
	case p.accept("[["):
		return []string{"]", "]"}
	case p.accept("["):
		return []string{"]"}
	case p.accept("【"):
		return []string{"】"}
	}
	return nil
}

func (p *markerParser) accept(token string) bool {
	if strings.HasPrefix(p.s[p.i:], token) {
		p.i += len(token)
		return true
	}
	return false
}

func (p *markerParser) space() {
	for p.accept(" ") || p.accept("\u00a0") || p.accept("\u202f") || p.accept("\u2009") {
	}
}

// number reads 1 to 999; 0 if there is none.
func (p *markerParser) number() int {
	n, digits := 0, 0
	for ; p.i < len(p.s) && p.s[p.i] >= '0' && p.s[p.i] <= '9'; p.i++ {
		if digits++; digits > 3 || digits == 2 && n == 0 {
			return 0
		}
		n = 10*n + int(p.s[p.i]-'0')
	}
	return n
}

// markerGroup reads the markers from i on, with white space, commas and semicolons between them, and returns its end.
func markerGroup(s string, i int) (end int, ok bool) {
	_, end, ok = parseMarker(s, i)
	for at := end; ok && at < len(s); {
		c, size := utf8.DecodeRuneInString(s[at:])
		if strings.ContainsRune(" \t\n\r,;\u00a0\u202f", c) {
			at += size
			continue
		}
		_, next, more := parseMarker(s, at)
		if !more {
			break
		}
		end, at = next, next
	}
	return end, ok
}
