package extractive

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/factstream/factstream/shared/model/measure"
)

// claim is a statement, or one clause of it, taken apart for comparison.
type claim struct {
	text       string
	terms      []term
	quantities []measure.Quantity
	dates      []measure.Date
	planned    bool // a forecast or plan

	// What only leads to the claim: figures of its source ("a study with 600 children") and figures and dates of remarks in passing
	// (", which was built in 2021,"). They say nothing of what is claimed, but a duplicate has the same.
	asideQuantities []measure.Quantity
	asideDates      []measure.Date
	context         []measure.Quantity // figures of the sentences or clauses before, for one that leans on them
	leansOn         []*claim
}

// term is one word, or a phrase of the lexicon, outside of quantities and dates, as it stands in a claim. Terms are compared pair by pair,
// each with each of another claim, so that what they are is small: what is known of the word is shared by all claims that have the term.
type term struct {
	*lexeme
	start, end int
	chunk      int // words with nothing but words of content between them share a number
	kind       termKind
	source     bool // part of "according to X" or "X estimates that"
	aside      bool // part of a remark in passing: ", which was built in 2021,"
	context    bool // of the sentence or clause before: may be what this one speaks of
}

// lexeme is what a term says wherever the claim is used. It does not change once the claim is read.
type lexeme struct {
	raw       string
	low, stem string
	concepts  []string
	poles     []pole
	sections  sections // of the word as it is written alone
	weak      bool     // carries little: may differ where all else is the same
	glyph     bool     // characters of a script without spaces
	name      bool     // a proper name, as far as capitals tell
	forecast  bool
	hedge     bool
	event     bool   // what happens once: its year is part of what is claimed
	contrast  bool   // tells cases apart ("adults", "winter", "average")
	says      bool   // a verb of saying or estimating
	light     bool   // may differ where two sources state a figure of one thing: verbs of having and doing, words of measuring
	guess     bool   // a verb or noun of estimating
	method    bool   // a noun of measuring and reporting: "test", "survey"
	role      string // the preposition before it, "" if it is none that gives a direction or place of its own
	passive   bool
}

// none is the term that is not there: before the first.
var none = term{lexeme: &lexeme{}}

type termKind uint8

const (
	content  termKind = iota
	function          // articles, prepositions, auxiliaries
	negation
	critical // "all", "only", "some": never left out of a duplicate
	stop     // punctuation that ends a clause
)

// strong reports whether the term says what the statement is about.
func (t term) strong() bool { return t.kind == content && !t.weak }

// core reports whether the term must have a partner in a statement of the same subject: it is strong and no mere way of putting it.
func (t term) core() bool { return t.strong() && !t.light && !t.source && !t.aside && !t.context }

// read takes a statement apart. Every pair that a statement is in reads it, and brief and coverage do again, so what was read lately is
// remembered. Its terms and figures are shared by all who read it and must not be changed: lean takes terms of its own, and who wants to
// change more takes a clone.
func read(text string) *claim {
	c, ok := lately.find(text)
	if !ok {
		c = parse(text)
		lately.keep(text, c)
	}
	own := *c
	return &own
}

func parse(text string) *claim {
	c := &claim{text: text}
	c.quantities, c.dates = measure.Find(text)
	c.terms = terms(text, c.quantities, c.dates)
	c.markSources()
	c.markAsides()
	c.setApart()
	c.planned = c.has(term.foretells)
	return c
}

// clone is the claim for a caller that changes its terms, and what is known of their words: both are its own.
func (c *claim) clone() *claim {
	own := *c
	own.terms = slices.Clone(c.terms)
	lexemes := make([]lexeme, len(own.terms))
	for i, t := range own.terms {
		lexemes[i] = *t.lexeme
		own.terms[i].lexeme = &lexemes[i]
	}
	return &own
}

