package extractive

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/factstream/factstream/shared/model"
)

// The same words with other roles are another statement: who does it to whom, what is compared with what, which name belongs where.

// changedPlaces reports whether two have changed places before and after a verb that only one of them can do to the other, all else being
// the same: "X bought Y in 2023" and "Y bought X in 2023", "X won the final against Y" and "Y won the final against X". Without a date, or a word
// for the contest, they may have done it in turn.
func (al *alignment) changedPlaces(a, b *claim, d difference) bool {
	if len(al.leftA)+len(al.leftB)+len(d.onlyA)+len(d.onlyB)+len(d.close) > 0 || !slices.Equal(a.criticals(), b.criticals()) {
		return false
	}
	for i, t := range a.terms {
		contest := words().is("contest", t.low, t.stem)
		if t.context || !contest && (len(a.dates) == 0 || !words().is("one-way", t.low, t.stem)) {
			continue
		}
		// The verb, the two, and in a contest what it was about: gas may be bought by each from the other.
		if n := al.exchanged(a, b, i); n > 0 && (al.weight() > n+1) == contest {
			return true
		}
	}
	return false
}

// exchanged counts the words beside the verb at term i of a that stand on its other side in b; 0 unless there are some on both sides.
func (al *alignment) exchanged(a, b *claim, i int) int {
	p, ok := al.indexA.of(i)
	if !ok || al.pairs[p].a.stem != al.pairs[p].b.stem { // X is home to Y, Y lives in X
		return 0
	}
	j := termAt(b, al.pairs[p].b)
	if j < 0 {
		return 0
	}
	doerA, otherA := al.parties(a, al.indexA, i)
	doerB, otherB := al.parties(b, al.indexB, j)
	moved := func(from, to, stays, comes map[int]bool) (n int) {
		for w := range from {
			if to[w] && !stays[w] && !comes[w] {
				n++
			}
		}
		return n
	}
	one, two := moved(doerA, otherB, doerB, otherA), moved(doerB, otherA, doerA, otherB)
	if one == 0 || two == 0 {
		return 0
	}
	return one + two
}

// parties are the words of weight directly before the verb at term i and those directly after it or after "against"; the other way round, and
// after "by", if it is passive.
func (al *alignment) parties(c *claim, index index, i int) (doer, other map[int]bool) {
	run := func(k, step int) map[int]bool {
		out := map[int]bool{}
		for ; k >= 0 && k < len(c.terms); k += step {
			t := c.terms[k]
			small := t.kind == function && (anyArticle(t) || beForms[t.low] || t.low == "has" || t.low == "have" || t.low == "had" || t.low == "by")
			if t.kind != content && !((small || t.kind == negation) && len(out) == 0) {
				break
			}
			if p, ok := index.of(k); ok && t.strong() {
				out[p] = true
			}
		}
		return out
	}
	before, after := run(i-1, -1), run(i+1, 1)
	for k := i + 1; k < len(c.terms) && c.terms[k].kind != stop; k++ {
		if againstWords[c.terms[k].low] {
			maps.Copy(after, run(k+1, 1))
			break
		}
	}
	if t := c.terms[i]; t.passive && !strings.HasSuffix(t.low, "ing") && byAfter(c, i) {
		return after, before
	}
	return before, after
}

var againstWords = wordSet("against gegen contre contra contro")

// reversedComparison reports whether "X ... than Y" stands against "Y ... than X".
func reversedComparison(a, b *claim, al *alignment) bool {
	la, ra := al.sides(a, al.indexA)
	lb, rb := al.sides(b, al.indexB)
	moved := func(from, to, stays, comes map[string]bool) bool {
		for w := range from {
			if to[w] && !stays[w] && !comes[w] {
				return true
			}
		}
		return false
	}
	return moved(la, rb, lb, ra) && moved(lb, ra, la, rb)
}

// sides returns the words on the left and on the right of a comparison, as the elder claim has them; none if there is no comparison.
// Words on both sides ("drug A ... than drug B") do not tell them apart and are left out, and so is the quality that is compared.
func (al *alignment) sides(c *claim, index index) (left, right map[string]bool) {
	than := -1
	for i, t := range c.terms {
		if comparisonWords[t.low] && i > 0 {
			than = i
		}
	}
	if than < 0 {
		return nil, nil
	}
	quality := slices.IndexFunc(c.terms[:than], func(t term) bool {
		return len(t.poles) > 0 || strings.HasSuffix(t.low, "er") || t.low == "as" || t.low == "so"
	})
	left, right = map[string]bool{}, map[string]bool{}
	ended := false
	for i, t := range c.terms {
		p, ok := index.of(i)
		if !ok || len(t.poles) > 0 || !t.strong() {
			continue
		}
		word := al.pairs[p].a.stem
		switch {
		case i < than && (quality < 0 || i < quality):
			left[word] = true
		case i > than && c.terms[i-1].kind == function && i-1 > than && len(right) > 0 && !articleWords[c.terms[i-1].low]:
			ended = true // "than drug B | in adults"
		case i > than && !ended:
			right[word] = true
		}
	}
	for word := range left {
		if right[word] {
			delete(left, word)
			delete(right, word)
		}
	}
	return left, right
}

