package extractive

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/measure"
	"github.com/factstream/factstream/shared/text"
)

// distill makes a fact of every sentence that cites a page of the task and states something, and of every claim of a sentence that joins
// several (see parts). The sentence is taken as it is, without its marks and without a connective at its beginning. One that leans on the
// sentence before ("It", "the company", "at the same time") gets the name that it stands for, where that is plain, and else that sentence
// before it; a row of a table gets the names of its columns; what begins a section and leans on nothing gets the section's heading. A
// fact names all the sentences it was made of, and the page that its own mark names.
func distill(task model.DistillTask) model.DistillReply {
	pages := map[int]model.Page{}
	for _, p := range task.Pages {
		pages[p.N] = p
	}
	r := readReport(task.Sentences)
	common := newSalience(task.Question, r.claims)
	reply := model.DistillReply{Facts: []model.DistillFact{}}
	for i := range task.Sentences {
		parts := r.parts(i)
		facts, ok := r.facts(i, parts, pages, common)
		if !ok && len(parts) > 1 {
			facts, _ = r.facts(i, r.undivided(i), pages, common)
		}
		reply.Facts = append(reply.Facts, facts...)
	}
	return reply
}

// facts makes the facts of sentence i, which is divided into parts. It is not ok if one of the cited parts states none.
func (r report) facts(i int, parts []part, pages map[int]model.Page, common salience) (facts []model.DistillFact, ok bool) {
	r, ok = r.with(i, parts), true
	for k, p := range parts {
		cited := citedPages(p.Numbered, pages)
		if len(cited) == 0 {
			continue
		}
		made, stated := r.statement(i + k)
		if !stated {
			ok = false
			continue
		}
		if p.titled || r.alike[i] || r.doubted(i+k) || bareMeasure(made.text, r.language) || bareMeasure(made.text, language(made.text)) || verbless(made.text, r.language) {
			made = r.attributed(i+k, made)
		}
		fact := model.DistillFact{Statement: made.text, Sentences: slices.Compact(made.from)}
		page := responsible(r.claims[i+k], cited)
		if page > 0 {
			fact.Page = &page
		}
		c := read(made.text)
		fact.Confidence = confidence(c, len(cited), page > 0, len(fact.Sentences) > 1)
		fact.Tags = r.sectionTags(i+k, common.tags(c), common)
		facts = append(facts, fact)
	}
	return facts, ok
}

// report is the sentences of a task, taken apart.
type report struct {
	sentences []model.Numbered // those that begin an item without its marks
	places    []place
	plain     []string // without Markdown and marks
	claims    []*claim
	language  string
	title     int          // index of the heading of the whole report, -1 if it has none
	alike     map[int]bool // sentences that only their heading tells from others, see twins
}

// made is the statement of a fact and the numbers of the sentences that it was made of, ascending.
type made struct {
	text string
	from []int
}

func readReport(sentences []model.Numbered) report {
	r := report{}
	for _, s := range sentences {
		var at place
		at, s.Text = placeOf(s)
		r.sentences, r.places = append(r.sentences, s), append(r.places, at)
		r.plain = append(r.plain, withoutMarkup(s.Text))
		r.claims = append(r.claims, read(r.plain[len(r.plain)-1]))
	}
	r.language = guessed(strings.Join(r.plain, "\n"))
	r.title = r.titleOf()
	r.alike = r.twins()
	return r
}

// statement makes sentence i readable without the others; ok is false if it states no fact or what it leans on is not there.
func (r report) statement(i int) (m made, ok bool) {
	switch fitness(r.sentences[i].Text, r.plain[i], r.claims[i]) {
	case unfit:
		if !r.unfinished(i) {
			return m, false
		}
	case row:
		return r.rowStatement(i)
	case fragment:
		if m, needed, ok := r.led(i); needed {
			return m, ok
		}
		if r.unfinished(i) || leaning(r.plain[i], r.claims[i]) == before {
			return r.joined(i, r.plain[i])
		}
		return r.underHeading(i, r.plain[i], false)
	case whole:
		if m, needed, ok := r.led(i); needed {
			return m, ok
		}
	}
	s := withoutLabel(r.plain[i])
	c := read(s)
	if r.unfinished(i) {
		return r.joined(i, s)
	}
	if len(c.terms) > 1 && c.terms[0].low == "note" && c.terms[1].low == "that" {
		s = capital(strings.TrimSpace(s[c.terms[1].end:]))
		if c = read(s); len(c.terms) == 0 {
			return m, false
		}
	}
	if concludes(s) {
		if m, ok = r.joined(i, s); ok {
			return m, true
		}
	}
	if s = withoutConnective(s); len(read(s).terms) == 0 {
		return m, false
	}
	c = read(s)
	alone := made{text: s, from: []int{r.sentences[i].N}}
	lean := leaning(s, c)
	if lean == standing && opensWithVerb(s, r.language, false) {
		lean = before // a language that leaves pronouns out
	}
	if lean == standing {
		return alone, true
	}
	if name, end := r.referent(i, c); name != "" {
		return made{text: name + s[end:], from: []int{r.sentences[r.previous(i)].N, r.sentences[i].N}}, true
	}
	if m, ok = r.renamed(i, s); ok && lean == inside {
		return m, true
	}
	if m, ok = r.joined(i, s); ok {
		return m, true
	}
	if lean == inside {
		return alone, true // "ten of these cells": readable, if less exact
	}
	if r.follows(i) {
		return m, false // what it leans on is there, and is not to be put before it
	}
	return r.underHeading(i, s, false)
}

