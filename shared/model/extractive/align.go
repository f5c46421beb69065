package extractive

import (
	"fmt"
	"slices"
)

// Two claims are compared by their words: which of the one says what which of the other says. All else asks the pairs.

// alignment pairs the content words of two claims.
type alignment struct {
	pairs        []pair
	leftA, leftB []term // words of weight without a partner
	coreA, coreB []term // those of them that are more than a way of putting it
	weakLeftA    int    // words without weight and partner
	weakLeftB    int
	indexA       index
	indexB       index
}

// index gives for each term of a claim the number of its pair, -1 if it has none.
type index []int

func newIndex(c *claim) index {
	x := make(index, len(c.terms))
	for i := range x {
		x[i] = -1
	}
	return x
}

// of is the number of the pair of term i; false if it has none.
func (x index) of(i int) (int, bool) {
	if i < 0 || i >= len(x) || x[i] < 0 {
		return 0, false
	}
	return x[i], true
}

// paired reports whether term i has a pair.
func (x index) paired(i int) bool { return i >= 0 && i < len(x) && x[i] >= 0 }

type pair struct {
	a, b           term
	link           bool // a connection that is denied, and what it would do
	opposite       bool // of each other, and neither is the negation of the other
	minusA, minusB int  // 1 for the word that is the negation of the other ("ineffective")
}

// align pairs equal words first, then synonyms, then derived forms, then opposites.
func align(a, b *claim) *alignment {
	al := &alignment{indexA: newIndex(a), indexB: newIndex(b)}
	var roomA, roomB [64]int // most statements are shorter: no garbage for each pair of them
	freeA, freeB := a.contentTerms(roomA[:0]), b.contentTerms(roomB[:0])
	al.pairs = make([]pair, 0, 4) // most statements have no more in common
	take := func(match func(x, y *term) (pair, bool)) {
		without := freeA[:0]
		for _, i := range freeA {
			x := &a.terms[i]
			k := 0
			for ; k < len(freeB); k++ {
				y := &b.terms[freeB[k]]
				if x.context && y.context {
					continue
				}
				if p, ok := match(x, y); ok {
					p.a, p.b = *x, *y
					al.indexA[i], al.indexB[freeB[k]] = len(al.pairs), len(al.pairs)
					al.pairs = append(al.pairs, p)
					break
				}
			}
			if k == len(freeB) {
				without = append(without, i)
			} else {
				freeB = slices.Delete(freeB, k, k+1)
			}
		}
		freeA = without
	}
	take(func(x, y *term) (pair, bool) { return pair{}, x.stem == y.stem })
	take(func(x, y *term) (pair, bool) { return pair{}, synonyms(*x, *y) })
	take(func(x, y *term) (pair, bool) { return pair{}, kin(x.stem, y.stem) })
	take(func(x, y *term) (pair, bool) { return opposites(*x, *y) })
	al.links(a, b)
	al.leftA, al.coreA = make([]term, 0, len(freeA)), make([]term, 0, len(freeA))
	al.leftB, al.coreB = make([]term, 0, len(freeB)), make([]term, 0, len(freeB))
	for i, x := range a.terms {
		switch {
		case al.indexA.paired(i), x.context:
		case x.strong():
			al.leftA = append(al.leftA, x)
			if x.core() && !inName(a, i, al.indexA) {
				al.coreA = append(al.coreA, x)
			}
		case x.kind == content:
			al.weakLeftA += notForecast(x)
		}
	}
	for j, y := range b.terms {
		switch {
		case al.indexB.paired(j), y.context:
		case y.strong():
			al.leftB = append(al.leftB, y)
			if y.core() && !inName(b, j, al.indexB) {
				al.coreB = append(al.coreB, y)
			}
		case y.kind == content:
			al.weakLeftB += notForecast(y)
		}
	}
	al.otherNames(a, b)
	return al
}

// otherNames takes back what a name that goes on is excused for, where both claims go on with the same word to other names: "Dornier Partners" is not
// "Fenwick Partners".
func (al *alignment) otherNames(a, b *claim) {
	if len(al.leftA) == len(al.coreA) || len(al.leftB) == len(al.coreB) {
		return
	}
	goesOn := func(c *claim, index index, left, core []term) (excused []term, with map[int]bool) {
		with = map[int]bool{}
		for _, t := range left {
			if !t.core() || slices.ContainsFunc(core, func(u term) bool { return u.start == t.start }) {
				continue
			}
			excused = append(excused, t)
			i := termAt(c, t)
			for _, k := range []int{i - 1, i + 1} {
				if p, ok := index.of(k); ok && c.terms[k].chunk == t.chunk {
					with[p] = true
				}
			}
		}
		return excused, with
	}
	namesA, withA := goesOn(a, al.indexA, al.leftA, al.coreA)
	namesB, withB := goesOn(b, al.indexB, al.leftB, al.coreB)
	if overlap(withA, withB) {
		al.coreA, al.coreB = append(al.coreA, namesA...), append(al.coreB, namesB...)
	}
}

