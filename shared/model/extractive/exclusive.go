package extractive

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/factstream/factstream/shared/model/measure"
)

// Some places of a statement only one thing can fill: who built it, the how-manieth it is, how many of them all. Two statements of which each would be
// a duplicate of the other, had it the other's filling, contradict each other if the fillings exclude each other. All else of them is so compared by
// the rules for duplicates, which are the narrowest that there are.

// exclusive is the verdict for two statements, none a duplicate or contradiction by other rules, that differ in such a place alone. It has none where one
// of them denies or supposes something, or tells of another time.
func (c compared) exclusive() (verdict, bool) {
	if c.al.weight() < 2 { // nor could they be duplicates
		return verdict{}, false
	}
	v, ok := c.otherRank()
	if !ok {
		v, ok = c.wholeAndPart()
	}
	if !ok {
		v, ok = c.otherAgent()
	}
	return v, ok && c.a.flat() && c.b.flat() && c.sameTense() && c.sameSource()
}

// sameSource reports whether the claims do not name different sources.
func (c compared) sameSource() bool {
	one, namedA := c.a.sourceNames()
	other, namedB := c.b.sourceNames()
	return !namedA || !namedB || overlap(one, other)
}

// flat reports whether a claim says that something is so: without denial, guess or condition, and not in the cells of a table.
func (c *claim) flat() bool {
	return !c.row() && !c.has(func(t term) bool {
		return t.kind == negation || t.hedge || t.guess || t.low == "if" || t.low == "unless" || legends[t.low]
	})
}

// legends are words for what is only told.
var legends = wordSet("legend legends myth tradition folklore legende sage mythos überlieferung légende tradition mythe leyenda tradición mito leggenda tradizione")

// toBeDone reports whether a claim is of what is still to be done: "were to be closed".
func (c *claim) toBeDone() bool {
	return slices.ContainsFunc([]string{" to be ", " zu sein", " werden sollen"}, func(s string) bool { return strings.Contains(strings.ToLower(c.text), s) })
}

// sameTense reports whether both claims, or neither, speak of now, and neither of the past while the other does of the present.
func (c compared) sameTense() bool {
	now := func(t term) bool { return nowWords[t.low] }
	present := func(t term) bool { return presentForms[t.low] }
	past := func(t term) bool { return pastForms[t.low] }
	return c.a.has(now) == c.b.has(now) && c.a.toBeDone() == c.b.toBeDone() && !(c.a.has(present) && !c.a.has(past) && c.b.has(past)) && !(c.b.has(present) && !c.b.has(past) && c.a.has(past))
}

var (
	nowWords = wordSet("now currently already still today meanwhile formerly once previously then later inzwischen mittlerweile derzeit jetzt heute noch damals früher désormais maintenant " +
		"aujourd encore actuellement autrefois ahora actualmente ya hoy todavía antes")
	presentForms = wordSet("werden wird is are remains ist sind bleibt est sont reste es son sigue è sono")
	pastForms    = wordSet("was were became remained war waren wurde wurden était étaient fut furent era eran fue fueron fu furono")
)

// alike reports whether each of two statements is a duplicate of the other.
func alike(one, other string) bool {
	a, b := parse(one), parse(other)
	return same(a, b) && same(b, a)
}

// otherRank is the verdict for one thing that is put in two places of one order: "the largest" and "the second-largest", "finished first" and "third".
func (c compared) otherRank() (verdict, bool) {
	x, okA := c.a.rank()
	y, okB := c.b.rank()
	switch {
	case !okA && !okB, okA && okB && x.n == y.n:
		return verdict{}, false
	case okA && okB && x.superlative != y.superlative, okA != okB && !x.superlative && !y.superlative:
		return verdict{}, false
	}
	restA, restB := c.a.text, c.b.text
	for _, side := range []struct {
		claim *claim
		rank  *rank
		rest  *string
		ok    bool
	}{{c.a, &x, &restA, okA}, {c.b, &y, &restB, okB}} {
		if side.ok {
			*side.rest = side.rank.rest
			continue
		}
		side.rank.text = "first"
		if side.claim.has(func(t term) bool { return oneOfWords[t.low] }) {
			return verdict{}, false // "one of the largest" may be the second
		}
	}
	if !alike(restA, restB) {
		return verdict{}, false
	}
	return contradiction("One thing in two places of the same order: %s and %s.", x.text, y.text), true
}