// follows reports whether sentence i goes on from a sentence of running text.
func (r report) follows(i int) bool {
	k := r.previous(i)
	return k >= 0 && !block(r.sentences[k].Text) && len(r.claims[k].terms) > 0
}

// adjacent reports whether sentence i comes directly after the one before, or both are parts of one.
func (r report) adjacent(i int) bool {
	return r.sentences[i-1].N == r.sentences[i].N-1 || r.sentences[i-1].N == r.sentences[i].N
}

// unfinished reports whether the sentence before ends with an abbreviation after a number ("12 Mio."), so that it goes on in sentence i.
func (r report) unfinished(i int) bool {
	if !r.follows(i) || r.sentences[i-1].N == r.sentences[i].N || r.places[i].begins {
		return false
	}
	fields := strings.Fields(r.plain[i-1])
	if len(fields) < 2 || !unitAbbreviations[strings.ToLower(fields[len(fields)-1])] {
		return false
	}
	number := fields[len(fields)-2]
	return number[len(number)-1] >= '0' && number[len(number)-1] <= '9'
}

var unitAbbreviations = wordSet("mio. mrd. tsd. mill. mln. bn. mn. std. min. sek. jh. km. kg. approx.")

// referent returns the name that the first words of sentence i stand for ("Its", "The company"), and where these words end; "" if the
// sentence before does not begin with a name.
func (r report) referent(i int, c *claim) (name string, end int) {
	if !r.follows(i) || c.terms[0].end > len(c.text) {
		return "", 0
	}
	first := c.terms[0]
	possessive := first.low == "its" || first.low == "their"
	subject := first.low == "it" || first.low == "they"
	general := generalSubject(c)
	if !possessive && !subject && !general {
		return "", 0
	}
	if name = leadingName(r.plain[r.previous(i)]); name == "" || general && !fits(c.terms[1], name) {
		return "", 0
	}
	end = first.end
	if general {
		end = c.terms[1].end
	}
	if possessive {
		name += "'s"
	}
	return name, end
}

// fits reports whether a noun can stand for a name: "the institute" for one that has the word, "the company" for one that has no other
// such word. "The maker" or "the authority" may be somebody else than the name before.
func fits(noun term, name string) bool {
	lex, company := words(), words().is("company", noun.low, noun.stem)
	for _, w := range wordsOf(name) {
		switch stem := stem(w.low); {
		case w.low == noun.low || stem == noun.stem:
			return true
		case lex.is("general", w.low, stem) && !lex.is("company", w.low, stem) || lex.is("method", w.low, stem):
			company = false
		}
	}
	return company
}

// renamed puts what the sentence before is about for "these" in sentence i, where the noun is the same: "with these cells" after
// "Auralith's prototype cells reach ...".
func (r report) renamed(i int, s string) (m made, ok bool) {
	if !r.follows(i) {
		return m, false
	}
	k := r.previous(i)
	earlier, from := r.plain[k], []int{r.sentences[k].N, r.sentences[i].N}
	if name, end := r.referent(k, r.claims[k]); name != "" {
		earlier, from = name+earlier[end:], append([]int{r.sentences[r.previous(k)].N}, from...)
	}
	said := wordsOf(earlier)
	verb, fields := said.verb("en"), strings.Fields(earlier)
	if verb < 1 || verb > 5 || len(fields) != len(said) || pronouns[said[0].low] || possessives[said[0].low] || numerals[said[0].low] || said[0].number {
		return m, false
	}
	noun := said[verb-1].low
	subject, plain := bare(fields[:verb], said)
	if !plain || strings.ContainsAny(subject, ",;:()") {
		return m, false
	}
	if determiners[said[0].low] {
		subject = strings.ToLower(subject[:1]) + subject[1:]
	}
	for _, these := range []string{" these " + noun, " those " + noun} {
		before, after, found := strings.Cut(s, these)
		next, _ := utf8.DecodeRuneInString(after)
		if !found || unicode.IsLetter(next) || strings.Contains(after, " these ") {
			continue
		}
		m = made{text: before + " " + subject + after, from: from}
		return m, utf8.RuneCountInString(m.text) <= maxJoined
	}
	return m, false
}

