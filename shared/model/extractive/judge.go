package extractive

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/extractive/measure"
	"github.com/factstream/factstream/shared/text"
)

// judge relates two statements. Distinct is the answer whenever the rules do not carry.
//
// The subject must be the same: after words, synonyms and opposites are paired, at least one side may have no word of weight left
// over. Then one thing that both state must differ: a figure of one unit, the date of what happens once, a pair of opposites, a
// negation, the two sides of a comparison. A duplicate must not differ in anything that carries weight, and the newer statement must
// add nothing.
//
// A claim and a measurement of one thing put it in other words: who says it and how it was found do not count as differences, nor do
// verbs of having and doing, where one figure of one unit differs and all names are shared. Remarks in passing and the sentences that a
// statement leans on tell what it is about, and contradict nothing themselves.
func judge(elder, newer string) (model.Relation, string) {
	relation, reason, _ := judged(elder, newer)
	return relation, reason
}

// compared is what two whole statements have in common.
type compared struct {
	a, b *claim
	al   *alignment
}

func judged(elder, newer string) (model.Relation, string, compared) {
	a, b := read(elder), read(newer)
	whole := compared{a: a.reported(), b: b.reported()}
	whole.al = align(whole.a, whole.b)
	v := whole.al.compare(whole.a, whole.b)
	if v.relation == model.Duplicate {
		return v.relation, v.reason, whole
	}
	relation, reason := byParts(elder, newer, a, b, v)
	return relation, reason, whole
}

// byParts looks at what two statements, of which v is the verdict as wholes, lean on, and at their clauses.
func byParts(elder, newer string, a, b *claim, v verdict) (model.Relation, string) {
	// What a statement says is its last sentence, where that leans on those before.
	lastA, lastB := focus(elder), focus(newer)
	if lastA != nil || lastB != nil {
		a, b = cmp.Or(lastA, a), cmp.Or(lastB, b)
		v = compare(a, b)
		switch {
		case sharesSentence(elder, newer):
			return model.Distinct, "Both go on from the same sentence."
		case v.relation == model.Duplicate:
			v = distinct("They say the same, but in addition to different things.")
		}
	}
	if v.relation != model.Distinct {
		return v.relation, v.reason
	}
	if part, ok := clauseContradiction(a, b); ok {
		return part.relation, part.reason
	}
	return v.relation, v.reason
}

// same reports whether two statements are duplicates by judge, which asks the whole of them before it asks their parts.
func same(elder, newer *claim) bool { return compare(elder, newer).relation == model.Duplicate }

// sharesSentence reports whether a sentence of one statement stands in the other as it is.
func sharesSentence(a, b string) bool {
	return slices.ContainsFunc(text.Sentences(a), func(s text.Sentence) bool { return strings.Contains(b, s.Text) })
}

// focus is the last sentence of a statement of several of which the last leans on those before; nil for any other statement.
func focus(s string) *claim {
	if !strings.ContainsAny(s, ".。!！?？") {
		return nil
	}
	sentences := text.Sentences(s)
	if len(sentences) < 2 {
		return nil
	}
	last := sentences[len(sentences)-1].Text
	c := read(last)
	if leaning(last, c) == standing {
		return nil
	}
	for i := len(sentences) - 2; i >= 0; i-- {
		c.lean(read(sentences[i].Text))
	}
	return c
}

// verdict is a relation with its reason.
type verdict struct {
	relation model.Relation
	reason   string
}

func distinct(reason string, args ...any) verdict {
	return verdict{relation: model.Distinct, reason: fmt.Sprintf(reason, args...)}
}

func contradiction(reason string, args ...any) verdict {
	return verdict{relation: model.Contradiction, reason: fmt.Sprintf(reason, args...)}
}