var oneOfWords = wordSet("one among amongst some einer eine eines unter zu un une parmi uno una entre")

// rank is the place that a claim gives to its subject in an order.
type rank struct {
	n           int    // 1 for the first
	superlative bool   // "second-largest": without the number it is the first
	text        string // as written
	rest        string // the statement without it
}

// rank reads the only ordinal of a claim, if it is said of the subject: "is the second-largest lake", "finished third", "was the first city to". What
// only selects ("the second-largest dam was closed", "one of the", "the lake that is the largest") gives none.
func (c *claim) rank() (r rank, ok bool) {
	at := -1
	for i, t := range c.terms {
		if t.kind == stop || t.context {
			continue
		}
		word := t.low
		if strings.HasPrefix(word, "the ") { // a phrase of the lexicon: "the first"
			word = lowered(t.raw)[len("the "):]
			t.start = t.end - len(word)
		}
		n, cut := ordinal(word)
		if n == 0 {
			continue
		}
		if at >= 0 {
			return rank{}, false
		}
		at = i
		end := t.start + cut
		if cut == len(word) {
			end = t.end
			if _, size := utf8.DecodeRuneInString(c.text[end:]); size > 0 && end+size < len(c.text) && strings.ContainsRune(" -", rune(c.text[end])) {
				end += size
			}
		}
		r = rank{n: n, text: c.text[t.start : t.start+cut], rest: c.text[:t.start] + c.text[end:], superlative: cut < len(word) || c.superlativeAfter(i)}
	}
	if at < 0 || c.pronounFirst() {
		return rank{}, false
	}
	if r.superlative {
		return r, at > 0 && c.saidOfSubject(at)
	}
	return r, c.placedAt(at) || at > 0 && c.saidOfSubject(at) && c.toDo(at)
}

// pronounFirst reports whether a claim begins with a pronoun, so that it does not say what it is about.
func (c *claim) pronounFirst() bool {
	for _, t := range c.terms {
		if t.kind != stop && !t.context && !t.source {
			return words().is("dangling", t.low, t.low)
		}
	}
	return true
}

// ordinal reads the number of an ordinal, and where the word that it belongs to goes on: in "zweitgrößte" before "größte". 0 if it is none.
func ordinal(low string) (n, cut int) {
	if n := rankNumbers[low]; n != 0 {
		return n, len(low)
	}
	if !strings.Contains(low, "te") {
		return 0, 0
	}
	for i, prefix := range germanOrdinals {
		if rest, ok := strings.CutPrefix(low, prefix); ok && len(rest) > 4 {
			return i + 2, len(prefix)
		}
	}
	return 0, 0
}

var (
	rankNumbers = func() map[string]int {
		out := map[string]int{}
		for _, list := range []string{"first second third fourth fifth sixth seventh eighth ninth tenth", "1st 2nd 3rd 4th 5th 6th 7th 8th 9th 10th",
			"erste zweite dritte vierte fünfte sechste siebte achte neunte zehnte", "ersten zweiten dritten vierten fünften sechsten siebten achten neunten zehnten",
			"erster zweiter dritter vierter fünfter sechster siebter achter neunter zehnter", "première deuxième troisième quatrième cinquième sixième septième huitième neuvième dixième",
			"premier second", "- seconde", "primera segunda tercera cuarta quinta sexta séptima octava novena décima", "primero segundo tercero cuarto quinto sexto séptimo octavo noveno décimo",
			"primer - tercer"} {
			for i, w := range strings.Fields(list) {
				if w != "-" {
					out[w] = i + 1
				}
			}
		}
		return out
	}()
	germanOrdinals = strings.Fields("zweit dritt viert fünft sechst siebt acht neunt zehnt")
)

// germanOrdinal reports a word like "zweitgrößte".
func germanOrdinal(low string) bool {
	n, cut := ordinal(low)
	return n != 0 && cut < len(low)
}