// bare is a subject without what it says of the thing beside its name: of "Auralith's prototype cells" only "Auralith's cells", since what
// "these cells" are is not said by what they were once called. It is not plain if that is not to be told apart.
func bare(fields []string, said phrase) (subject string, plain bool) {
	last := len(fields) - 1
	for k := last - 1; k >= 0; k-- {
		if word := strings.TrimRight(fields[k], "’'"); len(word) < len(fields[k]) || strings.HasSuffix(word, "'s") || strings.HasSuffix(word, "’s") {
			return strings.Join(append(slices.Clone(fields[:k+1]), fields[last]), " "), true
		}
	}
	for k, word := range fields[:last] {
		first, _ := utf8.DecodeRuneInString(word)
		if !determiners[said[k].low] && !numerals[said[k].low] && !said[k].number && (k == 0 || !unicode.IsUpper(first)) {
			return "", false
		}
	}
	return strings.Join(fields, " "), true
}

// concludes reports whether a sentence follows from the one before, of which it is true only as far as that goes: "Assembly therefore
// needs dry air".
func concludes(s string) bool {
	p := wordsOf(s)
	for k := 0; k < len(p) && k < 8; k++ {
		if conclusions[p[k].low] {
			return true
		}
	}
	return len(p) > 2 && p[0].low == "for" && (p[1].low == "this" || p[1].low == "that") && p[2].low == "reason"
}

var conclusions = wordSet("therefore thus hence consequently accordingly daher deshalb deswegen somit folglich demnach donc ainsi")

// What a statement made of several sentences may have at most, so that it is still one claim to read.
const (
	maxBefore = 2   // sentences put before the one that cites
	maxDeixis = 3   // of those, if what the last of them is about is a word that stands for something else ("They")
	maxJoined = 600 // characters: what a fact has room for
)

// joined puts the sentence before in front of s, and the one before that if the first leans on it too.
func (r report) joined(i int, s string) (m made, ok bool) {
	m = made{text: s, from: []int{r.sentences[i].N}}
	general := false // what it begins with is about "the programme", which is as much as is told
	for at, n := i, 0; !ok && n < maxDeixis && r.follows(at); n++ {
		k := r.previous(at)
		if lead := r.lead(at); n > 0 && lead >= 0 {
			k = lead // what items in an item are about is said there, and not in the items between
		}
		earlier, from := r.plain[k], []int{r.sentences[k].N}
		name, end := r.referent(k, r.claims[k])
		if name != "" {
			earlier, from = name+earlier[end:], []int{r.sentences[r.previous(k)].N, r.sentences[k].N}
		}
		longer := earlier + between(earlier) + m.text
		if utf8.RuneCountInString(longer) > maxJoined {
			break
		}
		m = made{text: longer, from: append(from, m.from...)}
		stands := leaning(r.plain[k], r.claims[k]) != before && !opensWithVerb(r.plain[k], r.language, r.places[k].begins)
		general = !stands && generalSubject(r.claims[k])
		ok = name != "" || stands || n > 0 && asks(r.plain[k]) || n+1 >= maxBefore && general
		at = k
	}
	if ok = ok || general; ok {
		m.text = withoutConnective(withoutLabel(m.text))
	}
	return m, ok
}

// asks reports whether a sentence is a question, which names what the next one is about: "And the farmers?"
func asks(s string) bool {
	return strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？") || strings.HasSuffix(s, "؟")
}

// withoutConnective cuts off what joins a sentence to the one before it: "However, ". It leaves a text of nothing else as it is.
func withoutConnective(s string) string {
	c := read(s)
	if len(c.terms) < 2 {
		return s
	}
	first := c.terms[0]
	if !words().is("connective", first.low, first.low) || strings.Contains(first.low, " ") && !strings.HasPrefix(s[first.end:], ",") {
		return s
	}
	return capital(strings.TrimLeft(s[first.end:], " ,，"))
}

// between is what stands between two sentences: nothing in a script without spaces.
func between(s string) string {
	if last, _ := utf8.DecodeLastRuneInString(s); strings.ContainsRune("。！？", last) {
		return ""
	}
	return " "
}

// section is the heading of sentence i as a tag, "" if it has none or one that any report may have ("Overview").
func (r report) section(i int) string {
	h := r.heading(i)
	if h < 0 {
		return ""
	}
	return r.sectionOf(h)
}

// sectionOf is heading h as a tag.
func (r report) sectionOf(h int) string {
	if r.titled(h) {
		return ""
	}
	tag := strings.ToLower(strings.Trim(r.plain[h], " .:*"))
	generic := r.claims[h].has(func(t term) bool { return words().is("section", t.low, t.stem) })
	if n := utf8.RuneCountInString(tag); generic || n < 2 || n > maxSection || len(strings.Fields(tag)) > 4 {
		return ""
	}
	return tag
}

const maxSection = 30 // characters of a heading that names what a fact is about

// sectionTags puts the sections of sentence i first among the tags of its fact, the innermost before the one around it, in place of those that
// they say. Of a heading that is too long for a tag, what the question asks for becomes one.
func (r report) sectionTags(i int, tags []string, common salience) []string {
	path := r.path(i)
	for _, h := range path[max(len(path)-2, 0):] {
		if tag := r.sectionOf(h); tag != "" {
			tags = withSection(tags, tag)
			continue
		}
		if r.titled(h) {
			continue
		}
		for _, t := range r.claims[h].terms {
			if t.strong() && common.question[t.key()] && !slices.ContainsFunc(tags, func(tag string) bool { return strings.Contains(" "+tag+" ", " "+t.low+" ") }) {
				tags = append(tags[:min(len(tags), maxTags)], t.low)
			}
		}
	}
	return tags[:min(len(tags), maxTags+1)]
}

