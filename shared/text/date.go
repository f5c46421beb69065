package text

import (
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Precision says how much of a date was given.
type Precision string

// Day also stands for a date with a time of day.
const (
	Day   Precision = "day"
	Month Precision = "month"
	Year  Precision = "year"
)

// The years that a page can plausibly be dated: what lies outside is a placeholder or a mistake.
const (
	firstYear = 1400
	lastYear  = 2200
)

// ParseDate reads a date as pages and APIs write it and returns it in UTC, with what was left out set to its first
// value (the first of the month, January, midnight).
//
// It reads RFC 3339, RFC 1123 and their relatives; 2024-03-05, 2024/3/5, 2024.03.05, 20240305, 20240305103000, 2024-03,
// 2024; month names in English, German, French, Spanish, Italian, Portuguese, Dutch and Russian, in any order that names
// the year in full ("March 5th, 2024", "5. März 2024", "mars 2024"); 2024年3月5日 and 2024년 3월 5일; 05.03.2024, which is
// day first; Unix time in seconds (10 digits) or milliseconds (13). 03/25/2024 and 25-03-2024 are read as the only
// thing they can be, 03/05/2024 is refused, since half the world reads it otherwise; so are two-digit years, relative
// dates, dates that do not exist, and years before 1400 or after 2200. A time of day without a zone is taken as UTC; one
// that cannot be read is left out.
func ParseDate(s string) (t time.Time, precision Precision, ok bool) {
	const longest = 80 // characters of the longest spelling, with room
	if len(s) > 4*longest {
		return time.Time{}, "", false
	}
	tokens := dateTokens(strings.ToLower(norm.NFKC.String(s)))
	if len(tokens) == 0 {
		return time.Time{}, "", false
	}
	for _, read := range []func([]dateToken) (date, bool){readDigits, readEastAsian, readNumeric, readNamed} {
		if d, found := read(tokens); found {
			return d.time()
		}
	}
	return time.Time{}, "", false
}

// date is what was read: month and day are 0 where none was given.
type date struct {
	year, month, day int
	clock            time.Duration // since midnight UTC; may leave the day by its zone
}

func (d date) time() (time.Time, Precision, bool) {
	precision := Day
	switch {
	case d.month == 0:
		precision, d.month, d.day = Year, 1, 1
	case d.day == 0:
		precision, d.day = Month, 1
	}
	t := time.Date(d.year, time.Month(d.month), d.day, 0, 0, 0, 0, time.UTC)
	if d.year < firstYear || d.year > lastYear || t.Month() != time.Month(d.month) || t.Day() != d.day {
		return time.Time{}, "", false
	}
	return t.Add(d.clock), precision, true
}

// dateToken is a run of digits, a run of letters, or one other character that is no space.
type dateToken struct {
	text   string
	number int // of a run of up to 9 digits; -1 for anything else
	spaced bool
}

func (t dateToken) digits() int {
	if t.number < 0 {
		return 0
	}
	return len(t.text)
}

func dateTokens(s string) []dateToken {
	var out []dateToken
	spaced := false
	class := func(c rune) int {
		switch {
		case c >= '0' && c <= '9':
			return 1
		case strings.ContainsRune("年月日년월일", c):
			return 3 // each alone
		case unicode.IsLetter(c) || unicode.IsMark(c):
			return 2
		}
		return 3
	}
	last := 0
	for _, c := range s {
		if unicode.IsSpace(c) {
			spaced, last = true, 0
			continue
		}
		k := class(c)
		if k == last && k != 3 {
			out[len(out)-1].text += string(c)
		} else {
			out = append(out, dateToken{text: string(c), spaced: spaced})
		}
		spaced, last = false, k
	}
	for i := range out {
		out[i].number = -1
		if n, err := strconv.Atoi(out[i].text); err == nil && len(out[i].text) <= 9 && out[i].text[0] != '-' && out[i].text[0] != '+' {
			out[i].number = n
		}
	}
	return out
}

// readDigits reads dates that are nothing but digits.
func readDigits(tokens []dateToken) (date, bool) {
	digits := tokens[0].text
	if len(tokens) == 3 && tokens[1].text == "." && len(digits) == 10 && isDigits(tokens[2].text) {
		tokens = tokens[:1] // seconds with a fraction
	}
	if len(tokens) != 1 || !isDigits(digits) {
		return date{}, false
	}
	part := func(from, to int) int {
		n, _ := strconv.Atoi(digits[from:to])
		return n
	}
	switch len(digits) {
	case 4:
		return date{year: part(0, 4)}, true
	case 8:
		return date{year: part(0, 4), month: part(4, 6), day: part(6, 8)}, part(4, 6) > 0 && part(6, 8) > 0
	case 14:
		clock, ok := clockOf(part(8, 10), part(10, 12), part(12, 14))
		return date{year: part(0, 4), month: part(4, 6), day: part(6, 8), clock: clock}, ok && part(4, 6) > 0 && part(6, 8) > 0
	case 10, 13:
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return date{}, false
		}
		if len(digits) == 10 {
			n *= 1000
		}
		t := time.UnixMilli(n).UTC()
		midnight := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
		return date{year: t.Year(), month: int(t.Month()), day: t.Day(), clock: t.Sub(midnight)}, true
	}
	return date{}, false
}

