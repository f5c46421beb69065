package extractive

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/factstream/factstream/shared/model"
)

// place is where a sentence stands: the level of a heading, or how many items of lists are around it and whether it begins the innermost.
type place struct {
	level, depth int
	begins       bool
}

// placeOf reads the marks before a sentence (see model.Numbered). A head of a table has no level.
func placeOf(s model.Numbered) (p place, rest string) {
	t := strings.TrimSpace(s.Text)
	if n := headingMarks(t); n > 0 {
		if !strings.Contains(t, " | ") {
			p.level = n
		}
		return p, s.Text
	}
	marks := 0
	for strings.HasPrefix(t, "- ") {
		t = strings.TrimLeft(t[2:], " ")
		marks++
	}
	if marks == 0 {
		return place{depth: s.Depth}, s.Text
	}
	return place{depth: max(s.Depth, marks), begins: true}, t
}

// headingMarks is how many marks of a heading a line begins with, 0 if it is none: "#1 in Europe" is a sentence.
func headingMarks(t string) int {
	rest := strings.TrimLeft(t, "#")
	if n := len(t) - len(rest); n <= 6 && (rest == "" || rest[0] == ' ') {
		return n
	}
	return 0
}

// path are the headings that sentence i stands under, the outermost first. A heading ends where one of its level or a higher one begins.
func (r report) path(i int) []int {
	var out []int
	for k := i - 1; k >= 0; k-- {
		level := r.places[k].level
		if level == 0 && !r.adjacent(k+1) && !r.over(k) {
			break // a part is missing in which other headings may stand
		}
		if level > 0 && (len(out) == 0 || level < r.places[out[0]].level) {
			out = slices.Insert(out, 0, k)
		}
		if level == 1 {
			break
		}
	}
	return out
}

// over reports whether sentence k may stand before a gap: a heading, or an item that others stand in, is shown with the sentences that it is
// said of, wherever these are.
func (r report) over(k int) bool {
	return r.places[k].level > 0 || r.places[k].begins && len(r.sentences[k].Markers) == 0
}

// heading returns the index of the heading that sentence i stands under, -1 if there is none.
func (r report) heading(i int) int {
	if path := r.path(i); len(path) > 0 {
		return path[len(path)-1]
	}
	return -1
}

// general reports whether a heading or label is one that any report may have and that names nothing: "Overview", "Advantages".
func (r report) general(k int) bool {
	words := 0
	for _, t := range r.claims[k].terms {
		if t.kind != content {
			continue
		}
		if !generalWord(t) {
			return false
		}
		words++
	}
	return words > 0
}

func generalWord(t term) bool {
	return questionWords[t.low] || promising[t.low] || words().is("section", t.low, t.stem)
}

// promising are words that announce what a list has without saying of what.
var promising = wordSet(`key main following several points facts figures details results findings highlights strengths weaknesses pros cons
	wichtige wichtigste wichtigsten folgende punkte fakten zahlen ergebnisse stärken schwächen
	principaux principales suivants suivantes points faits chiffres résultats atouts faiblesses
	principales siguientes puntos hechos cifras datos resultados fortalezas debilidades`)

// titled reports whether heading h is the report's title: what all of it is about is no topic of it.
func (r report) titled(h int) bool { return h == r.title }

// overAll reports whether heading h is a title that stands over all other headings. A first section of the level of the others is not.
func (r report) overAll(h int) bool {
	if !r.titled(h) {
		return false
	}
	for k, p := range r.places {
		if k != h && p.level > 0 && p.level <= r.places[h].level {
			return false
		}
	}
	return true
}

// titleOf finds the title: a heading that the report begins with and that is the only one of the highest level, or, where all headings have one
// level, the first of a report that has sections.
func (r report) titleOf() int {
	if len(r.sentences) == 0 || r.sentences[0].N != 1 || r.places[0].level == 0 {
		return -1
	}
	sections, deeper := 0, true
	for _, p := range r.places[1:] {
		if p.level > 0 {
			sections++
			deeper = deeper && p.level > r.places[0].level
		}
	}
	if sections >= leastSections || sections > 0 && deeper {
		return 0
	}
	return -1
}