var comparisonWords = map[string]bool{"than": true, "als": true, "as": true, "que": true, "比": true}

func overlap[K comparable](a, b map[K]bool) bool {
	for k := range a {
		if b[k] {
			return true
		}
	}
	return false
}

// rolesDiffer reports whether a word that stands on one side of the verb, or after "from", stands on the other side, or after "to", in
// the other claim.
func (al *alignment) rolesDiffer(a, b *claim) bool {
	for _, p := range al.pairs {
		if p.a.passive != p.b.passive && p.a.stem == p.b.stem {
			continue // the verb itself: "observers from 14 countries watched", "was watched by observers from 14 countries"
		}
		if p.a.role != p.b.role && (p.a.role != "" && p.b.role != "" || directions[p.a.role] || directions[p.b.role]) {
			return true
		}
	}
	if al.modifiersMoved(a, b) || al.namesExchanged(a, b) || al.charactersMoved(a, b) {
		return true
	}
	for i, t := range a.terms {
		if t.kind == content && !t.context && !t.glyph && al.exchanged(a, b, i) > 0 {
			return true
		}
	}
	if startsWithPlace(a) || startsWithPlace(b) {
		return false
	}
	for i, t := range a.terms {
		p, ok := al.indexA.of(i)
		if !ok || t.kind != content || al.pairs[p].a.stem != al.pairs[p].b.stem {
			continue
		}
		j := termAt(b, al.pairs[p].b)
		la, ra := around(al.indexA, a, i)
		lb, rb := around(al.indexB, b, j)
		if len(la) == 0 || len(ra) == 0 || len(lb) == 0 || len(rb) == 0 {
			continue
		}
		swapped := overlap(la, rb) && overlap(lb, ra) && !overlap(la, lb)
		kept := overlap(la, lb) && overlap(ra, rb) && !overlap(la, rb)
		passive := t.passive != al.pairs[p].b.passive
		switch {
		case swapped && !passive && verbal(t):
			return true
		case kept && passive && (byAfter(a, i) || byAfter(b, j)):
			return true
		}
	}
	return false
}

// directions are prepositions that a duplicate cannot do without.
var directions = map[string]bool{"from": true, "into": true, "onto": true, "against": true, "off": true, "out": true, "behind": true, "under": true, "over": true, "up": true, "down": true, "around": true, "through": true}

// modifiersMoved reports whether a word stands directly with other words than in the other claim: "a red shirt and a hat" is not "a
// shirt and a red hat".
func (al *alignment) modifiersMoved(a, b *claim) bool {
	beside := func(c *claim, index index) map[int]map[int]bool {
		out := map[int]map[int]bool{}
		for i, t := range c.terms {
			p, ok := index.of(i)
			if !ok || !t.strong() || verbal(t) && !strings.HasSuffix(t.low, "ed") {
				continue
			}
			out[p] = map[int]bool{}
			for k, u := range c.terms {
				if q, ok := index.of(k); ok && k != i && u.chunk == t.chunk && u.strong() {
					out[p][q] = true
				}
			}
		}
		return out
	}
	inA, inB := beside(a, al.indexA), beside(b, al.indexB)
	for p := range inA {
		if !overlap(inA[p], inB[p]) && al.words(inA[p]) > 0 && al.words(inB[p]) > 0 {
			return true
		}
	}
	return false
}

// otherLead reports whether a name that is led by "by" in one claim is led in the other by a word that makes it something else: "written by Reiners",
// "written for Reiners".
func (al *alignment) otherLead(a, b *claim) bool {
	lead := func(c *claim, i int) string {
		for i--; i >= 0 && (c.terms[i].name || anyArticle(c.terms[i])); i-- {
		}
		if i < 0 || c.terms[i].kind != function {
			return ""
		}
		return c.terms[i].low
	}
	for i, t := range a.terms {
		p, ok := al.indexA.of(i)
		if !ok || t.context || !t.name || !al.pairs[p].b.name {
			continue
		}
		x, y := lead(a, i), lead(b, termAt(b, al.pairs[p].b))
		if byWords[x] && otherLeads[y] || byWords[y] && otherLeads[x] {
			return true
		}
	}
	return false
}

