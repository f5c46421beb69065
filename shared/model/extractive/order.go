package extractive

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/measure"
)

// What two statements of the same words and figures may still differ in is the order: who did it to whom, which figure is whose. Here that is
// looked at last, when all else says that they are duplicates, and when in doubt they are not.

// item is a word, figure, date or mark that both claims have, with the bytes at which it stands in each.
type item struct {
	kind         itemKind
	a, b         [2]int
	inA, inB     term   // of a word
	family       string // of a figure
	text         string // as the elder has it
	noun         bool   // a word that stands after an article in both
	rankA, rankB int    // its number in the order of each claim
}

type itemKind uint8

const (
	itemWord itemKind = iota
	itemMark          // a letter that is a name: "vitamin B"
	itemFigure
	itemDate
)

// weighs reports whether an item says what the statement is about.
func (x item) weighs() bool { return x.kind != itemWord || x.inA.strong() && x.inB.strong() || x.noun }

// inText gives the items by their place in the one claim or the other.
type inText struct {
	c  *claim
	at func(item) [2]int
}

// arranged is what two claims have in common, in order.
type arranged struct {
	items []item // in the order of a
	inB   []int  // their indexes in the order of b
	a, b  inText
	al    *alignment
	free  bool // "respectively": what "and" joins is in an order that matters
}

func arrange(a, b *claim, al *alignment) *arranged {
	r := &arranged{al: al, a: inText{a, func(x item) [2]int { return x.a }}, b: inText{b, func(x item) [2]int { return x.b }}}
	for _, p := range al.pairs {
		if !p.a.context && !p.b.context {
			r.items = append(r.items, item{a: [2]int{p.a.start, p.a.end}, b: [2]int{p.b.start, p.b.end}, inA: p.a, inB: p.b, text: p.a.raw, noun: a.articleBefore(p.a) && b.articleBefore(p.b)})
		}
	}
	used := map[int]bool{}
	for _, x := range a.quantities {
		j := slices.IndexFunc(b.quantities, func(y measure.Quantity) bool { return !used[y.Start] && measure.Compare(x, y) == measure.Same })
		if j < 0 {
			continue
		}
		y := b.quantities[j]
		used[y.Start] = true
		r.items = append(r.items, item{kind: itemFigure, inA: none, inB: none, a: [2]int{x.Start, x.End}, b: [2]int{y.Start, y.End}, family: x.Family, text: a.text[x.Start:x.End]})
	}
	for _, x := range a.dates {
		j := slices.IndexFunc(b.dates, func(y measure.Date) bool { return !used[y.Start] && measure.CompareDates(x, y) == measure.Same })
		if j < 0 {
			continue
		}
		y := b.dates[j]
		used[y.Start] = true
		r.items = append(r.items, item{kind: itemDate, inA: none, inB: none, a: [2]int{x.Start, x.End}, b: [2]int{y.Start, y.End}, text: a.text[x.Start:x.End]})
	}
	languages := languagesOf(a, b)
	marksB := b.marks(languages)
	for _, m := range a.marks(languages) {
		j := slices.IndexFunc(marksB, func(n letter) bool { return n.text == m.text })
		if j < 0 {
			continue
		}
		n := marksB[j]
		marksB = slices.Delete(marksB, j, j+1)
		if !a.wordAt(m.start) && !b.wordAt(n.start) {
			r.items = append(r.items, item{kind: itemMark, inA: none, inB: none, a: [2]int{m.start, m.end}, b: [2]int{n.start, n.end}, text: m.text})
		}
	}
	slices.SortFunc(r.items, func(x, y item) int { return cmp.Compare(x.a[0], y.a[0]) })
	for i := range r.items {
		r.items[i].rankA = i
		r.inB = append(r.inB, i)
	}
	slices.SortFunc(r.inB, func(i, j int) int { return cmp.Compare(r.items[i].b[0], r.items[j].b[0]) })
	for rank, i := range r.inB {
		r.items[i].rankB = rank
	}
	inTurn := func(t term) bool { return inTurnWords[t.low] }
	r.free = !a.has(inTurn) && !b.has(inTurn)
	return r
}

