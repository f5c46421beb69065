package extractive

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/factstream/factstream/shared/model"
)

// followUp is a question that the facts themselves raise.
type followUp struct {
	score            float64
	reason, question string
}

// How many follow-ups of each kind a plan has, so that one kind leaves room for the others.
const (
	maxLacking = 3
	maxOverdue = 2
	maxOld     = 1
	maxSole    = 2
	oldYears   = 3 // a figure whose page is so many years elder than what was found last
)

// followUps asks what the question wants and no fact speaks of; what facts tell of others and not of somebody or something that they name; whether
// what was announced has come about; whether an old figure still holds; and who else says what a single page states. Each names something of
// the facts or of the question, and of each kind the facts come first that speak most of the question; none is another one in other words. Answered says
// whether any fact speaks of the question: if none does, what else there is to know about them is no question of the thread.
func followUps(task model.QuestionsTask, p phrasing) (out []followUp, answered bool) {
	if len(task.Known) == 0 {
		return nil, true
	}
	root := quoteWhole(task.Root, maxRoot)
	facts := make([]told, len(task.Known))
	statements, tags := make([]string, len(task.Known)), make([][]string, len(task.Known))
	for i, f := range task.Known {
		facts[i], statements[i], tags[i] = tell(f.Statement, f.Tags), f.Statement, f.Tags
	}
	for _, name := range uncovered(task.Root, facts) {
		if questionWords[strings.ToLower(name)] {
			continue
		}
		out = append(out, followUp{0.65, p.reasonMissing, fmt.Sprintf(p.missing, root, Quoted(name, maxTopic))})
	}
	for _, l := range lacking(task, facts) {
		out = append(out, followUp{0.6, p.reasonLacking, fmt.Sprintf(p.lacking, root, Quoted(l.entity, maxTopic), Quoted(l.aspect, maxTopic))})
	}
	relevance := Relevance(task.Root, statements, tags...)
	order := make([]int, len(task.Known))
	for i := range order {
		order[i] = len(order) - 1 - i // the newest first
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(relevance[b], relevance[a]) })
	now := latest(task.Known)
	counts := map[string]int{}
	asked := alreadyAsked{pairs: task.Contradictions}
	for _, i := range order {
		f := task.Known[i]
		if relevance[i] == 0 {
			continue
		}
		answered = true
		if f.Disputed {
			continue
		}
		c := read(f.Statement)
		quoted := quoteWhole(f.Statement, maxQuoted)
		ask := func(kind string, most int, score float64, reason, question string) {
			if counts[kind] < most && !asked.about(f.Statement) {
				counts[kind]++
				asked.quoted = append(asked.quoted, f.Statement)
				out = append(out, followUp{score, reason, question})
			}
		}
		switch published, err := time.Parse(time.DateOnly, f.Published); {
		case overdue(c, now) && counts["overdue"] < maxOverdue:
			ask("overdue", maxOverdue, 0.58, p.reasonOverdue, fmt.Sprintf(p.overdue, quoted))
		case len(c.quantities) == 0 && len(c.dates) == 0:
		case err == nil && now.Year()-published.Year() >= oldYears && counts["old"] < maxOld:
			ask("old", maxOld, 0.48, p.reasonOld, fmt.Sprintf(p.old, quoted, f.Published))
		case f.Pages == 1 && counts["sole"] < maxSole:
			ask("sole", maxSole, 0.45, p.reasonSole, fmt.Sprintf(p.sole, quoted))
		}
	}
	return out, answered
}

// alreadyAsked is what a plan asks about: the two sides of each contradiction, and the statements that it quotes.
type alreadyAsked struct {
	pairs  []model.StatementPair
	sides  *issue // of the pairs, made when it is needed
	quoted []string
}

// about reports whether a question on a statement would be a question that is asked already in another form.
func (a *alreadyAsked) about(statement string) bool {
	for _, other := range a.quoted {
		if strings.Contains(other, statement) || strings.Contains(statement, other) {
			return true
		}
		if relation, _ := judge(other, statement); relation != model.Distinct {
			return true
		}
	}
	if len(a.pairs) == 0 {
		return false
	}
	if a.sides == nil {
		task := model.BriefTask{}
		for i, pair := range a.pairs {
			task.Facts = append(task.Facts, model.BriefFact{N: 2*i + 1, Statement: pair.A}, model.BriefFact{N: 2*i + 2, Statement: pair.B})
			task.Disputes = append(task.Disputes, model.BriefDispute{N: i + 1, A: 2*i + 1, B: 2*i + 2})
		}
		sides := issueOf(task)
		a.sides = &sides
	}
	rest, _, readable := a.sides.without(statement)
	if !readable || rest != statement {
		return true
	}
	_, taken := a.sides.takesSide(statement)
	return taken
}

// latest is the day on which a fact was found last. What is past is told by it, so that the same task always gives the same answer.
func latest(known []model.KnownFact) (day time.Time) {
	for _, f := range known {
		if at, err := time.Parse(time.DateOnly, f.Retrieved); err == nil && at.After(day) {
			day = at
		}
	}
	return day
}

// overdue reports whether a claim announces something for a year that is past.
func overdue(c *claim, now time.Time) bool {
	if !c.has(func(t term) bool { return t.forecast }) {
		return false
	}
	last := 0
	for _, d := range c.dates {
		last = max(last, d.Year)
	}
	return last > 0 && last < now.Year()
}

