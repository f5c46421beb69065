package extractive

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/factstream/factstream/shared/model/measure"
)

// otherAgent is the verdict for what only one does, said to have been done by two: "was built by Saunders", "was built by Thorpe".
func (c compared) otherAgent() (verdict, bool) {
	x, ok := c.a.agent()
	if !ok {
		return verdict{}, false
	}
	y, ok := c.b.agent()
	if !ok || !x.singular && !y.singular || x.excuses(c.b, y) || y.excuses(c.a, x) {
		return verdict{}, false
	}
	p, ok := c.al.indexA.of(x.verb)
	if !ok || c.al.pairs[p].b.start != c.b.terms[y.verb].start || (x.kind.deal || y.kind.deal) && !(c.sameDeal() && x.whole(c.a) && y.whole(c.b)) {
		return verdict{}, false
	}
	name := c.a.text[x.nameFrom:x.to]
	if !alike(x.with(name, c.a), y.with(name, c.b)) {
		return verdict{}, false
	}
	return contradiction("Only one of them can have done it: %s and %s.", name, c.b.text[y.nameFrom:y.to]), true
}

// sameDeal reports whether both claims give a date, or a price: what was bought may be bought again.
func (c compared) sameDeal() bool {
	priced := func(q measure.Quantity) bool { return strings.HasPrefix(q.Family, "money:") }
	return len(c.a.dates) > 0 && len(c.b.dates) > 0 || slices.ContainsFunc(c.a.quantities, priced) && slices.ContainsFunc(c.b.quantities, priced)
}

// whole reports whether what was bought is a company, or has a name: of "the app" or "the office" another may have got one in the same year.
func (g agent) whole(c *claim) bool {
	return slices.ContainsFunc(c.terms, func(t term) bool {
		return t.kind == content && (t.end <= g.from || t.start >= g.to) && t.start != c.terms[g.verb].start && (organised(t) || t.start > 0 && t.name && !g.kind.german || t.start == 0 && upperFirst(t.raw))
	})
}

// soleVerb is a form of a verb for what only one does to a thing.
type soleVerb struct {
	german     bool
	participle bool // and no form of the past: "written", not "wrote"
	deal       bool // it may be done again by another: "bought"
	founding   bool // what it is done to has a name
}

// soleVerbs are read as written, in the masculine where a language has one. Verbs that many can do to one thing ("visited", "praised") or for a time
// ("led", "owned") are none.
var soleVerbs = func() map[string]soleVerb {
	out := map[string]soleVerb{}
	add := func(v soleVerb, words string) {
		for w := range strings.FieldsSeq(words) {
			out[w] = v
		}
	}
	add(soleVerb{}, "built constructed erected invented discovered designed wrote composed authored sculpted coined murdered assassinated created")
	add(soleVerb{participle: true}, "written")
	add(soleVerb{founding: true}, "founded established")
	add(soleVerb{deal: true}, "acquired bought purchased")
	add(soleVerb{german: true}, "baute erbaute errichtete schrieb verfasste entdeckte entwarf erfand komponierte konstruierte ermordete")
	add(soleVerb{german: true, participle: true}, "gebaut erbaut errichtet geschrieben verfasst entdeckt entworfen erfunden komponiert konstruiert ermordet")
	add(soleVerb{german: true, founding: true}, "gründete")
	add(soleVerb{german: true, participle: true, founding: true}, "gegründet")
	add(soleVerb{german: true, deal: true}, "kaufte erwarb übernahm")
	add(soleVerb{german: true, participle: true, deal: true}, "gekauft erworben übernommen")
	add(soleVerb{}, "construisit bâtit érigea écrivit rédigea découvrit conçut dessina inventa composa sculpta assassina")
	add(soleVerb{participle: true}, "construit construite bâti bâtie érigé écrit écrite rédigé découvert découverte conçu conçue dessiné inventé composé sculpté assassiné")
	add(soleVerb{founding: true}, "fonda fundó")
	add(soleVerb{participle: true, founding: true}, "fondé fundado")
	add(soleVerb{deal: true}, "racheta acheta acquit compró adquirió")
	add(soleVerb{participle: true, deal: true}, "racheté acheté acquis acquise comprado adquirido")
	add(soleVerb{}, "construyó escribió redactó descubrió diseñó inventó compuso esculpió asesinó creó")
	add(soleVerb{participle: true}, "construido escrito escrita redactado descubierto descubierta diseñado inventado compuesto compuesta esculpido asesinado creado")
	return out
}()

