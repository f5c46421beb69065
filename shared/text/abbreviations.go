package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestAbbreviation is how many characters are looked at on each side of a full stop.
const longestAbbreviation = 24

// wordBeforeStop is a word with a full stop after it, and what stands around.
type wordBeforeStop struct {
	word        string // without the stop: "Dr", "e.g", "3"
	next        string // the word that follows, "" if none does
	nextStopped bool   // a full stop follows next
	first       bool   // word is the first of its sentence, or after a colon
	second      bool   // a single small letter with its own stop stands before word
	unit        bool   // word ends a unit of measure
}

// stopOfWord reports whether the stop belongs to the word, so that the sentence goes on. Where an abbreviation may as
// well end a sentence ("Foo Inc. The ...") the next word decides.
func stopOfWord(w wordBeforeStop) bool {
	lower := strings.ToLower(w.word)
	begins := sentenceStarters[w.next]
	switch {
	case isDigits(w.word):
		return numberGoesOn(w)
	case utf8.RuneCountInString(w.word) == 1:
		initial, _ := utf8.DecodeRuneInString(w.word)
		switch {
		case numbered[lower] && startsNumber(w.next):
			return true
		case w.first || w.second || utf8.RuneCountInString(w.next) == 1 && w.nextStopped:
			return true
		case w.unit: // "900 Wh/L. Samsung says", "25 °C. Cells"
			return false
		}
		return (unicode.IsUpper(initial) || lower == "v") && !begins
	case neverLast[lower]:
		return true
	case title[lower]:
		first, _ := utf8.DecodeRuneInString(w.word)
		return unicode.IsUpper(first) && !begins
	case numbered[lower]:
		return startsNumber(w.next)
	case maybeLast[lower] || isDotted(w.word):
		return !begins
	}
	return false
}

// numberGoesOn: "2. Cool the cell" numbers a step where it begins a sentence; "3. März" and "19. Jahrhundert" are
// ordinals; "5. 3. 2024" is a date.
func numberGoesOn(w wordBeforeStop) bool {
	if len(w.word) > 2 {
		return false
	}
	return w.first || ordinalNouns[strings.ToLower(w.next)] ||
		isDigits(w.next) && (len(w.next) <= 2 && w.nextStopped || len(w.next) == 4)
}

// startsNumber accepts 5, A1, S12 and IV.
func startsNumber(word string) bool {
	if word == "" {
		return false
	}
	return strings.ContainsAny(word[:min(2, len(word))], "0123456789") || strings.Trim(word, "IVXLC") == ""
}

// isDotted accepts abbreviations that hold stops themselves: U.S, e.g, Ph.D, т.д.
func isDotted(word string) bool {
	parts := strings.Split(word, ".")
	for _, p := range parts {
		n := utf8.RuneCountInString(p)
		if n == 0 || n > 2 || strings.ContainsFunc(p, unicode.IsDigit) {
			return false
		}
	}
	return len(parts) > 1
}

func isDigits(word string) bool {
	return word != "" && strings.Trim(word, "0123456789") == ""
}

var (
	// neverLast are followed by what they speak of, in lower case without their last stop.
	neverLast = WordSet(`e.g i.e eg cf vs viz approx ca incl excl esp resp dr prof mr mrs ms mx messrs st ste mme mlle
		bzw z.b d.h u.a v.a o.ä m.e i.d.r sog inkl ggf evtl vgl ebd p.ex p.ej dra sra srta dott ing dipl
		т.е напр см им ул просп`)

	// title stand before a name, with a capital.
	title = WordSet(`gen col sen rep gov pres hon rev capt lt sgt maj cmdr adm mt ft amb supt fr hr sr jr`)

	// numbered stand before a number; otherwise they are words: "No. The answer is ..."
	numbered = WordSet(`no nos nr num núm fig figs eq eqs tab tbl sec sect ch chap vol vols art arts p pp pg pt para
		par ref refs app ex abb bd s pág págs cap ver est jan feb mar apr jun jul aug sep sept oct okt nov dec dez
		tel c стр рис табл п`)

	// maybeLast end sentences too, then before a word that begins one.
	maybeLast = WordSet(`inc ltd co corp bros llc plc etc al usw ed eds ave blvd rd dept univ assn intl govt jr sr
		др г гг млн млрд тыс руб mio mrd tsd mill mia`)

	// ordinalNouns follow a German ordinal number.
	ordinalNouns = WordSet(`januar jänner februar märz april mai juni juli august september oktober november dezember
		jahrhundert jahrhunderts jahrhunderten jh jahrtausend auflage weltkrieg quartal halbjahr bundesliga platz`)

	// sentenceStarters are words that, with a capital, begin a sentence far more often than a name.
	sentenceStarters = WordSet(`The A An In It Its This That These Those He She They We You I His Her Their Our But However
		And Or So Yet If When While Although Though Because Since After Before As At By For From On To With Without
		There Here Then Thus Therefore Moreover Furthermore Meanwhile Instead Not No Some Most Many Such What Which
		Who How Why Where During According Despite Both Each Another Other One Two Three Several Overall
		Der Die Das Ein Eine Es Im Am Sie Er Wir Diese Dieser Dieses Aber Und Auch Mit Für Nach Bei Seit Laut
		Le La Les Un Une Il Elle Ils Elles Ce Cette Ces Mais Dans En Pour Selon
		El Los Las Una Ella Ellos Esta Este Estos Pero Según Por Para Con
		O Os As Um Uma Ele Ela Mas Em Gli Lo Ma Nel
		В На Это Он Она Они Но Как По За`)
)
