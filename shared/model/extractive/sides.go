package extractive

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/measure"
)

// Kept is an undisputed fact that the engine keeps out of its findings.
type Kept struct {
	Fact    int  // its number in the task
	Dispute int  // the number of the dispute that it speaks of; 0 if its side is disputed by a fact that is not in the task
	Adds    bool // it tells more of that dispute than the two sides, such as how both came about
}

// Withheld returns the undisputed facts of a task that the engine keeps out of its findings, in the order of the task: those that say what a
// side of an open dispute says, in the same words or in others, and those that cannot be read without it.
func Withheld(task model.BriefTask) []Kept {
	_, withheld := undisputed(task)
	return withheld
}

// undisputed are the facts that nothing is said against, and those that no dispute names and that would all the same state as settled what is
// not. A sentence that a fact leans on and that is the claim of a disputed one is left out of the fact, if it can be read without.
func undisputed(task model.BriefTask) (settled []model.BriefFact, withheld []Kept) {
	issue := issueOf(task)
	if len(issue.disputed) == 0 {
		return task.Facts, nil
	}
	for _, f := range task.Facts {
		if issue.disputed[f.N] {
			continue
		}
		statement, fact, readable := issue.without(f.Statement)
		if readable {
			var taken bool
			if fact, taken = issue.takesSide(statement); !taken {
				f.Statement = statement
				settled = append(settled, f)
				continue
			}
		}
		withheld = append(withheld, issue.kept(f, fact))
	}
	return settled, withheld
}

// kept says which dispute a fact that is kept out of the findings speaks of: one of the fact that it takes the side of, and of several the one
// whose two sides it has most in common with.
func (s issue) kept(f model.BriefFact, fact int) Kept {
	out, most := Kept{Fact: f.N}, -1
	keys := read(f.Statement).keys()
	for _, d := range s.disputes {
		if d.A != fact && d.B != fact {
			continue
		}
		a, b := s.statements[d.A], s.statements[d.B]
		if n := sameKeys(keys, read(a).keys()) + sameKeys(keys, read(b).keys()); n > most {
			most = n
			out.Dispute, out.Adds = d.N, adds(f.Statement, a) && adds(f.Statement, b) && adds(f.Statement, ended(a)+" "+b)
		}
	}
	return out
}

// issue is what the open disputes of a task are about.
type issue struct {
	disputed   map[int]bool // numbers of the facts that are sides
	statements map[int]string
	disputes   []model.BriefDispute
	sides      []side
	points     []point
}

// side is the statement of a disputed fact.
type side struct {
	fact   int
	text   string
	last   string // its last sentence, which is its claim
	vector []float32
}

// point is a clause of a side that a clause of the other side contradicts, and the figures and dates of it that the other has otherwise.
type point struct {
	fact       int
	claim      *claim
	quantities []measure.Quantity
	dates      []measure.Date
}

func issueOf(task model.BriefTask) issue {
	statements := map[int]string{}
	out := issue{disputed: map[int]bool{}, statements: statements, disputes: task.Disputes}
	for _, f := range task.Facts {
		statements[f.N] = f.Statement
		if f.Disputed {
			out.disputed[f.N] = true
		}
	}
	for _, d := range task.Disputes {
		out.disputed[d.A], out.disputed[d.B] = true, true
	}
	for _, f := range task.Facts {
		if !out.disputed[f.N] {
			continue
		}
		s := side{fact: f.N, text: f.Statement, vector: vectorOf(f.Statement)}
		if sentences := sentencesOf(f.Statement); len(sentences) > 0 {
			s.last = sentences[len(sentences)-1].Text
		}
		out.sides = append(out.sides, s)
	}
	for _, d := range task.Disputes {
		for _, a := range clausesOf(statements[d.A]) {
			for _, b := range clausesOf(statements[d.B]) {
				if compare(a, b).relation == model.Contradiction {
					out.points = append(out.points, pointOf(d.A, a, b), pointOf(d.B, b, a))
				}
			}
		}
	}
	return out
}

// clausesOf are the claims that a statement makes, each with what it goes on from: its clauses, or itself if it has one.
func clausesOf(statement string) []*claim {
	c := focus(statement)
	if c == nil {
		c = read(statement)
	}
	if clauses := c.clauses(); len(clauses) > 0 {
		return clauses
	}
	return []*claim{c}
}