// superlativeAfter reports whether the ordinal at term i numbers a superlative: "second-largest", "third most populous", "deuxième plus grand", "segunda
// ciudad más grande".
func (c *claim) superlativeAfter(i int) bool {
	if i+1 >= len(c.terms) {
		return false
	}
	next := c.terms[i+1]
	switch {
	case next.comparesMore():
		return true
	case next.low == "most" || next.low == "least":
		return i+2 < len(c.terms) && c.terms[i+2].kind == content
	case strings.HasSuffix(next.low, "est") && len(next.low) > 4 || irregularBest[next.low]:
		return !noSuperlatives[next.low]
	case i+2 < len(c.terms) && next.kind == content:
		return c.terms[i+2].comparesMore()
	}
	return false
}

// comparesMore reports "plus" or "más", alone or in a phrase of the lexicon: "más grande".
func (t term) comparesMore() bool {
	first, _, _ := strings.Cut(lowered(t.raw), " ")
	return first == "plus" || first == "más"
}

var irregularBest = wordSet("best worst mayor menor mejor peor meilleur meilleure pire")

var noSuperlatives = wordSet("forest interest west northwest southwest east northeast southeast test contest request harvest guest protest arrest invest honest modest quest chest crest conquest priest manifest suggest")

// saidOfSubject reports whether the words at term i follow "is the", with a possessor at most between: "is the", "is the country's".
func (c *claim) saidOfSubject(i int) bool {
	definite := germanOrdinal(c.terms[i].low) && c.terms[i-1].kind == content // "wurde bei der Wahl zweitstärkste Kraft"
	if definite {
		return slices.ContainsFunc(c.terms[max(i-6, 0):i], func(t term) bool { return isWords[t.low] }) && !slices.ContainsFunc(c.terms[max(i-6, 0):i], func(t term) bool { return t.kind == stop })
	}
	definite = strings.HasPrefix(c.terms[i].low, "the ")
	for k := i - 1; k >= 1 && k >= i-5; k-- {
		t, before := c.terms[k], c.terms[k-1]
		switch {
		case isWords[t.low]:
			return definite && !relativeWords[before.low] && before.low != "that" && !anyArticle(before) && before.low != "que"
		case possessive(t) && t.kind == content, anyArticle(t) && !indefinite[t.low]:
			definite = true
		case t.kind != content || !definite:
			return false // "one of the", a comma
		}
	}
	return false
}

var (
	isWords    = wordSet("is was are were remains remained became ist war wurde bleibt blieb est était fut reste es era fue sigue è era")
	indefinite = wordSet("a an one some any ein eine einen einem einer eines un une una uno")
)

// placedAt reports whether the ordinal at term i is a place in a contest: "finished third", "took third place", "belegte den dritten Platz".
func (c *claim) placedAt(i int) bool {
	next := none
	if i+1 < len(c.terms) {
		next = c.terms[i+1]
	}
	if placeWords[next.low] {
		return true
	}
	if i == 0 || next.low == "to" || next.kind == content && !next.name {
		return false // "came first to", "finished third class"
	}
	return placingVerbs[c.terms[i-1].low] || c.terms[i-1].low == "wurde" && capitalised(c.terms[i])
}

var (
	placeWords   = wordSet("place platz lugar puesto")
	placingVerbs = wordSet("finished came ranked placed ranks finishes comes terminó quedó acabó terminé fini arrivé arrivée classé classée termina")
)

// toDo reports whether the thing that the ordinal at term i numbers is told by what it did: "the first city to ban cars".
func (c *claim) toDo(i int) bool {
	for k := i + 2; k < len(c.terms) && k <= i+6 && c.terms[k].kind != stop; k++ {
		switch {
		case (c.terms[k].low == "to" || c.terms[k].low == "à") && k+1 < len(c.terms) && !anyArticle(c.terms[k+1]):
			return true
		case c.terms[k].low == "en" && k+1 < len(c.terms):
			if verb := c.terms[k+1].low; strings.HasSuffix(verb, "ar") || strings.HasSuffix(verb, "er") || strings.HasSuffix(verb, "ir") {
				return true
			}
		}
	}
	return false
}

// wholeAndPart is the verdict for "all 48 of them" against "31 of the 48".
func (c compared) wholeAndPart() (verdict, bool) {
	for _, sides := range [][2]*claim{{c.a, c.b}, {c.b, c.a}} {
		part, ok := sides[1].partOf()
		if !ok {
			continue
		}
		rest, ok := sides[0].withoutAll(part.of)
		if ok && alike(rest, part.rest) {
			return contradiction("One says it of all %s, the other of %s of them.", written(sides[0], part.of), part.text), true
		}
	}
	return verdict{}, false
}