func (c *claim) articleBefore(t term) bool {
	i := termAt(c, t)
	return i > 0 && anyArticle(c.terms[i-1])
}

var inTurnWords = wordSet("respectively jeweils beziehungsweise respectivement respectivamente rispettivamente それぞれ 分别")

// wordAt reports whether a word of content begins at byte i.
func (c *claim) wordAt(i int) bool {
	return c.has(func(t term) bool { return t.start == i && t.kind == content })
}

// rearranged names two that have changed places, so that the one statement does not say what the other says; "" if none have, or something
// explains it: the passive, "and" between them, a phrase that was moved with its preposition, a figure that was moved with its noun.
func (al *alignment) rearranged(a, b *claim, turned bool) (one, other string) {
	if one, other := particlesExchanged(a, b); one != "" {
		return one, other
	}
	if one, other := al.onlyMoved(a, b); one != "" {
		return one, other
	}
	r := arrange(a, b, al)
	for i, x := range r.items {
		for _, y := range r.items[i+1:] {
			switch {
			case x.rankB < y.rankB:
				if r.ownerChanged(x, y) || r.sufferedInstead(x, y) {
					return x.text, y.text
				}
			case x.kind != y.kind && (x.kind > itemMark || y.kind > itemMark):
				if x.weighs() && y.weighs() && r.exchangedPhrases(x, y) {
					return x.text, y.text
				}
			case x.kind >= itemFigure:
				if x.family == y.family && !r.withOwn(x, y) {
					return x.text, y.text
				}
			case turned || !x.weighs() || !y.weighs() || x.inA.glyph || y.inA.glyph:
			case r.leftItsName(x, y) && r.leftItsName(y, x):
				return x.text, y.text // "Otto Reiners and Emil Kastner", "Emil Reiners and Otto Kastner"
			case r.joined(x, y):
				if r.ofBehind(r.a, x) != r.ofBehind(r.b, x) && r.ofBehind(r.a, y) != r.ofBehind(r.b, y) {
					return x.text, y.text // "Norvex and the University of Gera", "the University and the Norvex of Gera"
				}
			case moves(x) || moves(y):
			case r.aroundKept(x, y) || r.besideTurned(x, y):
				return x.text, y.text
			}
		}
	}
	return "", ""
}

// onlyMoved names what "only" stands before in each claim, where that is not the same: "only men may vote in the village", "men may vote only in the
// village".
func (al *alignment) onlyMoved(a, b *claim) (one, other string) {
	limited := func(c *claim, index index) (int, term, bool) {
		i := slices.IndexFunc(c.terms, func(t term) bool { return !t.context && onlyWords[t.low] })
		if i < 0 {
			return 0, none, false
		}
		for k := i + 1; k < len(c.terms) && c.terms[k].kind != stop; k++ {
			if p, ok := index.of(k); ok && c.terms[k].strong() {
				return p, c.terms[k], true
			}
		}
		return 0, none, false
	}
	p, x, okA := limited(a, al.indexA)
	q, y, okB := limited(b, al.indexB)
	if !okA || !okB || p == q || x.chunk == a.terms[termAt(a, al.pairs[q].a)].chunk {
		return "", ""
	}
	return x.raw, y.raw
}

var onlyWords = wordSet("only solely exclusively nur ausschließlich seulement uniquement solo sólo solamente únicamente soltanto apenas somente alleen")

// particlesExchanged names two words of Japanese each of which has the particle that the other has in the other claim.
func particlesExchanged(a, b *claim) (one, other string) {
	if !hasKana(a.text) || !hasKana(b.text) {
		return "", ""
	}
	inA, inB := withParticles(a.text), withParticles(b.text)
	for _, x := range slices.Sorted(maps.Keys(inA)) {
		for _, y := range slices.Sorted(maps.Keys(inA)) {
			if inA[x] != inA[y] && inA[x] == inB[y] && inA[y] == inB[x] {
				return x, y
			}
		}
	}
	return "", ""
}