// withSection puts the section first among the tags, in place of those that it says.
func withSection(tags []string, section string) []string {
	if section == "" || slices.ContainsFunc(tags, func(t string) bool { return strings.Contains(" "+t+" ", " "+section+" ") }) {
		return tags
	}
	rest := slices.DeleteFunc(tags, func(t string) bool { return strings.Contains(" "+section+" ", " "+t+" ") })
	return append([]string{section}, rest...)
}

// attributed is a statement with the headings of sentence i before it, if it has any that say more.
func (r report) attributed(i int, m made) made {
	named, ok := r.underHeading(i, m.text, false)
	if !ok {
		return m
	}
	headings := named.from[:len(named.from)-1]
	return made{text: named.text, from: append(slices.Clone(headings), m.from...)}
}

// rowStatement writes a row of a table with the names of its columns, under the heading of the table.
func (r report) rowStatement(i int) (m made, ok bool) {
	head := i - 1
	for head >= 0 && block(r.sentences[head].Text) && headingMarks(strings.TrimSpace(r.sentences[head].Text)) == 0 {
		head--
	}
	if head < 0 || r.sentences[i].N-r.sentences[head].N != i-head {
		return m, false
	}
	columns, cells := tableCells(r.sentences[head].Text), tableCells(r.sentences[i].Text)
	if len(columns) < 2 || len(columns) != len(cells) {
		return m, false
	}
	var parts []string
	for k, cell := range cells {
		if cell != "" && columns[k] != "" {
			parts = append(parts, columns[k]+": "+cell)
		} else if cell != "" {
			parts = append(parts, cell)
		}
	}
	if len(parts) < 2 {
		return m, false
	}
	m = made{text: strings.Join(parts, "; "), from: []int{r.sentences[head].N, r.sentences[i].N}}
	if named, found := r.underHeading(head, m.text, false); found {
		m = made{text: named.text, from: append(named.from, r.sentences[i].N)}
	}
	return m, utf8.RuneCountInString(m.text) <= maxJoined
}

// withoutMarkup is a text without Markdown, marks, and the HTML that pages leave in reports.
func withoutMarkup(markdown string) string {
	s := text.StripMarkers(markdown)
	if !strings.Contains(s, "<") {
		return s
	}
	return strings.TrimSpace(tags.ReplaceAllString(scripts.ReplaceAllString(s, ""), ""))
}

// What is HTML: known elements only, since "<" is a sign of figures ("p < 0.05") too, and "<name>" may be meant.
var (
	scripts = regexp.MustCompile(`(?i)<(script|style)\b[^<>]*>[^<]*</(script|style)\s*>`)
	tags    = regexp.MustCompile(`(?i)</?(a|abbr|b|br|cite|code|div|em|font|h[1-6]|hr|i|iframe|img|li|mark|ol|p|script|small|span|strong|style|sub|sup|table|td|th|tr|u|ul)(\s[^<>]*)?/?>`)
)

func tableCells(markdown string) []string {
	t := strings.Trim(strings.TrimLeft(strings.TrimSpace(markdown), "# "), "| ")
	cells := strings.Split(t, "|")
	for k := range cells {
		cells[k] = withoutMarkup(cells[k])
	}
	return cells
}

func citedPages(s model.Numbered, pages map[int]model.Page) []model.Page {
	var out []model.Page
	for _, n := range s.Markers {
		if p, ok := pages[n]; ok {
			out = append(out, p)
		}
	}
	return out
}

// block reports whether a text is a heading or a row of a table, which are no sentences.
func block(markdown string) bool {
	t := strings.TrimSpace(markdown)
	return headingMarks(t) > 0 || strings.HasPrefix(t, "|") || strings.Contains(t, " | ")
}

const (
	minWords  = 4 // words, figures and dates of a sentence that says something
	minGlyphs = 5 // the same where single characters are counted
)

// fit says what a sentence can be made into.
type fit int

const (
	unfit    fit = iota // a heading, a question, an order, advice: no fact
	row                 // a row of a table
	fragment            // too short to say what it is about, but with a figure, a date or a name: "Price: 45 euros"
	whole               // a sentence
)

