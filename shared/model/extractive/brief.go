package extractive

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/measure"
	"github.com/factstream/factstream/shared/text"
)

// Limits of a brief: it is to be read.
const (
	maxFindings      = 24
	maxRelationships = 5
	maxGaps          = 3
	maxSide          = 250 // characters of each side of a dispute
)

// brief gives the undisputed facts as they are, those that say the same as one finding; the disputes, both sides quoted; what the
// question asks about and no fact speaks of; and the names that join facts.
func brief(task model.BriefTask) model.BriefReply {
	reply := model.BriefReply{Findings: []model.BriefSentence{}, Disputed: []model.BriefDisputeSentence{}, Gaps: []model.BriefSentence{}, Relationships: []model.BriefSentence{}}
	statements := map[int]string{}
	for _, f := range task.Facts {
		statements[f.N] = f.Statement
	}
	settled, _ := undisputed(task)
	p, within := phrasesFor(task.Question), containers(settled)
	reply.Findings = findings(settled, within, task.Related)
	for _, d := range task.Disputes {
		reply.Disputed = append(reply.Disputed, model.BriefDisputeSentence{Dispute: d.N, Text: fmt.Sprintf(p.disputed, Quoted(statements[d.A], maxSide), Quoted(statements[d.B], maxSide))})
	}
	facts := make([]told, len(task.Facts))
	for i, f := range task.Facts {
		facts[i] = tell(f.Statement, f.Tags)
	}
	if missing := uncovered(task.Question, facts); len(missing) > 0 {
		reply.Gaps = append(reply.Gaps, model.BriefSentence{Text: fmt.Sprintf(p.uncovered, strings.Join(missing, ", ")), Facts: []int{}})
	}
	reply.Relationships = relationships(task, settled, within, p)
	return reply
}

// findings gives each settled claim once: facts that say the same stand together, and what a longer statement has among its sentences is
// told there; so do those that tell of the same thing (see grouped).
func findings(settled []model.BriefFact, within []int, related [][2]int) []model.BriefSentence {
	out := []model.BriefSentence{}
	var claims []*claim // of out
	var sketches []sketch
	at := map[int]int{} // the place in out of the fact at a place in settled
next:
	for k, f := range settled {
		if within[k] >= 0 {
			continue
		}
		c := read(f.Statement)
		reported := c.reported()
		for i := range out {
			if !sketches[i].adds(reported) && same(claims[i], c) {
				out[i].Facts, at[k] = append(out[i].Facts, f.N), i
				continue next
			}
		}
		if len(out) < maxFindings {
			at[k] = len(out)
			out, claims = append(out, model.BriefSentence{Text: f.Statement, Facts: []int{f.N}}), append(claims, c)
			sketches = append(sketches, sketchOf(reported))
		}
	}
	for k, f := range settled {
		if within[k] < 0 {
			continue
		}
		if i, stated := at[within[k]]; stated {
			out[i].Facts = append(out[i].Facts, f.N)
		}
	}
	return grouped(out, related)
}

// grouped makes one finding of those that tell of the same thing: the one that says most, and after it those that add to it; what adds nothing
// is cited with it. It stands where the first of them stood, and cites all facts of all.
func grouped(found []model.BriefSentence, related [][2]int) []model.BriefSentence {
	if len(related) == 0 {
		return found
	}
	place := map[int]int{} // of a fact among the findings
	for i, f := range found {
		for _, n := range f.Facts {
			place[n] = i
		}
	}
	near := make([]map[int]bool, len(found))
	for _, pair := range related {
		a, knownA := place[pair[0]]
		b, knownB := place[pair[1]]
		if !knownA || !knownB || a == b {
			continue
		}
		for _, ends := range [][2]int{{a, b}, {b, a}} {
			if near[ends[0]] == nil {
				near[ends[0]] = map[int]bool{}
			}
			near[ends[0]][ends[1]] = true
		}
	}
	told := make([]bool, len(found))
	var out []model.BriefSentence
	for i := range found {
		if told[i] {
			continue
		}
		fullest := i
		for k := range found {
			if near[i][k] && !told[k] && fuller(found[k].Text, found[fullest].Text) {
				fullest = k
			}
		}
		one := model.BriefSentence{Text: found[fullest].Text, Facts: slices.Clone(found[fullest].Facts)}
		told[fullest] = true
		for k := range found {
			if !near[fullest][k] || told[k] {
				continue
			}
			text := one.Text
			if adds(found[k].Text, text) {
				if text = ended(text) + between(text) + found[k].Text; utf8.RuneCountInString(text) > maxJoined {
					continue
				}
			}
			one.Text, one.Facts, told[k] = text, append(one.Facts, found[k].Facts...), true
		}
		if out = append(out, one); !told[i] { // too long to be put behind it
			out, told[i] = append(out, found[i]), true
		}
	}
	return out
}

