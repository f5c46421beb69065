// Package measure finds the quantities and the dates in a sentence and says whether two of them can be the same.
//
// Quantities carry their unit: "40 km" and "40,000 metres" are the same, "40 km" and "40 kg" are not of one kind. The words it knows
// are numbers, units and months in English, German, French, Spanish and Italian, and the units of Chinese and Japanese; no word of
// any subject.
package measure

import (
	"math"
	"strings"
)

// Quantity is one number or range of numbers with its unit.
type Quantity struct {
	Start, End int     // bytes of the sentence, the unit included
	Lo, Hi     float64 // in the base unit of Family; equal for a single number; Lo <= Hi
	Family     string  // "length", "mass", "ratio" (percent, fractions), "times" (multiples), "money:EUR", "energy/mass", ...; Count if it has none
	Unit       string  // the unit as it was written, "" for a count
	Approx     bool    // "about", "roughly"
	AtLeast    bool    // "at least", "more than": Lo is a lower bound
	AtMost     bool    // "at most", "less than": Hi is an upper bound
	Scope      bool    // says for which cases the sentence holds ("under 40", "at 25 °C"), rather than what holds
	Falling    bool    // a range of which the greater number stands first: "from 20 to 10 percent", a score of 4–2
	part       bool    // a fraction that no written percentage is equal to ("two thirds")
	grain      float64 // what one step of the last written digit is worth, in the base unit
}

// Attributive reports whether a quantity is written as an adjective, which mostly says which thing is meant: "the 16-nanometre process".
func (q Quantity) Attributive() bool { return strings.HasPrefix(q.Unit, "-") }

// Count is the Family of a bare number: what is counted is the noun after it.
const Count = "count"

// Relation is what two quantities or dates are to each other.
type Relation int

const (
	Unlike Relation = iota // of different kinds: nothing can be said
	Same                   // the same value, rounding that is announced ("about") allowed for
	Close                  // both can be true: a range and a value in it, a value and its unannounced rounding, open bounds
	Apart                  // both cannot be true of one thing at one time
)

// Compare relates two quantities. It is symmetric.
func Compare(a, b Quantity) Relation {
	if a.Family != b.Family {
		return Unlike
	}
	bounds := a.AtLeast == b.AtLeast && a.AtMost == b.AtMost
	gap := math.Max(math.Abs(a.Lo-b.Lo), math.Abs(a.Hi-b.Hi))
	size := math.Max(math.Max(math.Abs(a.Lo), math.Abs(a.Hi)), math.Max(math.Abs(b.Lo), math.Abs(b.Hi)))
	exact := 1e-6 * size
	if a.Unit != b.Unit && a.Family == "time" {
		exact = 0.01 * size // 52 weeks and one year, 30 days and one month
	}
	if gap <= exact {
		if a.Falling != b.Falling && gap < size {
			return Close // a range may be told from either end, a score or a change may not
		}
		if bounds {
			return Same
		}
		return Close
	}
	if a.part != b.part && a.Family == "ratio" {
		written := b.grain
		if b.part {
			written = a.grain
		}
		switch { // "two thirds" and "67 percent", but not "70 percent"
		case bounds && gap <= math.Min(written, 0.01)/2*(1+1e-9):
			return Same
		case gap <= 0.01:
			return Close
		}
	}
	approx := a.Approx || b.Approx
	step := math.Max(a.grain, b.grain) / 2
	switch {
	case approx && bounds && gap <= math.Min(step, 0.05*size)*(1+1e-9):
		return Same
	case approx && gap <= 0.1*size, gap <= math.Min(step, 0.02*size)*(1+1e-9):
		return Close
	}
	lo, hi := math.Max(lower(a), lower(b)), math.Min(upper(a), upper(b))
	if lo <= hi+1e-9*size {
		return Close
	}
	return Apart
}

func lower(q Quantity) float64 {
	if q.AtMost {
		return math.Inf(-1)
	}
	return q.Lo
}