func fitness(markdown, plain string, c *claim) fit {
	lex := words()
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(plain, "\"”»」）)"))
	switch {
	case headingMarks(strings.TrimSpace(markdown)) > 0, strings.ContainsRune("?？؟:：", last), len(c.terms) == 0, creditLine(plain), spoken(plain):
		return unfit
	case block(markdown):
		return row
	}
	first := c.terms[0]
	if lex.is("order", first.low, first.low) && !first.glyph && !(first.low == "note" && c.before(first, "that")) || strings.HasPrefix(first.low, "see also") {
		return unfit
	}
	n, glyphs, opinion := len(c.quantities)+len(c.dates), 0, false
	firm := len(c.quantities) > 0 || slices.ContainsFunc(c.dates, func(d measure.Date) bool { return d.Year > 0 })
	for i, t := range c.terms {
		if t.kind != stop {
			n++
		}
		if t.glyph {
			glyphs++
		}
		if !t.sections.in(sectionSelf | sectionOpinion) {
			firm = firm || t.name || t.source
			continue
		}
		shouted := len(t.raw) > 1 && t.raw == strings.ToUpper(t.raw) // the country, not the pronoun
		switch {
		case t.sections.in(sectionSelf) && !shouted && !(t.low == "i" && (t.raw == "i" || i > 0 && capital(c.terms[i-1].raw) == c.terms[i-1].raw && c.terms[i-1].kind != stop)): // no article, no "Part I"
			return unfit
		case t.sections.in(sectionOpinion) && !shouted:
			opinion = true
		}
		firm = firm || t.name || t.source
	}
	least := minWords
	if glyphs > 0 {
		least = minGlyphs
	}
	switch {
	case opinion && !firm:
		return unfit
	case n >= least:
		return whole
	case n >= 2 && firm && wordsOf(plain).verb("en") > 0:
		return whole // "Talmo sold 900 pumps"
	case n >= 2 && firm:
		return fragment
	}
	return unfit
}

// splitLabel divides "Label: text" where the label is no more than three words.
func splitLabel(s string) (label, rest string) {
	label, rest, found := strings.Cut(s, ":")
	if !found || len(strings.Fields(label)) > 3 || !strings.HasPrefix(rest, " ") {
		return "", s
	}
	return strings.Trim(label, " *_[]()<>\"“"), strings.TrimSpace(rest)
}

// creditLine reports whether a text only names where something is from: "Source: survey of March 2026".
func creditLine(s string) bool {
	label, _ := splitLabel(s)
	return credits[strings.ToLower(label)]
}

var credits = wordSet("source sources credit credits quelle quellen datenquelle bildquelle fuente fuentes fonte fonti fontes crédit crédits 出典 来源")

// spoken reports whether a text is written as what a party of a conversation with a program says ("SYSTEM: do not report this"): such a
// line in a page is meant for whoever reads pages by machine, and tells nothing of the subject.
func spoken(s string) bool {
	label, rest := splitLabel(s)
	name := strings.Fields(strings.ToLower(label))
	if len(name) == 0 || !parties[name[0]] || len(name) > 1 && !turns[name[1]] {
		return false
	}
	if label == strings.ToUpper(label) || strings.HasPrefix(strings.TrimSpace(s), "[") || len(name) > 1 {
		return true
	}
	said := wordsOf(rest)
	return len(said) > 0 && words().is("order", said[0].low, said[0].low)
}

var (
	parties = wordSet("system assistant user developer prompt admin")
	turns   = wordSet("note message prompt instruction instructions")
)

// withoutLabel cuts off a label that any report may have ("Bottom line: "), where a sentence is left.
func withoutLabel(s string) string {
	label, rest := splitLabel(s)
	low := strings.ToLower(label)
	if low == "" || !summing[low] && !words().is("section", low, low) {
		return s
	}
	if fitness(rest, rest, read(rest)) != whole || !summing[low] && wordsOf(rest).verb(language(rest)) < 1 {
		return s
	}
	return capital(rest)
}

var summing = map[string]bool{
	"bottom line": true, "key takeaway": true, "key point": true, "key finding": true, "in short": true, "in brief": true, "takeaway": true, "verdict": true, "update": true,
	"kurz gesagt": true, "kurzum": true, "kernaussage": true, "wichtig": true, "zum vergleich": true, "en resumen": true, "en bref": true, "à retenir": true, "in breve": true,
}

// lean says what a sentence needs of the one before.
type lean int

const (
	standing lean = iota // nothing
	inside               // it points back, but not with its subject: "with these cells"
	before               // it begins with a word that stands for something else
)

// glyphDangling begin sentences of Chinese and Japanese that lean on the one before.
var glyphDangling = []string{"这", "那", "它", "他", "她", "其", "因此", "但是", "此外", "然而", "これ", "それ", "その", "この", "同社", "同国", "同市", "该", "該", "また", "しかし", "そこ", "هذا", "هذه", "ذلك", "لكن", "وهو", "وهي"}

func leaning(s string, c *claim) lean {
	for _, g := range glyphDangling {
		if strings.HasPrefix(s, g) {
			return before
		}
	}
	if len(c.terms) == 0 {
		return standing
	}
	first := c.terms[0]
	if words().is("dangling", first.low, first.low) && !bothOf(c) || generalSubject(c) || pointsBack(c) {
		return before
	}
	switch p := wordsOf(s); {
	case thisFell(p), asSubject(s, p), afterOpening(p):
		return before
	case c.has(func(t term) bool {
		return t.low == "these" || t.low == "those" && !c.before(t, "who", "that", "which", "of", "in", "with", "without", "on", "at", "from", "for", "under", "over", "above", "below", "aged", "given", "taking", "using", "not")
	}):
		return inside
	}
	return standing
}