// otherLeads lead to those for whom, with whom, about whom or against whom something is done; "for" of one language may be "by" of another.
var otherLeads = wordSet("for with about from against near after before without für mit über gegen ohne nach pour sur avec contre sans para sobre contra sin con per")

// namesExchanged reports whether two names have taken each other's place: "X sold its plant to Y" and "Y sold its plant to X". Around "and" they
// may.
func (al *alignment) namesExchanged(a, b *claim) bool {
	type places struct{ inA, inB string }
	var names []places
	for i, t := range a.terms {
		p, ok := al.indexA.of(i)
		if !ok || t.context || al.pairs[p].b.context || !t.name && !al.pairs[p].b.name && !t.glyph {
			continue
		}
		j := termAt(b, al.pairs[p].b)
		if at := (places{a.place(i), b.place(j)}); !t.glyph || at.inA != "" && at.inB != "" {
			names = append(names, at)
		}
	}
	for i, x := range names {
		for _, y := range names[:i] {
			if x.inA != x.inB && x.inA == y.inB && x.inB == y.inA && !model.Joins(x.inA) && !model.Joins(x.inB) {
				return true
			}
		}
	}
	return false
}

// charactersMoved reports whether characters of a text without particles stand in another order: in Chinese the order alone says who does it.
func (al *alignment) charactersMoved(a, b *claim) bool {
	if !a.has(func(t term) bool { return t.glyph }) || hasKana(a.text) || hasKana(b.text) {
		return false
	}
	last := -1
	for _, p := range al.pairs { // of equal words, in the order of a
		if !p.a.glyph || !p.b.glyph || p.a.context || p.b.context || p.a.stem != p.b.stem {
			continue
		}
		if p.b.start < last {
			return true
		}
		last = p.b.start
	}
	return false
}

func hasKana(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.In(r, unicode.Hiragana, unicode.Katakana) })
}

// anyArticle reports an article of any language that the lexicon has.
func anyArticle(t term) bool { return articleWords[t.low] || foreignArticles[t.low] }

var foreignArticles = wordSet("der die das den dem des ein eine einen einem einer eines le la les l un une el los las una il lo i gli o os as um uma het een")

// particles of Japanese say who does it and to whom. "は" and "が" both may stand after who does it.
var particles = map[string]string{"は": "は", "が": "は", "を": "を", "に": "に", "へ": "へ", "の": "の"}

// place is what ties the name at term i to the words before or after it: the preposition before it, "'s", or the particle after the characters
// that it is one of; "" for none.
func (c *claim) place(i int) string {
	if c.terms[i].glyph {
		rest := strings.TrimLeftFunc(c.text[c.terms[i].end:], func(r rune) bool { return unicode.In(r, unicode.Han, unicode.Katakana) || r == 'ー' })
		_, n := utf8.DecodeRuneInString(rest)
		return particles[rest[:n]]
	}
	own := ""
	if possessive(c.terms[i]) {
		own = "'s"
	}
	for k := i - 1; k >= 0; k-- {
		t := c.terms[k]
		if t.kind == content || anyArticle(t) {
			continue
		}
		if t.kind == function && !beForms[t.low] {
			return t.low + own
		}
		break
	}
	return own
}

// words counts the pairs that are no names: a place may stand anywhere.
func (al *alignment) words(pairs map[int]bool) int {
	n := 0
	for p := range pairs {
		if !al.pairs[p].a.name || !al.pairs[p].b.name {
			n++
		}
	}
	return n
}

// verbal guesses from its form whether a term is a verb.
func verbal(t term) bool {
	return strings.HasSuffix(t.low, "ed") || strings.HasSuffix(t.low, "s") && !t.name || strings.HasSuffix(t.low, "ing") || irregular[t.low] != "" && !t.name
}

func possessive(t term) bool { return strings.HasSuffix(t.low, "'s") || strings.HasSuffix(t.low, "s'") }

func startsWithPlace(c *claim) bool {
	return len(c.terms) > 0 && (c.terms[0].kind == function && !articleWords[c.terms[0].low] || slices.Contains(c.terms[0].concepts, stem("because")))
}

// around returns the pairs of weight before and after term i.
func around(index index, c *claim, i int) (before, after map[int]bool) {
	before, after = map[int]bool{}, map[int]bool{}
	for k, t := range c.terms {
		p, ok := index.of(k)
		switch {
		case !ok || !t.strong() || k == i || strings.HasSuffix(t.low, "ly"):
		case k < i:
			before[p] = true
		default:
			after[p] = true
		}
	}
	return before, after
}

// byAfter reports whether one of the four terms after the verb at i leads to who does it.
func byAfter(c *claim, i int) bool {
	for k := i + 1; k < len(c.terms) && k <= i+4; k++ {
		if byWords[c.terms[k].low] {
			return true
		}
	}
	return false
}