// fuller reports whether a statement says more than another: figures, dates and words of weight.
func fuller(a, b string) bool { return amount(a) > amount(b) }

func amount(s string) int {
	c := read(s)
	return len(c.keys()) + len(c.quantities) + len(c.dates)
}

// adds reports whether a statement has a word of weight, a figure or a date that another has not.
func adds(s, to string) bool {
	c, have := read(s), read(to)
	keys := have.keys()
	for k := range c.keys() {
		if !keys[k] {
			return true
		}
	}
	for _, q := range c.quantities {
		if !slices.ContainsFunc(have.quantities, func(other measure.Quantity) bool { return measure.Compare(q, other) == measure.Same }) {
			return true
		}
	}
	for _, d := range c.dates {
		if !slices.ContainsFunc(have.dates, func(other measure.Date) bool { return measure.CompareDates(d, other) == measure.Same }) {
			return true
		}
	}
	return false
}

// ended is a statement with a stop, so that another may follow.
func ended(s string) string {
	if last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(s, "\"”»」）)")); strings.ContainsRune(".。!！?？؟…।", last) {
		return s
	}
	if r, _ := utf8.DecodeLastRuneInString(s); spaceless(r) {
		return s + "。"
	}
	return s + "."
}

// containers gives for each fact the place of the longest statement that has this one's, whole sentences of it, -1 for none.
func containers(facts []model.BriefFact) []int {
	holder := map[string]int{} // of each run of sentences that is part of a statement
	for k, f := range facts {
		sentences := sentencesOf(f.Statement)
		for i, first := range sentences {
			for j, last := range sentences[i:] {
				if j+1 == len(sentences) {
					continue // the statement itself
				}
				run := f.Statement[first.Start:last.End]
				if old, taken := holder[run]; !taken || len(facts[old].Statement) < len(f.Statement) {
					holder[run] = k
				}
			}
		}
	}
	out := make([]int, len(facts))
	for k, f := range facts {
		out[k] = -1
		if in, ok := holder[strings.TrimSpace(f.Statement)]; ok {
			out[k] = in
		}
	}
	for k := range out { // the longest holds all that its parts hold
		for out[k] >= 0 && out[out[k]] >= 0 {
			out[k] = out[out[k]]
		}
	}
	return out
}

// Relevance says of each statement how much of the question it speaks of, from 0 to 1: the words that both have in any form, a date where
// the question is when, and a figure of the kind that it asks for. What few statements speak of counts more.
func Relevance(question string, statements []string) []float64 {
	asked := askedFor(question)
	wanted := map[form]bool{}
	for _, alternatives := range asked {
		for _, a := range alternatives {
			wanted[a] = true
		}
	}
	claims := make([]spokenOf, len(statements))
	for i, s := range statements {
		claims[i] = speaksOf(s, wanted)
	}
	out := make([]float64, len(statements))
	all := 0.0
	for _, alternatives := range asked {
		having := 0
		for _, c := range claims {
			having += c.any(alternatives)
		}
		if having == 0 {
			continue
		}
		weight := math.Log(1 + float64(len(statements))/float64(having))
		all += weight
		for i, c := range claims {
			out[i] += weight * float64(c.any(alternatives))
		}
	}
	for i := range out {
		if all > 0 {
			out[i] /= all
		}
	}
	return out
}

// form is what a statement and a question have in common where one speaks of what the other asks for.
type form struct {
	kind byte
	text string
}

const (
	formWord    byte = 'w' // the word, or a synonym
	formOpening byte = 'o' // the first letters of a long word, which other forms of it have too: "produce", "production"
	formFigure  byte = 'f' // the kind of a figure
	formDate    byte = 'd'
)