// withParticles gives the particle after each run of characters that are no Hiragana.
func withParticles(s string) map[string]string {
	out := map[string]string{}
	word := func(r rune) bool {
		return unicode.In(r, unicode.Han, unicode.Katakana) || r == 'ー' || r < 0x80 && unicode.IsLetter(r)
	}
	for i := 0; i < len(s); {
		rest := strings.TrimLeftFunc(s[i:], word)
		end := len(s) - len(rest)
		r, n := utf8.DecodeRuneInString(rest)
		if p := particles[rest[:n]]; end > i && p != "" && unicode.Is(unicode.Hiragana, r) {
			out[s[i:end]] = p
		}
		i = end + n
	}
	return out
}

// moves reports an adverb, and a word that leads to a time or place: what may stand anywhere.
func moves(x item) bool {
	return strings.HasSuffix(x.inA.low, "ly") || x.inA.low == "since" || slices.ContainsFunc(x.inA.poles, func(p pole) bool { return placing[p.axis] })
}

// between lists the small words and punctuation between two items, without articles.
func (v inText) between(x, y item) (out []string) {
	from, to := v.at(x)[1], v.at(y)[0]
	for _, t := range v.c.terms {
		if t.start >= from && t.end <= to && !t.context && t.kind != content && !anyArticle(t) {
			out = append(out, t.low)
		}
	}
	return out
}

// introduced is the small word that leads to an item, "" for none.
func (v inText) introduced(x item) string {
	before := ""
	for _, t := range v.c.terms {
		if t.start >= v.at(x)[0] || t.context {
			break
		}
		switch {
		case t.kind == function && !anyArticle(t) && !beForms[t.low]:
			before = t.low
		case t.kind == stop, t.kind == content && verbal(t), t.kind == function && beForms[t.low]:
			before = ""
		}
	}
	return before
}

// exchangedPhrases reports whether each of two is led by the small word that led the other: "in Aldern ... of September", "in September ... of Aldern".
func (r *arranged) exchangedPhrases(x, y item) bool {
	xA, yA := r.a.introduced(x), r.a.introduced(y)
	return xA != yA && xA == r.b.introduced(y) && yA == r.b.introduced(x)
}

// joined reports whether both claims join two items that stand in another order by "and" or a comma, in equal phrases: "Rask and Orlin", "in Rask
// and in Orlin".
func (r *arranged) joined(x, y item) bool {
	if !r.free {
		return false
	}
	inA, inB := r.a.between(x, y), r.b.between(y, x)
	inRow := func(v inText, first, second item, words []string) bool {
		n := 0
		for _, w := range words {
			if joins(w) {
				n++
			}
		}
		return n > r.keptBetween(v, first, second) // "Rask, Orlin and Malin", not "Rask and Orlin beat Malin"
	}
	if !inRow(r.a, x, y, inA) || !inRow(r.b, y, x, inB) || x.kind == itemWord && y.kind == itemWord && (possessive(x.inA) != possessive(x.inB) || possessive(y.inA) != possessive(y.inB)) {
		return false
	}
	xA, yA, xB, yB := r.a.introduced(x), r.a.introduced(y), r.b.introduced(x), r.b.introduced(y)
	return xA == xB && yA == yB || xA == yB && (yA == xB || joins(yA) && joins(xB) || yA == "" || xB == "")
}

// leftItsName reports whether a word with a capital that stands directly beside x in the elder stands directly beside y in the newer.
func (r *arranged) leftItsName(x, y item) bool {
	beside := func(v inText, x, z item) bool {
		return oneApart(v.c.text, v.at(x)[1], v.at(z)[0]) || oneApart(v.c.text, v.at(z)[1], v.at(x)[0])
	}
	return x.kind == itemWord && upperFirst(x.inA.raw) && slices.ContainsFunc(r.items, func(z item) bool {
		return z.kind == itemWord && z.rankA != x.rankA && z.rankA != y.rankA && upperFirst(z.inA.raw) && beside(r.a, x, z) && beside(r.b, y, z) && !beside(r.b, x, z)
	})
}

