package extractive

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/text"
)

// Cover is the engine's answer to a task, for whoever needs a map before there is one.
func Cover(task model.CoverageTask) model.CoverageReply { return cover(task) }

// cover puts each fact under the topic whose name shares most with its tags and words. Facts that no topic fits are gathered under
// the labels that they share most; what is left joins the nearest topic, or gets one by its own first tag.
func cover(task model.CoverageTask) model.CoverageReply {
	c := coverage{task: task, chosen: make([]model.TopicAssignment, len(task.Facts)), done: make([]bool, len(task.Facts))}
	for i, f := range task.Facts {
		c.chosen[i].Fact = f.N
		c.keys = append(c.keys, factKeys(f))
	}
	c.toExisting()
	c.toCommonTags()
	c.rest()
	return model.CoverageReply{Assignments: c.chosen}
}

type coverage struct {
	task   model.CoverageTask
	keys   []map[string]bool // of each fact
	chosen []model.TopicAssignment
	done   []bool
	labels []labels // of each fact
}

func factKeys(f model.CoverageFact) map[string]bool {
	keys := read(f.Statement).keys()
	for _, tag := range f.Tags {
		keys["tag "+strings.ToLower(tag)] = true
		for k := range read(tag).keys() {
			keys[k] = true
		}
	}
	return keys
}

func (c *coverage) toExisting() {
	names := make([]map[string]bool, len(c.task.Topics))
	for i, topic := range c.task.Topics {
		names[i] = read(topic.Name).keys()
		names[i]["tag "+strings.ToLower(topic.Name)] = true
	}
	for i := range c.task.Facts {
		best, most := -1, 0
		for j := range names {
			if n := sameKeys(c.keys[i], names[j]); n > most {
				best, most = j, n
			}
		}
		// A topic of several words is met when at least half of them are: "installation cost" is no topic for every cost.
		if best >= 0 && 2*most >= len(names[best])-1 {
			n := c.task.Topics[best].N
			c.chosen[i].Topic, c.done[i] = &n, true
		}
	}
}

// label is a name that a topic may get from a fact: one of its tags, or two neighbouring words of its statement.
type label struct {
	text string
	full bool // says enough by itself: several words, or the first tag that is no word of the statement and so the heading of a section
}

// labels are the names that a fact offers, by what they have in common with their inflections, the tags first.
type labels struct {
	order []string
	byKey map[string]label
}

func labelsOf(f model.CoverageFact, lang string) labels {
	out := labels{byKey: map[string]label{}}
	add := func(key, text string, full bool) {
		if _, ok := out.byKey[key]; !ok && key != "" && usable(text) && !vagueName(text) {
			out.order = append(out.order, key)
			out.byKey[key] = label{text: text, full: full || len(strings.Fields(text)) > 1}
		}
	}
	for i, tag := range f.Tags {
		if !NamesPerson(tag, f.Statement) { // who is told of is no topic
			add(labelKey(tag), tag, i == 0 && !strings.Contains(strings.ToLower(f.Statement), tag))
		}
	}
	if lang == "en" && language(f.Statement) == "en" { // elsewhere neighbours are as often a noun and its verb
		for _, phrase := range read(f.Statement).nounPhrases() {
			add(labelKey(phrase), strings.ToLower(phrase), true)
		}
	}
	return out
}

func labelKey(s string) string {
	var stems []string
	for _, w := range text.Words(s) {
		stems = append(stems, stem(w))
	}
	return strings.Join(stems, " ")
}

// nounPhrases are the texts of the neighbours of a claim.
func (c *claim) nounPhrases() []string {
	var out []string
	for i := range c.neighbours() {
		out = append(out, c.text[c.terms[i].start:c.terms[i+1].end])
	}
	return out
}

// neighbours yields the place of the first of each two neighbouring words of weight that do not look like verbs, adverbs or names.
func (c *claim) neighbours() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := 0; i+1 < len(c.terms); i++ {
			t, u := c.terms[i], c.terms[i+1]
			if t.chunk != u.chunk || u.start != t.end+1 || c.text[t.end] != ' ' || !t.nominal() || !u.nominal() || hyphenated(c.text, t.start, u.end) {
				continue
			}
			if !yield(i) {
				return
			}
		}
	}
}

// pairKey is what two neighbours have in common with their inflections.
func (c *claim) pairKey(i int) string { return c.terms[i].stem + " " + c.terms[i+1].stem }

func (t term) nominal() bool {
	if !t.core() || t.glyph || t.name || len(t.poles) > 0 {
		return false
	}
	if verb, _, _ := strings.Cut(t.low, " "); words().is("verb", t.low, t.stem) || words().is("verb", verb, verb) {
		return false // "receive", "make up"
	}
	return utf8.RuneCountInString(t.raw) > 2 && !strings.HasSuffix(t.low, "ed") && !strings.HasSuffix(t.low, "ly") && !strings.HasSuffix(t.low, "'s") && !irregularVerb(t.low) && !untold[t.low]
}