// askedFor lists what a question asks for, each as what may speak of it.
func askedFor(question string) [][]form {
	var out [][]form
	have := map[form]bool{}
	for _, t := range read(question).terms {
		var alternatives []form
		switch {
		case whens[t.low]:
			alternatives = []form{{kind: formDate}}
		case t.core() && (t.glyph || utf8.RuneCountInString(t.raw) > 2) && !questionWords[t.low]:
			alternatives = append(alternatives, form{formWord, t.key()})
			if start := t.opening(); start != "" {
				alternatives = append(alternatives, form{formOpening, start})
			}
			alternatives = append(alternatives, form{formFigure, figureOf(t)})
		default:
			continue
		}
		if !have[alternatives[0]] {
			have[alternatives[0]] = true
			out = append(out, alternatives)
		}
	}
	return out
}

var whens = wordSet("when wann quand cuándo quando")

// spokenOf is what a statement speaks of, of what is wanted.
type spokenOf map[form]bool

func (s spokenOf) any(alternatives []form) int {
	for _, a := range alternatives {
		if s[a] {
			return 1
		}
	}
	return 0
}

func speaksOf(statement string, wanted map[form]bool) spokenOf {
	c, out := read(statement), spokenOf{}
	add := func(f form) {
		if wanted[f] {
			out[f] = true
		}
	}
	for _, t := range c.terms {
		if t.kind == content {
			add(form{formWord, t.key()})
			if start := t.opening(); start != "" {
				add(form{formOpening, start})
			}
		}
	}
	if len(c.dates) > 0 {
		add(form{kind: formDate})
	}
	for _, quantities := range [][]measure.Quantity{c.quantities, c.asideQuantities} {
		for _, q := range quantities {
			for _, family := range kinds(q) {
				add(form{formFigure, family})
			}
		}
	}
	return out
}

// kinds are the names in measured of what a quantity tells.
func kinds(q measure.Quantity) []string {
	family, _, _ := strings.Cut(q.Family, ":")
	if strings.Contains(q.Family, "/") {
		return []string{family, "per"}
	}
	return []string{family}
}

// told is what a fact speaks of, by its statement and by its tags: what stands under a heading is about it and need not repeat it.
type told struct {
	keys, families map[string]bool
	text           string
}

func tell(statement string, tags []string) told {
	out := told{keys: map[string]bool{}, families: map[string]bool{}}
	all := strings.Builder{}
	for _, s := range append([]string{statement}, tags...) {
		c := read(s)
		for k := range c.keys() {
			out.keys[k] = true
		}
		for _, q := range c.quantities {
			for _, family := range kinds(q) {
				out.families[family] = true
			}
			all.WriteString(q.Family + "\n") // "energy/mass" speaks of energy
		}
		all.WriteString(strings.ToLower(s) + "\n")
	}
	out.text = all.String()
	return out
}

func (f told) speaksOf(t term) bool {
	return f.keys[t.key()] || strings.Contains(f.text, t.stem) || f.families[figureOf(t)]
}

// uncovered returns what the question asks about and no fact speaks of, disputed ones included.
func uncovered(question string, facts []told) []string {
	spoken := func(t term) bool { return slices.ContainsFunc(facts, func(f told) bool { return f.speaksOf(t) }) }
	var out []string
	lang := language(question) // in German nouns keep their capital
	for _, a := range aspects(question) {
		// What the head word says is said of "solid-state" too: of "solid-state batteries", no fact needs to repeat the second word. Of
		// "harbour costs", it is the harbour that is missing where all costs are those of the mill.
		missing := 0
		for missing < len(a) && !spoken(a[missing]) {
			missing++
		}
		if missing == 0 {
			continue
		}
		last := a[missing-1]
		if hyphenated(question, last.start, last.end) || missing < len(a) && adjectival(last.low) {
			continue // tells apart what is spoken of
		}
		name := question[a[0].start:last.end]
		if lang != "de" && !slices.ContainsFunc(a[:missing], func(t term) bool { return t.name }) {
			name = strings.ToLower(name)
		}
		if slices.Contains(out, name) {
			continue
		}
		if out = append(out, name); len(out) == maxGaps {
			break
		}
	}
	return out
}