func (t term) soleVerb() (v soleVerb, ok bool) {
	if t.kind != content || t.glyph {
		return v, false
	}
	if v, ok = soleVerbs[t.low]; !ok {
		v, ok = soleVerbs[masculine(t.low)]
	}
	return v, ok
}

// agent is who alone did something, by name.
type agent struct {
	verb          int // the term that says what was done
	kind          soleVerb
	from, to      int // bytes of the statement, with "by" and what describes the agent
	nameFrom      int // where the name begins
	by            string
	names         []string // its words in small letters, but for those that companies and offices have in common
	words         int
	organisation  bool
	public, ruler bool // an office or a prince has built what an architect or a firm builds
	singular      bool // it was done to one thing, beyond doubt
}

// with is the statement with another agent.
func (g agent) with(name string, c *claim) string {
	return c.text[:g.from] + g.by + name + c.text[g.to:]
}

// excuses reports whether both agents may have done it: they have a name in common or names that may be spellings of one, one is named in the other's
// statement, or they are of different kinds, such as an architect and a firm.
func (g agent) excuses(other *claim, o agent) bool {
	if g.organisation != o.organisation || g.public != o.public || g.ruler != o.ruler || (g.words > 1) != (o.words > 1) {
		return true
	}
	return other.has(func(t term) bool {
		return t.kind == content && slices.ContainsFunc(g.names, func(name string) bool {
			return t.low == name || t.stem == stem(name) || upperFirst(t.raw) && spellings(name, strings.TrimSuffix(t.low, "'s"))
		})
	})
}

// spellings reports whether two names may be spellings of one: what they do not have in common at the beginning and end is at most two letters.
func spellings(a, b string) bool {
	x, y := []rune(a), []rune(b)
	if len(x) < 5 || len(y) < 5 {
		return a == b
	}
	for len(x) > 0 && len(y) > 0 && x[0] == y[0] {
		x, y = x[1:], y[1:]
	}
	for len(x) > 0 && len(y) > 0 && x[len(x)-1] == y[len(y)-1] {
		x, y = x[:len(x)-1], y[:len(y)-1]
	}
	return len(x) <= 2 && len(y) <= 2
}

// agent reads who did it from a claim with one verb of what only one does: after "by", or as the subject. False where several did it or may have: to
// several things, to a part or a share of one, to a thing that is not told from others.
func (c *claim) agent() (g agent, ok bool) {
	g.verb = -1
	for i, t := range c.terms {
		last := i+1 == len(c.terms) || i+2 == len(c.terms) && c.terms[i+1].kind == stop
		if t.context || severalWords[t.low] || t.low == "mit" && last { // "gründete den Verein mit"
			return agent{}, false
		}
		if v, sole := t.soleVerb(); sole {
			if g.verb >= 0 {
				return agent{}, false
			}
			g.verb, g.kind = i, v
		}
	}
	if g.verb < 0 || slices.ContainsFunc(c.quantities, func(q measure.Quantity) bool { return q.Family == "ratio" || q.Start < c.terms[g.verb].start }) {
		return agent{}, false
	}
	if aux, by := c.passiveBy(g.verb, g.kind.german); by >= 0 {
		g.singular = true
		g.from, g.by = c.terms[by].start, strings.Replace(c.terms[by].low, "vom", "von", 1)+" "
		return g, c.definiteBefore(aux, g.kind) && g.name(c, by+1, c.terms[by].low == "vom")
	}
	return g, g.subject(c)
}

// severalWords say that there are others, or that it is about a part.
var severalWords = wordSet("also too including among amongst jointly together partly part parts piece pieces section sections segment segments some most many several various each every both half collectively independently " +
	"auch ebenfalls unter gemeinsam zusammen teils teilweise teil teile einige mehrere manche viele jeweils unabhängig " +
	"aussi également notamment ensemble conjointement partie parties plusieurs certains certaines entre chaque indépendamment " +
	"también además entre conjuntamente parte partes varios varias algunos algunas cada otros")