// thisFell reports whether "this" alone is the subject near the beginning: "In the coldest week this fell to 2.4".
func thisFell(p phrase) bool {
	for k := 1; k+1 < len(p) && k < 6; k++ {
		if p[k].low == "this" && p[k-1].low != "that" && !p[k].ends && p[k+1].inflected() {
			return true
		}
	}
	return false
}

// asSubject reports whether an article or pronoun stands for what a sentence says something of ("Das sind 55 % mehr", "C'est le double"), or
// an outcome whose case only the sentence before tells ("The effect was seen", "Der Effekt war").
func asSubject(s string, p phrase) bool {
	if len(p) < 2 {
		return false
	}
	first, second := p[0].low, p[1].low
	if elided, rest, found := strings.Cut(strings.ReplaceAll(first, "’", "'"), "'"); found && elided == "c" {
		return copulas[rest]
	} else if found && elided == "l" {
		return outcomes[rest] && copulas[second]
	}
	for k := 1; k+1 < len(p) && k < 8; k++ {
		if p[k].low == "en" && pluralCopulas[p[k+1].low] { // "Les PME en sont dispensées"
			return true
		}
	}
	return (first == "das" || first == "c") && copulas[second] || len(p) > 2 && outcomes[second] && copulas[p[2].low] && definiteIn(language(s), first)
}

var (
	pluralCopulas = wordSet("sont ont étaient avaient seront auront")

	copulas = wordSet(`is are was were has had ist sind war waren wird wurde wurden hat hatte entspricht entsprach bedeutet ergibt heißt
		est sont était étaient a es son fue fueron era eran ha`)
	outcomes = wordSet(`effect effects difference differences result results finding findings increase decrease decline rise drop trend gap
		effekt wirkung unterschied ergebnis anstieg rückgang trend effet différence résultat hausse baisse efecto diferencia resultado aumento descenso`)
)

// afterOpening reports whether what a sentence is about is a word that stands for something else, behind an opening that does not name it:
// "With eight threads, it drops to 52 s", "De esa cantidad, 60 millones".
func afterOpening(p phrase) bool {
	if len(p) < 4 || !openings[p[0].low] {
		return false
	}
	if pointing[p[1].low] && !timeSpans[p[2].low] {
		return true
	}
	for k := 1; k+1 < len(p) && k < 8; k++ {
		if p[k].ends {
			return subjects[p[k+1].low]
		}
		if first, _ := utf8.DecodeRuneInString(p[k].raw); unicode.IsUpper(first) {
			return false // may be its name
		}
	}
	return false
}

var (
	openings = wordSet(`with without at in on of by under after before for from during since until through mit ohne bei in an auf von aus nach vor für unter seit durch
		de du des à dans en avec sans par pour sous depuis con sin por para desde tras`)
	pointing  = wordSet(`this diesem diesen dieser dieses cette cet ces ese esa esos esas este esta estos estas questo questa questi queste`)
	timeSpans = wordSet(`year month week decade century day time report jahr monat woche jahrzehnt jahrhundert tag bericht année mois semaine siècle année rapport año mes semana siglo década informe anno mese`)
	subjects  = wordSet(`it they he she`)
)

// bothOf reports whether a claim begins with "both X and Y", which names the two.
func bothOf(c *claim) bool {
	return c.terms[0].low == "both" && slices.ContainsFunc(c.terms[:min(len(c.terms), 6)], func(t term) bool { return t.low == "and" })
}

// before reports whether one of the words stands directly after term t.
func (c *claim) before(t term, next ...string) bool {
	i := slices.IndexFunc(c.terms, func(u term) bool { return u.start == t.start })
	return i+1 < len(c.terms) && slices.Contains(next, c.terms[i+1].low)
}

// generalSubject reports whether a claim begins with "the company" or another noun for a name that was given before.
func generalSubject(c *claim) bool {
	return len(c.terms) > 1 && words().is("general", c.terms[1].low, c.terms[1].stem) && definiteIn(language(c.text), c.terms[0].low) && !c.before(c.terms[1], "of", "that", "which", "von", "de", "du", "del", "des", "der") && !c.terms[1].name && !possessive(c.terms[1]) && !c.owns(c.terms[1]) && !c.placed(c.terms[1])
}

// owns reports whether a term is a plural with the apostrophe of a possessor: "the manufacturers' brochures".
func (c *claim) owns(t term) bool {
	return strings.HasSuffix(t.low, "s") && (strings.HasPrefix(c.text[t.end:], "'") || strings.HasPrefix(c.text[t.end:], "’"))
}

// placed reports whether a place follows a term, so that it tells which one is meant: "the plant in Moss".
func (c *claim) placed(t term) bool {
	i := slices.IndexFunc(c.terms, func(u term) bool { return u.start == t.start })
	return i+2 < len(c.terms) && (c.terms[i+1].low == "in" || c.terms[i+1].low == "at" || c.terms[i+1].low == "near") && c.terms[i+2].name
}