// leastSections are as many headings of its own level as follow a title at least; with one more there are only two sections.
const leastSections = 2

// underHeading names a sentence by the headings over it, the outermost first. Left out are those that name nothing or nothing that it does not
// say itself, and the title of the report, unless there is no other or all is wanted.
func (r report) underHeading(i int, s string, all bool) (m made, ok bool) {
	m = made{text: s, from: []int{r.sentences[i].N}}
	for _, h := range slices.Backward(r.path(i)) {
		name := strings.TrimRight(r.plain[h], " .:")
		if name == "" || r.general(h) || ok && !all && r.overAll(h) || read(m.text).tellsAllOf(r.claims[h]) {
			continue
		}
		longer := name + ": " + m.text
		if utf8.RuneCountInString(longer) > maxJoined {
			break
		}
		m, ok = made{text: longer, from: append([]int{r.sentences[h].N}, m.from...)}, true
	}
	return m, ok
}

// tellsAllOf reports whether a claim has every word of weight of a heading or label.
func (c *claim) tellsAllOf(heading *claim) bool {
	keys, words := c.keys(), 0
	for k := range heading.keys() {
		if !keys[k] {
			return false
		}
		words++
	}
	return words > 0
}

// previous is the index of the sentence that sentence i goes on from, -1 if there is none: the one directly before; for the first sentence of an
// item that a label introduces, or that is the first in an item, what introduces it.
func (r report) previous(i int) int {
	adjacent := i > 0 && r.adjacent(i)
	if lead := r.lead(i); lead >= 0 && (r.label(lead) || !adjacent || r.places[i-1].depth != r.places[i].depth) {
		return lead
	}
	if !adjacent {
		return -1
	}
	return i - 1
}

// lead is the sentence that introduces the item which sentence i begins, -1 if there is none: the last sentence of the item around it, or
// one that ends with a colon directly before the list.
func (r report) lead(i int) int {
	at := r.places[i]
	if !at.begins {
		return -1
	}
	last := -1 // of the item around, as far as was seen
	for k := i - 1; k >= 0; k-- {
		here := r.places[k]
		switch {
		case block(r.sentences[k].Text) || !r.adjacent(k+1) && !r.over(k):
			return -1
		case here.depth >= at.depth:
		case here.depth > 0:
			if last < 0 {
				last = k
			}
			if here.begins {
				return last
			}
		case introduces(r.plain[k]):
			return k
		default:
			return -1
		}
	}
	return -1
}

func introduces(s string) bool { return strings.HasSuffix(s, ":") || strings.HasSuffix(s, "：") }

// label reports whether sentence k only names what others are about: "Sodium cells:", or an item "Sodium cells" that has items.
func (r report) label(k int) bool {
	return introduces(r.plain[k]) || r.places[k].begins && len(r.sentences[k].Markers) == 0 && fitness(r.plain[k], r.plain[k], r.claims[k]) != whole
}

// led puts what introduces the item that sentence i begins before it, where the item does not stand without. It is not ok if that is needed
// and what there is does not say of what the item states something.
func (r report) led(i int) (m made, needed, ok bool) {
	if !r.places[i].begins {
		return m, false, false
	}
	s, c := r.plain[i], r.claims[i]
	subjectless := opensWithVerb(s, r.spoken(s), true)
	lead := r.lead(i)
	if lead < 0 {
		if subjectless {
			m, ok = r.underHeading(i, s, true)
		}
		return m, subjectless, ok
	}
	if !r.label(lead) {
		if subjectless {
			m, ok = r.joined(i, s)
		}
		return m, subjectless, ok // two sentences; one that leans on the other is joined to it as anywhere
	}
	clause, _ := clauseOf(s, r.language)
	own := r.places[i].depth == 1 || r.general(lead) || c.tellsAllOf(r.claims[lead]) || leadingName(s) != ""
	if own && (clause || leadingName(s) == "") && !r.doubts(lead) && !subjectless && !startsSmall(s) && leaning(s, c) != before && fitness(s, s, c) == whole {
		return m, false, false
	}
	m, ok = r.labelled(i, lead, subjectless)
	return m, true, ok
}