// ofBehind reports whether "of" stands directly after an item.
func (r *arranged) ofBehind(v inText, x item) bool {
	i := slices.IndexFunc(v.c.terms, func(t term) bool { return t.start >= v.at(x)[1] })
	return i >= 0 && ofWords[v.c.terms[i].low]
}

// joins reports what joins two of a row: "and" and "or", commas, and what is as good as "and".
func joins(low string) bool { return model.Joins(low) || asGoodAsAnd[low] }

var asGoodAsAnd = wordSet("& nor sowie as , 、 ，")

// keptBetween counts the figures, dates, marks and words of weight of both claims between two items.
func (r *arranged) keptBetween(v inText, x, y item) (n int) {
	from, to := v.at(x)[1], v.at(y)[0]
	for _, z := range r.items {
		if z.weighs() && v.at(z)[0] >= from && v.at(z)[1] <= to {
			n++
		}
	}
	return n
}

// aroundKept reports whether two items have changed places around a third that has not: "The father was killed by the son".
func (r *arranged) aroundKept(x, y item) bool {
	kept := false
	if r.voiceDiffers(x) || r.voiceDiffers(y) {
		return false // the verb itself: who does it and to whom stand around it
	}
	if r.passiveAtEnd(x, y) {
		return false
	}
	for _, m := range r.items[x.rankA+1 : y.rankA] {
		if m.rankB < y.rankB || m.rankB > x.rankB {
			continue
		}
		if r.otherVoice(m, x, y) || converse(m) || r.possession() && !(m.kind == itemWord && verbal(m.inA)) {
			return false
		}
		kept = kept || !r.joined(x, m) && !r.joined(m, y)
	}
	return kept && !r.withPhrase(x, y) && !r.withPhrase(y, x) && !r.sameSource(x) && !r.sameSource(y)
}

// withPhrase reports whether x is led by the same small word in both claims, and y by another.
func (r *arranged) withPhrase(x, y item) bool {
	in := r.a.introduced(x)
	return in != "" && in == r.b.introduced(x) && !joins(in) && !ofWords[in] && in != r.a.introduced(y) && in != r.b.introduced(y)
}

var ofWords = wordSet("of von des der du de del della di d van do da")

// sameSource reports whether an item only says whose statement it is, in both claims: that may stand before or after.
func (r *arranged) sameSource(x item) bool {
	return x.inA.source && x.inB.source && r.a.introduced(x) == r.b.introduced(x)
}

// converse reports words of which the one says from the other's side what it says: "is home to" and "live in".
func converse(m item) bool {
	return m.kind == itemWord && (strings.HasPrefix(m.inA.low, "hom ") || strings.HasPrefix(m.inA.low, "home ")) != (strings.HasPrefix(m.inB.low, "hom ") || strings.HasPrefix(m.inB.low, "home "))
}

// possession reports whether only one of the claims says what something has, the other what it is: "meals are free for all children", "all
// children have had free meals".
func (r *arranged) possession() bool { return r.a.c.hasHad() != r.b.c.hasHad() }

func (c *claim) hasHad() bool {
	for i, t := range c.terms {
		if i > 0 && t.low == "had" && (c.terms[i-1].low == "have" || c.terms[i-1].low == "has") {
			return true
		}
	}
	return false
}

