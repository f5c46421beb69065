package extractive

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Claim is what a statement says of its subject, without what a report says of itself: of "The cost study we rely on names 40 euros" it is "The
// cost study names 40 euros". It is not ok if nothing is left that a page could state: the report speaks for itself ("we found no data"), or of
// its sources and of what to read in them ("The statement comes from one article"). What stands in quotation marks is somebody else's.
func Claim(statement string) (claim string, ok bool) {
	if !mayBeOwn(statement) {
		return statement, true
	}
	sentences := sentencesOf(statement)
	if len(sentences) < 2 {
		said := withoutAsides(statement)
		return said, !ownVoice(said) && !ofSources(said)
	}
	for i, s := range sentences {
		said := withoutAsides(s.Text)
		if !ownVoice(said) && !ofSources(said) {
			if claim != "" {
				claim += between(claim)
			}
			claim += said
			continue
		}
		if i == len(sentences)-1 {
			return "", false // the others are only what it goes on from
		}
		if next := sentences[i+1].Text; leaning(next, read(next)) == before && !oneOf(next) {
			return "", false
		}
		claim = ""
	}
	return claim, claim != ""
}

// oneOf reports whether a sentence begins with "One" and a noun, which says by itself of what it is.
func oneOf(s string) bool {
	p := wordsOf(s)
	return len(p) > 1 && p[0].low == "one" && !p.finite(1, "en") && !prepositions[p[1].low]
}

// mayBeOwn reports whether a statement has a word that the report could speak of itself with. Most have none.
func mayBeOwn(s string) bool {
	for _, t := range read(s).terms {
		low := t.low
		if at := strings.LastIndexByte(low, ' '); at >= 0 {
			low = low[at+1:] // of a phrase of the lexicon
		}
		if selfWords[low] || sourceNoun(low) {
			return true
		}
	}
	return strings.Contains(s, "我们") || strings.Contains(s, "我們") || strings.Contains(s, "私たち") || strings.Contains(s, "我々")
}

// selfWords are words of the first person plural, and those of what a report says to its reader: what to watch, where to read on, what it has.
var selfWords = wordSet(`we our ours us ourselves wir uns unser unsere unserer unseren unserem unseres nous notre nos
	nosotros nosotras nuestro nuestra nuestros nuestras hemos encontramos hallamos consultamos leímos vimos usamos utilizamos basamos apoyamos creemos estimamos sabemos
	watch watching look follow beachten achten surveiller suivre vigilar seguir behalten information informationen informations información details overview summary brief answer section
	überblick übersicht zusammenfassung abschnitt synthèse section resumen sección`)

// sourceNoun reports whether a word names something that is read. In German it may be the end of a compound: "Fachartikel".
func sourceNoun(w string) bool {
	if sourceNouns[w] {
		return true
	}
	for _, end := range []string{"artikel", "artikeln", "artikels", "bericht", "berichte", "berichts", "pressemeldung", "webseite", "blogbeitrag", "fachbeitrag", "mitteilung"} {
		if strings.HasSuffix(w, end) {
			return true
		}
	}
	return false
}

var sourceNouns = wordSet(`quelle quellen meldung meldungen seite beitrag article articles source sources report reports newsletter newsletters page pages website websites blog blogs post posts release releases paper papers interview interviews
	rapport rapports bulletin communiqué site lettre artículo artículos fuente fuentes informe informes boletín página páginas sitio comunicado`)

// quotations are what stands in quotation marks.
var quotations = regexp.MustCompile(`"[^"]*"|“[^”“]*[”“]|„[^“”„]*[“”]|«[^»]*»|「[^」]*」|『[^』]*』`)

func unquoted(s string) string {
	if !strings.ContainsAny(s, "\"“„«「『") {
		return s
	}
	return quotations.ReplaceAllString(s, "“”")
}

