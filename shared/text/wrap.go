package text

import (
	"strings"
	"unicode/utf8"
)

// Wrap breaks s at spaces so that no line is longer than width code points, the indent of all lines but the first included; first is the room that is taken
// before the first word already. A word that is longer than a line, such as a path or a URL, stays whole on one of its own, so that it can be copied.
func Wrap(s string, first, width int, indent string) string {
	var b strings.Builder
	at, begun := first, false
	for _, word := range strings.Fields(s) {
		n := utf8.RuneCountInString(word)
		switch {
		case begun && at+1+n > width:
			b.WriteString("\n" + indent)
			at = utf8.RuneCountInString(indent)
		case begun:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at, begun = at+n, true
	}
	return b.String()
}