// setApart moves the figures of sources and the figures and dates of remarks in passing to where they are no claims.
func (c *claim) setApart() {
	if !c.has(func(t term) bool { return t.source || t.aside }) {
		return
	}
	within := func(start int, of func(term) bool) bool {
		before, after := false, true
		for _, t := range c.terms {
			if t.end <= start {
				before = of(t) && (t.aside || t.kind != content) // "a study of 40", not "according to the agency 40"

			} else if t.start >= start {
				after = of(t) || t.kind == stop
				break
			}
		}
		return before && after
	}
	var quantities []measure.Quantity
	for _, q := range c.quantities {
		if within(q.Start, func(t term) bool { return t.source || t.aside }) {
			c.asideQuantities = append(c.asideQuantities, q)
			continue
		}
		quantities = append(quantities, q)
	}
	var dates []measure.Date
	for _, d := range c.dates {
		if within(d.Start, func(t term) bool { return t.aside }) {
			c.asideDates = append(c.asideDates, d)
			continue
		}
		dates = append(dates, d)
	}
	c.quantities, c.dates = quantities, dates
}

func (t term) foretells() bool { return t.forecast && t.kind != negation }

// clauses cuts a claim at semicolons and conjunctions into claims that are compared one by one; a claim of one clause gives none.
func (c *claim) clauses() []*claim {
	if c.row() {
		return nil
	}
	var cuts []int
	for i, t := range c.terms {
		if i < 2 || i > len(c.terms)-3 || t.context || c.terms[i+1].context {
			continue
		}
		after := c.terms[i+1]
		switch {
		case t.low == ";" || t.low == ":" || t.low == "." || t.low == "。":
			cuts = append(cuts, t.end)
		case t.kind == stop && (clauseWords[after.low]):
			cuts = append(cuts, after.end)
		case t.low == "and" && after.low == "to", t.low == "while", t.low == "whereas", t.low == "während", t.low == "tandis":
			cuts = append(cuts, t.end)
		case t.low == "and" && c.verbAt(i+1):
			cuts = append(cuts, t.end)
		}
	}
	if len(cuts) == 0 {
		return nil
	}
	var out []*claim
	start := 0
	for _, end := range append(cuts, len(c.text)) {
		if part := c.part(start, end); len(part.terms) > 0 {
			// "expects to open ... and to begin ...": a clause without a subject goes on with the verb before.
			if n := len(out); n > 0 && (part.terms[0].low == "to" || part.verbAt(0)) {
				part.planned = part.planned || out[n-1].planned
			}
			if len(out) > 0 {
				part.lean(out[len(out)-1])
			}
			for _, before := range c.leansOn {
				part.lean(before)
			}
			out = append(out, part)
		}
		start = end
	}
	return out
}

// lean gives a clause or sentence the words and figures of the one before: it may speak of them.
func (c *claim) lean(before *claim) {
	c.leansOn = append(c.leansOn, before)
	c.terms = append(make([]term, 0, len(c.terms)+1+len(before.terms)), c.terms...) // others read them too
	for i := range c.terms {
		if c.terms[i].low == "same" || c.terms[i].low == "such" {
			c.terms[i].kind = function // it points to what is given here
		}
	}
	if len(c.terms) > 0 {
		end := c.terms[len(c.terms)-1].end
		c.terms = append(c.terms, term{lexeme: fullStop, start: end, end: end, kind: stop, context: true})
	}
	for _, t := range before.terms {
		if t.kind == content && !t.says {
			t.context = true
			c.terms = append(c.terms, t)
		}
	}
	c.context = append(append(c.context, before.quantities...), before.context...)
}

var fullStop = &lexeme{low: "."}

// row reports whether a statement is a row of a table ("Model: X2; Mass: 18 kg"): all its cells together say what it is about.
func (c *claim) row() bool {
	parts := strings.Split(c.text, "; ")
	return len(parts) > 1 && !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(p, ": ") })
}

var clauseWords = map[string]bool{"and": true, "but": true, "which": true, "und": true, "aber": true, "mais": true, "et": true, "pero": true, "y": true, "ma": true, "e": true}

// verbAt guesses whether a verb in the past or with -s stands at i, so that "and" joins two predicates, not two things.
func (c *claim) verbAt(i int) bool {
	low := c.terms[i].low
	if c.terms[i].says || c.terms[i].light && c.terms[i].kind == content && i+1 < len(c.terms) && low == "found" {
		return true
	}
	return strings.HasSuffix(low, "ed") && len(low) > 4 && i+1 < len(c.terms) && c.terms[i+1].kind != stop || low == "is" || low == "was" || low == "are" || low == "were" || low == "has"
}

