package extractive

import (
	"fmt"
	"math"
	"slices"

	"github.com/factstream/factstream/shared/model/measure"
)

// Figures and dates are compared by what they measure, and not by how they are written.

// difference is how the figures and dates of two claims stand to each other.
type difference struct {
	same, close, apart []string // pairs of figures, written out
	onlyA, onlyB       []string // figures and dates of one claim alone
	scopeApart         bool     // figures that differ include one that says for which cases
	oneSidedScope      bool     // only one claim says for which cases
	conditionOnly      bool     // and these are conditions such as a temperature
	otherDate          string   // dates that differ, written out; "" if none do
	dateOnly           bool     // each claim has one date that differs
	oneSidedDate       bool     // only one claim has a date at all
	dateDetail         bool     // a date is given more exactly by one
	inverse            bool     // of multiples that differ one is the inverse of the other: "twice", "half"
	loose              bool     // figures that differ need not be of one thing: bare numbers of which the counted thing is not shared
}

func differences(a, b *claim) difference {
	var d difference
	d.figures(a, b)
	d.times(a, b)
	return d
}

// figures pairs the quantities: equal ones first, then those of one kind in order.
func (d *difference) figures(a, b *claim) {
	usedA, usedB := make([]bool, len(a.quantities)), make([]bool, len(b.quantities))
	ruled := func() bool { return a.has(term.rules) && b.has(term.rules) }
	take := func(want measure.Relation) {
		for i, x := range a.quantities {
			for j, y := range b.quantities {
				if usedA[i] || usedB[j] || relate(x, y, ruled) != want || !countSame(a, x, b, y) {
					continue
				}
				usedA[i], usedB[j] = true, true
				between := "and"
				if x.Lo != x.Hi || y.Lo != y.Hi { // a range has a word of that kind in itself
					between = "against"
				}
				text := fmt.Sprintf("%s %s %s", a.text[x.Start:x.End], between, b.text[y.Start:y.End])
				switch want {
				case measure.Same:
					d.same = append(d.same, text)
				case measure.Close:
					d.close = append(d.close, text)
				case measure.Apart:
					d.apart = append(d.apart, text)
					d.inverse = d.inverse || x.Family == "times" && y.Family == "times" && math.Abs(x.Lo*y.Lo-1) < 0.01
					d.loose = d.loose || x.Family == measure.Count && (len(a.counted(x)) == 0 || len(b.counted(y)) == 0)
					d.scopeApart = d.scopeApart || x.Scope || y.Scope || x.Attributive() && y.Attributive()
				}
			}
		}
	}
	d.conditionOnly = true
	scoped := func(q measure.Quantity) {
		d.oneSidedScope = d.oneSidedScope || q.Scope
		d.conditionOnly = d.conditionOnly && (!q.Scope || q.Family == "temperature" || q.Family == "pressure")
	}
	take(measure.Same)
	take(measure.Close)
	take(measure.Apart)
	d.wholes(a, b, usedB)
	d.wholes(b, a, usedA)
	for i, x := range a.quantities {
		if !usedA[i] && inContext(x, b) {
			usedA[i] = true
			d.same = append(d.same, a.text[x.Start:x.End])
		}
		if !usedA[i] {
			d.onlyA = append(d.onlyA, a.text[x.Start:x.End])
			scoped(x)
		}
	}
	for j, y := range b.quantities {
		if !usedB[j] && inContext(y, a) {
			usedB[j] = true
			d.same = append(d.same, b.text[y.Start:y.End])
		}
		if !usedB[j] {
			d.onlyB = append(d.onlyB, b.text[y.Start:y.End])
			scoped(y)
		}
	}
}

// relate compares two quantities. Bounds that rules set are exact: what holds "for firms with more than 50 workers" is not what holds for
// those "with more than 15".
func relate(x, y measure.Quantity, ruled func() bool) measure.Relation {
	r := measure.Compare(x, y)
	if r == measure.Close && x.AtLeast == y.AtLeast && x.AtMost == y.AtMost && (x.AtLeast || x.AtMost) && ruled() {
		x.AtLeast, x.AtMost, y.AtLeast, y.AtMost = false, false, false, false
		return measure.Compare(x, y)
	}
	return r
}

func (t term) rules() bool { return !t.context && words().is("rule", t.low, t.stem) }

// wholes sets the whole of something in one claim against the share of it that the other has: "all the costs" and "60 percent of the costs".
func (d *difference) wholes(all, part *claim, used []bool) {
	if slices.ContainsFunc(all.quantities, func(q measure.Quantity) bool { return q.Family == "ratio" }) {
		return
	}
	for j, y := range part.quantities {
		if used[j] || y.Family != "ratio" || y.AtLeast || y.Hi > 0.99 {
			continue
		}
		of, ok := part.after(y.End)
		if !ok {
			continue
		}
		for _, t := range all.terms {
			if t.context || !words().is("whole", t.low, t.stem) {
				continue
			}
			if n, ok := all.after(t.end); ok && (n.stem == of.stem || synonyms(n, of)) {
				used[j] = true
				d.apart = append(d.apart, fmt.Sprintf("%s %s and %s", t.raw, n.raw, part.text[y.Start:y.End]))
				return
			}
		}
	}
}