var definite = wordSet("the der die das le la les l el los las il lo i gli o a os as")

// definiteIn reports whether a word is a definite article. English has one; "a" and "as" are articles of others.
func definiteIn(language, word string) bool {
	return definite[word] && (language != "en" || word == "the")
}

// pointsBack reports whether a time ("since then"), "the same" or "such" near the beginning names something that only the sentence before tells ("the same
// laboratory needed 18 minutes"). "The same ... as" tells it itself.
func pointsBack(c *claim) bool {
	if c.has(func(t term) bool { return words().is("then", t.low, t.stem) }) && len(c.dates) == 0 {
		return true // "18,400 trees have been felled since then"
	}
	for i, t := range c.terms[:min(len(c.terms), 6)] {
		if t.low == "such" || t.low == "same" {
			return !slices.ContainsFunc(c.terms[i:], func(u term) bool { return u.low == "as" })
		}
	}
	return false
}

// leadingName returns the proper name that a sentence begins with: two or more capitalised words. One word alone may be any word, and
// of two names joined by "and" neither stands for both.
func leadingName(s string) string {
	var name []string
	for _, w := range strings.Fields(s) {
		r, _ := utf8.DecodeRuneInString(w)
		if w == "and" || w == "or" || w == "&" || w == "und" || w == "et" || w == "y" {
			return ""
		}
		if !unicode.IsUpper(r) || len(name) == 0 && articleWords[strings.ToLower(w)] || strings.HasSuffix(w, "'s") || strings.HasSuffix(w, "’s") {
			break
		}
		name = append(name, strings.TrimRight(w, ",;"))
		if strings.HasSuffix(w, ",") {
			break
		}
	}
	if len(name) < 2 || words().is("stop", strings.ToLower(name[0]), "") {
		return ""
	}
	return strings.Join(name, " ")
}

// capital begins a text with a capital, unless its first word is written with one inside: iPhone, mRNA.
func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if first, _, _ := strings.Cut(s, " "); strings.ContainsFunc(first[min(n, len(first)):], unicode.IsUpper) {
		return s
	}
	return string(unicode.ToUpper(r)) + s[n:]
}

// responsible returns the one page that clearly carries the claim: the only one cited, or the one whose title, summary and claims share
// at least two words more with it than those of any other. 0 if there is none.
func responsible(c *claim, cited []model.Page) int {
	if len(cited) == 1 {
		return cited[0].N
	}
	keys := c.keys()
	best, first, second := 0, 0, 0
	for _, p := range cited {
		shared := sameKeys(keys, read(strings.Join(append([]string{p.Title, p.Summary}, p.Claims...), ". ")).keys())
		switch {
		case shared > first:
			best, first, second = p.N, shared, first
		case shared > second:
			second = shared
		}
	}
	if first-second < 2 {
		return 0
	}
	return best
}

// confidence states how much there is to check a statement by. It starts at 0.5; one page that carries it adds 0.15, a second page
// that is cited too 0.05, a figure 0.1, a date 0.05, a name 0.05; a hedge, a forecast, more than 300 characters, a word that points
// elsewhere and stands alone ("these", "the same"), more than one sentence that it was made of, and a row of a table take 0.05 to 0.2 each. The result lies within 0.2..0.9.
func confidence(c *claim, cited int, page, resolved bool) float64 {
	tenths := 50
	add := func(when bool, n int) {
		if when {
			tenths += n
		}
	}
	add(page, 15)
	add(cited > 1, 5)
	add(len(c.quantities) > 0, 10)
	add(len(c.dates) > 0, 5)
	add(c.has(func(t term) bool { return t.name }), 5)
	add(c.has(func(t term) bool { return t.hedge }), -10)
	add(c.has(func(t term) bool { return t.forecast }), -5)
	add(len(c.text) > 300, -10)
	add(!resolved && c.has(func(t term) bool { return t.low == "these" || t.low == "those" || t.low == "same" || t.low == "latter" }), -10)
	add(resolved, -5)
	add(c.row(), -20)
	return float64(min(max(tenths, 20), 90)) / 100
}

// salience knows which words a report and its question are about.
type salience struct {
	question map[string]bool
	seen     map[string]int    // sentences that have the word
	shown    map[string]string // the word as the report first has it
	phrases  map[string]int    // sentences that have two neighbouring nouns, by pairKey
}

func newSalience(question string, claims []*claim) salience {
	s := salience{question: read(question).keys(), seen: map[string]int{}, shown: map[string]string{}, phrases: map[string]int{}}
	for _, c := range claims {
		if language(c.text) == "en" {
			for i := range c.neighbours() {
				s.phrases[c.pairKey(i)]++
			}
		}
		for k := range c.keys() {
			s.seen[k]++
		}
		for _, t := range c.terms {
			if s.shown[t.key()] == "" {
				s.shown[t.key()] = strings.TrimSuffix(strings.TrimSuffix(t.low, "'s"), "’s")
			}
		}
	}
	return s
}