// hyphenated reports whether a hyphen joins the text to more on either side.
func hyphenated(s string, start, end int) bool {
	return start > 0 && s[start-1] == '-' || end < len(s) && s[end] == '-'
}

func irregularVerb(w string) bool { return irregular[w] != "" }

// toCommonTags makes new topics of labels that at least two of the remaining facts share, first those that say
// enough by themselves, of these the most common first, of equal ones the first that was given.
func (c *coverage) toCommonTags() {
	c.labels = make([]labels, len(c.task.Facts))
	for i, f := range c.task.Facts {
		c.labels[i] = labelsOf(f, language(c.task.Question))
	}
	for {
		count, names := map[string]int{}, map[string]label{}
		var order []string
		for i := range c.task.Facts {
			if c.done[i] {
				continue
			}
			for _, key := range c.labels[i].order {
				if count[key] == 0 {
					order = append(order, key)
					names[key] = c.labels[i].byKey[key]
				}
				count[key]++
			}
		}
		best, most := "", 0
		for _, key := range order {
			if len(c.task.Facts) >= 5 && 2*count[key] > len(c.task.Facts) {
				continue // what more than half of the facts are about is the thread's subject, not a topic of it
			}
			score := count[key]
			if names[key].full {
				score += len(c.task.Facts)
			}
			if count[key] >= 2 && score > most {
				best, most = key, score
			}
		}
		if best == "" {
			return
		}
		var of []int
		topic := names[best].text
		for i, f := range c.task.Facts {
			if _, ok := c.labels[i].byKey[best]; ok && !c.done[i] {
				of = append(of, i)
				if topic == names[best].text {
					topic = asWritten(f.Statement, topic)
				}
			}
		}
		for _, i := range of {
			c.name(i, topic)
		}
	}
}

// near is the cosine from which a fact without a topic joins the topic of another.
const near = 0.3

// rest gives each fact that has no topic yet that of the fact nearest to it, or one of its own.
func (c *coverage) rest() {
	if !slices.Contains(c.done, false) {
		return // so that no statement is embedded for nothing
	}
	vectors := make([][]float32, len(c.task.Facts))
	for i, f := range c.task.Facts {
		vectors[i] = vectorOf(f.Statement)
	}
	for i, f := range c.task.Facts {
		if c.done[i] {
			continue
		}
		best, most := -1, near
		for j := range c.task.Facts {
			if !c.done[j] {
				continue
			}
			if s := cosine(vectors[i], vectors[j]); s >= most {
				best, most = j, s
			}
		}
		if best >= 0 {
			c.chosen[i].Topic, c.chosen[i].NewTopic, c.done[i] = c.chosen[best].Topic, c.chosen[best].NewTopic, true
			continue
		}
		c.name(i, c.single(f, c.labels[i]))
	}
}

// single is the topic of a fact that shares none: one that a name of several words says, else what the question asks about and the fact speaks of,
// else one by its own words.
func (c *coverage) single(f model.CoverageFact, offered labels) string {
	for _, key := range offered.order {
		if text := offered.byKey[key].text; strings.Contains(text, " ") {
			return asWritten(f.Statement, text)
		}
	}
	question := c.task.Question
	spoken := tell(f.Statement, f.Tags)
	first := ""
	for _, a := range aspects(question) {
		last := a[len(a)-1]
		name := question[a[0].start:last.end]
		if language(question) != "de" && !slices.ContainsFunc(a, func(t term) bool { return t.name }) {
			name = strings.ToLower(name)
		}
		if !usable(name) || vagueName(name) {
			continue
		}
		if slices.ContainsFunc(a, func(t term) bool { return !t.light && spoken.speaksOf(t) }) {
			return name
		}
		if first == "" {
			first = name
		}
	}
	if own := ownTopic(f, offered); first == "" || !vagueName(own) {
		return asWritten(f.Statement, own)
	}
	return first
}

// vagueName reports whether a name says nothing without what it is of: its last word is vague, and in front of it stands nothing that says more. In
// French and Spanish names it is the first.
func vagueName(name string) bool {
	p := wordsOf(name)
	if len(p) == 0 {
		return true
	}
	first, last := p[0], p[len(p)-1]
	switch {
	case len(p) == 1:
		return vague(first.low)
	case documents[stem(last.low)], strings.HasSuffix(last.low, "artikel"), last.low == "releases" || last.low == "release":
		return true // "trade article"; "Halden Paper" and "heat source" are none
	}
	return !slices.ContainsFunc(p, func(w word) bool { return !vague(w.low) && !prepositions[w.low] && !determiners[w.low] })
}