// measured names the kind of figure that speaks of a quantity without its name: what costs 40 euros speaks of the cost. The words are
// stems.
var measured = func() map[string]string {
	out := map[string]string{}
	for family, line := range map[string]string{
		"money":       "cost costs price prices expense kosten preis preise prix coût coûts precio precios coste costes costo prezzo costi",
		"per":         "density densities efficiency dichte densité densidad speed rate",
		"mass":        "weight weights mass gewicht masse poids peso",
		"length":      "range length height width reichweite länge höhe breite autonomie longueur hauteur largeur autonomía longitud altura",
		"time":        "time duration lifetime dauer durée duración durata",
		"temperature": "temperature temperatures temperatur température temperatura",
		"ratio":       "share percentage anteil part proportion proporción porcentaje",
	} {
		for w := range wordSet(line) {
			out[stem(w)] = family
		}
	}
	return out
}()

// figureOf is the kind of figure that speaks of a word or, in German, of a compound with it: "Energiedichte". "" if there is none.
func figureOf(t term) string {
	if family := measured[t.stem]; family != "" {
		return family
	}
	for _, w := range measuredEndings {
		if strings.HasSuffix(t.stem, w) {
			return measured[w]
		}
	}
	return ""
}

// measuredEndings are the words of measured, in order, that a compound can end with.
var measuredEndings = slices.DeleteFunc(slices.Sorted(maps.Keys(measured)), func(w string) bool { return len(w) <= 4 })

// aspects are the things that a question asks about, each a noun with the words before it that say which, in their order. Verbs and
// words that ask for a kind of thing ("obstacles") are none: a fact that answers need not have them. Neither is the place or time that
// the question is about as a whole ("in Spain").
func aspects(question string) [][]term {
	c, lang := read(question), language(question)
	var out [][]term
	var run []term
	flush := func() {
		if n := len(run); n > 0 && !questionWords[run[n-1].low] {
			out = append(out, run)
		}
		run = nil
	}
	end := 0 // of what was passed that belongs to the run, such as the second half of "solid-state"
	for i, t := range c.terms {
		before := none
		if i > 0 {
			before = c.terms[i-1]
		}
		if t.start > 0 && question[t.start-1] == '-' && t.kind == content {
			end = t.end
			continue
		}
		joined := t.kind == content && t.end < len(question) && question[t.end] == '-' // to what tells the noun apart, whatever it is
		if !joined && !subjectMatter(t, before, lang, len(run) > 0) {
			flush()
			continue
		}
		if n := len(run); n > 0 && strings.TrimLeft(question[max(end, run[n-1].end):t.start], " ") != "" {
			flush()
		}
		run, end = append(run, t), t.end
	}
	flush()
	return out
}

func subjectMatter(t, before term, lang string, goesOn bool) bool {
	first, _ := utf8.DecodeRuneInString(t.raw)
	switch {
	case !t.strong() || t.glyph || len(t.poles) > 0 || utf8.RuneCountInString(t.raw) < 4:
		return false
	case questionWords[t.low] && lang != "en":
		return false
	case t.name && scopes[before.low]:
		return false
	case choosing[before.low] && words().is("general", t.low, t.stem):
		return false // "which companies" is answered by their names
	case lang == "de":
		return unicode.IsUpper(first) && before.low != "" // nouns have capitals
	case lang == "fr" || lang == "es":
		return goesOn || nounMarks[before.low]
	case before.kind == function && verbMarks[before.low]:
		return false
	}
	lex := words()
	return !strings.HasSuffix(t.low, "ed") && !strings.HasSuffix(t.low, "ly") && irregular[t.low] == "" && !lex.is("verb", t.low, t.stem)
}

var (
	choosing  = wordSet("which what welche welcher welches quel quelle quels quelles qué cuál cuáles quale quali")
	scopes    = wordSet("in en au aux à a within across im")
	nounMarks = wordSet("el la los las un una del de al le les l des du d au aux une en con por sobre sur avec par")
	verbMarks = wordSet("to will can could should would may might must they he she we you who")
)

// adjectival reports whether a word looks like an adjective, which alone names nothing.
func adjectival(low string) bool {
	for _, suffix := range []string{"al", "ive", "ic", "ous", "ary", "able", "ible", "ful", "less", "ish", "ern"} {
		if strings.HasSuffix(low, suffix) {
			return true
		}
	}
	return false
}