// readEastAsian reads 2024年3月5日 and 2024년 3월 5일, with or without month and day.
func readEastAsian(tokens []dateToken) (date, bool) {
	var d date
	for i, field := range []struct {
		into  *int
		marks string
	}{{&d.year, "年년"}, {&d.month, "月월"}, {&d.day, "日일"}} {
		if len(tokens) < 2 && i > 0 {
			return d, len(tokens) == 0
		}
		if len(tokens) < 2 || tokens[0].number < 1 || !strings.Contains(field.marks, tokens[1].text) {
			return date{}, false
		}
		*field.into = tokens[0].number
		tokens = tokens[2:]
	}
	d.clock = readClock(tokens)
	return d, true
}

// readNumeric reads dates of numbers with one kind of separator.
func readNumeric(tokens []dateToken) (date, bool) {
	if len(tokens) < 3 || tokens[0].number < 0 || tokens[2].number < 0 || !strings.Contains("-/.‐‑–", tokens[1].text) {
		return date{}, false
	}
	separator := tokens[1].text
	if len(tokens) < 5 || tokens[3].text != separator || tokens[4].number < 0 {
		if len(tokens) > 3 {
			return date{}, false
		}
		switch a, b := tokens[0], tokens[2]; {
		case a.digits() == 4 && b.digits() <= 2 && b.number > 0:
			return date{year: a.number, month: b.number}, true
		case a.digits() <= 2 && b.digits() == 4 && a.number > 0:
			return date{year: b.number, month: a.number}, true
		}
		return date{}, false
	}
	a, b, c := tokens[0], tokens[2], tokens[4]
	var d date
	switch {
	case a.digits() == 4 && b.digits() <= 2 && c.digits() <= 2:
		d = date{year: a.number, month: b.number, day: c.number}
	case c.digits() != 4 || a.digits() > 2 || b.digits() > 2:
		return date{}, false
	case separator == "." || a.number > 12 || a.number == b.number:
		d = date{year: c.number, month: b.number, day: a.number}
	case b.number > 12:
		d = date{year: c.number, month: a.number, day: b.number}
	default:
		return date{}, false
	}
	more := len(tokens) > 5 && tokens[5].text == separator && !tokens[5].spaced
	if d.month == 0 || d.day == 0 || more {
		return date{}, false
	}
	d.clock = readClock(tokens[5:])
	return d, true
}

// readNamed reads dates with the name of a month: one year in full, at most one day, and nothing that is not known.
func readNamed(tokens []dateToken) (date, bool) {
	var d date
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		month := monthNames[foldLetters(t.text)]
		switch {
		case month > 0 && d.month == 0:
			d.month = month
		case t.number >= 0 && i+2 < len(tokens) && tokens[i+1].text == ":":
			last := len(tokens) - 1
			if d.year == 0 && tokens[last].digits() == 4 && !strings.Contains("+-−", tokens[last-1].text) {
				d.year = tokens[last].number // "Tue Mar 5 10:00:00 UTC 2024"
				tokens = tokens[:last]
			}
			d.clock = readClock(tokens[i:])
			tokens = tokens[:i]
		case t.digits() == 4 && d.year == 0:
			d.year = t.number
		case t.number > 0 && t.digits() <= 2 && d.day == 0:
			d.day = t.number
			if i+1 < len(tokens) && dayEndings[tokens[i+1].text] && !tokens[i+1].spaced {
				i++
			}
		case i > 0 && t.text == "t" || dateFillers[foldLetters(t.text)] || strings.Contains(",.-/()|:", t.text):
		default:
			return date{}, false
		}
	}
	return d, d.year > 0 && d.month > 0
}

// readClock reads a time of day with its zone, as time since midnight UTC; 0 if it cannot be read.
func readClock(tokens []dateToken) time.Duration {
	for len(tokens) > 0 && clockFillers[tokens[0].text] {
		tokens = tokens[1:]
	}
	if len(tokens) < 3 || tokens[0].number < 0 || tokens[1].text != ":" || tokens[2].number < 0 {
		return 0
	}
	hour, minute, second := tokens[0].number, tokens[2].number, 0
	tokens = tokens[3:]
	var fraction time.Duration
	if len(tokens) >= 2 && tokens[0].text == ":" && tokens[1].number >= 0 {
		second = tokens[1].number
		tokens = tokens[2:]
		if len(tokens) >= 2 && (tokens[0].text == "." || tokens[0].text == ",") && tokens[1].number >= 0 {
			nanos := (tokens[1].text + "000000000")[:9]
			n, _ := strconv.Atoi(nanos)
			fraction = time.Duration(n)
			tokens = tokens[2:]
		}
	}
	half := ""
	if len(tokens) > 0 {
		half = strings.Trim(tokens[0].text, ".")
	}
	switch {
	case half == "am" && hour == 12:
		hour = 0
	case half == "pm" && hour < 12:
		hour += 12
	}
	if half == "am" || half == "pm" {
		tokens = tokens[1:]
	}
	clock, ok := clockOf(hour, minute, second)
	offset, known := readZone(tokens)
	if !ok || !known {
		return 0
	}
	return clock + fraction - offset
}