// vague reports whether a word is no name of anything by itself.
func vague(w string) bool { return vagueBy(w, stem(w)) }

func (t term) vague() bool { return vagueBy(t.low, t.stem) }

func vagueBy(w, base string) bool {
	return vagueStems[base] || vagueWords[w] || documents[base] || strings.HasSuffix(w, "artikel")
}

var (
	documents  = stems(`article report newsletter website webpage blog interview communiqué rapport bulletin artículo informe boletín comunicado bericht meldung`)
	vagueStems = stems(`line layer start begin make date consortium version word number figure level value process part kind sort type way thing point amount run gain plan use case share lot unit item
		step stage room area side end top base body form group set list pair half third quarter gap mean total average maximum minimum range set scale size rate name head people person one lack
		today tomorrow yesterday year month week day hour minute second time period century decade country place world
		statement claim information sign watch note view question answer detail example reason result finding fact data evidence study survey source page`)
	vagueWords = wordSet(`now then more less most least healthier better worse higher lower larger smaller older newer faster slower cheaper earlier later further likely possible usual ordinary
		made goes went gives given takes taken says said means
		jahr jahre monat monate woche tag tage zeit linie linien schicht schichten beginn anfang anteil teil teile art arten wert werte zahl zahlen angabe angaben beispiel grund ergebnis heute jetzt
		unternehmen konsortium aussage studie untersuchung maßnahme maßnahmen vorjahr ende ziel plan pläne punkt punkte sache
		année années mois semaine jour jours temps ligne lignes couche couches début part partie type valeur chiffre chiffres exemple raison résultat maintenant aujourd'hui consortium mesure mesures étude
		año años mes meses semana día días tiempo línea líneas capa capas inicio parte tipo valor cifra cifras ejemplo razón resultado ahora hoy consorcio medida medidas estudio información ellos`)
)

// asWritten is a name with the capitals that it has inside a statement, "Rhea Dunn" or a German noun; at its beginning they tell nothing.
func asWritten(statement, name string) string {
	low := strings.ToLower(statement)
	if len(low) != len(statement) {
		return name // letters of another length: their places are not the same
	}
	for from := 0; ; {
		i := strings.Index(low[from:], name)
		if i < 0 {
			return name
		}
		start, end := from+i, from+i+len(name)
		before, _ := utf8.DecodeLastRuneInString(low[:start])
		after, _ := utf8.DecodeRuneInString(low[end:])
		if start > 0 && !unicode.IsLetter(before) && (end == len(low) || !unicode.IsLetter(after)) {
			return statement[start:end]
		}
		from = end
	}
}

// ownTopic names a topic after a fact alone: the first of its labels of several words, else its first tag, its first word of weight, its
// first words.
func ownTopic(f model.CoverageFact, offered labels) string {
	for _, key := range offered.order {
		if text := offered.byKey[key].text; strings.Contains(text, " ") {
			return text
		}
	}
	for _, tag := range f.Tags {
		if usable(tag) && !vagueName(tag) && !NamesPerson(tag, f.Statement) {
			return tag
		}
	}
	c := read(f.Statement)
	persons := strings.ToLower(strings.Join(slices.DeleteFunc(c.names(), func(name string) bool { return !NamesPerson(name, f.Statement) }), " "))
	for i, t := range c.terms {
		if strings.Contains(" "+persons+" ", " "+t.low+" ") {
			continue
		}
		if t.strong() && !t.glyph && utf8.RuneCountInString(t.raw) > 3 && !vague(t.low) {
			if name := c.compound(i); usable(name) {
				return name
			}
			return t.raw
		}
	}
	if runs := glyphRuns(f.Statement); len(runs) > 0 {
		return runs[0]
	}
	return text.Truncate(strings.Join(strings.Fields(f.Statement), " "), 40)
}

// compound is term i with what hyphens join to it, and with the noun that this tells apart: "solid-state car", and not "solid".
func (c *claim) compound(i int) string {
	start, end, joined := c.terms[i].start, c.terms[i].end, false
	for i++; i < len(c.terms); i++ {
		t := c.terms[i]
		between := ""
		if t.start >= end {
			between = c.text[end:t.start]
		}
		if between != "-" && (between != " " || !joined || !t.nominal()) {
			break
		}
		end = t.end
		if between == " " {
			break
		}
		joined = true
	}
	return c.text[start:end]
}

func usable(tag string) bool {
	return utf8.RuneCountInString(tag) >= 2 && utf8.RuneCountInString(tag) <= 60
}

func (c *coverage) name(i int, topic string) {
	c.chosen[i].NewTopic, c.done[i] = &topic, true
}