// part is the claim of the bytes start to end.
func (c *claim) part(start, end int) *claim {
	p := &claim{text: c.text}
	for _, t := range c.terms {
		if !t.context && t.start >= start && t.end <= end {
			p.terms = append(p.terms, t)
		}
	}
	for _, q := range c.quantities {
		if q.Start >= start && q.End <= end {
			p.quantities = append(p.quantities, q)
		}
	}
	for _, d := range c.dates {
		if d.Start >= start && d.End <= end {
			p.dates = append(p.dates, d)
		}
	}
	for _, q := range c.asideQuantities {
		if q.Start >= start && q.End <= end {
			p.asideQuantities = append(p.asideQuantities, q)
		}
	}
	p.planned = p.has(term.foretells)
	return p
}

// has reports whether any term satisfies f.
func (c *claim) has(f func(term) bool) bool {
	for _, t := range c.terms {
		if f(t) {
			return true
		}
	}
	return false
}

// terms cuts the text around quantities and dates into terms. Phrases of the lexicon become one term.
func terms(text string, quantities []measure.Quantity, dates []measure.Date) []term {
	taken := spans(quantities, dates)
	var raw []term
	for i := 0; i < len(text); {
		if end := taken(i); end > i {
			i = end
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		j := i + n
		switch {
		case spaceless(r):
			for j < len(text) && taken(j) == 0 {
				next, m := utf8.DecodeRuneInString(text[j:])
				if !spaceless(next) {
					break
				}
				j += m
			}
			raw = glyphTerms(raw, text[i:j], i)
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			j = wordEnd(text, j, taken)
			raw = wordTerms(raw, text[i:j], i)
		case r == '.' && len(raw) > 0 && raw[len(raw)-1].end == i && abbreviated(raw[len(raw)-1].raw): // "St. Alban", "J. Roe"
		case strings.ContainsRune(",;:.!?()\"“”«»—–。、，；：（）؛،", r):
			raw = append(raw, term{lexeme: &lexeme{raw: text[i:j], low: text[i:j]}, start: i, end: j, kind: stop})
		}
		i = j
	}
	list := describe(phrases(raw))
	chunk := 0
	for i := range list {
		if list[i].kind != content || i > 0 && taken(list[i-1].end) > 0 || i > 0 && list[i-1].end+1 < list[i].start && taken(list[i-1].end+1) > 0 {
			chunk++
		}
		list[i].chunk = chunk
		if list[i].kind != content {
			chunk++
		}
	}
	return list
}

// abbreviated reports whether a word before a full stop looks like an abbreviation or initial.
func abbreviated(word string) bool {
	r, _ := utf8.DecodeRuneInString(word)
	return unicode.IsUpper(r) && utf8.RuneCountInString(word) <= 2
}

// spans returns a function that gives the end of the quantity or date that byte i lies in, 0 if it lies in none.
func spans(quantities []measure.Quantity, dates []measure.Date) func(i int) int {
	var all [][2]int
	for _, q := range quantities {
		all = append(all, [2]int{q.Start, q.End})
	}
	for _, d := range dates {
		all = append(all, [2]int{d.Start, d.End})
	}
	slices.SortFunc(all, func(a, b [2]int) int { return a[0] - b[0] })
	return func(i int) int {
		k, exact := slices.BinarySearchFunc(all, i, func(s [2]int, i int) int { return s[0] - i })
		if !exact {
			k--
		}
		if k >= 0 && i < all[k][1] {
			return all[k][1]
		}
		return 0
	}
}

func wordEnd(text string, j int, taken func(int) int) int {
	for j < len(text) && taken(j) == 0 {
		r, n := utf8.DecodeRuneInString(text[j:])
		next, _ := utf8.DecodeRuneInString(text[j+n:])
		inner := (r == '\'' || r == '’' || r == '.' || r == '&') && unicode.IsLetter(next)
		if spaceless(r) || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.M, r) && !inner {
			break
		}
		j += n
	}
	return j
}