// contentTerms adds the indexes of the words of content to a list.
func (c *claim) contentTerms(out []int) []int {
	for i := range c.terms {
		if c.terms[i].kind == content {
			out = append(out, i)
		}
	}
	return out
}

// links pairs the noun of a connection that one claim denies with what the other says that the one thing does to the other: "no
// association between X and Y" with "X lowers Y".
func (al *alignment) links(a, b *claim) {
	for side, c := range []*claim{a, b} {
		other, index, otherIndex := b, al.indexA, al.indexB
		if side == 1 {
			other, index, otherIndex = a, al.indexB, al.indexA
		}
		for i, t := range c.terms {
			if i == 0 || c.terms[i-1].kind != negation || t.context || index.paired(i) || !words().is("link", t.low, t.stem) {
				continue
			}
			if other.has(func(o term) bool { return o.kind == negation }) {
				continue
			}
			j := slices.IndexFunc(other.terms, func(o term) bool { return o.kind == content && !o.context && o.does() })
			if j < 0 || otherIndex.paired(j) {
				continue
			}
			p := pair{a: t, b: other.terms[j], link: true}
			if side == 1 {
				p.a, p.b = p.b, p.a
			}
			index[i], otherIndex[j] = len(al.pairs), len(al.pairs)
			al.pairs = append(al.pairs, p)
		}
	}
}

// does reports a word for what a thing does to another.
func (t term) does() bool {
	return words().is("effect", t.low, t.stem) || slices.ContainsFunc(t.poles, func(p pole) bool { return p.axis == "rise" || p.axis == "high" || p.axis == "prevent" })
}

// notForecast is 1 for a word that counts where it has no partner: that both are forecasts is compared by itself.
func notForecast(t term) int {
	if t.forecast {
		return 0
	}
	return 1
}

// inName reports whether term i goes on or begins a name of which another word has a partner: "Auralith" is "Auralith Energy".
func inName(c *claim, i int, index index) bool {
	if !c.terms[i].name || len(c.terms[i].raw) < 3 {
		return false
	}
	beside := func(k int) bool {
		return k >= 0 && k < len(c.terms) && index.paired(k) && (c.terms[k].name || k == 0) && c.terms[k].chunk == c.terms[i].chunk
	}
	return beside(i-1) || beside(i+1)
}

func synonyms(x, y term) bool {
	for _, c := range x.concepts {
		if slices.Contains(y.concepts, c) {
			return true
		}
	}
	for _, p := range x.poles {
		if slices.Contains(y.poles, p) {
			return true
		}
	}
	return false
}

func opposites(x, y term) (p pair, ok bool) {
	for _, one := range x.poles {
		for _, other := range y.poles {
			switch {
			case one.axis != other.axis || one.positive == other.positive:
			case !one.complement:
				return pair{opposite: true}, true
			case one.positive:
				return pair{minusB: 1}, true
			default:
				return pair{minusA: 1}, true
			}
		}
	}
	if !negates(x.stem, y.stem) {
		return pair{}, false
	}
	if len(x.stem) > len(y.stem) {
		return pair{minusA: 1}, true
	}
	return pair{minusB: 1}, true
}

// termAt is the index of a term in its claim, told by where it begins; -1 if the claim has no such term.
func termAt(c *claim, t term) int {
	return slices.IndexFunc(c.terms, func(u term) bool { return u.start == t.start })
}

// weight counts the pairs of words that say what the statements are about.
func (al *alignment) weight() int {
	n := 0
	for _, p := range al.pairs {
		if p.a.strong() && p.b.strong() && !p.opposite && !p.link && p.minusA+p.minusB == 0 {
			n++
		}
	}
	return n
}

// flips counts the opposites that are no negations, and names the first.
func (al *alignment) flips() (n int, first string) {
	for _, p := range al.pairs {
		if p.opposite {
			if n == 0 {
				first = fmt.Sprintf("%q and %q", p.a.raw, p.b.raw)
			}
			n++
		}
	}
	return n, first
}

// once reports whether the statements are about an event that happens once.
func (al *alignment) once() bool {
	for _, p := range al.pairs {
		if p.a.event && p.b.event {
			return true
		}
	}
	return false
}

// namesLeft counts the proper names without a partner.
func (al *alignment) namesLeft() int {
	n := 0
	for _, t := range slices.Concat(al.coreA, al.coreB) {
		if t.name {
			n++
		}
	}
	return n
}
