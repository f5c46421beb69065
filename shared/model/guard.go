package model

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/factstream/factstream/shared/model/measure"
	"github.com/factstream/factstream/shared/text"
)

// The causes for which a verdict "duplicate" does not stand. What is dropped as a duplicate is lost for the reader, so that what plainly is none
// is kept, whichever engine says so.
const (
	DropNewFigure   = "new_figure"   // verdict: the newer statement has a figure or year that the elder lacks
	DropFigureOrder = "figure_order" // verdict: the same words with the same figures in other places
	DropOtherName   = "other_name"   // verdict: "vitamin D" against "vitamin B"
)

// guard looks whether the newer statement can be a duplicate of the elder at all, by figures and letters alone, and leaves the verdict as it is
// when unsure. It says no more than it must: that a figure is missing in the newer, or said in words by the elder, is no objection.
func (t JudgeTask) guard(v *Verdict) {
	if v.Relation != Duplicate || t.Elder.Text == t.Newer.Text {
		return
	}
	cause, why, what := t.objection()
	if cause == "" {
		return
	}
	v.Relation, v.Related = Distinct, false
	v.Reason = text.Truncate(why+": "+fold(what)+". It was called a duplicate.", maxReason)
	v.Drops.add(cause)
}

// objection is the cause for which a duplicate does not stand, with what to say of it: why it is none, and what in the newer statement shows it. All are ""
// where there is none.
func (t JudgeTask) objection() (cause, why, what string) {
	elder, newer := readFigures(t.Elder.Text), readFigures(t.Newer.Text)
	if f := elder.exchanged(newer); f != "" {
		return DropFigureOrder, "The same figures stand in other places", f
	}
	if f := elder.lacks(newer, t.Elder); f != "" {
		return DropNewFigure, "The newer statement has a figure that the elder lacks", f
	}
	if n := elder.otherName(newer); n != "" {
		return DropOtherName, "The newer statement is about another one", n
	}
	return "", "", ""
}

// figures is what the guard reads in a statement: its figures, and the words and signs that they stand between.
type figures struct {
	text       string
	tokens     []token // in order; without white space, stops and quotation marks
	quantities []measure.Quantity
	dates      []measure.Date
}

// token is a number with its points and commas ("1,200"), a word with signs behind it ("A+"), or one character of any other kind.
type token struct {
	raw        string
	start, end int  // bytes of the statement
	figure     bool // a number
}

// unspaced is the first character of the scripts whose words are not set apart by spaces (the block CJK Radicals Supplement): each is a token.
const unspaced = 0x2e80

func readFigures(s string) figures {
	f := figures{text: s}
	f.quantities, f.dates = measure.Find(s)
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		j := i + n
		switch {
		case unicode.IsDigit(r):
			for j < len(s) {
				next, m := utf8.DecodeRuneInString(s[j:])
				after, _ := utf8.DecodeRuneInString(s[j+m:])
				if !unicode.IsDigit(next) && !(strings.ContainsRune(".,'’\u00a0\u202f\u2009", next) && unicode.IsDigit(after)) {
					break
				}
				j += m
			}
			f.tokens = append(f.tokens, token{s[i:j], i, j, true})
		case unicode.IsLetter(r) && r < unspaced:
			for j < len(s) {
				next, m := utf8.DecodeRuneInString(s[j:])
				if next >= unspaced || !unicode.IsLetter(next) && !unicode.IsDigit(next) && !unicode.Is(unicode.M, next) {
					break
				}
				j += m
			}
			for j < len(s) && (s[j] == '+' || s[j] == '#') {
				j++
			}
			f.tokens = append(f.tokens, token{s[i:j], i, j, false})
		case unicode.IsSpace(r) || strings.ContainsRune(".。!?\"“”„«»'’", r):
		default:
			f.tokens = append(f.tokens, token{s[i:j], i, j, false})
		}
		i = j
	}
	return f
}