// wordTerms adds the term of a word; French "l'", "d'", "n'" and English "n't" become terms of their own.
func wordTerms(list []term, raw string, start int) []term {
	low := lowered(raw)
	if i := strings.IndexByte(low, '\''); i > 0 && i <= 2 && len(low) == len(raw) && len(low) > i+1 {
		first, second := lowered(raw[:i]), lowered(raw[i+1:])
		elided := term{lexeme: &lexeme{raw: raw[:i], low: first, stem: stem(first)}, start: start, end: start + i}
		if first == "n" {
			elided.low, elided.stem = "ne", "ne"
		}
		return append(list, elided, term{lexeme: &lexeme{raw: raw[i+1:], low: second, stem: stem(second)}, start: start + i + 1, end: start + len(raw)})
	}
	return append(list, term{lexeme: &lexeme{raw: raw, low: low, stem: stem(low)}, start: start, end: start + len(raw)})
}

func lowered(raw string) string { return strings.ReplaceAll(strings.ToLower(raw), "’", "'") }

func spaceless(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai) || r == 'ー'
}

func spacelessText(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return spaceless(r)
}

// glyphNegations are looked for in runs of characters. Those that are part of other words are listed with them in the lexicon, which
// goes first.
var glyphNegations = []string{"ありません", "ではない", "なかった", "ません", "ない", "没有", "沒有", "并非", "不", "没", "未", "无", "無", "非"}

// glyphTerms adds the terms of a run of characters: phrases of the lexicon, negations, whole runs of Katakana (a foreign word or name), single Han
// characters. Other Hiragana is grammar.
func glyphTerms(out []term, run string, start int) []term {
	lex := words()
	add := func(i, n int, kind termKind) {
		s := run[i : i+n]
		out = append(out, term{lexeme: &lexeme{raw: s, low: s, stem: s, glyph: true}, start: start + i, end: start + i + n, kind: kind})
	}
next:
	for i := 0; i < len(run); {
		for n := min(len(run)-i, 18); n > 3; n-- {
			if utf8.RuneStart(byteAt(run, i+n)) && lex.glyphs[run[i:i+n]] {
				add(i, n, content)
				i += n
				continue next
			}
		}
		for _, neg := range glyphNegations {
			if strings.HasPrefix(run[i:], neg) {
				add(i, len(neg), negation)
				i += len(neg)
				continue next
			}
		}
		r, n := utf8.DecodeRuneInString(run[i:])
		switch {
		case unicode.Is(unicode.Katakana, r) || r == 'ー':
			j := i + n
			for j < len(run) {
				r, m := utf8.DecodeRuneInString(run[j:])
				if !unicode.Is(unicode.Katakana, r) && r != 'ー' {
					break
				}
				j += m
			}
			add(i, j-i, content)
			i = j
			continue
		case unicode.Is(unicode.Han, r) && !strings.ContainsRune("的了在是该該为為于於和与与及之年月日約约其此本", r), unicode.Is(unicode.Thai, r):
			add(i, n, content)
		}
		i += n
	}
	return out
}

func byteAt(s string, i int) byte {
	if i >= len(s) {
		return 'a'
	}
	return s[i]
}

// phrases joins neighbours that the lexicon knows as one phrase, the longest first.
func phrases(raw []term) []term {
	lex := words()
	out := raw[:0]
	for i := 0; i < len(raw); {
		n := 1
		key := raw[i].stem
		best := key
		_, goesOn := lex.many[key]
		for k := 1; goesOn && i+k < len(raw) && raw[i+k].kind != stop && !raw[i+k].glyph; k++ {
			key += " " + raw[i+k].stem
			var whole bool
			if whole, goesOn = lex.many[key]; whole {
				n, best = k+1, key
			}
		}
		t := raw[i]
		if n > 1 {
			last := raw[i+n-1]
			t.raw, t.low, t.stem, t.end = t.raw+" "+last.raw, best, best, last.end
		}
		out = append(out, t)
		i += n
	}
	return out
}