func clockOf(hour, minute, second int) (time.Duration, bool) {
	ok := hour < 24 && minute < 60 && second <= 60
	return time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second, ok
}

// readZone returns how far a zone is ahead of UTC.
func readZone(tokens []dateToken) (time.Duration, bool) {
	if len(tokens) > 0 && zones[tokens[0].text] != nil {
		offset := time.Duration(*zones[tokens[0].text]) * time.Hour
		if len(tokens) == 1 || tokens[0].text != "utc" && tokens[0].text != "gmt" {
			return offset, true
		}
		tokens = tokens[1:] // GMT+2
	}
	if len(tokens) == 0 {
		return 0, true
	}
	sign := time.Duration(1)
	switch tokens[0].text {
	case "+":
	case "-", "−":
		sign = -1
	default:
		return 0, false
	}
	tokens = tokens[1:]
	switch {
	case len(tokens) >= 3 && tokens[0].number >= 0 && tokens[1].text == ":" && tokens[2].number >= 0:
		offset, ok := clockOf(tokens[0].number, tokens[2].number, 0)
		return sign * offset, ok
	case len(tokens) >= 1 && tokens[0].digits() == 4:
		offset, ok := clockOf(tokens[0].number/100, tokens[0].number%100, 0)
		return sign * offset, ok
	case len(tokens) >= 1 && tokens[0].digits() > 0 && tokens[0].digits() <= 2:
		offset, ok := clockOf(tokens[0].number, 0, 0)
		return sign * offset, ok
	}
	return 0, false
}

// foldLetters drops accents: février is fevrier, май is маи.
func foldLetters(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.Is(unicode.Mn, c) {
			return -1
		}
		return c
	}, norm.NFD.String(s))
}

// zones holds the hours ahead of UTC of the names that are in common use and mean one thing in most texts.
var zones = func() map[string]*int {
	out := map[string]*int{}
	for hours, names := range map[int]string{0: "z utc gmt wet", 1: "cet bst", 2: "cest eet", 3: "eest msk", 9: "jst kst",
		-4: "edt", -5: "est cdt", -6: "cst mdt", -7: "mst pdt", -8: "pst"} {
		for name := range WordSet(names) {
			out[name] = &hours
		}
	}
	return out
}()

var monthNames = func() map[string]int {
	out := map[string]int{}
	for i, names := range []string{
		"january jan januar jänner jän janvier janv enero ene gennaio gen janeiro januari января январь янв",
		"february feb februar feber février fevr févr febrero febbraio fevereiro fev februari февраля февраль фев февр",
		"march mar märz mär mrz mars marzo março maart mrt марта март мар",
		"april apr avril avr abril abr aprile апреля апрель апр",
		"may mai mayo maggio mag maio mei мая май",
		"june jun juni juin junio giugno giu junho июня июнь июн",
		"july jul juli juillet juil julio luglio lug julho июля июль июл",
		"august aug août aou agosto ago augustus августа август авг",
		"september sep sept septembre septiembre setiembre settembre set setembro сентября сентябрь сен сент",
		"october oct oktober okt octobre octubre ottobre ott outubro out октября октябрь окт",
		"november nov novembre noviembre novembro ноября ноябрь ноя нояб",
		"december dec dezember dez décembre déc diciembre dic dicembre dezembro декабря декабрь дек",
	} {
		for name := range WordSet(names) {
			out[foldLetters(name)] = i + 1
		}
	}
	return out
}()

var (
	dayEndings   = WordSet("st nd rd th er º ª o")
	clockFillers = WordSet("t at um à , - | · @ kl")

	// dateFillers are what may stand in a date and says nothing.
	dateFillers = WordSet(`of the on de del do di le el den der d at um a kl uhr г года
		published posted updated date released veroffentlicht publie publicado
		monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat sun
		montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag
		lundi mardi mercredi jeudi vendredi samedi dimanche
		lunes martes miercoles jueves viernes sabado domingo
		lunedi martedi mercoledi giovedi venerdi segunda terca quarta quinta sexta feira
		maandag dinsdag woensdag donderdag vrijdag zaterdag zondag`)
)