// otherVoice reports whether the verb m is passive in one claim only, and what does it there is led by "by"; or by "in", if the two are not both
// names: "Version 2 fixed the flaw", "the flaw was fixed in version 2".
func (r *arranged) otherVoice(m, x, y item) bool {
	if !r.voiceDiffers(m) {
		return false
	}
	v, doer := r.a, y // what stands after the passive verb
	if r.b.c.passiveAt(m.inB) {
		v, doer = r.b, x
	}
	in := ""
	for _, w := range v.between(m, doer) {
		if _, small := smallWords()[w]; small && !ofWords[w] || byWords[w] {
			in = w
		}
	}
	names := x.kind == itemMark || y.kind == itemMark || (x.inA.name || x.inB.name) && (y.inA.name || y.inB.name)
	return byWords[in] || !names && inWords[in]
}

// passiveAtEnd reports whether the one claim has a verb between two, and the other has it as a passive at the end of the clause, with what does it
// led by "by": "Das Büro prüfte den Pfeiler", "Der Pfeiler wurde im Mai vom Büro geprüft".
func (r *arranged) passiveAtEnd(x, y item) bool {
	between := func(m item, v inText) bool {
		first, second := x, y
		if v.at(x)[0] > v.at(y)[0] {
			first, second = y, x
		}
		return v.at(m)[0] > v.at(first)[0] && v.at(m)[0] < v.at(second)[0]
	}
	after := func(m item, v inText) bool { return v.at(m)[0] > v.at(x)[0] && v.at(m)[0] > v.at(y)[0] }
	led := func(v inText, doer, other item) bool {
		return byWords[v.introduced(doer)] && !byWords[v.introduced(other)]
	}
	for _, m := range r.items {
		switch {
		case !r.voiceDiffers(m):
		case r.b.c.passiveAt(m.inB): // x, which stands first in the elder, does it there
			if between(m, r.a) && after(m, r.b) && led(r.b, x, y) {
				return true
			}
		case between(m, r.b) && after(m, r.a) && led(r.a, y, x):
			return true
		}
	}
	return false
}

// sufferedInstead reports whether of two that stand in the same order in both claims the first does it in the one, and the second, led by "by", in the
// other: "Das Werk Nord beliefert das Werk Süd", "Das Werk Nord wird vom Werk Süd beliefert".
func (r *arranged) sufferedInstead(x, y item) bool {
	if !x.weighs() || !y.weighs() {
		return false
	}
	for _, m := range r.items {
		if !r.voiceDiffers(m) {
			continue
		}
		active, passive := r.a, r.b
		if r.a.c.passiveAt(m.inA) {
			active, passive = r.b, r.a
		}
		if active.at(m)[0] > active.at(x)[0] && active.at(m)[0] < active.at(y)[0] && byWords[passive.introduced(y)] && !byWords[passive.introduced(x)] && !byWords[active.introduced(y)] {
			return true
		}
	}
	return false
}

// voiceDiffers reports a verb that is passive in one claim only.
func (r *arranged) voiceDiffers(m item) bool {
	return m.kind == itemWord && r.a.c.passiveAt(m.inA) != r.b.c.passiveAt(m.inB)
}

var (
	// byWords lead to who does it, or what with.
	byWords = wordSet("by von vom durch par por pelo pela da dal dalla door av af")
	inWords = wordSet("in im en dans nel nella")
	// passiveForms stand before the participle of a passive, some of them well before it.
	passiveForms = wordSet("is are was were be been being wird werden wurde wurden worden est sont été fut furent sera seront es son fue fueron sido ser será serán è sono fu furono stato stata stati state viene vengono word wordt worden werd werden foi foram são")
)

// passiveAt reports whether a form of "be" stands before the verb, with no word of content between; or before a German one that ends its clause.
func (c *claim) passiveAt(verb term) bool {
	if strings.HasSuffix(verb.low, "ing") {
		return false
	}
	i := slices.IndexFunc(c.terms, func(t term) bool { return t.start == verb.start && t.end == verb.end })
	last := i+1 >= len(c.terms) || i >= 0 && c.terms[i+1].kind == stop
	for k := i - 1; k >= 0 && c.terms[k].kind != stop; k-- {
		t := c.terms[k]
		switch {
		case germanAuxiliary[t.low] && last && !capitalised(verb):
			return true
		case passiveForms[t.low]:
			return true
		case (anyArticle(t) || t.kind == content && !strings.HasSuffix(t.low, "ly")) && !(last && !capitalised(verb) && c.german()):
			return false
		}
	}
	return false
}