// describe looks every term up.
func describe(list []term) []term {
	known := entries()
	first := true // the next word begins a sentence: its capital tells nothing
	for i := range list {
		t := &list[i]
		if t.kind == stop {
			first = t.low == "." || t.low == ":" || t.low == "。"
			continue
		}
		own, base := known[t.low], known[t.stem]
		either := own.sections | base.sections
		t.sections, t.concepts, t.poles = own.sections, base.concepts, base.poles
		inflected := entry{}
		if m := masculine(t.low); m != t.low {
			inflected = known[m]
		} else {
			inflected = own
		}
		if len(t.poles) == 0 {
			t.poles = inflected.poles
		}
		if t.low == "los" {
			t.poles = nil // the Spanish article, and the stem of "lose"
		}
		r, _ := utf8.DecodeRuneInString(t.raw)
		t.name = !first && unicode.IsUpper(r) && len(t.poles) == 0
		first = false
		if t.kind == content {
			t.kind = kindOf(*t)
		}
		t.weak = either.in(sectionWeak) && len(t.poles) == 0
		t.forecast = !(i > 0 && (list[i-1].low == "as" || list[i-1].low == "than")) && either.in(sectionForecast)
		t.hedge = either.in(sectionHedge)
		t.says = either.in(sectionAttribution)
		t.contrast = either.in(sectionContrast)
		t.light = either.in(sectionLight) && len(t.poles) == 0
		if len(t.raw) == 1 && (i == 0 || list[i-1].kind != content) {
			t.light, t.name = true, false // a symbol, no name as in "Model A"
		}
		t.method = either.in(sectionMethod)
		t.guess = either.in(sectionGuess)
		t.event = (either | inflected.sections).in(sectionEvent)
		for _, p := range t.poles {
			t.event = t.event || known[p.axis].sections.in(sectionEvent)
		}
		if t.forecast || t.hedge {
			t.weak = true
		}
		if (t.weak || t.light) && i > 0 && list[i-1].low == "to" && (i+1 == len(list) || list[i+1].kind == stop) {
			t.weak, t.light, t.contrast = false, false, true // "costs 9 euros to make"
		}
		if i > 0 {
			t.passive = beForms[list[i-1].low] || i > 1 && beForms[list[i-2].low] && strings.HasSuffix(list[i-1].low, "ly")
		}
		for k := i - 1; k >= 0 && k >= i-3 && list[k].kind != stop; k-- {
			if roleWords[list[k].low] {
				t.role = list[k].low
				break
			}
			if list[k].kind == function && !articleWords[list[k].low] {
				break
			}
		}
	}
	return list
}

// masculine is the form in which the lexicon has the participles of Romance languages: "aprobadas" is found as "aprobado".
func masculine(w string) string {
	for _, ending := range romanceEndings {
		if base, ok := strings.CutSuffix(w, ending[0]); ok && len(base) >= 3 {
			return base + ending[1]
		}
	}
	return w
}

var romanceEndings = [][2]string{{"adas", "ado"}, {"ados", "ado"}, {"ada", "ado"}, {"idas", "ido"}, {"idos", "ido"}, {"ida", "ido"}, {"ées", "é"}, {"ée", "é"}, {"és", "é"},
	{"ata", "ato"}, {"ate", "ato"}, {"ati", "ato"}, {"ita", "ito"}, {"ite", "ito"}, {"iti", "ito"}}

func kindOf(t term) termKind {
	switch {
	case t.sections.in(sectionNegation), strings.HasSuffix(t.low, "n't"):
		return negation
	case len(t.poles) > 0:
		return content
	case t.sections.in(sectionCritical):
		return critical
	case t.sections.in(sectionStop) && !(len(t.raw) > 1 && t.raw == strings.ToUpper(t.raw)):
		return function
	}
	return content
}

// entry is all that the lexicon has of one word or phrase, as it is looked up once for each term.
type entry struct {
	concepts []string
	poles    []pole
	sections sections
}

// sections are the sections of words.txt that have a word, one bit for each of those that terms are described by.
type sections uint16

const (
	sectionNegation sections = 1 << iota
	sectionCritical
	sectionStop
	sectionWeak
	sectionForecast
	sectionHedge
	sectionAttribution
	sectionContrast
	sectionLight
	sectionMethod
	sectionGuess
	sectionEvent
	sectionSelf
	sectionOpinion
)

func (s sections) in(one sections) bool { return s&one != 0 }

var sectionNames = map[string]sections{
	"negation": sectionNegation, "critical": sectionCritical, "stop": sectionStop, "weak": sectionWeak, "forecast": sectionForecast, "hedge": sectionHedge, "attribution": sectionAttribution,
	"contrast": sectionContrast, "light": sectionLight, "method": sectionMethod, "guess": sectionGuess, "event": sectionEvent, "self": sectionSelf, "opinion": sectionOpinion,
}

