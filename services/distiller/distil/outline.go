package distil

import (
	"strings"
	"unicode/utf8"

	"github.com/factstream/factstream/shared/text"
)

// place is where a sentence stands in the outline of a report.
type place struct {
	level  int  // of a heading, from 1; 0 of what is none
	depth  int  // how many items of lists it stands in; 0 outside lists
	begins bool // it is the first sentence of its item
}

// outline tells the places of a report's sentences, which are put to it in their order. The sentences themselves say only that they are
// of a heading or an item; the marks that say of which one stand before them in the report.
type outline struct {
	report string
	level  int    // of the last heading that is marked as one
	items  []item // of the lists that are open, the outermost first
	colon  bool   // the sentence before ends with a colon
	end    int    // where the sentence before ends
}

// item is the mark of an item of a list.
type item struct {
	column  int  // where it stands in its line
	ordered bool // it is a number
}

// place is that of the next sentence.
func (o *outline) place(s text.Sentence) (p place) {
	switch s.Kind {
	case text.Heading:
		o.items = nil
		if o.level > 0 && strings.Contains(o.before(s), ">") {
			break // of what is quoted under a heading, which it does not end
		}
		p.level = o.headingLevel(s)
	case text.TableHead:
		o.items, p.level = nil, 1 // a head has no level; the mark says that it states nothing
	case text.Item:
		for _, mark := range o.marks(s) {
			o.open(mark)
			p.begins = true
		}
		p.depth = max(len(o.items), 1)
	default:
		// A paragraph that is indented goes on with an item; it is no sentence of its list all the same.
		if o.column(s) < innerColumns {
			o.items = nil
		}
	}
	plain := text.StripMarkers(s.Text)
	o.colon, o.end = strings.HasSuffix(plain, ":") || strings.HasSuffix(plain, "："), s.End
	return p
}

const (
	titleLevel   = 1 // below the heading that it stands under: a line in bold that is a heading by itself
	runInLevel   = 2 // the same of a few bold words that begin a paragraph
	innerColumns = 2 // an item stands in another if it is indented by so many columns more
	tabColumns   = 4
)

// headingLevel is the number of its marks, that of its underline, or, of bold words, one below the heading that they stand under.
func (o *outline) headingLevel(s text.Sentence) int {
	before := o.before(s)
	before = strings.TrimRight(before, " \t")
	if n := len(before) - len(strings.TrimRight(before, "#")); n > 0 {
		o.level = min(n, 6)
		return o.level
	}
	switch underline := o.lineBelow(s.End); {
	case strings.HasPrefix(s.Text, "**"): // the rule below is one
	case strings.HasPrefix(underline, "=="):
		o.level = 1
		return o.level
	case strings.HasPrefix(underline, "--"):
		o.level = 2
		return o.level
	}
	if strings.HasSuffix(s.Text, ".**") {
		return o.level + runInLevel
	}
	return o.level + titleLevel
}

// marks are the list marks in the line before a sentence: none if it does not begin its item.
func (o *outline) marks(s text.Sentence) []item {
	var out []item
	column := 0
	rest := o.before(s)
	for rest != "" {
		r, n := utf8.DecodeRuneInString(rest)
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		switch {
		case r == '\t':
			column += tabColumns - column%tabColumns
		case r == ' ':
			column++
		case r == '>' && len(out) == 0:
			column = 0 // what is quoted has columns of its own
		case digits > 0 && digits < len(rest) && (rest[digits] == '.' || rest[digits] == ')'):
			out, n = append(out, item{column, true}), digits+1
			column += n
		case strings.ContainsRune("-*+•‣◦▪●", r):
			out = append(out, item{column: column})
			column++
		case r == '[':
			return out // its check box
		default:
			return nil // a sentence stands before it in the line
		}
		rest = rest[n:]
	}
	return out
}

// column is how far a sentence that begins a line is indented, 0 of one that does not.
func (o *outline) column(s text.Sentence) (n int) {
	before := o.before(s)
	for _, r := range before {
		switch r {
		case ' ':
			n++
		case '\t':
			n += tabColumns - n%tabColumns
		default:
			return 0
		}
	}
	return n
}

// before is what stands before a sentence in its line, marks and white space; "" if another sentence does. (No more is looked at than
// what lies between the two, since a report may be one line.)
func (o *outline) before(s text.Sentence) string {
	from := min(o.end, s.Start)
	at := strings.LastIndexAny(o.report[from:s.Start], "\r\n")
	if at < 0 && from > 0 {
		return ""
	}
	return o.report[from+at+1 : s.Start]
}

// lineBelow is the line after the one that ends at a place, without the white space around it.
func (o *outline) lineBelow(end int) string {
	rest := o.report[end:]
	at := strings.IndexAny(rest, "\r\n")
	if at < 0 {
		return ""
	}
	rest = strings.TrimPrefix(strings.TrimPrefix(rest[at:], "\r"), "\n")
	if at = strings.IndexAny(rest, "\r\n"); at >= 0 {
		rest = rest[:at]
	}
	return strings.TrimSpace(rest)
}

// open opens the item of a mark, and closes those that it does not stand in. A bullet in the column of a number stands in the numbered
// item if that ends with a colon, since many who write Markdown do not indent there; so do the bullets that follow it.
func (o *outline) open(mark item) {
	keep := len(o.items)
	for keep > 0 && o.items[keep-1].column > mark.column-innerColumns {
		keep--
	}
	if beside := o.items[keep:]; !mark.ordered && len(beside) > 0 && beside[0].ordered && (len(beside) > 1 || o.colon) {
		keep++
	}
	o.items = append(o.items[:keep:keep], mark)
}
