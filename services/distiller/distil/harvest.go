package distil

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/extractive"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/text"
)

// Causes for which a fact is not accepted, beside those of package model.
const (
	dropHeading = "heading_only"   // item: it names nothing but headings
	dropLeaning = "not_standalone" // item: it begins with a word for something that was said before it
	dropFigure  = "unknown_figure" // item: it holds a number that is nowhere in the report
	dropVoice   = "report_voice"   // item: the report speaks for itself or of its sources; where a claim can be told from that, it is kept
	dropPage    = "page_not_cited" // part: it names a page that its sentences do not cite, and they cite others
)

// harvest gathers the facts of a report's chunks.
type harvest struct {
	thread   string
	material material
	facts    []event.Fact
	over     int            // facts of a chunk beyond what it was asked for
	dropped  map[string]int // what was not accepted, by cause
}

func newHarvest(thread string, m material) *harvest {
	return &harvest{thread: thread, material: m, dropped: map[string]int{}}
}

// add takes in the facts of one chunk.
func (h *harvest) add(distilled model.Distilled) {
	for cause, n := range distilled.Drops {
		if cause == model.DropOverLimit {
			h.over += n
			continue
		}
		h.dropped[cause] += n
	}
	for _, f := range distilled.Facts {
		fact, cause := h.fact(f)
		if cause != "" {
			h.dropped[cause]++
			continue
		}
		h.facts = append(h.facts, fact)
	}
}

// fact makes an event's fact of a model's, or says why it is not accepted.
func (h *harvest) fact(f model.Fact) (fact event.Fact, cause string) {
	m := h.material
	numbers := slices.DeleteFunc(slices.Clone(f.Sentences), func(n int) bool {
		return n < 1 || n > len(m.sentences) || heading(m.sentences[n-1])
	})
	claim, stated := extractive.Claim(f.Statement)
	switch {
	case len(numbers) == 0:
		return fact, dropHeading
	case !stated:
		return fact, dropVoice
	case leans(f.Statement):
		return fact, dropLeaning
	case !m.knowsFigures(f.Statement):
		return fact, dropFigure
	}
	f.Statement = claim
	source, contradicted := m.source(f.Page, numbers)
	if contradicted {
		h.dropped[dropPage]++
	}
	print := text.Fingerprint(f.Statement)
	return event.Fact{
		ID: notebook.FactID(h.thread, print), Fingerprint: print, Statement: f.Statement, Confidence: f.Confidence, Tags: f.Tags,
		Source: source, Excerpt: m.excerpt(f.Statement, numbers, source),
	}, ""
}

// surest gives at most n statements by confidence, over all chunks, those of equal confidence in the order of the report, and how
// many more there were. A statement that was found several times counts once; its other finds follow it, as support, at most n in all.
func (h *harvest) surest(n int) (facts []event.Fact, leftOut int) {
	sorted := slices.Clone(h.facts)
	slices.SortStableFunc(sorted, func(a, b event.Fact) int { return cmp.Compare(b.Confidence, a.Confidence) })
	taken, left := map[string]bool{}, map[string]bool{}
	repeats := 0
	for _, f := range sorted {
		switch {
		case taken[f.Fingerprint] && repeats == n:
			h.dropped[model.DropDuplicate]++
			continue
		case taken[f.Fingerprint]:
			repeats++
		case len(taken) == n:
			left[f.Fingerprint] = true
			continue
		}
		taken[f.Fingerprint] = true
		facts = append(facts, f)
	}
	return facts, h.over + len(left)
}

// leaning are words that no statement which stands alone begins with. "It", "this" and the like are not among them, since "It takes
// 12 minutes to charge ..." stands well.
var leaning = map[string]bool{"they": true, "them": true, "their": true, "its": true}

// leans says whether a statement begins with a word for something that it does not name.
func leans(statement string) bool {
	first, _, _ := strings.Cut(statement, " ")
	return leaning[strings.ToLower(first)]
}

// knowsFigures says whether every number of a statement is in the report. Numbers are compared by their significant digits, so that
// 2,000 is 2000, 4.0 is 4 and 3.5 million is 3,500,000. Those up to 12 are let pass, since reports write them as words too.
func (m material) knowsFigures(statement string) bool {
	for _, f := range figures(statement) {
		if !m.figures[f.whole] && slices.ContainsFunc(f.parts, func(p string) bool { return !m.figures[p] && !small(p) }) {
			return false
		}
	}
	return true
}

func small(digits string) bool { return len(digits) < 2 || len(digits) == 2 && digits <= "12" }

// figure is a number as its significant digits: whole as if the spaces in it grouped its digits (10 000), parts as if they did not
// (in 2027 12 cars).
type figure struct {
	whole string
	parts []string
}

// known is the set of all figures, read either way.
func known(figures []figure) map[string]bool {
	set := map[string]bool{}
	for _, f := range figures {
		set[f.whole] = true
		for _, p := range f.parts {
			set[p] = true
		}
	}
	return set
}

// figures finds the numbers of a text, in whatever script their digits are.
func figures(s string) []figure {
	var found []figure
	var parts []string
	part := ""
	mark := rune(0) // after the digits so far: it may stand inside a number
	flush := func() {
		if part != "" {
			parts = append(parts, part)
		}
		if len(parts) > 0 {
			f := figure{whole: significant(strings.Join(parts, ""))}
			for _, p := range parts {
				f.parts = append(f.parts, significant(p))
			}
			found = append(found, f)
		}
		parts, part, mark = nil, "", 0
	}
	for _, r := range s {
		switch {
		case unicode.IsDigit(r):
			if mark == ' ' {
				parts, part = append(parts, part), ""
			}
			part += string('0' + value(r))
			mark = 0
		case part != "" && mark == 0 && strings.ContainsRune(".,'’٫٬ ", r):
			mark = r
		default:
			flush()
		}
	}
	flush()
	return found
}

// value is that of a decimal digit. Unicode keeps the ten digits of a script together, in order, so that the zero is found by going
// back to where they begin.
func value(r rune) rune {
	n := rune(0)
	for n < 9 && unicode.IsDigit(r-n-1) && (r-n-1)/16 == r/16 {
		n++
	}
	return n
}

// significant are the digits of a number without the zeros around them.
func significant(digits string) string { return strings.Trim(digits, "0") }