// passiveBy finds the verb "to be" of the past passive at term i, in the singular, and the word that leads to who did it; -1 if there is none, or are
// several.
func (c *claim) passiveBy(i int, german bool) (aux, by int) {
	aux = -1
	for k := i - 1; k >= 0 && aux < 0 && c.terms[k].kind != stop; k-- {
		low := c.terms[k].low
		switch {
		case german && low == "wurde", k == i-1 && singularPassive[low]:
			aux = k
		case k == i-1 && k > 0 && perfectPassive[c.terms[k-1].low+" "+low]:
			aux = k - 1
		}
	}
	if aux < 0 {
		return -1, -1
	}
	from, to := i+1, min(i+6, len(c.terms))
	if german {
		from, to = aux+1, i
	}
	by = -1
	for k := from; k < to && c.terms[k].kind != stop; k++ {
		switch {
		case !byWords[c.terms[k].low]:
		case german && c.terms[k-1].kind == content && k-1 > aux && leadsTo(c, k-2, aux):
			return -1, -1 // "nach Plänen von Otto Reiners"
		case by < 0:
			by = k
		case german:
			return -1, -1 // "von Otto Reiners von der Firma Brandt"
		}
	}
	return aux, by
}

// leadsTo reports whether a preposition stands at term k, after the verb "to be" at term aux: "auf Wunsch von".
func leadsTo(c *claim, k, aux int) bool { return k > aux && germanLeads[c.terms[k].low] }

var germanLeads = wordSet("auf nach im in zu zur zum mit aus unter")

var (
	singularPassive = wordSet("was fut fue")
	perfectPassive  = map[string]bool{"has been": true, "had been": true, "a été": true, "avait été": true, "ha sido": true, "había sido": true}
)

// definiteBefore reports whether the subject before the verb "to be" at term aux is one certain thing: it has a definite article or a name. A single word
// with the capital of a first word, or of a German noun, is a name where something was founded; else it may be a material.
func (c *claim) definiteBefore(aux int, kind soleVerb) bool {
	led := false // by a preposition: "In Rask, the bridge"
	for k := range aux {
		t := c.terms[k]
		switch {
		case t.kind == stop:
			led = false
		case t.source:
		case indefinite[t.low], words().is("dangling", t.low, t.low), t.kind == negation, t.kind == critical:
			return false
		case anyArticle(t):
			if !led || k > 0 && slices.ContainsFunc(c.dates, func(d measure.Date) bool { return d.Start >= c.terms[k-1].end && d.End <= t.start }) {
				return true // "In 1887 the newspaper"
			}
		case t.kind == function:
			led = true
		case led:
		default:
			next := c.terms[k+1]
			return upperFirst(t.raw) && (kind.founding || possessive(t) || !kind.german && next.kind == content && upperFirst(next.raw) && oneApart(c.text, t.end, next.start))
		}
	}
	return false
}

// subject reads the name before an active verb, and looks whether what was done was done to one certain thing.
func (g *agent) subject(c *claim) bool {
	i := g.verb
	if g.kind.participle {
		if g.kind.german || i == 0 || c.terms[i-1].low != "a" && c.terms[i-1].low != "ha" {
			return false
		}
		i-- // "a construit", "ha construido"
	}
	if i == 0 || g.verb+1 >= len(c.terms) || !g.name(c, 0, false) || g.words < 2 || !oneApart(c.text, g.to, c.terms[i].start) {
		return false
	}
	g.from = c.terms[0].start
	object := c.terms[g.verb+1]
	if !oneApart(c.text, c.terms[g.verb].end, object.start) || pluralArticles[object.low] || indefinite[object.low] {
		return false
	}
	if !anyArticle(object) {
		g.singular = upperFirst(object.raw) && !g.kind.german // a name
		return g.singular
	}
	last := none
	for k := g.verb + 2; k < len(c.terms) && c.terms[k].kind == content; k++ {
		last = c.terms[k]
	}
	g.singular = object.low != "die" // of one thing or of several
	return last.lexeme != none.lexeme && (g.kind.german || !pluralLooking(last.low))
}