func (c *claim) german() bool { return c.has(func(t term) bool { return germanAuxiliary[t.low] }) }

var germanAuxiliary = wordSet("wird werden wurde wurden werd wordt")

// besideTurned reports whether two words that stand side by side, or with the same small words between them, stand the other way round:
// "mother's brother", "from bats to pigs". "The museum's collection" is "the collection of the museum", and "the asteroid Corvus" "the Corvus asteroid".
func (r *arranged) besideTurned(x, y item) bool {
	if r.keptBetween(r.a, x, y)+r.keptBetween(r.b, y, x) > 0 {
		return false
	}
	inA, inB := r.a.between(x, y), r.b.between(y, x)
	if !slices.Equal(inA, inB) {
		return false
	}
	if len(inA) > 0 {
		return true
	}
	if x.kind != itemWord || y.kind != itemWord {
		return x.kind == y.kind // "Veyra b" and "b Veyra"
	}
	return capitalised(x.inA) == capitalised(y.inA) && !verbal(x.inA) && !verbal(y.inA) || possessive(x.inA) && possessive(y.inB)
}

func capitalised(t term) bool {
	r, _ := utf8.DecodeRuneInString(t.raw)
	return t.name || unicode.IsUpper(r)
}

// ownerChanged reports whether "x of y" stands against "x's y".
func (r *arranged) ownerChanged(x, y item) bool {
	if x.kind != itemWord || y.kind != itemWord || !x.weighs() || !y.weighs() || possessive(x.inA) == possessive(x.inB) || r.keptBetween(r.a, x, y)+r.keptBetween(r.b, x, y) > 0 {
		return false
	}
	inA, inB := r.a.between(x, y), r.b.between(x, y)
	of := func(words []string) bool { return len(words) == 1 && ofWords[words[0]] }
	return of(inA) && len(inB) == 0 && possessive(x.inB) || of(inB) && len(inA) == 0 && possessive(x.inA)
}

// withOwn reports whether two figures, or two dates, that stand in another order have each been moved with what stands beside them: "10 weeks for
// men and 20 for women", "20 weeks for women and 10 for men".
func (r *arranged) withOwn(x, y item) bool {
	one, other := r.beside(r.a, x), r.beside(r.a, y)
	oneB, otherB := r.beside(r.b, x), r.beside(r.b, y)
	own := func(mine, mineB, others, othersB map[int]bool) bool {
		for i := range mine {
			if i != x.rankA && i != y.rankA && mineB[i] && !others[i] && !othersB[i] {
				return true
			}
		}
		return false
	}
	return own(one, oneB, other, otherB) && own(other, otherB, one, oneB)
}

// beside are the items directly before and after x that no punctuation and no "and" parts from it.
func (r *arranged) beside(v inText, x item) map[int]bool {
	out := map[int]bool{}
	for _, z := range r.items {
		first, second := x, z
		if v.at(z)[0] < v.at(x)[0] {
			first, second = z, x
		}
		if z.rankA == x.rankA || r.parted(v, first, second) {
			continue
		}
		out[z.rankA] = true
	}
	return out
}

// parted reports whether an item, punctuation or "and" stands between two.
func (r *arranged) parted(v inText, x, y item) bool {
	from, to := v.at(x)[1], v.at(y)[0]
	if slices.ContainsFunc(r.items, func(z item) bool { return v.at(z)[0] >= from && v.at(z)[1] <= to }) {
		return true
	}
	for _, t := range v.c.terms {
		if t.start >= from && t.end <= to && (t.kind == stop || joins(t.low)) {
			return true
		}
	}
	return false
}