// after is the next word of content after byte i, with nothing but small words before it.
func (c *claim) after(i int) (term, bool) {
	for _, t := range c.terms {
		switch {
		case t.start < i || t.kind == function:
		case t.kind == content:
			return t, true
		default:
			return term{}, false
		}
	}
	return term{}, false
}

// inContext reports whether the sentence before a claim has a quantity.
func inContext(x measure.Quantity, c *claim) bool {
	return slices.ContainsFunc(c.context, func(y measure.Quantity) bool { return measure.Compare(x, y) == measure.Same })
}

// countSame reports whether two bare numbers count the same thing: one of the words after them is shared. Numbers with a unit always
// are of one kind here.
func countSame(a *claim, x measure.Quantity, b *claim, y measure.Quantity) bool {
	if x.Family != measure.Count {
		return true
	}
	nx, ny := a.counted(x), b.counted(y)
	if len(nx) == 0 || len(ny) == 0 {
		return true
	}
	for _, t := range nx {
		for _, u := range ny {
			if t.stem == u.stem || synonyms(t, u) || kin(t.stem, u.stem) {
				return true
			}
		}
	}
	return false
}

// counted are the up to three words of weight after a number.
func (c *claim) counted(q measure.Quantity) []term {
	var out []term
	for _, t := range c.terms {
		if t.start < q.End {
			continue
		}
		if t.kind == stop || len(out) == 3 || len(out) > 0 && t.kind == function {
			break
		}
		if t.kind == content {
			out = append(out, t)
		}
	}
	return out
}

func (d *difference) times(a, b *claim) {
	d.oneSidedDate = (len(a.dates) == 0) != (len(b.dates) == 0)
	d.dateOnly = len(a.dates) == 1 && len(b.dates) == 1
	if len(a.dates) == 0 {
		for _, y := range b.dates {
			d.onlyB = append(d.onlyB, b.text[y.Start:y.End])
		}
	}
	if len(b.dates) == 0 {
		for _, x := range a.dates {
			d.onlyA = append(d.onlyA, a.text[x.Start:x.End])
		}
	}
	if len(a.dates) == 0 || len(b.dates) == 0 {
		return
	}
	for j, y := range b.dates {
		best := measure.Unlike
		for _, x := range a.dates {
			if r := measure.CompareDates(x, y); best == measure.Unlike || r != measure.Unlike && r < best {
				best = r
			}
		}
		switch best {
		case measure.Close:
			d.dateDetail = true
		case measure.Apart, measure.Unlike:
			if len(b.dates) <= len(a.dates) || best == measure.Apart && allApart(a, y) {
				x := a.dates[min(j, len(a.dates)-1)]
				d.otherDate = fmt.Sprintf("%s and %s", a.text[x.Start:x.End], b.text[y.Start:y.End])
			} else {
				d.onlyB = append(d.onlyB, b.text[y.Start:y.End])
			}
		}
	}
	if len(a.dates) > len(b.dates) {
		return
	}
	for _, x := range a.dates {
		if !slices.ContainsFunc(b.dates, func(y measure.Date) bool {
			r := measure.CompareDates(x, y)
			return r == measure.Same || r == measure.Close
		}) {
			y := b.dates[0]
			d.otherDate = fmt.Sprintf("%s and %s", a.text[x.Start:x.End], b.text[y.Start:y.End])
		}
	}
}

func allApart(a *claim, y measure.Date) bool {
	for _, x := range a.dates {
		if measure.CompareDates(x, y) != measure.Apart {
			return false
		}
	}
	return true
}

// sameAsides reports whether the figures and dates of sources and remarks are the same in both claims.
func sameAsides(a, b *claim) bool {
	if len(a.asideQuantities)+len(b.asideQuantities)+len(a.asideDates)+len(b.asideDates) == 0 {
		return true
	}
	covers := func(a, b *claim) bool {
		for _, x := range a.asideQuantities {
			if !slices.ContainsFunc(slices.Concat(b.quantities, b.asideQuantities), func(y measure.Quantity) bool { return measure.Compare(x, y) == measure.Same }) {
				return false
			}
		}
		for _, x := range a.asideDates {
			if !slices.ContainsFunc(slices.Concat(b.dates, b.asideDates), func(y measure.Date) bool { return measure.CompareDates(x, y) == measure.Same }) {
				return false
			}
		}
		return true
	}
	inOrder := func(a, b *claim) bool { // who counts two in the other's place says something else
		if len(a.asideQuantities) != len(b.asideQuantities) {
			return true
		}
		for i, x := range a.asideQuantities {
			if measure.Compare(x, b.asideQuantities[i]) != measure.Same {
				return false
			}
		}
		return true
	}
	return covers(a, b) && covers(b, a) && inOrder(a, b)
}