func pluralLooking(low string) bool {
	return strings.HasSuffix(low, "s") && !strings.HasSuffix(low, "ss") && !strings.HasSuffix(low, "us") && !strings.HasSuffix(low, "is")
}

var pluralArticles = wordSet("les los las des their")

// name reads the name that begins at term first, with an article and what describes the agent before it: "the Danish astronomer Nils Harboe". A single
// word is one where nothing but "by" stands before it and it has not the ending of several ("by Romans"); in German any noun may be one.
func (g *agent) name(c *claim, first int, article bool) bool {
	described := false
	for k := first; k < len(c.terms) && (k == 0 || oneApart(c.text, c.terms[k-1].end, c.terms[k].start)) && k != g.verb; k++ {
		t := c.terms[k]
		reading := len(g.names) > 0 || g.words > 0
		switch {
		case !reading && !described && !article && anyArticle(t):
			if indefinite[t.low] {
				return false
			}
			article = true
		case t.kind == stop, t.kind == negation:
			return g.read(c, article, described)
		case upperFirst(t.raw):
			if !reading {
				g.nameFrom = t.start
			}
			if natural[t.low] {
				return false // "was built by Lake Orden"
			}
			g.words, g.to = g.words+1, t.end
			g.public, g.ruler = g.public || publicWords[t.low], g.ruler || rulers[t.low]
			if organised(t) {
				g.organisation = true
			} else {
				g.names = append(g.names, strings.TrimSuffix(t.low, "'s"))
			}
		case reading && nameParticles[t.low] && k+1 < len(c.terms) && upperFirst(c.terms[k+1].raw):
		case t.kind == content && !(reading && g.kind.german):
			g.names, g.words = nil, 0 // "Danish" of "Danish astronomer"
			g.organisation = g.organisation || organised(t)
			described = true
		default:
			return g.read(c, article, described)
		}
	}
	return g.read(c, article, described)
}

func (g *agent) read(c *claim, article, described bool) bool {
	if len(g.names) == 0 || g.words == 1 && (g.kind.german || article || described || strings.HasSuffix(g.names[0], "s")) {
		return false
	}
	rest := c.text[g.to:]
	if strings.HasPrefix(strings.TrimLeft(rest, " "), "&") || strings.IndexAny(rest, "/-'’") == 0 {
		return false
	}
	others := func(t term) bool { return joins(t.low) && t.kind != stop || withWords[t.low] }
	for i, t := range c.terms {
		if t.start < g.to {
			continue
		}
		return !others(t) && (t.low != "," || i+1 == len(c.terms) || !upperFirst(c.terms[i+1].raw) && !others(c.terms[i+1]))
	}
	return true
}

func upperFirst(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsUpper(r)
}

// oneApart reports whether a space or a hyphen, and nothing else, stands between two bytes of a text.
func oneApart(s string, from, to int) bool {
	if to != from+1 || from < 0 || to > len(s) {
		return false
	}
	return s[from] == ' ' || s[from] == '-'
}

// organised reports a word that companies and offices have in their names.
func organised(t term) bool {
	return words().is("general", t.low, t.stem) || words().is("company", t.low, t.stem) || companyWords[t.low]
}

var (
	companyWords = wordSet("holdings holding corporation corp inc ltd llc plc gmbh ag se sa spa council brothers partners sons navy army department society foundation trust studio studios works office construction engineering energy industries motors systems " +
		"büro gesellschaft verein stiftung amt stadt land konzern werke gebrüder bau energie bureau conseil fondation atelier ville frères oficina consejo fundación ciudad estudio hermanos")
	nameParticles = wordSet("von van de del der den la le of da di du dos")
	natural       = wordSet("lake river mount sea bay glacier road street harbour port act law decree order charter")
	publicWords   = wordSet("council city town county state government parliament ministry department army navy church parish stadt land amt ministerium kirche ville état ministère conseil ciudad gobierno ministerio consejo")
	rulers        = wordSet("king queen emperor empress pope bishop archbishop count countess duke duchess prince princess lord lady saint pharaoh sultan tsar caliph könig königin kaiser kaiserin papst bischof graf herzog fürst roi reine empereur pape évêque comte duc rey reina emperador papa obispo conde duque")
	withWords     = wordSet("with alongside mit samt avec con junto")
)