const maxTags = 4

// tags are the names in a claim, then its words that the question or other sentences have too, the most frequent first; of a claim
// that has none of these, its first word of weight.
func (s salience) tags(c *claim) []string {
	type tag struct {
		text  string
		score int
	}
	var tags []tag
	add := func(text string, score int) {
		text = strings.ToLower(strings.Trim(text, " .,'’"))
		covered := func(t tag) bool { return strings.Contains(" "+t.text+" ", " "+text+" ") }
		if n := utf8.RuneCountInString(text); n < 2 || n > 40 || slices.ContainsFunc(tags, covered) || !strings.Contains(text, " ") && vague(text) {
			return
		}
		tags = append(tags, tag{text, score})
	}
	if !c.row() { // there, capitals begin the names of columns
		for _, name := range c.names() {
			add(name, 1000)
		}
	}
	german := language(c.text) == "de"
	for _, run := range glyphRuns(c.text) {
		add(run, 100)
	}
	if language(c.text) == "en" && !c.row() { // elsewhere neighbours are as often a noun and its verb; "pilot line" rather than "pilot" and "lines", where more than one sentence has it
		for i := range c.neighbours() {
			t, u := c.terms[i], c.terms[i+1]
			n := s.phrases[c.pairKey(i)]
			if n < 2 || vagueName(c.text[t.start:u.end]) {
				continue
			}
			if s.question[t.key()] || s.question[u.key()] {
				n += 20
			}
			add(c.text[t.start:u.end], n+1)
		}
	}
	first, opened := "", false
	for _, t := range c.terms {
		if !opened && t.strong() && t.vague() {
			opened = true // what it is about is no tag, and what is said of it even less
		}
		if !t.strong() || t.name || t.glyph || len(t.poles) > 0 || utf8.RuneCountInString(t.raw) < 4 || strings.HasSuffix(t.low, "ed") || strings.HasSuffix(t.low, "ly") || irregular[t.low] != "" || untold[t.low] || t.vague() || words().is("verb", t.low, t.stem) {
			continue
		}
		if initial, _ := utf8.DecodeRuneInString(t.raw); german && !unicode.IsUpper(initial) {
			continue // no noun
		}
		score := s.seen[t.key()]
		if s.question[t.key()] {
			score += 20
		}
		if !opened {
			first, opened = t.low, true
		}
		if score >= 2 {
			if shown := s.shown[t.key()]; !vague(shown) {
				add(shown, score)
			}
		}
	}
	if len(tags) == 0 {
		add(first, 0)
	}
	slices.SortStableFunc(tags, func(a, b tag) int { return cmp.Compare(b.score, a.score) })
	out := []string{}
	for _, t := range tags[:min(len(tags), maxTags)] {
		out = append(out, t.text)
	}
	return out
}

// untold are words that tell nothing of a subject and that the lexicon does not pass over, since a statement is not the same without.
var untold = wordSet("allerdings since made read says speaks needs drops now then entre meisten höchstens mindestens cerca depuis selon según laut")

// names are the proper names of a claim as they are written, neighbours joined ("Nordvik Institute", "St. Mary's Hospital", "MEMO-2").
func (c *claim) names() []string {
	var out []string
	last, start := -2, 0
	for i, t := range c.terms {
		r, _ := utf8.DecodeRuneInString(t.raw)
		lead := i == 0 && unicode.IsUpper(r) && t.kind == content && !definite[t.low] && len(c.terms) > 1 && c.terms[1].name // "Nordvik Institute measured"
		if !t.name && !lead || t.glyph || t.kind != content {
			continue
		}
		if last != i-1 || len(out) == 0 {
			out, start = append(out, ""), t.start
		}
		out[len(out)-1] = withoutGenitive(c.text[start : t.end+numbering(c.text[t.end:])])
		last = i
	}
	return out
}

// numbering is the length of what numbers a name: "-2" of "MEMO-2".
func numbering(after string) int {
	if len(after) < 2 || after[0] != '-' || after[1] < '0' || after[1] > '9' {
		return 0
	}
	n := 1
	for n < len(after) && (after[n] >= '0' && after[n] <= '9' || after[n] >= 'A' && after[n] <= 'Z') {
		n++
	}
	return n
}

func withoutGenitive(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, "'s"), "’s")
}

// glyphRuns are the runs of two to eight Han or of three or more Katakana characters, which are mostly nouns.
func glyphRuns(s string) []string {
	var out []string
	run := []rune{}
	flush := func() {
		if n := len(run); n >= 2 && n <= 8 {
			out = append(out, string(run))
		}
		run = run[:0]
	}
	script := func(r rune) int {
		switch {
		case unicode.Is(unicode.Han, r):
			return 1
		case unicode.Is(unicode.Katakana, r) || r == 'ー':
			return 2
		}
		return 0
	}
	last := 0
	for _, r := range s {
		if k := script(r); k != last {
			flush()
			last = k
		}
		if last != 0 {
			run = append(run, r)
		}
	}
	flush()
	return out
}