// questionWords ask, or name the kind of thing that is asked for, which no fact need say of itself.
var questionWords = wordSet(`which where whether would could should state status current really still known exist explain describe compare likely possible best main
	obstacle obstacles problem problems challenge challenges advantage advantages disadvantage disadvantages benefit benefits drawback drawbacks risk risks reason reasons
	cause causes effect effects impact impacts influence consequence consequences measure measures option options method methods factor factors role way ways difference differences
	alternative alternatives example examples fact facts evidence progress situation outlook future development developments trend trends
	welche welcher welches wieviel warum wann wohin hindernis hindernisse probleme vorteile nachteile risiken gründe ursachen folgen auswirkungen maßnahmen möglichkeiten methoden faktoren rolle unterschiede stand lage entwicklung
	quelle quelles quels comment pourquoi combien obstacles problèmes avantages inconvénients risques raisons causes effets conséquences mesures méthodes facteurs rôle différences état situation
	cómo cuáles cuándo cuánto dónde obstáculos problemas ventajas desventajas riesgos razones causas efectos consecuencias medidas métodos factores papel diferencias estado situación
	quanto quanta quantos quantas qual quais onde сколько какой какая какое какие каковы кто что где когда почему كم ماذا متى أين كيف لماذا ile jaki jaka jakie kiedy gdzie 얼마인가 무엇인가 언제 क्या कितना कितनी कितने कौन
	quale quali quando perché ostacoli problemi vantaggi rischi misure`)

// relationships names what several settled facts have in common: a proper name. It says no more than that. A name and its short form
// ("Halden Paper", "Halden") are told as one, by what all of them say.
func relationships(task model.BriefTask, settled []model.BriefFact, within []int, p phrasing) []model.BriefSentence {
	facts := map[string][]int{}
	var order []string
	asked := language(task.Question)
	for k, f := range settled {
		if within[k] >= 0 {
			continue // told with the longer one
		}
		for _, name := range named(f.Statement, asked) {
			if slices.Contains(facts[name], f.N) {
				continue
			}
			if facts[name] == nil {
				order = append(order, name)
			}
			facts[name] = append(facts[name], f.N)
		}
	}
	order = slices.DeleteFunc(order, func(long string) bool {
		for i := strings.LastIndexByte(long, ' '); i > 0; i = strings.LastIndexByte(long[:i], ' ') {
			if short := long[:i]; facts[short] != nil {
				facts[short] = inOrder(settled, facts[short], facts[long])
				return true
			}
		}
		return false
	})
	slices.SortStableFunc(order, func(a, b string) int { return len(facts[b]) - len(facts[a]) })
	out := []model.BriefSentence{}
	for _, name := range order {
		if len(facts[name]) >= 2 && len(out) < maxRelationships {
			out = append(out, model.BriefSentence{Text: fmt.Sprintf(p.shared, text.Truncate(name, 80)), Facts: facts[name]})
		}
	}
	return out
}

// inOrder are the numbers of both lists in the order of the facts.
func inOrder(settled []model.BriefFact, a, b []int) []int {
	var out []int
	for _, f := range settled {
		if slices.Contains(a, f.N) || slices.Contains(b, f.N) {
			out = append(out, f.N)
		}
	}
	return out
}

// named are the names in a statement that are names of somebody or something: no columns of a table, no abbreviation that a figure
// follows ("CI 0.90"), no word for people or things of a country ("Danish"), and in German, where every noun has a capital, only what
// has several words or looks like no noun.
func named(statement, asked string) []string {
	c := read(statement)
	if c.row() {
		return nil
	}
	german := asked == "de" || language(statement) == "de"
	return slices.DeleteFunc(c.names(), func(name string) bool {
		_, after, _ := strings.Cut(statement, name)
		next, _ := utf8.DecodeRuneInString(strings.TrimLeft(after, " "))
		short := name == strings.ToUpper(name)
		switch {
		case short && utf8.RuneCountInString(name) <= 4 && (unicode.IsDigit(next) || strings.ContainsRune("=<>≈~−-±", next)):
			return true
		case short || strings.ContainsFunc(name[1:], unicode.IsUpper) && !strings.ContainsAny(name, " -"):
			return false
		case german:
			return !strings.Contains(name, " ") || strings.HasPrefix(name, "Laut ")
		}
		return strings.HasPrefix(after, " ") && unicode.IsLower(next) && !strings.Contains(name, " ") &&
			(strings.HasSuffix(name, "ish") || strings.HasSuffix(name, "ese") || strings.HasSuffix(name, "ian"))
	})
}
