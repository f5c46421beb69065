package extractive

import (
	"fmt"
	"slices"
	"strings"

	"github.com/factstream/factstream/shared/model/measure"
)

// tellsOfTheSame says of two distinct statements whether they tell of the same thing, can both be true, and one only adds a detail to the other or
// puts it in other words; with what both tell of. Nothing may differ that could make them statements of two cases: a figure, a date, a
// direction, a denial, a name, who does it to whom.
//
// Of a statement of several clauses one may tell what the whole of the other does. It has lost its subject then, so that more must be shared.
func (c compared) tellsOfTheSame(elder, newer string) (reason string, ok bool) {
	a, b, al := c.a, c.b, c.al
	if al.weight()+min(len(a.quantities), len(b.quantities))+min(len(a.dates), len(b.dates)) < relatedShared {
		return "", false // nor can a clause share more
	}
	if sharesSentence(elder, newer) {
		return "", false // each goes on from it with a claim of its own
	}
	if reason, ok = al.related(a, b, relatedShared, true); ok {
		return reason, true
	}
	for _, part := range b.clauses() {
		if reason, ok = align(a, part).related(a, part, relatedShared+1, false); ok {
			return reason, true
		}
	}
	for _, part := range a.clauses() {
		if reason, ok = align(part, b).related(part, b, relatedShared+1, false); ok {
			return reason, true
		}
	}
	return "", false
}

// related is tellsOfTheSame of two claims that share at least so much.
func (al *alignment) related(a, b *claim, least int, whole bool) (reason string, ok bool) {
	d := differences(a, b)
	shared := al.weight() + len(d.same) + sameDates(a, b)
	left := min(additions(al.coreA), additions(al.coreB))
	if shared < least+left || left > 0 && !(whole && al.opensShared(a, al.indexA) && al.opensShared(b, al.indexB)) || al.differs(a, b, d) {
		return "", false
	}
	var words []string
	for _, p := range al.pairs {
		if p.a.strong() && p.b.strong() && !clauseWords[p.a.low] && !slices.Contains(words, p.a.raw) && len(words) < 4 {
			words = append(words, p.a.raw)
		}
	}
	both := "Both tell of " + strings.Join(words, ", ")
	switch {
	case len(al.coreB) > 0:
		return fmt.Sprintf("%s; the newer adds: %s.", both, list(al.coreB)), true
	case len(al.coreA) > 0:
		return fmt.Sprintf("%s; the elder has besides: %s.", both, list(al.coreA)), true
	}
	return both + "; one has a detail that the other has not.", true
}

// additions counts the words of weight that only one claim has, without those of manner and place.
func additions(left []term) (n int) {
	for _, t := range left {
		if !strings.HasSuffix(t.low, "ly") && !slices.ContainsFunc(t.poles, func(p pole) bool { return placing[p.axis] || p.axis == "above" }) {
			n++
		}
	}
	return n
}

// relatedShared is how many words of weight, figures and dates must be shared by statements of which one only adds to the other; for each word
// that the one with fewer of its own has, one more.
const relatedShared = 3

// differs reports whether anything makes them statements of two cases.
func (al *alignment) differs(a, b *claim, d difference) bool {
	if len(d.apart)+len(d.close) > 0 || d.otherDate != "" || len(d.onlyA) > 0 && len(d.onlyB) > 0 || a.planned != b.planned || otherMarks(a, b) != "" {
		return true
	}
	if _, other := otherKind(a, b, d); other {
		return true
	}
	named := func(t term) bool { return t.name && !t.glyph }
	if slices.ContainsFunc(al.coreA, named) && slices.ContainsFunc(al.coreB, named) {
		return true
	}
	if slices.ContainsFunc(al.pairs, func(p pair) bool { return p.a.role != p.b.role && p.a.role != "" && p.b.role != "" }) {
		return true // "onto the wall", "off the wall"
	}
	flips, _ := al.flips()
	denial := denials(a, b, al)
	if flips > 0 || (denial.byA || denial.byB || denial.outOfScope) && !al.sameDenied(a, b) {
		return true
	}
	if slices.ContainsFunc(slices.Concat(al.leftA, al.leftB), func(t term) bool { return t.contrast }) {
		return true
	}
	if x, y := a.criticals(), b.criticals(); len(x) > 0 && len(y) > 0 && !slices.Equal(x, y) {
		return true
	}
	if first, ok := al.first(a, al.indexA); ok {
		if other, ok := al.first(b, al.indexB); ok && first == other {
			return al.namesExchanged(a, b) || al.namesOutOfOrder(a, b) // of one subject: the rest may be put in another order
		}
	}
	one, _ := al.rearranged(a, b, false)
	return one != "" || al.rolesDiffer(a, b)
}

// sameDenied reports whether each claim has one "no" and both stand before one phrase: "no solid-state car" and "no such car".
func (al *alignment) sameDenied(a, b *claim) bool {
	denied := func(c *claim, index index) (int, bool) {
		at := -1
		for i, t := range c.terms {
			if t.kind == negation {
				if at >= 0 || !noWords[t.low] {
					return 0, false
				}
				at = i
			}
		}
		if at < 0 {
			return 0, false
		}
		return c.negated(at, index)
	}
	p, okA := denied(a, al.indexA)
	q, okB := denied(b, al.indexB)
	return okA && okB && (p == q || al.pairs[p].a.chunk == al.pairs[q].a.chunk || al.pairs[p].b.chunk == al.pairs[q].b.chunk)
}

// namesOutOfOrder reports whether names, letters or figures of one kind stand in another order.
func (al *alignment) namesOutOfOrder(a, b *claim) bool {
	r := arrange(a, b, al)
	named := func(x item) bool { return x.kind != itemWord || x.inA.name && x.inB.name }
	for i, x := range r.items {
		for _, y := range r.items[i+1:] {
			if x.rankB > y.rankB && x.kind == y.kind && named(x) && named(y) && !r.joined(x, y) {
				return true
			}
		}
	}
	return false
}

// opensShared reports whether the first word of weight of a claim, which mostly says what it is about, is shared.
func (al *alignment) opensShared(c *claim, index index) bool {
	_, ok := al.first(c, index)
	return ok
}

// first is the pair of the first word of weight of a claim.
func (al *alignment) first(c *claim, index index) (int, bool) {
	for i, t := range c.terms {
		if t.strong() && !t.source && !t.context && len(t.poles) == 0 {
			p, ok := index.of(i)
			return p, ok
		}
	}
	return 0, false
}

func sameDates(a, b *claim) (n int) {
	for _, x := range a.dates {
		if slices.ContainsFunc(b.dates, func(y measure.Date) bool { return measure.CompareDates(x, y) == measure.Same }) {
			n++
		}
	}
	return n
}