// labelled puts the labels around an item before it, and the headings where no label names anything.
func (r report) labelled(i, lead int, subjectless bool) (m made, ok bool) {
	s, named := r.plain[i], false
	m.from = []int{r.sentences[i].N}
	for k := lead; k >= 0 && r.label(k); k = r.lead(k) {
		if utf8.RuneCountInString(s) > maxJoined {
			return m, false // of a list that is nested without end, not all labels are read
		}
		name := strings.TrimRight(r.plain[k], " :：")
		clause, open := clauseOf(name, r.language)
		switch {
		case name == "", named && (r.general(k) || read(s).tellsAllOf(r.claims[k])):
			continue
		case leaning(name, r.claims[k]) == before, subjectless && clause && !open:
			return m, false // the label itself leans, or has a verb already
		case k == lead && (open || subjectless && !r.general(k) && !beside(name)):
			s = name + " " + uncapital(s, subjectless)
		default:
			s = name + colon(r.plain[k]) + " " + s
		}
		m.from = append([]int{r.sentences[k].N}, m.from...)
		named = named || !r.general(k) && !(subjectless && beside(name))
	}
	m.text = s
	if !named {
		under, found := r.underHeading(i, s, subjectless)
		if named = found || !subjectless; found {
			m = made{text: under.text, from: slices.Sorted(slices.Values(append(under.from[:len(under.from)-1], m.from...)))}
		}
	}
	return m, named && utf8.RuneCountInString(m.text) <= maxJoined
}

// beside reports whether a label says what something is compared with, when or of whom it holds ("Compared with lithium cells"), or what is told
// of a thing ("History of Talmo"), and so does not name what the items below it are about.
func beside(label string) bool {
	p := wordsOf(label)
	if len(p) == 0 {
		return false
	}
	first := p[0].low
	if !strings.Contains(label, ",") && (prepositions[first] || spanishPrepositions[first] || aways[first]) {
		return true
	}
	return len(p) > 1 && telling[first] && !p[0].ends && (prepositions[p[1].low] || spanishPrepositions[p[1].low] || ofWords[p[1].low] || overWords[p[1].low])
}

var (
	aways = wordSet(`compared except excepting excluding including not formerly owned contrary instead versus
		verglichen außer ohne nicht anders entgegen gegenüber statt im seit laut nach für unter bei vor
		comparé comparée comparés comparées contrairement sauf sans selon depuis après avant pour chez hors
		comparado comparada comparados comparadas salvo excepto después antes bajo`)
	telling = wordSet(`history problems reasons causes myths rumours claims background effects consequences criticism reports studies
		geschichte probleme gründe ursachen mythen gerüchte folgen kritik berichte studien
		histoire problèmes raisons causes mythes rumeurs conséquences critiques études
		historia problemas razones causas mitos rumores consecuencias críticas estudios`)
	overWords = wordSet("über zu sur à pour")
)

// doubts reports whether a heading or label says of what stands below it that it is not so, or that it is only said.
func (r report) doubts(k int) bool {
	return r.claims[k].has(func(t term) bool { return t.kind == negation || t.hedge || doubting[t.low] })
}

var doubting = wordSet(`myth myths false untrue wrong disproved debunked refuted rejected incorrect hoax hoaxes rumour rumours rumor rumors alleged allegations misconceptions unconfirmed hypothetical
	mythos mythen irrtum irrtümer falsch falsche widerlegt widerlegte gerücht gerüchte angeblich unbestätigt abgelehnt verworfen
	mythe mythes faux fausse fausses démenti démentis réfuté réfutés rumeur rumeurs rejeté rejetés
	mito mitos falso falsa falsos falsas bulo bulos desmentido desmentidos refutado rumor rumores rechazado rechazados`)

// doubted reports whether a heading over sentence i doubts it.
func (r report) doubted(i int) bool { return slices.ContainsFunc(r.path(i), r.doubts) }

// colon is that of a label as it is written, with the space that French sets before it; one for a label that has none.
func colon(label string) string {
	for _, mark := range []string{" :", ":", "："} {
		if strings.HasSuffix(label, mark) {
			return mark
		}
	}
	return ":"
}