// asides are what a report says of itself inside a sentence that states something all the same. The second group, where there is one, is what
// goes on after it.
var asides = []*regexp.Regexp{
	// ", which we read in translation,"
	regexp.MustCompile(`(?i)(,\s*(?:(?:on|from|in|to|of|with)\s+)?(?:which|whom|that|as)\s+we\s[^,;.]*)(,|[;.]|$)`),
	regexp.MustCompile(`(?i)(,\s*(?:(?:auf|aus|in|von|mit|nach|bei|zu)\s+)?(?:der|die|das|den|dem|denen|welche[rnsm]?|wie)\s+wir\s[^,;.]*)(,|[;.]|$)`),
	regexp.MustCompile(`(?i)(,\s*(?:que|qu['’]|dont|sur\s+(?:lequel|laquelle|lesquels|lesquelles))\s*nous\s[^,;.]*)(,|[;.]|$)`),
	regexp.MustCompile(`(?i)(,\s*(?:en\s+)?(?:el\s+|la\s+|los\s+|las\s+)?que\s+(?:nos\s+)?(?:basamos|apoyamos|consultamos|leímos|usamos|utilizamos|encontramos|vimos|hemos\s+\p{L}+)[^,;.]*)(,|[;.]|$)`),
	// "sur laquelle nous nous appuyons", "en el que nos basamos", which need no comma
	regexp.MustCompile(`(?i)(\s+(?:que|dont|sur\s+(?:lequel|laquelle|lesquels|lesquelles))\s+nous\s+(?:nous\s+)?(?:avons\s+)?\p{L}+(?:\s+(?:en\s+traduction|ici))?)(\s)`),
	regexp.MustCompile(`(?i)(\s+(?:en\s+(?:el|la|los|las)\s+)?que\s+(?:nos\s+)?(?:basamos|apoyamos|consultamos|leímos|usamos|utilizamos|encontramos|vimos|hemos\s+\p{L}+)(?:\s+(?:traducid[oa]s?|aquí))?)(\s)`),
	// "in our sources", behind what it is said of
	regexp.MustCompile(`(?i)(\s+(?:in|among|across|within)\s+(?:all\s+)?our\s+(?:sources|materials?|reading|search|research|documents|pages|reports|articles|records))([\s,;.]|$)`),
	regexp.MustCompile(`(?i)(\s+(?:in|unter|aus)\s+unseren\s+(?:Quellen|Unterlagen|Berichten|Dokumenten|Artikeln|Recherchen))([\s,;.]|$)`),
	regexp.MustCompile(`(?i)(\s+(?:dans|parmi)\s+nos\s+(?:sources|documents|recherches|articles|pages))([\s,;.]|$)`),
	regexp.MustCompile(`(?i)(\s+(?:en|entre)\s+nuestr[oa]s\s+(?:fuentes|documentos|artículos|páginas))([\s,;.]|$)`),
}

// openingAsides are the same at the beginning, where the rest stands without.
var openingAsides = regexp.MustCompile(`(?i)^(?:` +
	`(?:(?:in|among|across|according\s+to)\s+our\s+(?:sources|materials?|reading|search|research|documents|pages|reports|articles|records),?\s+)?we\s+(?:have\s+|also\s+)?(?:found|find|see|saw|read|noted?|learn(?:ed|t))\s+that\s+` +
	`|(?:in|among|across|according\s+to)\s+our\s+(?:sources|materials?|reading|search|research|documents|pages|reports|articles|records),\s*` +
	`|nous\s+(?:avons\s+)?(?:constaté|constatons|trouvé|vu|lu|noté)\s+qu(?:e\s+|['’])` +
	`|(?:dans|selon|d['’]après)\s+nos\s+(?:sources|documents|recherches),\s*` +
	`|(?:hemos\s+(?:encontrado|visto|leído|constatado)|encontramos|vimos|leímos)\s+que\s+` +
	`|(?:en|según)\s+nuestras\s+fuentes,\s*)`)

// relied is "the study we rely on", before its verb.
var relied = regexp.MustCompile(`(?i)\s+(?:(?:that|which|on\s+which)\s+)?we\s+(?:have\s+|had\s+|could\s+)?(?:rely|relied|depend|draw|drew|build|found|find|read|use[d]?|cite[d]?|consult(?:ed)?|checked|saw|see|have|reviewed|compared)(?:\s+(?:on|upon|from|in\s+translation|so\s+far|here|most))*\s+(\p{L}+)`)

// readAbout is "in the tests we read about" at the end of a clause.
var readAbout = regexp.MustCompile(`(?i)\s+(?:(?:that|which)\s+)?we\s+(?:have\s+)?(?:rely|relied|found|find|read|use[d]?|cite[d]?|consulted|checked|saw|reviewed|compared)(?:\s+(?:on|about|here))?([,;.]|$)`)

// choosingOut are words that hold only of what was read: of "the only study we found", the study is not the only one there is.
var choosingOut = wordSet("only first last best largest most no none all every any few latest newest oldest that what")

