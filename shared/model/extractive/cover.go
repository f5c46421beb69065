package extractive

import (
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
	full bool // says enough by itself: several words, or the first tag, which is the heading of a section where there is one
}

// labels are the names that a fact offers, by what they have in common with their inflections, the tags first.
type labels struct {
	order []string
	byKey map[string]label
}

func labelsOf(f model.CoverageFact, lang string) labels {
	out := labels{byKey: map[string]label{}}
	add := func(key, text string, full bool) {
		if _, ok := out.byKey[key]; !ok && key != "" && usable(text) {
			out.order = append(out.order, key)
			out.byKey[key] = label{text: text, full: full || len(strings.Fields(text)) > 1}
		}
	}
	for i, tag := range f.Tags {
		if !NamesPerson(tag, f.Statement) { // who is told of is no topic
			add(labelKey(tag), tag, i == 0)
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

// nounPhrases are pairs of neighbouring words of weight that do not look like verbs, adverbs or names.
func (c *claim) nounPhrases() []string {
	var out []string
	for i := 0; i+1 < len(c.terms); i++ {
		t, u := c.terms[i], c.terms[i+1]
		if t.chunk == u.chunk && t.nominal() && u.nominal() && c.text[t.end:u.start] == " " && !hyphenated(c.text, t.start, u.end) {
			out = append(out, c.text[t.start:u.end])
		}
	}
	return out
}

func (t term) nominal() bool {
	if verb, _, _ := strings.Cut(t.low, " "); words().is("verb", t.low, t.stem) || words().is("verb", verb, verb) {
		return false // "receive", "make up"
	}
	return t.core() && !t.glyph && !t.name && len(t.poles) == 0 && utf8.RuneCountInString(t.raw) > 2 && !strings.HasSuffix(t.low, "ed") && !strings.HasSuffix(t.low, "ly") && !strings.HasSuffix(t.low, "'s") && !irregularVerb(t.low) && !untold[t.low]
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
		c.name(i, asWritten(f.Statement, ownTopic(f, c.labels[i])))
	}
}

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
		if usable(tag) && !NamesPerson(tag, f.Statement) {
			return tag
		}
	}
	c := read(f.Statement)
	persons := strings.ToLower(strings.Join(slices.DeleteFunc(c.names(), func(name string) bool { return !NamesPerson(name, f.Statement) }), " "))
	for i, t := range c.terms {
		if strings.Contains(" "+persons+" ", " "+t.low+" ") {
			continue
		}
		if t.strong() && !t.glyph && utf8.RuneCountInString(t.raw) > 3 {
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