// clauseOf reports whether a label has a verb, and whether it goes on in the items: "The plant will".
func clauseOf(label, language string) (clause, open bool) {
	p := wordsOf(label)
	for k, w := range p {
		if k == 0 {
			continue
		}
		verb := auxiliaries[w.low] || language != "en" && (foreignVerbs[w.low] || tellingVerbs[language][w.low]) || language == "en" && p.finite(k, "en")
		clause = clause || verb
		open = k == len(p)-1 && (verb || prepositions[w.low] || w.low == "that" || w.low == "to")
	}
	return clause, open
}

// startsSmall reports whether a text begins with a small letter, in a script that has capitals, and not with a name that is written so: iPhone.
func startsSmall(s string) bool {
	first, n := utf8.DecodeRuneInString(s)
	next, _ := utf8.DecodeRuneInString(s[min(n, len(s)):])
	return unicode.IsLower(first) && !unicode.IsUpper(next)
}

// uncapital is a text with a small letter at its beginning, if it goes on with a verb.
func uncapital(s string, verb bool) string {
	first, n := utf8.DecodeRuneInString(s)
	if next, _ := utf8.DecodeRuneInString(s[min(n, len(s)):]); !verb || unicode.IsUpper(next) {
		return s
	}
	return string(unicode.ToLower(first)) + s[n:]
}

// spoken is the language of an item: that of the report, unless its first word is a verb of another. A list of few words does not say its own.
func (r report) spoken(s string) string {
	if first := wordsOf(s); len(first) > 0 && !alsoEnglish[first[0].low] {
		for _, language := range tongues {
			if tellingVerbs[language][first[0].low] {
				if tellingVerbs[r.language][first[0].low] {
					return r.language
				}
				return language
			}
		}
	}
	return r.language
}

// alsoEnglish are verbs of tellingVerbs that are words of English too.
var alsoEnglish = wordSet("a usa lag gilt era son ha es vale mide baja suma fallen laden produce reduce monte compte mesure cuba dure abre")

// opensWithVerb reports whether a text begins with the verb of a subject that it does not name: "coûtent 30 % de moins". Spanish sentences may
// (in "Aumentó la producción" the subject follows); those of other languages only as an item of a list.
func opensWithVerb(s, language string, item bool) bool {
	p := wordsOf(s)
	if len(p) < 2 || p[0].number {
		return false
	}
	first, small := p[0], startsSmall(s)
	switch {
	case first.ends:
		return false
	case language == "es":
		return spanishVerb(first.low) && !subjectFollows(p)
	case !item:
		return false
	case language == "fr":
		third := small && strings.HasSuffix(first.low, "ent") && !strings.HasSuffix(first.low, "ment") && !frenchEnt[first.low] && (p[1].number || determinersOf["fr"][p[1].low])
		verb := foreignVerbs[first.low] || tellingVerbs["fr"][first.low]
		return verb && (!namesToo[first.low] || small && !determinersOf["fr"][p[1].low] || p[1].number && small) || third
	case language == "de":
		turned := germanPassive[p[1].low] // "Verkauft wurden 900", "Sinkt der Preis, steigt der Absatz"
		for k := 1; k+1 < len(p); k++ {
			turned = turned || p[k].ends && (foreignVerbs[p[k+1].low] || tellingVerbs["de"][p[k+1].low])
		}
		return (foreignVerbs[first.low] || tellingVerbs["de"][first.low]) && (small || !namesToo[first.low]) && !turned
	case language != "en":
		return false
	}
	lex, base := words(), stem(first.low)
	verb, both := lex.is("verb", first.low, base), lex.is("verb_noun", first.low, base)
	switch {
	case first.inflected():
		return true
	case strings.HasSuffix(first.low, "ing") || !verb && !both:
		return false
	case verb && small:
		return true
	}
	return (small || verb || unchanging[first.low] || strings.HasSuffix(first.low, "s")) && (p[1].number || determiners[p[1].low] || quantifying[p[1].low] || comparatives[p[1].low])
}