func withoutAsides(s string) string {
	said := s
	if !ownVoice(s) {
		return s
	}
	if m := openingAsides.FindString(said); m != "" && len(m) < len(said) {
		said = capital(said[len(m):])
	}
	for _, aside := range asides {
		said = aside.ReplaceAllStringFunc(said, func(m string) string {
			groups := aside.FindStringSubmatch(m)
			if groups[2] == "," && strings.HasPrefix(groups[1], ",") {
				return ""
			}
			return groups[2]
		})
	}
	if at := relied.FindStringSubmatchIndex(said); at != nil && at[0] > 0 {
		previous := wordsOf(said[:at[0]])
		next := strings.ToLower(said[at[2]:at[3]])
		lex := words()
		verb := auxiliaries[next] || lex.is("verb", next, stem(next)) || lex.is("verb_noun", next, stem(next)) || lex.is("reporting", next, stem(next)) || lex.is("attribution", next, stem(next))
		if n := len(previous); verb && n > 0 && !previous[n-1].ends && !lex.is("reporting", previous[n-1].low, stem(previous[n-1].low)) {
			said = said[:at[0]] + " " + said[at[2]:]
		}
	}
	if at := readAbout.FindStringSubmatchIndex(said); at != nil {
		previous := wordsOf(said[:at[0]])
		if n := len(previous); n > 2 && !slices.ContainsFunc(previous[n-3:], func(w word) bool { return choosingOut[w.low] || w.low == "is" || w.low == "are" || w.low == "what" }) {
			said = said[:at[0]] + said[at[2]:]
		}
	}
	if said != s {
		said = strings.Join(strings.Fields(said), " ")
	}
	return said
}

// ownVoice reports whether a sentence has a first person plural that is no quotation: the report, and not a page, speaks. "We" of everybody, who
// breathe and have a body and a planet, is another.
func ownVoice(s string) bool {
	s = unquoted(s)
	if strings.Contains(s, "我们") || strings.Contains(s, "我們") || strings.Contains(s, "私たち") || strings.Contains(s, "我々") {
		return true
	}
	p := wordsOf(s)
	for k, w := range p {
		own, everybody := "", false
		next, last := "", ""
		if k+1 < len(p) && !w.ends {
			next = p[k+1].low
		}
		if k > 0 && !p[k-1].ends {
			last = p[k-1].low
		}
		switch w.low {
		case "we", "ourselves":
			own, everybody = "en", living[next]
		case "our", "ours":
			own, everybody = "en", everybodys[next] || k+2 < len(p) && everybodys[p[k+2].low]
		case "us":
			own, everybody = "en", w.raw == "US" || helping[last] || helping[stem(last)]
		case "wir":
			own, everybody = "de", living[next] || living[last]
		case "uns":
			own, everybody = "de", helping[last]
		case "unser", "unsere", "unserer", "unseren", "unserem", "unseres":
			own, everybody = "de", everybodys[next]
		case "nous":
			own, everybody = "fr", living[next]
		case "notre", "nos":
			own, everybody = "fr", everybodys[next]
		case "nosotros", "nosotras", "hemos", "encontramos", "hallamos", "consultamos", "leímos", "vimos", "usamos", "utilizamos", "basamos", "apoyamos", "creemos", "estimamos", "sabemos":
			own = "es"
		case "nuestro", "nuestra", "nuestros", "nuestras":
			own, everybody = "es", everybodys[next]
		}
		if own == "" || everybody {
			continue
		}
		if w.low != "uns" && w.low != "nos" || language(s) == own { // both are words of Portuguese
			return true
		}
	}
	return false
}

var (
	living = wordSet(`breathe eat drink sleep live age die grow dream inhale digest sweat burn consume exhale atmen essen trinken schlafen leben sterben wachsen träumen
		respirons mangeons buvons dormons vivons consommons`)
	everybodys = wordSet(`planet earth solar sun galaxy universe atmosphere climate moon species ancestors body bodies brain brains eyes skin cells genes blood heart hearts immune lives oceans
		planeten erde sonne sonnensystem sonnensystems galaxie galaxis universum atmosphäre klima mond vorfahren körper gehirn augen haut zellen gene blut herz immunsystem
		planète terre soleil système galaxie univers atmosphère climat lune ancêtres corps cerveau yeux peau cellules gènes sang cœur
		planeta tierra sol sistema galaxia universo atmósfera clima luna antepasados cuerpo cerebro ojos piel células genes sangre corazón`)
	helping = stems("help let keep make allow enable protect harm around teach remind affect")
)