func upper(q Quantity) float64 {
	if q.AtLeast {
		return math.Inf(1)
	}
	return q.Hi
}

// Date is one calendar date, or what is known of it.
type Date struct {
	Start, End int    // bytes of the sentence
	Year       int    // 1400..2199, 0 if not given
	Month      int    // 1..12, 0 if not given
	Day        int    // 1..31, 0 if not given
	Part       string // part of a year: "q1".."q4", "h1", "h2", "spring".."winter", "early", "mid", "late", "decade"; "" if none
	Either     [2]int // of "1/2/2026", which may be in January or in February; Month and Day are 0 then
}

// CompareDates relates two dates: Same if they say the same, Close if one says more, Apart if a part that both give differs, Unlike if
// they have no part in common. It is symmetric.
func CompareDates(a, b Date) Relation {
	if a.Either != b.Either {
		return compareEither(a, b)
	}
	common, more := false, false
	for _, p := range [][2]int{{a.Year, b.Year}, {a.Month, b.Month}, {a.Day, b.Day}} {
		switch {
		case p[0] == 0 && p[1] == 0:
		case p[0] == 0 || p[1] == 0:
			more = true
		case p[0] != p[1]:
			return Apart
		default:
			common = true
		}
	}
	switch {
	case a.Part == b.Part:
		common = common || a.Part != ""
	case a.Part == "" || b.Part == "":
		more = true
	default:
		return Apart
	}
	switch {
	case !common:
		return Unlike
	case more:
		return Close
	}
	return Same
}

// compareEither relates two dates of which at least one does not say which number is the month: Close if they may be the same.
func compareEither(a, b Date) Relation {
	readings := func(d Date) []Date {
		if d.Either == [2]int{} {
			return []Date{d}
		}
		return []Date{{Year: d.Year, Month: d.Either[0], Day: d.Either[1]}, {Year: d.Year, Month: d.Either[1], Day: d.Either[0]}}
	}
	for _, x := range readings(a) {
		for _, y := range readings(b) {
			switch CompareDates(x, y) {
			case Same, Close:
				return Close
			case Unlike:
				return Unlike
			}
		}
	}
	return Apart
}

// Find returns the quantities and dates of a sentence in the order in which they stand; their spans do not overlap. Numbers that are
// part of a name ("phase 3", "Version 4", "COVID-19") are neither.
func Find(sentence string) ([]Quantity, []Date) {
	p := parser{text: sentence, toks: scan(sentence)}
	p.commaDecimal = continental(p.toks)
	p.run()
	return p.quantities, p.dates
}

// Spelled reports whether a sentence has a word, outside of figures in digits, that may be a number or stand for one: "twelve", "half", "doubled",
// "third", "三".
func Spelled(sentence string) bool {
	p := parser{text: sentence, toks: scan(sentence)}
	quantities, dates := Find(sentence)
	inDigits := func(t token) bool {
		for _, q := range quantities {
			if t.start >= q.Start && t.end <= q.End && hasDigit(sentence[q.Start:q.End]) {
				return true
			}
		}
		for _, d := range dates {
			if t.start >= d.Start && t.end <= d.End {
				return true
			}
		}
		return false
	}
	for _, t := range p.toks {
		low := t.low
		known := small[low] != 0 || foreignSmall[low] != 0 || tens[low] != 0 || scales[low] != 0 || foreignScales[low] != 0 || fractions[low] != 0 || multiples[low] != 0 || ordinals[low] != 0 ||
			low == "hälfte" || low == "moitié" || low == "mitad" || low == "metà" || low == "one" || t.kind == han && spelledHan[t.raw]
		if known && !inDigits(t) {
			return true
		}
	}
	return false
}

var spelledHan = set("一 二 三 四 五 六 七 八 九 十 百 千 万 萬 亿 億 两 兩 半 倍")

func hasDigit(s string) bool {
	for i := range len(s) {
		if s[i] >= '0' && s[i] <= '9' {
			return true
		}
	}
	return false
}