// clauseContradiction looks for clauses of compound statements that contradict each other. A clause has lost its subject, so more of
// it must be shared than of a whole statement.
func clauseContradiction(a, b *claim) (verdict, bool) {
	as, bs := a.clauses(), b.clauses()
	if as == nil && bs == nil {
		return verdict{}, false
	}
	if as == nil {
		as = []*claim{a}
	}
	if bs == nil {
		bs = []*claim{b}
	}
	for _, x := range as {
		for _, y := range bs {
			v := compare(x, y)
			if v.relation != model.Contradiction {
				continue
			}
			al := align(x, y)
			left := len(al.coreA) + len(al.coreB)
			if shared := al.weight() + len(differences(x, y).same); shared >= clauseShared || shared == clauseShared-1 && left == 0 || len(x.leansOn)+len(y.leansOn) > 0 && shared == clauseShared-1 && left <= 1 {
				return v, true
			}
		}
	}
	return verdict{}, false
}

// clauseShared is how many words of weight and figures two clauses must share before they can contradict each other; one less if neither
// has others, or one of them has a single other and leans on what is given before it.
const clauseShared = 3

// compare relates two claims as wholes.
func compare(a, b *claim) verdict {
	a, b = a.reported(), b.reported()
	return align(a, b).compare(a, b)
}

func (al *alignment) compare(a, b *claim) verdict {
	d := differences(a, b)
	if v, ok := al.otherSubject(al.coreA, al.coreB); ok {
		return v
	}
	if rest := slices.Concat(al.leftA, al.leftB); (a.row() || b.row()) && len(rest) > 0 {
		return distinct("They are about different things: %s.", list(rest))
	}
	if v, ok := otherKind(a, b, d); ok {
		return v
	}
	strict, differ := al.otherSubject(al.leftA, al.leftB)
	if !differ || al.anchored(d) && (len(d.apart) > 0 || al.sameClaim()) {
		if v, ok := contradicts(a, b, al, d); ok {
			return v
		}
	}
	if differ && len(d.same) == 0 {
		return strict
	}
	return duplicates(a, b, al, d)
}

// reported is the claim with what its source thinks of it: "X denies that ..." denies what follows, "X recommends that ..." says what ought to
// be. A German "die" is no word of dying. It is the claim itself if there is nothing of that kind.
func (c *claim) reported() *claim {
	out := c
	for i, t := range c.terms {
		if t.low == "die" && t.kind == content && c.germanArticle(i) {
			if out == c {
				out = c.clone()
			}
			out.terms[i].kind, out.terms[i].poles = function, nil
			continue
		}
		if t.kind != content || t.context || !c.thatAfter(i) {
			continue
		}
		denies := slices.Contains(t.poles, takesBack)
		if !denies && !words().is("advice", t.low, t.stem) {
			continue
		}
		if out == c {
			out = c.clone()
		}
		out.sourceBack(i)
		if denies {
			out.terms[i].kind = negation
		} else {
			out.terms[i].hedge, out.terms[i].weak, out.terms[i].says = true, true, true
		}
	}
	return out
}

// germanArticle reports whether "die" at i stands before a noun with a capital, or in a sentence with other small words of German.
func (c *claim) germanArticle(i int) bool {
	if i+1 < len(c.terms) {
		if r, _ := utf8.DecodeRuneInString(c.terms[i+1].raw); unicode.IsUpper(r) {
			return true
		}
	}
	return c.has(func(t term) bool { return t.low != "die" && t.low != "in" && t.low != "im" && capitalNouns[t.low] })
}

// takesBack is the pole of the verbs that take a statement back.
var takesBack = pole{axis: "admit"}

// thatAfter reports whether the clause that the verb at i leads to stands after it.
func (c *claim) thatAfter(i int) bool {
	if i+1 < len(c.terms) && c.terms[i+1].low == "," {
		i++
	}
	if i == 0 || i+1 >= len(c.terms) {
		return false
	}
	switch c.terms[i+1].low { // of every word of every pair: quicker than a look into a map
	case "that", "dass", "que", "che":
		return true
	}
	return false
}