// sourced are sentences about what the report was made from, and about the reading of it, and not about its subject.
// They are, by language, of five kinds: where a statement is from; what to watch; what one source says to what the report said before; what sources
// have in common; and the report itself.
var sourced = map[string][]*regexp.Regexp{
	"en": {
		regexp.MustCompile(`^(?:the|this|that|these|both) (?:only )?(?:statement|claim|information|figure|number|date|account|detail|assertion|quote|quotation|news)s?\s(?:[^,;]*\s)?(?:comes?|came|stems?|originates?|derives?|is taken|was taken|are taken|rests?|relies|rely|depends?|is based|are based|goes back) (?:only |solely |just )?(?:from|on|to) (?:only |just )?(?:an? |one |a single |two |three |the |its |their )?(?:[\p{L}-]+ ){0,3}(?:article|source|report|newsletter|page|website|blog|post|press release|paper|interview)s?(?:[\s,;.]|$)`),
		regexp.MustCompile(`^(?:the |some |two |three |other )?(?:[\p{L}-]+ ){0,3}(?:sign|signal|thing|point|indicator|development|milestone|question|figure|date)s? (?:to watch|worth watching|to look (?:out )?for|to follow)(?:[\s,:.]|$)`),
		regexp.MustCompile(`^(?:the|this|an?|one|another|both|two) (?:[\p{L}-]+ ){0,3}(?:article|report|newsletter|page|source|post|press release|paper|website|blog)s?\s(?:[^,;]*\s)?(?:confirms?|confirmed|supports?|repeats?|repeated|contradicts?|backs?|echoes|echo|mentions?|gives?|names?|uses?) (?:only )?(?:the|this|that) (?:later|earlier|first|second|former|latter|same|above|other|higher|lower|newer|older) (?:[\p{L}-]+ )?(?:date|figure|number|year|value|claim|statement|account|version)s?(?:[\s,;.]|$)`),
		regexp.MustCompile(`^(?:the|these|all|most|several|other|some|both|many|no|none of the|the two|two|three|only one) (?:(?:independent|other|available|cited|consulted|public|reliable|single|official|published|given) )?sources? (?:[\p{L}]+ly )?(?:disagree|agree|differ|conflict|contradict|diverge|vary|are silent|is silent|was found|were found|says?|names?|mentions?|states?|confirms?|reports?|(?:do|does) not (?:say|agree|mention|name|state|give|tell))(?:[\s,;.]|$)`),
		regexp.MustCompile(`^(?:in )?this (?:report|brief|summary|overview|answer|section)(?:[\s,:.]|$)`),
	},
	"de": {
		regexp.MustCompile(`^(?:die|diese|der|das) (?:einzige )?(?:angabe|aussage|information|behauptung|zahl|meldung|nachricht|einschätzung)(?:en|n)?\s(?:[^,;]*\s)?(?:stammt|stammen|kommt|kommen|beruht|beruhen|geht|gehen) (?:\p{L}+ ){0,2}?(?:aus|auf|von) (?:nur |lediglich )?(?:ein\p{L}*|der|dem|zwei|drei) (?:[\p{L}-]+ ){0,3}\p{L}*(?:artikel|quelle|bericht|seite|meldung|beitrag|newsletter|zeitung|zeitschrift|mitteilung)`),
		regexp.MustCompile(`^(?:die |drei |zwei )?(?:[\p{L}-]+ ){0,2}(?:zeichen|anzeichen|signale|punkte|kennzahlen|meilensteine),? auf die (?:man|es|zu)[\s,]`),
		regexp.MustCompile(`^(?:der|die|das|ein|eine) (?:[\p{L}-]+ ){0,2}[\p{L}-]*(?:artikel|bericht|newsletter|seite|quelle|beitrag|meldung)\s(?:[^;]*\s)?(?:bestätigt|wiederholt|stützt|nennt|widerspricht) (?:nur )?(?:das|den|die|dem|der) (?:später|früher|erst|zweit|gleich|genannt|höher|niedriger)\p{L}* \p{L}*(?:datum|termin|jahr|zahl|wert|angabe|aussage|zeitpunkt)`),
		regexp.MustCompile(`^(?:die|diese|alle|mehrere|beide|einige|keine|keine der) (?:[\p{L}-]+ )?quellen? (?:widersprechen|sind sich|stimmen|nennt|nennen|sagt|sagen|bestätigt|bestätigen|weichen|gehen auseinander|schweigen|erwähnen|erwähnt)`),
		regexp.MustCompile(`^(?:(?:in )?(?:diesem|dieser) (?:bericht|überblick|abschnitt)|diese (?:übersicht|zusammenfassung))(?:[\s,:.]|$)`),
	},
	"fr": {
		regexp.MustCompile(`^(?:la |l['’]|le |cette |cet |ce |les )(?:seule? )?(?:déclaration|information|affirmation|donnée|nouvelle|chiffre|date)s?\s(?:[^,;]*\s)?(?:provient|proviennent|vient|viennent|est tirée?|repose|reposent) (?:uniquement |seulement )?(?:d['’]|de |sur )(?:un |une |la |le |deux )?(?:seule? )?(?:[\p{L}'’-]+ ){0,2}(?:article|source|rapport|page|site|communiqué|bulletin|lettre)`),
		regexp.MustCompile(`^(?:les |des |trois |deux )?(?:signe|signal|signaux|point|indicateur|jalon)s? (?:[\p{L}-]+ ){0,2}(?:à surveiller|à suivre)`),
		regexp.MustCompile(`^(?:le |la |l['’]|un |une |cet |cette )(?:[\p{L}-]+ )?(?:article|rapport|bulletin|page|source|lettre|communiqué)\s(?:[^;]*\s)?(?:confirme|répète|reprend|contredit|appuie|donne) (?:la|le) (?:(?:même|première?|seconde?) (?:date|année|chiffre|valeur|version)|(?:date|année|chiffre|valeur|version) (?:ultérieure?|antérieure?|postérieure?|précédente?|plus tardive))`),
		regexp.MustCompile(`^(?:les|ces|toutes les|plusieurs|aucune|deux) sources? (?:[\p{L}-]+ )?(?:divergent|se contredisent|ne |n['’]|diffèrent|sont d['’]accord|disent|citent|mentionnent|confirment)`),
		regexp.MustCompile(`^(?:dans )?(?:ce rapport|cette synthèse|cette section)(?:[\s,:.]|$)`),
	},
	"es": {
		regexp.MustCompile(`^(?:la|el|esta|este|los|las) (?:únic[oa] )?(?:afirmación|declaración|información|dato|datos|cifra|noticia|fecha)\s(?:[^,;]*\s)?(?:procede|proceden|proviene|provienen|viene|vienen|se basa|se basan) (?:únicamente |solo |sólo )?(?:de|en) (?:un|una|la|el|dos) (?:sol[oa] |únic[oa] )?(?:[\p{L}-]+ ){0,2}(?:artículo|fuente|informe|página|sitio|comunicado|boletín)`),
		regexp.MustCompile(`^(?:las |los |tres |dos )?(?:señal|señales|punto|indicador|indicadores|hito)s? (?:[\p{L}-]+ ){0,2}(?:a vigilar|a seguir|que (?:hay que |conviene )?(?:vigilar|seguir))`),
		regexp.MustCompile(`^(?:el|la|un|una) (?:[\p{L}-]+ )?(?:artículo|informe|boletín|página|fuente|comunicado)\s(?:[^;]*\s)?(?:confirma|repite|contradice|apoya|da) (?:la|el) (?:(?:misma|mismo|primera|segunda) (?:fecha|año|cifra|dato|valor)|(?:fecha|año|cifra|dato|valor) (?:posterior|anterior|más tardí[ao]))`),
		regexp.MustCompile(`^(?:las|estas|todas las|varias|ninguna|dos) fuentes? (?:[\p{L}-]+ )?(?:discrepan|difieren|coinciden|se contradicen|no |dicen|dice|citan|cita|mencionan|menciona|confirman|confirma)`),
		regexp.MustCompile(`^(?:en )?(?:este informe|este resumen|esta sección)(?:[\s,:.]|$)`),
	},
}

// readOn begins what only says where to read on.
var readOn = regexp.MustCompile(`^(?:more information|further information|more details|further reading|mehr informationen|weitere informationen|plus d['’]informations?|pour en savoir plus|más información|más detalles) ?[:：]`)

// ofSources reports whether a sentence is about the sources of the report, or about the report.
func ofSources(s string) bool {
	low := strings.ToLower(unquoted(s))
	first, _ := utf8.DecodeRuneInString(low)
	if !unicode.IsLetter(first) {
		return false
	}
	return readOn.MatchString(low) || slices.ContainsFunc(sourced[language(s)], func(r *regexp.Regexp) bool { return r.MatchString(low) })
}
