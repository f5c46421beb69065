package extractive

// denial says which of two claims denies what the other says.
type denial struct {
	byA, byB   bool
	outOfScope bool // a negation is about a word that only one of them has
}

// denials counts the negations of every pair of words; a negation of the word's own opposite cancels ("not ineffective").
func denials(a, b *claim, al *alignment) denial {
	var d denial
	count := [2]map[int]int{{}, {}}
	for side, c := range []*claim{a, b} {
		index := al.indexA
		if side == 1 {
			index = al.indexB
		}
		for i, t := range c.terms {
			if t.kind != negation || t.low == "not" && i+1 < len(c.terms) && c.terms[i+1].low == "only" {
				continue
			}
			if t.low == "ne" && c.has(func(o term) bool { return o.kind == negation && o.low != "ne" }) {
				continue // "ne ... pas" is one negation
			}
			p, ok := c.negated(i, index)
			if !ok {
				d.outOfScope = true
				continue
			}
			count[side][p]++
		}
	}
	if al.sameDenial(a, b, count) {
		return denial{}
	}
	for p, pair := range al.pairs {
		if pair.a.context || pair.b.context {
			continue // of the clause before, which may deny it too: "the act does not apply to forests, and vineyards are exempt as well"
		}
		inA := (count[0][p]+pair.minusA)%2 == 1
		inB := (count[1][p]+pair.minusB)%2 == 1
		d.byA = d.byA || inA && !inB
		d.byB = d.byB || inB && !inA
	}
	return d
}

// sameDenial reports whether both claims deny one thing with one word each, once the subject ("no remains were found") and once the
// predicate ("remains were not found").
func (al *alignment) sameDenial(a, b *claim, count [2]map[int]int) bool {
	one := func(c *claim, n map[int]int) (first string, ok bool) {
		for _, t := range c.terms {
			if t.kind == negation && t.low != "ne" {
				if first != "" {
					return "", false
				}
				first = t.low
			}
		}
		return first, first != "" && len(n) == 1 && len(c.criticals()) == 0
	}
	x, okA := one(a, count[0])
	y, okB := one(b, count[1])
	return okA && okB && noWords[x] != noWords[y] && len(al.leftA) == 0 && len(al.leftB) == 0
}

// noWords deny the noun that they stand before.
var noWords = map[string]bool{"no": true, "kein": true, "keine": true, "keinen": true, "aucun": true, "aucune": true, "ningún": true, "ninguna": true, "nessun": true, "nessuna": true}

// negated finds the pair that the negation at term i is about: the next word of weight, else the one before.
func (c *claim) negated(i int, index index) (int, bool) {
	for k := i + 1; k < len(c.terms) && c.terms[k].kind != stop; k++ {
		if c.terms[k].kind == content && (!c.terms[k].weak && !c.terms[k].light || index.paired(k)) {
			p, ok := index.of(k)
			return p, ok
		}
	}
	for k := i - 1; k >= 0 && c.terms[k].kind != stop; k-- {
		if c.terms[k].strong() {
			p, ok := index.of(k)
			return p, ok
		}
	}
	return 0, false
}