// lack is something that the question asks of what facts name, and that they tell of others only.
type lack struct{ entity, aspect string }

// lacking are the lacks of those that most facts name, one of each.
func lacking(task model.QuestionsTask, facts []told) []lack {
	asked := propertiesOf(task.Root)
	root := tell(task.Root, nil)
	entities := map[string][]int{}
	var order []string
	for i, f := range task.Known {
		for _, name := range named(f.Statement, language(task.Root)) {
			if root.tellsOf(name) || located(name, f.Statement) || NamesPerson(name, f.Statement) {
				continue
			}
			if entities[name] == nil {
				order = append(order, name)
			}
			if !slices.Contains(entities[name], i) {
				entities[name] = append(entities[name], i)
			}
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(len(entities[b]), len(entities[a])) })
	var out []lack
	var persons []string // who is one by any fact is one in all of them, and so is a part of the name
	for _, f := range task.Known {
		for _, name := range read(f.Statement).names() {
			if NamesPerson(name, f.Statement) || leads(name, f.Statement) {
				persons = append(persons, " "+name+" ")
			}
		}
	}
	order = slices.DeleteFunc(order, func(name string) bool {
		return slices.ContainsFunc(persons, func(person string) bool { return strings.Contains(person, " "+name+" ") })
	})
	for _, name := range order {
		for _, p := range asked {
			of := func(i int) bool { return facts[i].speaksOf(p.term) }
			others := 0
			for i := range facts {
				if of(i) && !slices.Contains(entities[name], i) && !facts[i].tellsOf(name) {
					others++
				}
			}
			if others > 0 && !slices.ContainsFunc(entities[name], of) && len(out) < maxLacking {
				out = append(out, lack{name, p.name})
				break
			}
		}
	}
	return out
}

// leads reports whether a name of two words does what mostly persons do. Companies may, so that this alone makes it no person where a topic is named;
// a question about what it costs is not asked of it.
func leads(name, statement string) bool {
	_, after, found := strings.Cut(statement, name+" ")
	p := wordsOf(after)
	return found && strings.Contains(name, " ") && len(p) > 0 && leading[p[0].low]
}

var leading = wordSet("founded founds leads heads wrote married gründete leitet leitete schrieb heiratete dirige dirigea fonda épousa fundó dirigió escribió")

// located reports whether a statement has a name only as the place where something is.
func located(name, statement string) bool {
	before, _, _ := strings.Cut(statement, name)
	p := wordsOf(before)
	return len(p) > 0 && !p[len(p)-1].ends && (scopes[p[len(p)-1].low] || places[p[len(p)-1].low])
}

var places = wordSet("at near off from to selon según laut bei nahe aus près cerca desde")

// tellsOf reports whether all words of a name are in what a fact speaks of.
func (f told) tellsOf(name string) bool { return strings.Contains(f.text, strings.ToLower(name)) }

// property is something that a question asks for of each of several things, with the words that it has for it.
type property struct {
	term term
	name string
}

// propertiesOf are the properties that a question asks for: "energy density", and "cost" where it asks what something costs.
func propertiesOf(question string) []property {
	var out []property
	phrases := aspects(question)
	for _, t := range read(question).terms {
		if t.kind != content || !measurable(t) || slices.ContainsFunc(out, func(p property) bool { return p.term.key() == t.key() }) {
			continue
		}
		name := t.raw
		for _, a := range phrases {
			if last := a[len(a)-1]; last.end == t.end {
				name = question[a[0].start:last.end]
			}
		}
		out = append(out, property{t, name})
	}
	return out
}

// measurable reports whether a word asks for a property that each of several things has ("cost", "energy density"): what they are all about
// ("cells") is none.
func measurable(t term) bool { return figureOf(t) != "" || properties[t.stem] }

var properties = stems(`capacity capacities production output size length height weight mass range power efficiency emissions safety durability owner owners revenue sales profit workers jobs lifetime yield
	kapazität produktion größe länge höhe gewicht masse reichweite leistung effizienz emissionen sicherheit haltbarkeit eigentümer umsatz absatz gewinn arbeitsplätze lebensdauer ertrag
	capacité production taille longueur hauteur poids masse autonomie puissance efficacité émissions sécurité durabilité propriétaire ventes emplois rendement
	capacidad producción tamaño longitud altura peso masa autonomía potencia eficiencia emisiones seguridad durabilidad propietario ventas empleos rendimiento`)

func stems(line string) map[string]bool {
	out := map[string]bool{}
	for w := range wordSet(line) {
		out[stem(w)] = true
	}
	return out
}

// specific reports whether a topic names something that the question does not ask about as a whole: "cells" of a question about cells, or a
// common word alone, would be asked about with the words of the question.
func specific(topic, root string) bool {
	c, said := read(topic), tell(root, nil)
	weight, own, marked := 0, 0, false
	for _, t := range c.terms {
		if t.kind != content {
			continue
		}
		weight++
		if !said.keys[t.key()] && !strings.Contains(said.text, t.stem) && !generalWord(t) {
			own++
		}
		short := utf8.RuneCountInString(t.raw) > 1 && t.raw == strings.ToUpper(t.raw) && strings.ToLower(t.raw) != t.raw
		marked = marked || t.name || short || strings.ContainsFunc(t.raw, unicode.IsDigit)
	}
	if vagueName(topic) {
		return false // "trade article"
	}
	glyphs := c.has(func(t term) bool { return t.glyph })
	return own > 0 && (weight > 1 || marked || glyphs)
}
