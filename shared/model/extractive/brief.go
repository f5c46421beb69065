package extractive

import (
	"fmt"
	"maps"
	"math"
	"regexp"
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
	maxSides         = 560 // characters of both sides of a dispute: its sentence has room for 600
)

// brief gives the undisputed facts as they are, those that say the same as one finding; the disputes, both sides quoted; what the
// question asks about and no fact speaks of; and what facts name together.
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
		a, b := statements[d.A], statements[d.B]
		roomA := max(maxSides/2, maxSides-utf8.RuneCountInString(b)) // what the other does not need
		roomB := max(maxSides/2, maxSides-utf8.RuneCountInString(a))
		reply.Disputed = append(reply.Disputed, model.BriefDisputeSentence{Dispute: d.N, Text: fmt.Sprintf(p.disputed, quoteWhole(a, roomA), quoteWhole(b, roomB))})
	}
	facts := make([]told, len(task.Facts))
	for i, f := range task.Facts {
		facts[i] = tell(f.Statement, f.Tags)
	}
	if missing := uncovered(task.Question, facts); len(missing) > 0 {
		gap := fmt.Sprintf(p.uncovered, strings.Join(missing, ", "))
		if asked := whether(task.Question); asked != "" && p.whether != "" {
			gap = fmt.Sprintf(p.whether, asked) // of two that are compared, neither tells anything without the other
		}
		reply.Gaps = append(reply.Gaps, model.BriefSentence{Text: gap, Facts: []int{}})
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

// adds reports whether a statement has a noun or name, a figure or a date that another has not. Another form of a word, and a verb, which mostly only
// puts it otherwise, adds nothing.
func adds(s, to string) bool {
	c, have := read(s), read(to)
	keys := have.keys()
	lex := words()
	for _, t := range c.terms {
		if !t.strong() || keys[strings.ToLower(t.key())] || t.light || t.says || !t.name && (lex.is("verb", t.low, t.stem) || strings.HasSuffix(t.low, "ly")) {
			continue
		}
		if !slices.ContainsFunc(have.terms, func(u term) bool { return u.kind == content && kin(t.stem, u.stem) }) {
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

// Relevance says of each statement how much of the question it speaks of, from 0 to 1. What the question names counts most, its nouns before its
// verbs and adjectives, and more if few statements speak of it; then the kind of answer that it asks for: a date where it is when, a stage or a
// date where it is how close, a figure where it is how much, a name where it is who. Words that only ask count nothing. A kind without anything
// that the question names counts half: there are dates of other things. The tags of a statement, if there are any, speak for it as it does.
func Relevance(question string, statements []string, tags ...[]string) []float64 {
	asked := askedFor(question)
	wanted := map[form]bool{}
	for _, w := range asked {
		for _, f := range w.forms {
			wanted[f], wanted[form{kind: f.kind, text: anyOf}] = true, true
		}
	}
	claims := make([]spokenOf, len(statements))
	for i, s := range statements {
		claims[i] = spokenOf{}
		claims[i].hear(s, wanted)
		if i < len(tags) {
			for _, tag := range tags[i] {
				claims[i].hear(tag, wanted)
			}
		}
	}
	out := make([]float64, len(statements))
	kinds := make([]float64, len(statements))
	all := 0.0
	for _, w := range asked {
		having := 0
		for _, c := range claims {
			having += c.any(w.forms)
		}
		if having == 0 {
			continue
		}
		n := float64(len(statements))
		weight := w.weight * math.Log(1+n/max(float64(having), n/rare))
		all += weight
		of := out
		if w.kind {
			of = kinds
		}
		for i, c := range claims {
			of[i] += weight * float64(c.any(w.forms))
		}
	}
	for i := range out {
		if out[i] == 0 {
			kinds[i] /= 2
		}
		if out[i] += kinds[i]; all > 0 {
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
	formEnding  byte = 'e' // the last letters of a long word, which German compounds of it have too: "Produktion", "Serienproduktion"
	formJoined  byte = 'j' // two words that a hyphen or a space joins: "solid-state"
	formFigure  byte = 'f' // the kind of a figure, "" for any
	formDate    byte = 'd'
	formStage   byte = 's' // how far something has come
	formName    byte = 'n'

	anyOf = "*" // in what is wanted: some form of the kind
)

// How much what a question asks for counts.
const (
	rare        = 5.0 // what one in so many statements speaks of; what fewer do may as well be by chance, and counts no more
	nounWeight  = 1.0
	otherWeight = 0.5 // of verbs, adjectives, and of the head of a phrase alone
	kindWeight  = 1.0
)

// wish is something that a question asks for, by what may speak of it.
type wish struct {
	forms  []form
	weight float64
	kind   bool // a kind of answer, and nothing that the question names
}

// askedFor lists what a question asks for.
func askedFor(question string) []wish {
	var out []wish
	have := map[form]bool{}
	add := func(weight float64, kind bool, forms ...form) {
		if !have[forms[0]] {
			have[forms[0]] = true
			out = append(out, wish{forms, weight, kind})
		}
	}
	c := read(question)
	lang := language(question)
	nouns := map[int]bool{} // where they begin; not what only tells them apart
	for _, a := range aspects(question) {
		head := a[len(a)-1]
		if lang == "fr" || lang == "es" {
			head = a[0]
		}
		nouns[head.start] = !hyphenated(question, head.start, head.end)
	}
	degree := slices.ContainsFunc(c.terms, func(t term) bool { return degrees[t.low] })
	until := 0
	for i, t := range c.terms {
		next := none
		if i+1 < len(c.terms) {
			next = c.terms[i+1]
		}
		switch {
		case t.start < until:
			continue // the second half of what a hyphen joins
		case whens[t.low]:
			add(kindWeight, true, form{kind: formDate})
			continue
		case whos[t.low] || choosing[t.low] && words().is("general", next.low, next.stem):
			add(kindWeight, true, form{kind: formName})
			continue
		case amounts[t.low] && degree, quantifiers[t.low]:
			add(kindWeight, true, form{formFigure, ""})
			continue
		case nearness[t.low] && degree, stagesAsked[t.low] && !hyphenated(question, t.start, t.end):
			add(kindWeight, true, form{kind: formDate})
			add(kindWeight/2, true, form{kind: formStage})
			continue
		case asking[t.low]:
			continue
		case !t.core() || !t.glyph && utf8.RuneCountInString(t.raw) <= 2 || questionWords[t.low]:
			continue
		}
		weight := otherWeight
		if nouns[t.start] || t.name {
			weight = nounWeight
		}
		if t.end < len(question) && question[t.end] == '-' && next.start == t.end+1 {
			add(weight, false, form{formJoined, t.low + "-" + next.low})
			until = next.end
			continue
		}
		forms := []form{{formWord, t.key()}}
		if start := t.opening(); start != "" && !strings.Contains(t.raw, " ") {
			forms = append(forms, form{formOpening, start})
		}
		if family := figureOf(t); family != "" {
			forms = append(forms, form{formFigure, family})
		}
		add(weight, false, forms...)
		if at := strings.LastIndexByte(t.low, ' '); at > 0 { // "mass production": who speaks of production speaks of it too, if less
			head := stem(t.low[at+1:])
			add(otherWeight, false, form{formWord, keyOf(head)}, form{formWord, t.key()})
		} else if end := lastLetters(t); lang == "de" && end != "" {
			add(otherWeight, false, form{formEnding, end}, forms[0])
		}
	}
	return out
}

// keyOf is the key of a word by its stem, as a statement that has it alone is read.
func keyOf(w string) string {
	if c := read(w); len(c.terms) == 1 {
		return c.terms[0].key()
	}
	return w
}

// lastLetters are the last letters of a long word without those of its case and number.
func lastLetters(t term) string {
	if t.glyph || utf8.RuneCountInString(t.low) < 9 {
		return ""
	}
	r := []rune(strings.TrimRight(t.low, "ens"))
	return string(r[max(len(r)-7, 0):])
}

var (
	whens       = wordSet("when wann quand cuándo quando")
	whos        = wordSet("who whom whose wer wem wen wessen qui quién quiénes chi")
	quantifiers = wordSet("wieviel wieviele combien cuánto cuánta cuántos cuántas quanto quanti")
	// What begins a question for a degree, and the words for it of which the answer is a figure, or how far something has come.
	degrees     = wordSet("how wie quel cuán tan cómo qué")
	amounts     = wordSet("much many often viel viele hoch oft mucho muchos")
	nearness    = wordSet("close near far soon advanced ready mature imminent nah nahe weit bald fern reif fortgeschritten ausgereift proche proches près loin avancé avancée avancés avancées prêt prête prêts prêtes cerca lejos cercano cercana cercanos cercanas avanzado avanzada listo lista")
	stagesAsked = wordSet("status progress maturity readiness fortschritt stand reife reifegrad avancement progrès maturité progreso madurez")
	asking      = wordSet(`how what which where why wie was wo warum wieso weshalb welche welcher welches welchen welchem quel quelle quels quelles que quoi comment où pourquoi point
		cómo qué cuál cuáles dónde cuán tan à`)
	// Stages that things pass before there are many of them.
	stages = stems(`pilot prototype sample demonstrator trial series launch market commercial plan start begin announce
		prototyp muster erprobung serie markteinführung marktreif geplant beginn start angekündigt
		prototype échantillon pilote série lancement commercialisation annonce début prévoit
		prototipo muestra piloto serie lanzamiento comercial anuncio inicio prevé`)
)

// spokenOf is what a statement speaks of, of what is wanted.
type spokenOf map[form]bool

func (s spokenOf) any(forms []form) int {
	for _, f := range forms {
		if s[f] {
			return 1
		}
	}
	return 0
}

// hear adds what a text speaks of.
func (s spokenOf) hear(statement string, wanted map[form]bool) {
	c := read(statement)
	add := func(f form) {
		if wanted[f] {
			s[f] = true
		}
	}
	endings, joined := wanted[form{formEnding, anyOf}], wanted[form{formJoined, anyOf}]
	for i, t := range c.terms {
		if t.kind != content {
			continue
		}
		add(form{formWord, t.key()})
		if start := t.opening(); start != "" {
			add(form{formOpening, start})
		}
		if endings {
			if end := lastLetters(t); end != "" {
				add(form{formEnding, end})
			}
		}
		if joined && i+1 < len(c.terms) && c.terms[i+1].start == t.end+1 {
			add(form{formJoined, t.low + "-" + c.terms[i+1].low})
		}
		if t.name {
			add(form{kind: formName})
		}
		if stages[t.stem] || t.forecast {
			add(form{kind: formStage})
		}
	}
	if len(c.dates) > 0 {
		add(form{kind: formDate})
	}
	for _, quantities := range [][]measure.Quantity{c.quantities, c.asideQuantities} {
		for _, q := range quantities {
			add(form{formFigure, ""})
			for _, family := range kinds(q) {
				add(form{formFigure, family})
			}
		}
	}
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

// whether is what a question for yes or no compares, as a clause: of "Is tea healthier than coffee?" it is "whether tea is healthier than coffee". It is ""
// for any other question.
func whether(question string) string {
	q := strings.Trim(strings.Join(strings.Fields(question), " "), "¿?？ ")
	lang := language(question)
	for _, c := range comparing[lang] {
		if m := c.form.FindStringSubmatch(q); m != nil {
			parts := make([]any, 0, len(m))
			for _, part := range m[1:] {
				if first, _, _ := strings.Cut(part, " "); articleWords[strings.ToLower(first)] || definite[strings.ToLower(first)] || !strings.Contains(part, " ") && copulas[strings.ToLower(part)] {
					part = uncapital(part, true)
				}
				parts = append(parts, part)
			}
			return fmt.Sprintf(c.clause, parts...)
		}
	}
	return ""
}

type comparison struct {
	form   *regexp.Regexp
	clause string
}

// comparing are questions of a comparison, by language, and the clauses of what they ask.
var comparing = map[string][]comparison{
	"en": {{regexp.MustCompile(`(?i)^(is|are|was|were)\s+(.+?)\s+((?:(?:much|any|really|still|far)\s+)*(?:more|less|better|worse|\p{L}+er)\s(?:.*\s)?than\s.+)$`), "whether %[2]s %[1]s %[3]s"}},
	"de": {{regexp.MustCompile(`(?i)^(ist|sind|war|waren)\s+(.+\s\p{L}+er\p{L}*\s(?:.*\s)?als\s.+)$`), "ob %[2]s %[1]s"}},
	"fr": {
		{regexp.MustCompile(`(?i)^est-ce\s+qu(?:e\s+|['’])(.+\s(?:plus|moins|meilleure?s?|pires?)\s(?:.*\s)?qu(?:e\s|['’]).+)$`), "si %s"},
		{regexp.MustCompile(`(?i)^(.+?)\s+(est|sont|était|étaient)-(?:ils?|elles?)\s+((?:plus|moins|meilleure?s?|pires?)\s(?:.*\s)?qu(?:e\s|['’]).+)$`), "si %s %s %s"},
	},
	"es": {{regexp.MustCompile(`(?i)^(es|son|era|eran)\s+(.+?)\s+((?:más|menos|mejor|mejores|peor|peores)\s(?:.*\s)?que\s.+)$`), "si %[2]s %[1]s %[3]s"}},
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
		if i+1 < len(c.terms) && c.terms[i+1].low == "than" {
			flush()
			continue // "healthier than"
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
	case before.kind == function && verbMarks[before.low] && !(before.low == "to" && nounForm(t)):
		return false
	}
	lex := words()
	return !strings.HasSuffix(t.low, "ed") && !strings.HasSuffix(t.low, "ly") && irregular[t.low] == "" && !lex.is("verb", t.low, t.stem)
}

// nounForm reports whether a word can be no verb after "to": "to mass production".
func nounForm(t term) bool {
	if strings.Contains(t.low, " ") {
		return !words().is("verb", t.low, t.stem)
	}
	for _, suffix := range []string{"tion", "sion", "ment", "ness", "ity", "ism", "ship"} {
		if strings.HasSuffix(t.low, suffix) && irregular[t.low] == "" && !words().is("verb_noun", t.low, t.stem) {
			return true
		}
	}
	return false
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

// relationships joins two things that settled facts name together, if other facts name one of them as well. A name that several facts have joins
// nothing by itself. A name and its short form ("Halden Paper", "Halden") are one.
func relationships(task model.BriefTask, settled []model.BriefFact, within []int, p phrasing) []model.BriefSentence {
	namesOf := make([][]string, len(settled))
	facts := map[string][]int{}
	asked := language(task.Question)
	for k, f := range settled {
		if within[k] >= 0 {
			continue // told with the longer one
		}
		namesOf[k] = named(f.Statement, asked)
		for _, name := range namesOf[k] {
			if !slices.Contains(facts[name], f.N) {
				facts[name] = append(facts[name], f.N)
			}
		}
	}
	short := func(name string) string {
		for i := strings.IndexByte(name, ' '); i > 0; {
			if facts[name[:i]] != nil {
				return name[:i]
			}
			next := strings.IndexByte(name[i+1:], ' ')
			if next < 0 {
				break
			}
			i += 1 + next
		}
		return name
	}
	having, together := map[string][]int{}, map[[2]string][]int{}
	var order [][2]string
	for k, f := range settled {
		var names []string
		for _, name := range namesOf[k] {
			if name = short(name); !slices.Contains(names, name) {
				names = append(names, name)
				having[name] = append(having[name], f.N)
			}
		}
		for i, a := range names {
			for _, b := range names[i+1:] {
				pair := [2]string{a, b}
				if together[[2]string{b, a}] != nil {
					pair = [2]string{b, a}
				}
				if strings.Contains(a, b) || strings.Contains(b, a) {
					continue
				}
				if together[pair] == nil {
					order = append(order, pair)
				}
				together[pair] = append(together[pair], f.N)
			}
		}
	}
	slices.SortStableFunc(order, func(a, b [2]string) int { return len(together[b]) - len(together[a]) })
	out := []model.BriefSentence{}
	for _, pair := range order {
		a, b := pair[0], pair[1]
		if max(len(having[a]), len(having[b])) > 1 && len(out) < maxRelationships {
			out = append(out, model.BriefSentence{Text: fmt.Sprintf(p.shared, text.Truncate(a, 80), text.Truncate(b, 80)), Facts: together[pair]})
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