// sameClaim reports whether the statements differ in no more than whose claims they are and what either of them adds.
func (al *alignment) sameClaim() bool {
	byTheWay := func(t term) bool { return t.source || t.aside || t.light }
	_, differ := al.otherSubject(slices.DeleteFunc(slices.Clone(al.leftA), byTheWay), slices.DeleteFunc(slices.Clone(al.leftB), byTheWay))
	return !differ
}

// anchored reports whether two statements that put a thing in other words are about one thing all the same: they share two words of
// weight or figures, a figure that differs has a unit or counts the same, and no name is left over.
func (al *alignment) anchored(d difference) bool {
	return al.weight()+len(d.same) >= 2 && al.namesLeft() == 0 && !d.loose
}

// otherSubject is the verdict for statements that are not about the same thing, with these words left over.
func (al *alignment) otherSubject(la, lb []term) (verdict, bool) {
	shared := al.weight()
	glyphs := 0
	for _, p := range al.pairs {
		if p.a.glyph && p.a.strong() {
			glyphs++
		}
	}
	slack := 0
	if glyphs >= 5 {
		slack = 1 // single characters of an inflection or a particle
	}
	for _, t := range slices.Concat(la, lb) {
		if t.contrast {
			return distinct("Only one of them is about %q.", t.raw), true
		}
	}
	switch {
	case shared == 0:
		return distinct("They share no word of weight."), true
	case min(len(la), len(lb)) > slack:
		return distinct("They are about different things: %s, and %s.", list(la), list(lb)), true
	case max(len(la), len(lb)) > max(1, shared+1):
		return distinct("One of them says much that the other does not: %s.", list(longer(la, lb))), true
	}
	return verdict{}, false
}

// otherKind is the verdict for statements of different kinds: a forecast against what happened, a possibility against a fact, the
// estimates of two sources.
func otherKind(a, b *claim, d difference) (verdict, bool) {
	hedged := func(t term) bool { return t.hedge && !(t.low == "can" && len(d.apart) > 0) && !t.context } // "can handle 3 million" is a capacity
	switch {
	case a.planned != b.planned:
		return distinct("One is a forecast or a plan, the other is not."), true
	case a.has(hedged) != b.has(hedged) && !a.has(term.cannot) && !b.has(term.cannot):
		return distinct("One states a possibility, the other a fact."), true
	}
	sourcesA, namedA := a.sourceNames()
	sourcesB, namedB := b.sourceNames()
	if namedA && namedB && !overlap(sourcesA, sourcesB) && len(d.apart) > 0 {
		return distinct("They are statements of different sources."), true
	}
	if len(d.apart) > 0 && a.has(term.ofMethod) && b.has(term.ofMethod) && otherMethod(sourcesA, sourcesB) && otherMethod(sourcesB, sourcesA) {
		return distinct("They are results of different measurements."), true
	}
	if (a.estimated() || b.estimated()) && len(d.apart) > 0 {
		if !maps.Equal(sourcesA, sourcesB) {
			return distinct("They are estimates of different sources."), true
		}
	}
	return verdict{}, false
}

// cannot reports a word that denies even the possibility.
func (t term) cannot() bool { return t.low == "cannot" || t.low == "can't" }

// byMethod reports a word of measuring: a condition that only the measurement states does not make it another claim's business.
func (t term) byMethod() bool { return t.method }

func (t term) ofMethod() bool { return t.method && t.source && !t.says }

// otherMethod reports whether sources name something that others do not.
func otherMethod(a, b map[string]bool) bool {
	for name := range a {
		if !b[name] {
			return true
		}
	}
	return false
}