var entries = sync.OnceValue(func() map[string]entry {
	lex, out := words(), map[string]entry{}
	for key, concepts := range lex.concepts {
		e := out[key]
		e.concepts = concepts
		out[key] = e
	}
	for key, poles := range lex.poles {
		e := out[key]
		e.poles = poles
		out[key] = e
	}
	for name, bit := range sectionNames {
		for key := range lex.classes[name] {
			e := out[key]
			e.sections |= bit
			out[key] = e
		}
	}
	return out
})

var (
	beForms = map[string]bool{"is": true, "are": true, "was": true, "were": true, "be": true, "been": true, "being": true, "été": true, "wurde": true, "wurden": true, "fue": true, "fueron": true}
	// roleWords are the prepositions that say more than "of": a duplicate has the same ones.
	roleWords = map[string]bool{"from": true, "to": true, "into": true, "onto": true, "against": true, "than": true, "over": true, "under": true, "via": true, "off": true, "out": true,
		"behind": true, "between": true, "through": true, "across": true, "around": true, "up": true, "down": true, "about": true, "like": true}
	articleWords = map[string]bool{"a": true, "an": true, "the": true, "its": true, "their": true, "this": true, "these": true}
)

// markSources marks the words that only say whose statement it is, or how it was found: "according to X", "X says that", "in a test by
// X", "a laboratory measured".
func (c *claim) markSources() {
	for i, t := range c.terms {
		switch {
		case t.low == "according" && i+1 < len(c.terms) && c.terms[i+1].low == "to", t.low == "laut", t.low == "selon", t.low == "según", t.low == "secondo",
			t.low == "nach" && i+1 < len(c.terms) && c.terms[i+1].low == "angaben", t.low == "d" && i+1 < len(c.terms) && c.terms[i+1].low == "après":
			for k := i; k < len(c.terms) && c.terms[k].kind != stop; k++ {
				if k > i+1 && (c.terms[k].passive || c.terms[k].low == "that" || (t.low == "nach" || t.low == "laut") && c.verbAfterNoun(k)) {
					break
				}
				c.terms[k].source = true
			}
		case t.low == "zufolge":
			for k, article := i, false; k >= 0 && k >= i-4 && c.terms[k].kind != stop && !article; k-- {
				article = anyArticle(c.terms[k])
				c.terms[k].source = true
			}
		case t.says && i > 1 && c.endsSoon(i) && c.afterComma(i):
			c.sourceBack(i) // "..., the institute reports."
			for k := i; k < len(c.terms) && c.terms[k].kind != stop; k++ {
				c.terms[k].source = true
			}
		case t.says && i > 0 && i+1 < len(c.terms) && (c.terms[i+1].low == "that" || c.terms[i+1].low == "dass" || c.terms[i+1].low == "que"):
			c.sourceBack(i)
		case t.says && !t.passive && i > 0 && i+3 < len(c.terms) && c.opens(i) && (words().is("reporting", t.low, t.stem) || c.methodBefore(i)):
			c.sourceBack(i) // "the maker says its pump lasts 9 years", "an audit found a loss of 9 million"
		case t.method && !t.source && c.inFrame(i):
			c.frame(i)
		}
	}
}

// verbAfterNoun reports whether the source of a German statement ends before term i: with a verb, or a word in small letters after a noun, as a
// verb is.
func (c *claim) verbAfterNoun(i int) bool {
	if verbs[c.terms[i].low] {
		return true
	}
	return c.terms[i].kind == content && !capitalised(c.terms[i]) && c.terms[i-1].kind == content && capitalised(c.terms[i-1]) && c.terms[i-1].low != "angaben"
}

var verbs = wordSet("hat hatte hatten haben ist war waren sind wurde wurden")

// sourceBack marks the words from the beginning of the clause to term i.
func (c *claim) sourceBack(i int) {
	for k := i; k >= 0 && c.terms[k].kind != stop; k-- {
		c.terms[k].source = true
	}
}

// endsSoon reports whether at most four words, none of them beside a figure, follow term i.
func (c *claim) endsSoon(i int) bool {
	n := len(c.terms)
	if n > 0 && c.terms[n-1].kind == stop {
		n--
	}
	if n-i > 5 {
		return false
	}
	for _, q := range c.quantities {
		if q.Start > c.terms[i].start {
			return false
		}
	}
	return !slices.ContainsFunc(c.terms[i:n], func(t term) bool { return t.kind == stop })
}

