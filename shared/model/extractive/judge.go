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
	"github.com/factstream/factstream/shared/model/measure"
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

// judged is judge, and gives what the two have in common as wholes.
func judged(elder, newer string) (model.Relation, string, compared) {
	a, b := read(elder), read(newer)
	whole := compared{a: a.reported(), b: b.reported()}
	whole.al = align(whole.a, whole.b)
	v := whole.al.compare(whole.a, whole.b)
	if v.relation == model.Duplicate {
		return v.relation, v.reason, whole
	}
	relation, reason := byParts(elder, newer, a, b, v)
	if relation == model.Distinct {
		if v, ok := whole.exclusive(); ok {
			return v.relation, v.reason, whole
		}
	}
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
	return slices.ContainsFunc(sentencesOf(a), func(s text.Sentence) bool { return strings.Contains(b, s.Text) })
}

// focus is the last sentence of a statement of several of which the last leans on those before; nil for any other statement.
func focus(s string) *claim {
	if !strings.ContainsAny(s, ".。!！?？") {
		return nil
	}
	sentences := sentencesOf(s)
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
	if d.inverse && !sameOpening(a, b) {
		return distinct("They may compare the same from either side: %s.", d.apart[0]), true
	}
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
		if (al.once() || sameSpan(a, b)) && !al.otherStep(a, b) && len(d.apart) == 0 && flips == 0 && !negated && d.dateOnly && a.ofSome() == b.ofSome() {
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

// sameOpening reports whether the words before the first figure are the same: "The new pump is" twice or half as fast as the old.
func sameOpening(a, b *claim) bool {
	opening := func(c *claim) (out []string) {
		for _, t := range c.terms {
			if len(c.quantities) > 0 && t.start >= c.quantities[0].Start {
				break
			}
			if !t.context && t.kind != function && t.kind != stop {
				out = append(out, t.stem)
			}
		}
		return out
	}
	return slices.Equal(opening(a), opening(b)) && !turnedAfter(a, b)
}

// turnedAfter reports whether the first words of weight after the first figure change places: "twice as many men as women", "half as many women as men".
func turnedAfter(a, b *claim) bool {
	after := func(c *claim) (out []string) {
		for _, t := range c.terms {
			if len(c.quantities) > 0 && t.start >= c.quantities[0].End && t.kind == content && !t.context && !manyWords[t.low] && len(out) < 2 {
				out = append(out, t.stem)
			}
		}
		return out
	}
	x, y := after(a), after(b)
	return len(x) == 2 && len(y) == 2 && x[0] == y[1] && x[1] == y[0]
}

var manyWords = wordSet("many much as so viel viele wie")

// ofSome reports whether a claim is about some of a number of things: "31 of the 48 schools".
func (c *claim) ofSome() bool {
	_, ok := c.partOf()
	return ok
}

// sameSpan reports whether both claims say since when, or until when, something is so, and give no figure, which might have come about in the
// time.
func sameSpan(a, b *claim) bool {
	x, y := a.span(), b.span()
	return len(a.quantities)+len(b.quantities) == 0 && x != "" && y != "" && !otherSpan(a, b)
}

// otherSpan reports whether of two claims with one date each the one holds until then, or since, and the other from then on, or then.
func otherSpan(a, b *claim) bool {
	if len(a.dates) != 1 || len(b.dates) != 1 {
		return false
	}
	x, y := a.span(), b.span()
	return x != y && !(x == "from" && y != "until") && !(y == "from" && x != "until") // "figures from 2019" are those of 2019
}

// span is what the word before the only date of a claim makes of it: "since", "from" or "until"; "" for another.
func (c *claim) span() string {
	if len(c.dates) != 1 {
		return ""
	}
	before := none
	for _, t := range c.terms {
		if t.end <= c.dates[0].Start && !t.context && !articleOfDate[t.low] {
			before = t
		}
	}
	return spanWords[before.low]
}

var (
	articleOfDate = wordSet("de le el en") // "à partir de 2026", "jusqu'en 2030"
	spanWords     = func() map[string]string {
		out := map[string]string{}
		for span, words := range map[string]string{"since": "since seit depuis desde sinds", "from": "from ab partir dès", "until": "until till bis jusqu jusque jusqu'en hasta"} {
			for w := range strings.FieldsSeq(words) {
				out[w] = span
			}
		}
		return out
	}()
)

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
			if step(t) && !index.paired(i) {
				return true
			}
		}
	}
	return false
}

// selects reports whether a word with an opposite says which thing is meant, not what is said of it: "the longest delay", "at the start
// of the year".
func (al *alignment) selects(c *claim, index index) bool {
	for i, t := range c.terms {
		if p, ok := index.of(i); !ok || !al.pairs[p].opposite {
			continue
		}
		if placing[t.poles[0].axis] {
			return true
		}
		if i+1 < len(c.terms) && index.paired(i+1) && c.terms[i+1].chunk == t.chunk && c.terms[i+1].strong() && !verbal(t) && len(c.terms[i+1].poles) == 0 {
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
func (al *alignment) within(c *claim, index index) bool {
	narrow, opening := false, len(c.terms) > 0 && c.terms[0].kind == function && !articleWords[c.terms[0].low]
	for i, t := range c.terms {
		opening = opening && t.kind != stop && !index.paired(i)
		if opening && t.core() && !t.glyph {
			return true // "On steep slopes the engine ..."
		}
		switch {
		case t.context || t.kind == stop:
			narrow = false
		case t.kind == function && !articleWords[t.low]:
			narrow = len(c.quantities) > 0 && t.start >= c.quantities[0].End && withinWords[t.low]
		case narrow && t.core() && !index.paired(i) && !t.glyph:
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
	if len(d.same) > 0 && shared >= 2 || shared > 3 {
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
	case otherSpan(a, b):
		return distinct("One holds until a date, the other from then on or then.")
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
	if shared+len(d.same) < 2 {
		return distinct("Too little is shared to call them the same.")
	}
	if al.otherLead(a, b) {
		return distinct("A name has another part in it.")
	}
	return verdict{relation: model.Duplicate, reason: "The same claim in other words, with nothing added."}
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
			if index.paired(i) || !t.core() || inName(c, i, index) || t.glyph || strings.HasSuffix(t.low, "ly") {
				continue
			}
			if t.mostOf() && []*claim{b, a}[side].has(term.noneOf) {
				continue // "most of the stars" and "none of the stars"
			}
			if i+1 < len(c.terms) && c.terms[i+1].low == "of" && c.terms[i+1].start <= t.end+1 || i > 0 && index.paired(i-1) && possessive(c.terms[i-1]) {
				return t.raw
			}
			for k, u := range c.terms {
				if u.chunk == t.chunk && k == i+1 && u.strong() && index.paired(k) && !verbal(t) && (t.name || !u.name || u.glyph) {
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