func pointOf(fact int, c, against *claim) point {
	p := point{fact: fact, claim: c}
	for _, x := range c.quantities {
		if slices.ContainsFunc(against.quantities, func(y measure.Quantity) bool { return measure.Compare(x, y) == measure.Apart }) {
			p.quantities = append(p.quantities, x)
		}
	}
	for _, x := range c.dates {
		if slices.ContainsFunc(against.dates, func(y measure.Date) bool { return measure.CompareDates(x, y) == measure.Apart }) {
			p.dates = append(p.dates, x)
		}
	}
	return p
}

// without is a statement from the sentence on that follows the last one that is in dispute. It is not readable if nothing follows, or what
// follows leans on that one or concludes from it; then the number of the fact whose claim it is comes with it.
func (s issue) without(statement string) (rest string, fact int, readable bool) {
	sentences := sentencesOf(statement)
	keep := sentences
	for i, sentence := range sentences {
		k := slices.IndexFunc(s.sides, func(s side) bool {
			return s.last != "" && (strings.Contains(s.last, sentence.Text) || strings.Contains(sentence.Text, s.last))
		})
		if k >= 0 {
			keep, fact = sentences[i+1:], s.sides[k].fact
		}
	}
	switch {
	case len(keep) == len(sentences):
		return statement, 0, true
	case len(keep) == 0 || leaning(keep[0].Text, read(keep[0].Text)) == before || concludes(keep[0].Text):
		return "", fact, false
	}
	return statement[keep[0].Start:], fact, true
}

// takesSide reports whether a statement, or a clause of it, repeats or contradicts a side, or states in other words what is in dispute, and the
// number of the fact that is that side.
func (s issue) takesSide(statement string) (fact int, taken bool) {
	vector := vectorOf(statement)
	for _, side := range s.sides {
		if cosine(vector, side.vector) < Floor {
			continue
		}
		if relation, _ := judge(side.text, statement); relation != model.Distinct {
			return side.fact, true
		}
	}
	for _, clause := range clausesOf(statement) {
		if k := slices.IndexFunc(s.points, func(p point) bool { return p.statedBy(clause) }); k >= 0 {
			return s.points[k].fact, true
		}
	}
	return 0, false
}

// statedBy reports whether a clause makes the claim of the point: it repeats it, or has a figure or date of it that is in dispute and is
// about the same thing, as far as two words of weight that they share can tell. A row of a table hardly says what it is about: there, a
// figure with the unit is enough. Whoever speaks of the same but names somebody else makes a claim of his own.
func (p point) statedBy(c *claim) bool {
	figure := slices.ContainsFunc(c.quantities, func(x measure.Quantity) bool {
		return slices.ContainsFunc(p.quantities, func(y measure.Quantity) bool {
			return measure.Compare(x, y) == measure.Same && countSame(c, x, p.claim, y)
		})
	})
	date := slices.ContainsFunc(c.dates, func(x measure.Date) bool {
		return slices.ContainsFunc(p.dates, func(y measure.Date) bool { return measure.CompareDates(x, y) == measure.Same })
	})
	al := align(c, p.claim)
	switch {
	case al.ownWeight() < 2:
		return figure && c.row() && slices.ContainsFunc(p.quantities, func(q measure.Quantity) bool {
			return q.Family != measure.Count && q.Family != "ratio" && q.Family != "times"
		})
	case figure || date:
		return !otherNames(c, p.claim, al)
	}
	return compare(c, p.claim).relation == model.Duplicate
}

// ownWeight counts the words of weight that the first claim says itself and shares with the other.
func (al *alignment) ownWeight() int {
	n := 0
	for _, p := range al.pairs {
		if p.a.strong() && p.b.strong() && !p.a.context && !p.opposite && p.minusA+p.minusB == 0 {
			n++
		}
	}
	return n
}

// otherNames reports whether both claims name something and nothing that the first names is in the other.
func otherNames(c, other *claim, al *alignment) bool {
	named := slices.ContainsFunc(other.terms, func(t term) bool { return t.name }) || len(other.names()) > 0
	if !named {
		return false
	}
	someone := false
	subject := wordsOf(c.text).verb("en") == 1 // "Talmo plans": the capital of a first word tells nothing else
	for i, t := range c.terms {
		first, _ := utf8.DecodeRuneInString(t.raw)
		switch lead := i == 0 && t.start == 0 && t.core() && unicode.IsUpper(first) && (subject || len(c.terms) > 1 && c.terms[1].name); {
		case !t.name && !lead || t.kind != content:
		case al.indexA.paired(i):
			return false
		default:
			someone = true
		}
	}
	return someone
}
