package text

import (
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
)

// extends reports whether c joins the character before it.
func extends(c rune) bool {
	return c >= 0x300 && (unicode.In(c, unicode.Mn, unicode.Me, unicode.Mc) || c == '\u200d' || c >= 0x1f3fb && c <= 0x1f3ff)
}

// snap moves the ends of units, which are in order and do not overlap, out of the graphemes that they cut: an end
// behind its grapheme, a start before it, unless the unit before holds that grapheme.
func snap(text string, units []unit) {
	if !strings.ContainsFunc(text, func(c rune) bool { return c >= 0x80 || c == '\r' }) {
		return
	}
	w := graphemeWalk{rest: text, state: -1}
	last := 0
	for i := range units {
		u := &units[i]
		u.end = max(u.end, last)
		if before, after := w.around(u.start); before != u.start {
			u.start = before
			if before < last {
				u.start = after
			}
		}
		u.start = max(u.start, last)
		u.end = max(u.end, u.start)
		_, u.end = w.around(u.end)
		last = u.end
	}
}

// graphemeWalk walks the graphemes of a text once.
type graphemeWalk struct {
	rest       string
	state      int
	start, end int // of the current grapheme
}

// next goes on to the next grapheme and reports whether there is one.
func (w *graphemeWalk) next() bool {
	var cluster string
	cluster, w.rest, _, w.state = uniseg.FirstGraphemeClusterInString(w.rest, w.state)
	w.start, w.end = w.end, w.end+len(cluster)
	return cluster != ""
}

// around returns the boundaries of the grapheme that offset lies in; both are offset if it is a boundary. Calls must
// come in rising order of offset.
func (w *graphemeWalk) around(offset int) (before, after int) {
	for w.end < offset && w.next() {
	}
	if w.end == offset || w.start == offset {
		return offset, offset
	}
	return w.start, w.end
}