// exchanged gives the figures that stand in other places of the newer statement, all words being the same; "" if none do, or if only "and"
// stands between them, or "between" directly before the first of them.
func (f figures) exchanged(newer figures) string {
	one, other := f.withoutCommas(), newer.withoutCommas()
	if len(one) != len(other) {
		return ""
	}
	first, last := -1, -1
	var here, there []string
	for i := range one {
		if one[i].figure != other[i].figure || !one[i].figure && !strings.EqualFold(one[i].raw, other[i].raw) {
			return ""
		}
		if !one[i].figure {
			continue
		}
		here, there = append(here, one[i].raw), append(there, other[i].raw)
		if one[i].raw != other[i].raw {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first < 0 || slices.ContainsFunc(one[max(first-2, 0):first], func(t token) bool { return between[strings.ToLower(t.raw)] }) {
		return ""
	}
	sortedHere, sortedThere := slices.Sorted(slices.Values(here)), slices.Sorted(slices.Values(there))
	if !slices.Equal(sortedHere, sortedThere) {
		return ""
	}
	row := true
	for _, t := range one[first:last] {
		row = row && (t.figure || Joins(strings.ToLower(t.raw)))
	}
	gap := f.text[one[first].end:one[last].start]
	if row && (strings.ContainsAny(gap, ",、，") || slices.ContainsFunc(one[first:last], func(t token) bool { return Joins(strings.ToLower(t.raw)) })) {
		return ""
	}
	return strings.Join(there, ", ")
}

// withoutCommas are the tokens but for commas, which are set here and left out there.
func (f figures) withoutCommas() []token {
	return slices.DeleteFunc(slices.Clone(f.tokens), func(t token) bool { return t.raw == "," || t.raw == "、" || t.raw == "，" })
}

// Joins reports a word in small letters that joins two of a row, whose order says nothing: "and" or "or" in English, German, French, Spanish or Italian.
func Joins(word string) bool { return joining[word] }

var (
	between = text.WordSet("between zwischen entre tra fra")
	joining = text.WordSet("and or und oder et ou y o e")
	// sometime are words for a time that a year may say: "last year".
	sometime = text.WordSet("year years yesterday today now currently last this recently ago since decade century jahr jahre jahren jahres heute gestern letztes letzten derzeit vor année an ans aujourd hier " +
		"dernier dernière año años hoy ayer pasado anno anni oggi ieri scorso nineties eighties seventies")
)

// lacks gives a figure or year of the newer statement, written in digits, that the elder has in no spelling.
func (f figures) lacks(newer figures, elder Statement) string {
	if measure.Spelled(f.text) { // "half", "twelve", "doubled": it may say it in words
		return ""
	}
	values := f.values()
	for _, q := range newer.quantities {
		said := newer.text[q.Start:q.End]
		if !strings.ContainsAny(said, "0123456789") || q.Scope || f.says(q, newer, values) {
			continue
		}
		return said
	}
	if f.sometime() {
		return ""
	}
	beside := elder.SourceTitle + " " + elder.Date + " " + strings.Join(elder.Tags, " ")
	for _, d := range newer.dates {
		year := strconv.Itoa(d.Year)
		if d.Year == 0 || d.Part == "decade" || !strings.Contains(newer.text[d.Start:d.End], year) || strings.Contains(beside, year) || strings.Contains(f.text, year[2:]) {
			continue
		}
		if slices.ContainsFunc(f.dates, func(e measure.Date) bool { return e.Part == "decade" || e.Year != 0 && len(f.dates) > 1 }) {
			continue // the span may hold it
		}
		return newer.text[d.Start:d.End]
	}
	return ""
}

// sometime reports whether the statement has a word for a time that a year may say.
func (f figures) sometime() bool {
	return strings.ContainsAny(f.text, "年昨今去") || slices.ContainsFunc(f.tokens, func(t token) bool { return sometime[strings.ToLower(t.raw)] })
}

// values are the numbers of the statement as they can be read.
func (f figures) values() []float64 {
	var out []float64
	for _, t := range f.tokens {
		if t.figure {
			out = append(out, readings(t.raw)...)
		}
	}
	return out
}

// readings of a written number: with a point for decimals, with a comma, and with neither.
func readings(raw string) (out []float64) {
	digits := func(keep rune) string {
		return strings.Map(func(r rune) rune {
			switch {
			case unicode.IsDigit(r):
				return r
			case r == keep:
				return '.'
			}
			return -1
		}, raw)
	}
	for _, s := range []string{digits('.'), digits(','), digits(0)} {
		if v, err := strconv.ParseFloat(s, 64); err == nil {
			out = append(out, v)
		}
	}
	return out
}

// says reports whether a quantity of the newer statement may be what this one says: in another spelling or unit, as a difference, as what is left.
func (f figures) says(q measure.Quantity, newer figures, values []float64) bool {
	for _, t := range newer.tokens {
		if t.figure && t.start >= q.Start && t.end <= q.End {
			for _, v := range readings(t.raw) {
				if v == 0 || v == 1 || slices.Contains(values, v) {
					return true
				}
			}
		}
	}
	if q.Family == "ratio" && q.Hi >= 1 || q.Family == "time" && len(f.dates) > 0 {
		return true // "all"; a span of years
	}
	unlike, alike := 0, 0
	for i, e := range f.quantities {
		switch measure.Compare(e, q) {
		case measure.Same, measure.Close:
			return true
		case measure.Unlike:
			unlike++
		case measure.Apart:
			alike++
			if q.Family == "ratio" && near(e.Lo+q.Lo, 1) {
				return true
			}
		}
		for _, o := range f.quantities[:i] {
			for _, v := range []float64{e.Lo - o.Lo, o.Lo - e.Lo, e.Lo + o.Lo, e.Lo / o.Lo, o.Lo / e.Lo, e.Lo/o.Lo - 1, o.Lo/e.Lo - 1} {
				if near(v, q.Lo) {
					return true
				}
			}
		}
	}
	// Of other kinds alone, one may be the other in a unit or currency that is not known.
	return alike == 0 && unlike > 0 && len(newer.quantities) <= len(f.quantities)
}

// The limits, tried by TestGuard and the labelled pairs of all topics (186 right duplicates, of which none is lost by any of the values tried, and 443
// contradictions).
const (
	// namedBytes has a word at least that a letter or number can tell from another: with 4 "Typ-1-Diabetes" and "Typ-2-Diabetes" are no longer told
	// apart, 1 and 2 give the same as 3 and are left out since they are articles and prepositions.
	namedBytes = 3
	// designatingDigits has a number at most that is a name: 1, 2 and 4 give the same on all topics; of 4 it may be a year.
	designatingDigits = 3
	// rounding is the share by which figures may differ and be the same: that of measure.Compare. 170 contradictions are caught with it and with less, 168
	// with 0.05 and 163 with 0.1.
	rounding = 0.02
)

// near allows for rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= rounding*math.Max(math.Abs(a), math.Abs(b)) }

// otherName gives a name of the newer statement that a letter, sign or number tells from one of the elder, which does not have it.
func (f figures) otherName(newer figures) string {
	for i, t := range newer.tokens {
		mine := newer.designation(i)
		if mine == "" || slices.ContainsFunc(f.tokens, func(u token) bool { return folded(u.raw) == mine || apart(u.raw, mine) }) {
			continue
		}
		before := newer.named(i)
		for k := range f.tokens {
			other := f.designation(k)
			if other == "" || !strings.EqualFold(f.named(k), before) || strings.HasPrefix(mine, other) && apart(mine, other) || strings.HasPrefix(other, mine) && apart(other, mine) && !strings.HasSuffix(other, "+") {
				continue
			}
			return before + " " + t.raw
		}
	}
	return ""
}

// apart reports whether a letter or number stands in a token by itself: the B of "B12", the 12 of it; not the D of "Denmark", nor its 2.
func apart(raw, mine string) bool {
	alike := func(a, b rune) bool {
		return unicode.IsLetter(a) && unicode.IsLetter(b) || unicode.IsDigit(a) && unicode.IsDigit(b)
	}
	first, _ := utf8.DecodeRuneInString(mine)
	last, _ := utf8.DecodeLastRuneInString(mine)
	for from := 0; ; {
		at := strings.Index(raw[from:], mine)
		if at < 0 {
			return false
		}
		start := from + at
		end := start + len(mine)
		before, _ := utf8.DecodeLastRuneInString(raw[:start])
		after, _ := utf8.DecodeRuneInString(raw[end:])
		if !alike(before, first) && !alike(last, after) {
			return true
		}
		from = end
	}
}

// named is the word that the token i stands directly behind, with a space or a hyphen between; "" if it is none of three letters.
func (f figures) named(i int) string {
	j := i - 1
	if j > 0 && f.tokens[j].raw == "-" && f.tokens[j].end == f.tokens[i].start && f.tokens[j-1].end == f.tokens[j].start {
		j--
	} else if j < 0 || f.tokens[j].end+1 != f.tokens[i].start {
		return ""
	}
	if f.tokens[j].figure || len(f.tokens[j].raw) < namedBytes {
		return ""
	}
	return f.tokens[j].raw
}

// designation is the token i folded, if it is a capital letter, with a sign or number or without, a Roman number or a number that is no figure, and
// stands directly behind a word; else "".
func (f figures) designation(i int) string {
	t := f.tokens[i]
	if f.named(i) == "" {
		return ""
	}
	if strings.HasPrefix(f.text[t.end:], ".") && len(t.raw) == 1 && strings.TrimSpace(f.text[t.end:]) != "." {
		return "" // an initial
	}
	if strings.HasPrefix(f.text[t.end:], "'") || strings.HasPrefix(f.text[t.end:], "’") {
		return ""
	}
	within := func(start, end int) bool { return t.start >= start && t.end <= end }
	switch {
	case slices.ContainsFunc(f.quantities, func(q measure.Quantity) bool { return within(q.Start, q.End) }), slices.ContainsFunc(f.dates, func(d measure.Date) bool { return within(d.Start, d.End) }):
		return ""
	case t.figure && len(t.raw) <= designatingDigits:
		return t.raw
	case t.figure:
		return ""
	}
	letters := strings.TrimRight(t.raw, "+#0123456789")
	if r, _ := utf8.DecodeRuneInString(letters); utf8.RuneCountInString(letters) == 1 && unicode.IsUpper(r) || strings.Trim(letters, "IVX") == "" {
		return folded(t.raw)
	}
	return ""
}

// folded is a token with a Roman number as digits.
func folded(raw string) string {
	if raw == "" || strings.Trim(raw, "IVX") != "" {
		return raw
	}
	n, worth := 0, map[byte]int{'I': 1, 'V': 5, 'X': 10}
	for i := range len(raw) {
		if i+1 < len(raw) && worth[raw[i]] < worth[raw[i+1]] {
			n -= worth[raw[i]]
		} else {
			n += worth[raw[i]]
		}
	}
	return strconv.Itoa(n)
}