func written(c *claim, n float64) string {
	for _, q := range c.quantities {
		if exactCount(q) && q.Lo == n {
			return c.text[q.Start:q.End]
		}
	}
	return ""
}

// share is some of a number of things.
type share struct {
	of   float64
	text string // how many, as written
	rest string // the statement without it: of all of them
}

func exactCount(q measure.Quantity) bool {
	return q.Family == measure.Count && q.Lo == q.Hi && !q.Approx && !q.AtLeast && !q.AtMost && !q.Scope
}

// partOf reads "31 of the 48 schools", or "of the 48 schools 31", from a claim that has no other such pair of numbers.
func (c *claim) partOf() (s share, ok bool) {
	for i := 1; i < len(c.quantities); i++ {
		x, y := c.quantities[i-1], c.quantities[i]
		if !exactCount(x) || !exactCount(y) || ok && x.Lo != y.Lo {
			if ok {
				return share{}, false
			}
			continue
		}
		between := strings.ToLower(strings.TrimSpace(c.text[x.End:y.Start]))
		switch {
		case x.Lo < y.Lo && ofWhole[between]:
			s, ok = share{of: y.Lo, text: c.text[x.Start:x.End], rest: c.text[:c.onlyBefore(x.Start)] + c.text[y.Start:]}, true
		case y.Lo < x.Lo && len(c.terms) > 1 && c.terms[0].end <= x.Start && (ofWords[c.terms[0].low] || c.terms[0].low == "sur"):
			first := c.terms[0]
			from := c.onlyBefore(y.Start)
			s, ok = share{of: x.Lo, text: c.text[y.Start:y.End], rest: strings.TrimSpace(c.text[first.end:strings.LastIndexFunc(c.text[:from], func(r rune) bool { return r != ' ' && r != ',' })+1] + c.text[y.End:])}, true
		}
	}
	return s, ok && !c.has(func(t term) bool { return words().is("whole", t.low, t.stem) })
}

var ofWhole = func() map[string]bool {
	out := map[string]bool{}
	for phrase := range strings.SplitSeq("of,of the,of its,of their,of all,of these,of those,der,von,von den,der insgesamt,von insgesamt,des,sur,sur les,de las,de los,de,de sus,delle,dei,degli,su", ",") {
		out[phrase] = true
	}
	return out
}()

// onlyBefore is where "only" begins that stands directly before byte i, or else i.
func (c *claim) onlyBefore(i int) int {
	for _, t := range c.terms {
		if t.end+1 == i && (onlyWords[t.low] || justWords[t.low]) {
			return t.start
		}
	}
	return i
}

var justWords = wordSet("just merely lediglich bloß seul seuls seule seules")

// withoutAll is a statement without its "all", which stands before the number n or, with "the" before that, with the verb: "all 48", "all of the 48",
// "les 48 écoles ont toutes". False if it says no such thing, or of nearly all of them.
func (c *claim) withoutAll(n float64) (rest string, ok bool) {
	i := slices.IndexFunc(c.quantities, func(q measure.Quantity) bool { return exactCount(q) && q.Lo == n })
	at := -1
	for k, t := range c.terms {
		if nearlyWords[t.low] {
			return "", false
		}
		if t.context || !words().is("whole", t.low, t.stem) {
			continue
		}
		if at >= 0 {
			return "", false
		}
		at = k
	}
	if i < 0 || at < 0 {
		return "", false
	}
	all, q := c.terms[at], c.quantities[i]
	if all.end < q.Start && !slices.ContainsFunc(c.terms, func(t term) bool {
		return t.start >= all.end && t.end <= q.Start && !ofWords[t.low] && !anyArticle(t) && t.low != "one"
	}) {
		return c.text[:all.start] + c.text[q.Start:], true
	}
	last := at+1 == len(c.terms) || c.terms[at+1].kind == stop
	if all.start < q.End || !last && (at == 0 || !verbAux[c.terms[at-1].low]) {
		return "", false // "were visited by all members"
	}
	return strings.TrimRight(c.text[:all.start], " ") + c.text[all.end:], true
}

var (
	nearlyWords = wordSet("nearly almost virtually practically fast nahezu beinahe presque quasi casi")
	verbAux     = wordSet("were are have wurden sind haben ont sont furent han fueron son están estaban")
)