// contradicts is the verdict for statements of one subject that cannot both be true.
func contradicts(a, b *claim, al *alignment, d difference) (verdict, bool) {
	denial := denials(a, b, al)
	negated := denial.byA || denial.byB
	switch {
	case denial.outOfScope:
		return distinct("One denies something that the other does not speak of."), true
	case denial.byA && denial.byB:
		return distinct("Each denies something that the other says."), true
	case denial.byA && (len(al.coreA) > 0 || len(d.onlyA) > 0), denial.byB && (len(al.coreB) > 0 || len(d.onlyB) > 0):
		return distinct("One denies a narrower case than the other speaks of."), true
	}
	flips, flip := al.flips()
	reversed := reversedComparison(a, b, al)
	if reversed {
		flips++
	}
	if d.otherDate != "" {
		if al.once() && !al.otherStep(a, b) && len(d.apart) == 0 && flips == 0 && !negated && d.dateOnly {
			return contradiction("The same event with different dates: %s.", d.otherDate), true
		}
		return distinct("They are about different times: %s.", d.otherDate), true
	}
	opposite := flips%2 == 1
	if narrower := al.narrower(a, b); narrower != "" && (negated || opposite || len(d.apart) > 0) {
		return distinct("Only one of them is about the case of %q.", narrower), true
	}
	switch {
	case negated && opposite:
		return distinct("One denies the opposite of what the other says."), true
	case negated && d.oneSidedDate && !al.once():
		return distinct("One denies it, but only one of them has a date."), true
	case negated && len(d.apart) == 0:
		return contradiction("One denies what the other says."), true
	case opposite && len(d.apart) > 0 && (al.selects(a, al.indexA) || al.selects(b, al.indexB)):
		return distinct("They are about opposite cases: %s.", flip), true
	case len(d.apart) > 0 && !slices.Equal(a.particles(), b.particles()):
		return distinct("The figures hold for different cases: %s.", d.apart[0]), true
	case negated:
		return distinct("One denies a figure, the other gives another."), true
	case opposite && flip != "":
		return contradiction("They say the opposite: %s.", flip), true
	case opposite:
		return contradiction("They compare the same things the other way round."), true
	case flips > 1 && !reversed:
		return distinct("They differ in more than one pair of opposites."), true
	}
	if len(d.apart) == 0 {
		if al.changedPlaces(a, b, d) {
			return contradiction("Each is said to have done it to the other."), true
		}
		return verdict{}, false
	}
	switch {
	case d.oneSidedDate:
		return distinct("The figures differ, but only one of them has a date: %s.", d.apart[0]), true
	case d.oneSidedScope && !(d.conditionOnly && a.has(term.byMethod) != b.has(term.byMethod)), len(d.apart) > 1 && d.scopeApart:
		return distinct("The figures hold for different cases: %s.", d.apart[0]), true
	case al.within(a, al.indexA) || al.within(b, al.indexB):
		return distinct("The figures differ, but only one of them is about %s.", list(longer(al.coreA, al.coreB))), true
	case al.turned():
		return distinct("The figures are of opposite directions: %s.", d.apart[0]), true
	case al.namesLeft() > 0:
		return distinct("The figures differ, but only one of them names %s.", list(longer(al.coreA, al.coreB))), true
	}
	return contradiction("The figures differ: %s.", strings.Join(d.apart, "; ")), true
}