// tellingVerbs are verbs of reports in the third person, which a list has its items begin with. Their forms are words of their language
// that are hardly anything else, but for namesToo.
var tellingVerbs = map[string]map[string]bool{
	"de": wordSet(`kosten verbrauchen sparen senken erhöhen reduzieren halten dauern wiegen liefern bieten benötigen brauchen ermöglichen verringern erzeugen produzieren enthalten liegen betragen
		erreichen steigen sinken fallen wachsen gelten bestehen nutzen verwenden verursachen schaffen laden verlieren gewinnen zeigen leisten decken ersetzen vermeiden wurden wurde haben hat sind ist waren war
		verbraucht spart senkt senkte erhöht erhöhte reduziert reduzierte hält dauert wiegt liefert lieferte bietet benötigt braucht ermöglicht verringert erzeugt produziert enthält lag lagen betrug
		stieg sank fiel wuchs gilt besteht nutzt verwendet verursacht schafft schaffte lädt verliert verlor gewinnt gewann zeigt leistet deckt ersetzt vermeidet misst umfasst umfassen eröffnete begann
		verkauft verkaufte baut baute schloss öffnete hielt kam kamen ging gingen stammt stammen`),
	"fr": wordSet(`coûte coûtent coûtait coûtaient dure durent durait réduit réduisent réduisait augmente augmentent offre offrent permet permettent consomme consomment pèse pèsent utilise utilisent atteint atteignent
		contient contiennent représente représentent baisse baissent monte montent perd perdent gagne gagnent économise économisent fournit fournissent nécessite nécessitent émet émettent supporte supportent
		résiste résistent tolère tolèrent stocke stockent fonctionne fonctionnent exige exigent évite évitent vaut valent compte comptent vend vendent emploie emploient produit produisent commence commencent
		a ont est sont était étaient sera seront peut peuvent doit doivent reste restent génère génèrent couvre couvrent mesure mesurent affiche affichent`),
	"es": wordSet(`cuesta cuestan dura duran reduce reducen aumenta aumentan ofrece ofrecen permite permiten consume consumen pesa pesan utiliza utilizan usa usan alcanza alcanzan contiene contienen representa representan
		baja bajan sube suben pierde pierden gana ganan ahorra ahorran requiere requieren necesita necesitan emite emiten soporta soportan resiste resisten tolera toleran almacena almacenan funciona funcionan exige exigen
		evita evitan vale valen cuenta cuentan vende venden emplea emplean produce producen genera generan cubre cubren mide miden mantiene mantienen incluye incluyen tiene tienen tenía tenían es son era eran fue fueron ha han
		había habían está están estaba estaban puede pueden podrá podrán debe deben será serán abre abren opera operan cultiva cultivan exporta exportan importa importan suma suman supera superan crece crecen`),
}

var germanPassive = wordSet("wurde wurden werden wird worden ist sind war waren hat haben hatte hatten")

// namesToo are nouns or articles as well, as they begin a sentence.
var namesToo = wordSet("kosten leben laden sparen wachsen halten laden schaffen a est mesure offre baisse compte vaut a")

var (
	frenchEnt     = wordSet("récent différent fréquent équivalent présent absent permanent urgent argent cent talent accent client agent président ciment content souvent vent parent patient prudent excellent")
	determinersOf = map[string]map[string]bool{"fr": wordSet("le la les l un une des du de d environ moins plus entre jusqu'à presque près")}
)

// spanishVerb reports whether a word can hardly be anything but a finite verb of the third person.
func spanishVerb(w string) bool {
	if tellingVerbs["es"][w] {
		return true
	}
	for _, ending := range []string{"aron", "ieron", "aban", "ían", "arán", "erán", "irán", "ará", "erá", "irá", "aría", "ería", "iría", "arían"} {
		if stem, ok := strings.CutSuffix(w, ending); ok && utf8.RuneCountInString(stem) > 2 {
			return true
		}
	}
	stem, ok := strings.CutSuffix(w, "ó")
	return ok && utf8.RuneCountInString(stem) > 2
}