// opens reports whether the verb at i is the first of its clause, as far as can be told: a subject of at most eight words, with no other
// verb that the lexicon knows, stands before it.
func (c *claim) opens(i int) bool {
	for k := i - 1; k >= 0; k-- {
		t := c.terms[k]
		if t.kind == stop {
			return i-k <= 9 && k < i-1
		}
		if t.passive || beForms[t.low] || t.says && !t.method && k < i-1 || len(t.poles) > 0 && verbal(t) {
			return false
		}
	}
	return i <= 8
}

// methodBefore reports whether the subject of the verb at i measures or reports: "a laboratory", "an audit of the bank".
func (c *claim) methodBefore(i int) bool {
	for k := i - 1; k >= 0 && c.terms[k].kind != stop; k-- {
		if c.terms[k].method {
			return true
		}
	}
	return false
}

// inFrame reports whether "in" or "on" and at most three words stand before the noun at i, and a comma, the end or "by", "with", "of"
// after it: "in a test by a consumer group".
func (c *claim) inFrame(i int) bool {
	if i+1 < len(c.terms) && c.terms[i+1].kind != stop && !frameAfter[c.terms[i+1].low] {
		return false
	}
	for k := i - 1; k >= 0 && k >= i-4; k-- {
		if frameBefore[c.terms[k].low] {
			return true
		}
		if c.terms[k].kind == stop || c.terms[k].kind == function && !articleWords[c.terms[k].low] {
			return false
		}
	}
	return false
}

var (
	frameBefore = wordSet("in during on bei in dans lors en durante")
	frameAfter  = wordSet("by with of among from at der des von de du del par con")
)

// frame marks the phrase around the noun at i: back to its preposition, on to the next comma, another preposition apart from those of
// frameAfter, or six words.
func (c *claim) frame(i int) {
	for k := i; k >= 0; k-- {
		c.terms[k].source = true
		if frameBefore[c.terms[k].low] {
			break
		}
	}
	for k := i + 1; k < len(c.terms) && k <= i+6 && c.terms[k].kind != stop; k++ {
		article := articleWords[c.terms[k].low]
		if c.terms[k].kind == function && !frameAfter[c.terms[k].low] && !article || article && c.terms[k-1].kind != function {
			break
		}
		c.terms[k].source = true
	}
}

// markAsides marks relative clauses between commas.
func (c *claim) markAsides() {
	for i := 0; i+1 < len(c.terms); i++ {
		if c.terms[i].low != "," || !relativeWords[c.terms[i+1].low] {
			continue
		}
		for k := i + 2; k < len(c.terms) && c.terms[k].low != "."; k++ {
			if c.terms[k].low != "," {
				continue
			}
			if k+2 < len(c.terms) {
				for j := i + 1; j < k; j++ {
					c.terms[j].aside = true
				}
			}
			break
		}
	}
}

var relativeWords = wordSet("which who whose where welche welcher welches deren dessen qui dont cuyo cuya cui")

// afterComma reports whether at most eight words stand between a comma and term i.
func (c *claim) afterComma(i int) bool {
	for k := i - 1; k > 0 && k >= i-9; k-- {
		if c.terms[k].kind == stop {
			return c.terms[k].low == ","
		}
	}
	return false
}

// capitalNouns are words of a language in which every noun has a capital.
var capitalNouns = wordSet("der die das dem den des und ein eine einer im nach laut")

// estimated reports whether a claim is somebody's estimate: of what nobody has measured, so that another's may differ.
func (c *claim) estimated() bool {
	measured := c.has(func(t term) bool { return t.method && t.source })
	return c.has(func(t term) bool { return t.guess && !t.context }) && !measured
}

// sourceNames are the content words of the marked parts.
func (c *claim) sourceNames() (all map[string]bool, named bool) {
	all = map[string]bool{}
	german := c.has(func(t term) bool { return capitalNouns[t.low] })
	for i, t := range c.terms {
		if t.source && t.kind == content && !t.says && t.low != "according" {
			all[t.stem] = true
			r, _ := utf8.DecodeRuneInString(t.raw)
			named = named || !german && (t.name || i > 0 && unicode.IsUpper(r))
		}
	}
	return all, named
}