// otherStep reports whether one of the claims speaks of a step of the business that the other does not name: announced, completed.
func (al *alignment) otherStep(a, b *claim) bool {
	step := func(t term) bool {
		return t.kind == content && !t.forecast && !t.source && !t.aside && !t.context && words().is("step", t.low, t.stem)
	}
	if slices.ContainsFunc(al.pairs, func(p pair) bool { return step(p.a) && step(p.b) }) {
		return false
	}
	for side, c := range []*claim{a, b} {
		index := al.indexA
		if side == 1 {
			index = al.indexB
		}
		for i, t := range c.terms {
			if step(t) && !paired(index, i) {
				return true
			}
		}
	}
	return false
}

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
	p, ok := al.indexA[i]
	if !ok || al.pairs[p].a.stem != al.pairs[p].b.stem { // X is home to Y, Y lives in X
		return 0
	}
	j := slices.IndexFunc(b.terms, func(u term) bool { return u.start == al.pairs[p].b.start })
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
func (al *alignment) parties(c *claim, index map[int]int, i int) (doer, other map[int]bool) {
	run := func(k, step int) map[int]bool {
		out := map[int]bool{}
		for ; k >= 0 && k < len(c.terms); k += step {
			t := c.terms[k]
			small := t.kind == function && (anyArticle(t) || beForms[t.low] || t.low == "has" || t.low == "have" || t.low == "had" || t.low == "by")
			if t.kind != content && !((small || t.kind == negation) && len(out) == 0) {
				break
			}
			if p, ok := index[k]; ok && t.strong() {
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

// selects reports whether a word with an opposite says which thing is meant, not what is said of it: "the longest delay", "at the start
// of the year".
func (al *alignment) selects(c *claim, index map[int]int) bool {
	for i, t := range c.terms {
		if p, ok := index[i]; !ok || !al.pairs[p].opposite {
			continue
		}
		if placing[t.poles[0].axis] {
			return true
		}
		if i+1 < len(c.terms) && paired(index, i+1) && c.terms[i+1].chunk == t.chunk && c.terms[i+1].strong() && !verbal(t) && len(c.terms[i+1].poles) == 0 {
			return true // "the large battery"
		}
		if i == 0 {
			continue
		}
		attribute := articleWords[c.terms[i-1].low] || possessive(c.terms[i-1])
		superlative := strings.HasSuffix(t.low, "est") || t.low == "first" || t.low == "last"
		if i+1 < len(c.terms) && (attribute && superlative && c.terms[i+1].kind == content || attribute && i > 1 && c.terms[i-2].low == "at" && c.terms[i+1].low == "of") {
			return true
		}
	}
	return false
}

// placing are the pairs of opposites that say when or where: "before the flood", "outside the city".
var placing = map[string]bool{"before": true, "inside": true, "near": true, "toward": true}

// within reports whether a claim begins or ends with a case that only it has: "340 judges in its criminal courts".
func (al *alignment) within(c *claim, index map[int]int) bool {
	narrow, opening := false, len(c.terms) > 0 && c.terms[0].kind == function && !articleWords[c.terms[0].low]
	for i, t := range c.terms {
		opening = opening && t.kind != stop && !paired(index, i)
		if opening && t.core() && !t.glyph {
			return true // "On steep slopes the engine ..."
		}
		switch {
		case t.context || t.kind == stop:
			narrow = false
		case t.kind == function && !articleWords[t.low]:
			narrow = len(c.quantities) > 0 && t.start >= c.quantities[0].End && withinWords[t.low]
		case narrow && t.core() && !paired(index, i) && !t.glyph:
			return true
		}
	}
	return false
}

var withinWords = wordSet("in among within for with")

// turned reports whether a name to which something goes in one claim is what it comes from in the other.
func (al *alignment) turned() bool {
	for _, p := range al.pairs {
		toA, toB := p.a.role == "to" || p.a.role == "into", p.b.role == "to" || p.b.role == "into"
		if p.a.stem == p.b.stem && (p.a.name || p.b.name) && toA != toB && !p.a.source && !p.b.source {
			return true
		}
	}
	return false
}

// particles are the small words that turn a case into another: "switched off".
func (c *claim) particles() []string {
	var out []string
	for _, t := range c.terms {
		if !t.context && (t.low == "off" || t.low == "out" || t.low == "behind") {
			out = append(out, t.low)
		}
	}
	slices.Sort(out)
	return out
}

// duplicates is the verdict for statements of one subject that do not contradict each other.
func duplicates(a, b *claim, al *alignment, d difference) verdict {
	flips, _ := al.flips()
	shared := al.weight()
	leftA, leftB := al.leftA, al.leftB
	if len(d.same) > 0 && shared >= 2 {
		attribution := func(t term) bool { return t.source && !t.name && !strings.ContainsAny(t.raw, "0123456789") }
		leftA, leftB = slices.DeleteFunc(slices.Clone(leftA), attribution), slices.DeleteFunc(slices.Clone(leftB), attribution) // ", the operator says"
	}
	switch {
	case !sameAsides(a, b):
		return distinct("They come with different details.")
	case len(leftB) > 0:
		return distinct("The newer statement adds: %s.", list(leftB))
	case len(d.onlyB) > 0:
		return distinct("The newer statement adds: %s.", strings.Join(d.onlyB, ", "))
	case len(leftA) > 0 && al.weakLeftB > 0, al.weakLeftA > 0 && al.weakLeftB > 0 && len(d.same) == 0:
		return distinct("They say different things of the same subject.")
	case slices.ContainsFunc(leftA, func(t term) bool { return len(t.poles) > 0 }):
		return distinct("Only one of them gives a direction: %s.", list(leftA))
	case 2*len(leftA) > shared:
		return distinct("The elder statement is narrower: %s.", list(leftA))
	case len(d.close) > 0:
		return distinct("The figures are near each other, but not the same: %s.", strings.Join(d.close, "; "))
	case d.oneSidedScope, d.oneSidedDate && !al.once():
		return distinct("They hold for different cases or times.")
	case d.dateDetail:
		return distinct("One gives the date more exactly.")
	case flips > 0 && !reversedComparison(a, b, al):
		return distinct("They differ in a pair of opposites.")
	case !slices.Equal(a.criticals(), b.criticals()):
		return distinct("They differ in how far they go: %s.", strings.Join(slices.Concat(a.criticals(), b.criticals()), ", "))
	case flips == 0 && al.rolesDiffer(a, b):
		return distinct("Who does what to whom differs.")
	}
	if m := otherMarks(a, b); m != "" {
		return distinct("Only one of them is about %q.", m)
	}
	if one, other := al.rearranged(a, b, flips > 0); one != "" {
		return distinct("%q and %q have changed places.", one, other)
	}
	switch {
	case shared+len(d.same) < 2:
		return distinct("Too little is shared to call them the same.")
	}
	return verdict{relation: model.Duplicate, reason: "The same claim in other words, with nothing added."}
}

// alignment pairs the content words of two claims.
type alignment struct {
	pairs        []pair
	leftA, leftB []term // words of weight without a partner
	coreA, coreB []term // those of them that are more than a way of putting it
	weakLeftA    int    // words without weight and partner
	weakLeftB    int
	indexA       map[int]int
	indexB       map[int]int
}

type pair struct {
	a, b           term
	link           bool // a connection that is denied, and what it would do
	opposite       bool // of each other, and neither is the negation of the other
	minusA, minusB int  // 1 for the word that is the negation of the other ("ineffective")
}

// align pairs equal words first, then synonyms, then derived forms, then opposites.
func align(a, b *claim) *alignment {
	al := &alignment{indexA: map[int]int{}, indexB: map[int]int{}}
	take := func(match func(x, y term) (pair, bool)) {
		for i, x := range a.terms {
			if paired(al.indexA, i) || x.kind != content {
				continue
			}
			for j, y := range b.terms {
				if paired(al.indexB, j) || y.kind != content || x.context && y.context {
					continue
				}
				if p, ok := match(x, y); ok {
					p.a, p.b = x, y
					al.indexA[i], al.indexB[j] = len(al.pairs), len(al.pairs)
					al.pairs = append(al.pairs, p)
					break
				}
			}
		}
	}
	take(func(x, y term) (pair, bool) { return pair{}, x.stem == y.stem })
	take(func(x, y term) (pair, bool) { return pair{}, synonyms(x, y) })
	take(func(x, y term) (pair, bool) { return pair{}, kin(x.stem, y.stem) })
	take(opposites)
	al.links(a, b)
	for i, x := range a.terms {
		switch {
		case paired(al.indexA, i), x.context:
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
		case paired(al.indexB, j), y.context:
		case y.strong():
			al.leftB = append(al.leftB, y)
			if y.core() && !inName(b, j, al.indexB) {
				al.coreB = append(al.coreB, y)
			}
		case y.kind == content:
			al.weakLeftB += notForecast(y)
		}
	}
	return al
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
			if i == 0 || c.terms[i-1].kind != negation || t.context || paired(index, i) || !words().is("link", t.low, t.stem) {
				continue
			}
			if other.has(func(o term) bool { return o.kind == negation }) {
				continue
			}
			j := slices.IndexFunc(other.terms, func(o term) bool { return o.kind == content && !o.context && o.does() })
			if j < 0 || paired(otherIndex, j) {
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
func inName(c *claim, i int, index map[int]int) bool {
	if !c.terms[i].name || len(c.terms[i].raw) < 3 {
		return false
	}
	beside := func(k int) bool {
		return k >= 0 && k < len(c.terms) && paired(index, k) && (c.terms[k].name || k == 0) && c.terms[k].chunk == c.terms[i].chunk
	}
	return beside(i-1) || beside(i+1)
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
	return covers(a, b) && covers(b, a)
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

// narrower returns a word that only one claim has and that makes its subject a narrower one: it stands directly beside a shared word
// ("core inflation" and "inflation"), before "of" ("maintenance of the tunnel"), or after a possessive. "" if there is none.
func (al *alignment) narrower(a, b *claim) string {
	for side, c := range []*claim{a, b} {
		index := al.indexA
		if side == 1 {
			index = al.indexB
		}
		for i, t := range c.terms {
			if paired(index, i) || !t.core() || inName(c, i, index) || t.glyph || strings.HasSuffix(t.low, "ly") {
				continue
			}
			if t.mostOf() && []*claim{b, a}[side].has(term.noneOf) {
				continue // "most of the stars" and "none of the stars"
			}
			if i+1 < len(c.terms) && c.terms[i+1].low == "of" || i > 0 && paired(index, i-1) && possessive(c.terms[i-1]) {
				return t.raw
			}
			for k, u := range c.terms {
				if u.chunk == t.chunk && k == i+1 && u.strong() && paired(index, k) && !verbal(t) && (t.name || !u.name || u.glyph) {
					return t.raw
				}
			}
		}
	}
	return ""
}

func (t term) mostOf() bool {
	return t.low == "majority" || t.low == "most"
}

// noneOf reports a negation that counts: "none of the stars", "hardly any".
func (t term) noneOf() bool {
	return t.kind == negation && (noWords[t.low] || countingNegations[t.low])
}

var countingNegations = wordSet("none hardly scarcely barely kaum")

func possessive(t term) bool { return strings.HasSuffix(t.low, "'s") || strings.HasSuffix(t.low, "s'") }

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
func (c *claim) negated(i int, index map[int]int) (int, bool) {
	for k := i + 1; k < len(c.terms) && c.terms[k].kind != stop; k++ {
		if c.terms[k].kind == content && (!c.terms[k].weak && !c.terms[k].light || paired(index, k)) {
			p, ok := index[k]
			return p, ok
		}
	}
	for k := i - 1; k >= 0 && c.terms[k].kind != stop; k-- {
		if c.terms[k].strong() {
			p, ok := index[k]
			return p, ok
		}
	}
	return 0, false
}

func paired(index map[int]int, k int) bool {
	_, ok := index[k]
	return ok
}

// criticals are the words that say how far a statement goes, sorted.
func (c *claim) criticals() []string {
	var out []string
	for _, t := range c.terms {
		if t.kind == critical && !c.figureAfter(t) {
			out = append(out, t.low)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// figureAfter reports whether a term is a bound or hedge of the quantity directly after it ("some 400 people", "more than half"), which
// is compared with it.
func (c *claim) figureAfter(t term) bool {
	return boundWords[t.low] && slices.ContainsFunc(c.quantities, func(q measure.Quantity) bool { return q.Start == t.end+1 })
}

var boundWords = func() map[string]bool {
	m := map[string]bool{"some": true}
	for _, phrase := range []string{"more than", "less than", "at least", "at most", "up to"} {
		m[phrase] = true
		m[words().phrase(phrase)] = true
	}
	return m
}()

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
func (al *alignment) sides(c *claim, index map[int]int) (left, right map[string]bool) {
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
		p, ok := index[i]
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
		p, ok := al.indexA[i]
		if !ok || t.kind != content || al.pairs[p].a.stem != al.pairs[p].b.stem {
			continue
		}
		j := slices.IndexFunc(b.terms, func(u term) bool { return u.start == al.pairs[p].b.start })
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
	beside := func(c *claim, index map[int]int) map[int]map[int]bool {
		out := map[int]map[int]bool{}
		for i, t := range c.terms {
			p, ok := index[i]
			if !ok || !t.strong() || verbal(t) && !strings.HasSuffix(t.low, "ed") {
				continue
			}
			out[p] = map[int]bool{}
			for k, u := range c.terms {
				if q, ok := index[k]; ok && k != i && u.chunk == t.chunk && u.strong() {
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

// namesExchanged reports whether two names have taken each other's place: "X sold its plant to Y" and "Y sold its plant to X". Around "and" they
// may.
func (al *alignment) namesExchanged(a, b *claim) bool {
	type places struct{ inA, inB string }
	var names []places
	for i, t := range a.terms {
		p, ok := al.indexA[i]
		if !ok || t.context || al.pairs[p].b.context || !t.name && !al.pairs[p].b.name && !t.glyph {
			continue
		}
		j := slices.IndexFunc(b.terms, func(u term) bool { return u.start == al.pairs[p].b.start })
		if at := (places{a.place(i), b.place(j)}); !t.glyph || at.inA != "" && at.inB != "" {
			names = append(names, at)
		}
	}
	for i, x := range names {
		for _, y := range names[:i] {
			if x.inA != x.inB && x.inA == y.inB && x.inB == y.inA && !pairing[x.inA] && !pairing[x.inB] {
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

var pairing = wordSet("and or und oder et ou y e o")

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
	return strings.HasSuffix(t.low, "ed") || strings.HasSuffix(t.low, "s") && !t.name || strings.HasSuffix(t.low, "ing") || irregular[t.low] != ""
}

func startsWithPlace(c *claim) bool {
	return len(c.terms) > 0 && (c.terms[0].kind == function && !articleWords[c.terms[0].low] || slices.Contains(c.terms[0].concepts, stem("because")))
}

// around returns the pairs of weight before and after term i.
func around(index map[int]int, c *claim, i int) (before, after map[int]bool) {
	before, after = map[int]bool{}, map[int]bool{}
	for k, t := range c.terms {
		p, ok := index[k]
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

func byAfter(c *claim, i int) bool {
	for k := i + 1; k < len(c.terms) && k <= i+4; k++ {
		if c.terms[k].low == "by" || c.terms[k].low == "von" || c.terms[k].low == "par" || c.terms[k].low == "por" {
			return true
		}
	}
	return false
}

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
				text := fmt.Sprintf("%s and %s", a.text[x.Start:x.End], b.text[y.Start:y.End])
				switch want {
				case measure.Same:
					d.same = append(d.same, text)
				case measure.Close:
					d.close = append(d.close, text)
				case measure.Apart:
					d.apart = append(d.apart, text)
					d.loose = d.loose || x.Family == measure.Count && (len(a.counted(x)) == 0 || len(b.counted(y)) == 0)
					d.scopeApart = d.scopeApart || x.Scope || y.Scope
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

func list(terms []term) string {
	var out []string
	for _, t := range terms {
		out = append(out, t.raw)
		if len(out) == 4 {
			break
		}
	}
	return strings.Join(out, ", ")
}

func longer(a, b []term) []term {
	if len(a) > len(b) {
		return a
	}
	return b
}