// subjectFollows reports whether a Spanish sentence that begins with its verb names the subject after it, or needs none: "Llegaron 900 personas",
// "Aumentó la producción un 12 %", "Es posible que".
func subjectFollows(p phrase) bool {
	stem := func(list map[string]bool) bool {
		for ending := range list {
			if strings.HasPrefix(p[0].low, ending) {
				return true
			}
		}
		return false
	}
	next := p[1].low
	switch {
	case next == "que" || impersonal[next]:
		return true
	case stem(appearing):
		return next != "en" && next != "a" && next != "por" && next != "desde" || p.articled()
	case stem(changing):
		return definite[next] || next == "también" && len(p) > 2 && definite[p[2].low]
	}
	return false
}

// articled reports whether an article and a noun stand among the words after the first three: "Llegaron a la isla los primeros turistas".
func (p phrase) articled() bool {
	for k := 3; k+1 < len(p); k++ {
		if definite[p[k].low] && !prepositions[p[k-1].low] && !spanishPrepositions[p[k-1].low] {
			return true
		}
	}
	return false
}

var (
	impersonal          = wordSet("posible probable necesario importante imprescindible obligatorio preciso evidente cierto frecuente habitual mejor difícil fácil")
	appearing           = wordSet("lleg exist hab surg nac falt falta qued bast ocurr aparec particip asist mur fallec entr viv suced permanec")
	changing            = wordSet("aument crec cre ca cay baj sub disminu descend comenz empez termin acab mejor empeor se")
	spanishPrepositions = wordSet("de a en con por para sin sobre entre desde hasta del al según ante tras")
)

// twins are pairs of figures of one thing under two headings: "Cells cost 90 euros" under "Europe" and "Cells cost 60 euros" under "China". Only
// the heading tells them apart. It is worked out once for a report.
func (r report) twins() map[int]bool {
	type told struct {
		i     int
		under string // the headings that tell it from others
		keys  map[string]bool
	}
	byOpening := map[string][]told{}
	out := map[int]bool{}
	for i, c := range r.claims {
		if len(c.quantities) == 0 || block(r.sentences[i].Text) || len(r.sentences[i].Markers) == 0 {
			continue
		}
		under := ""
		for _, h := range r.path(i) {
			if !r.general(h) && !r.overAll(h) && !c.tellsAllOf(r.claims[h]) {
				under += r.plain[h] + "\n"
			}
		}
		if under == "" {
			continue
		}
		first, ok := c.opening()
		if !ok {
			continue
		}
		t := told{i, under, c.keys()}
		for _, other := range byOpening[first] {
			if n := sameKeys(t.keys, other.keys); other.under != under && twinShare*n >= (twinShare-1)*max(len(t.keys), len(other.keys)) {
				out[i], out[other.i] = true, true
			}
		}
		byOpening[first] = append(byOpening[first], t)
	}
	return out
}

// twinShare: all but one of so many words are the same.
const twinShare = 4

// opening is the first word of weight of a claim.
func (c *claim) opening() (string, bool) {
	for _, t := range c.terms {
		if t.strong() && !t.source {
			return t.key(), true
		}
	}
	return "", false
}

// bareMeasure reports whether a sentence says of nothing in particular what it costs or how much it is: "The price fell by 30 percent."
func bareMeasure(s, language string) bool {
	p := wordsOf(s)
	if len(p) < 3 || !definiteIn(language, p[0].low) {
		return false
	}
	noun := p[1]
	if !abstract[noun.low] && measured[stem(noun.low)] == "" && (language != "de" || figureOf(term{lexeme: &lexeme{raw: noun.raw, low: noun.low, stem: stem(noun.low)}}) == "") {
		return false
	}
	next := p[2].low
	return !noun.ends && (p.finite(2, language) || foreignVerbs[next] || tellingVerbs[language][next] || language == "es" && spanishVerb(next))
}

// verbless reports whether a text is a figure with what it is of and states nothing of it: "9 fires in 2024".
func verbless(s, language string) bool {
	p := wordsOf(s)
	if len(p) < 2 || len(p) > maxVerbless || !p[0].number {
		return false
	}
	for k := 1; k < len(p); k++ {
		if p.finite(k, language) || foreignVerbs[p[k].low] || tellingVerbs[language][p[k].low] || language == "es" && spanishVerb(p[k].low) {
			return false
		}
	}
	return true
}

const maxVerbless = 6 // words; in more there is mostly a verb that the lexicon does not know
