package measure

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// parser walks the tokens of one sentence once, from left to right.
type parser struct {
	text         string
	toks         []token
	commaDecimal bool // the sentence is in a language with a decimal comma
	quantities   []Quantity
	dates        []Date
}

func (p *parser) run() {
	for i := 0; i < len(p.toks); {
		if next := p.date(i); next > i {
			i = next
			continue
		}
		if next := p.quantity(i); next > i {
			i = next
			continue
		}
		i++
	}
}

var none = token{kind: symbol}

// at returns the token i, or one that matches nothing.
func (p *parser) at(i int) token {
	if i < 0 || i >= len(p.toks) {
		return none
	}
	return p.toks[i]
}

func (p *parser) span(i, j int) (start, end int) { return p.toks[i].start, p.toks[j-1].end }

// magnitude is a number as it stands in the text, with its scale word, before any unit.
type magnitude struct {
	v, grain float64
	scale    float64 // of a scale word, 1 if there is none
	ratio    bool    // a fraction or "n in m"
	part     bool    // of thirds or sixths
	next     int     // token after it
}

// quantity reads the quantity that starts at token i and returns the token after it, or i if none does.
func (p *parser) quantity(i int) int {
	j, money := p.currencyBefore(i)
	if q, next, ok := p.multiple(i); ok {
		p.keep(q, i, next)
		return next
	}
	first, ok := p.magnitude(j, money.family != "")
	if !ok || p.named(j, first.next) {
		return i
	}
	q := Quantity{Lo: first.v, Hi: first.v, grain: first.grain, Family: Count, part: first.part}
	u, next, found := p.unit(first.next)
	if !found {
		next = first.next
		if t := p.at(next); t.kind == word && t.glued && p.at(next-1).kind == number {
			return i // "3D", "21st": part of a word
		}
	}
	if second, su, end, isRange := p.rangeEnd(i, next, u, money.family != ""); isRange {
		if second.scale > first.scale && first.v < second.v/second.scale {
			q.Lo, q.grain = first.v*second.scale, first.grain*second.scale
		}
		q.Hi, q.grain, next = second.v, max(q.grain, second.grain), end
		if su.family != "" {
			u, found = su, true
		}
		first.ratio = first.ratio || second.ratio
	}
	switch {
	case money.family != "":
		u, found = money, true
	case first.ratio && (!found || u.family == "ratio"):
		u, found = unit{family: "ratio", factor: 1}, true
	}
	if found {
		q.Family = u.family
		q.Lo, q.Hi, q.grain = (q.Lo+u.offset)*u.factor, (q.Hi+u.offset)*u.factor, q.grain*u.factor
		if next > first.next {
			q.Unit = strings.ToLower(p.text[p.at(first.next).start:p.at(next-1).end])
		}
	}
	if q.Lo > q.Hi {
		q.Lo, q.Hi = q.Hi, q.Lo
		q.Falling = !betweenWords[p.at(i-1).low]
	}
	if p.at(next).raw == "+" {
		q.AtLeast = true
		next++
	}
	p.keep(q, i, next)
	return next
}

// keep adds a quantity that spans the tokens i to next, with the hedges that stand before it.
func (p *parser) keep(q Quantity, i, next int) {
	q.Start, q.End = p.span(i, next)
	k := i - 1
	for k >= 0 && i-k <= 2 && (betweenWords[p.at(k).low] || fromWords[p.at(k).low] || articles[p.at(k).low]) {
		k--
	}
	if approxWords[p.at(k).low] {
		q.Approx = true
		k--
	} else if p.at(k).raw == "." && approxWords[p.at(k-1).low] {
		q.Approx = true // "ca."
		k -= 2
	}
	bound := p.endsWith(k, atLeast)
	if bound > 0 {
		q.AtLeast = true
	} else if bound = p.endsWith(k, atMost); bound > 0 {
		q.AtMost = true
	}
	switch before := p.at(k); {
	case bound > 1 || !scopeWords[before.low]:
	case places[before.low]: // "at 25 °C" is a condition, "stood at 5 percent" is a value
		q.Scope = q.Family == "temperature" || q.Family == "pressure" || q.Family == "voltage" || q.Family == "length" || q.Family == "length/time"
	case bound == 0:
		q.Scope = true
	default: // "over 65" and "under 40 years" name a group, "over 1,000 people" is a value
		q.Scope = q.Family == "time" || p.at(next).kind != word
	}
	p.quantities = append(p.quantities, q)
}

// endsWith returns the number of tokens of the phrase that ends at token k, 0 if none of the phrases does.
func (p *parser) endsWith(k int, phrases []string) int {
	joined := ""
	for n := 1; n <= 4 && k-n+1 >= 0; n++ {
		joined = strings.TrimRight(p.at(k-n+1).low+" "+joined, " ")
		for _, phrase := range phrases {
			if joined == phrase {
				return n
			}
		}
	}
	return 0
}

// currencyBefore returns the token after a currency sign that stands at i, and its unit; i and no unit if none does.
func (p *parser) currencyBefore(i int) (int, unit) {
	t := p.at(i)
	if t.raw == "US" && p.at(i+1).raw == "$" {
		return i + 2, symbols["$"]
	}
	u, ok := symbols[t.raw]
	if !ok || !strings.HasPrefix(u.family, "money:") || p.at(i+1).kind != number {
		return i, unit{}
	}
	return i + 1, u
}

// multiple reads "twice" and "a factor of 3".
func (p *parser) multiple(i int) (q Quantity, next int, ok bool) {
	if v, found := multiples[p.at(i).low]; found {
		return Quantity{Lo: v, Hi: v, grain: 0.5, Family: "times", Unit: "times"}, i + 1, true
	}
	if v, next := p.partAs(i); next > i {
		return Quantity{Lo: v, Hi: v, grain: 0.01, Family: "times", Unit: "times"}, next, true
	}
	if p.at(i).low != "factor" && p.at(i).low != "faktor" {
		return q, i, false
	}
	j := i + 1
	if of[p.at(j).low] || p.at(j).low == "von" {
		j++
	}
	m, found := p.magnitude(j, false)
	if !found {
		return q, i, false
	}
	q = Quantity{Lo: m.v, Hi: m.v, grain: m.grain, Family: "times", Unit: "times"}
	if second, _, end, isRange := p.rangeEnd(i, m.next, unit{}, false); isRange {
		q.Hi, m.next = second.v, end
	}
	if q.Lo > q.Hi {
		q.Lo, q.Hi = q.Hi, q.Lo
	}
	return q, m.next, true
}

// partAs reads a fraction that compares: "half as fast as", "a third as many", "half the size of" after "is", "halb so schnell wie", "la mitad de rápida
// que". It returns the token after it, or i if there is none.
func (p *parser) partAs(i int) (v float64, next int) {
	asAgain := func(k int, again string) bool { // "as fast as", "so schnell wie"
		for n := k + 1; n <= k+4; n++ {
			if p.at(n).low == again && n > k+1 {
				return true
			}
		}
		return much[p.at(k+1).low]
	}
	t := p.at(i).low
	switch {
	case t == "half" && p.at(i+1).low == "as" && asAgain(i+1, "as"), t == "halb" && p.at(i+1).low == "so" && asAgain(i+1, "wie"):
		return 0.5, i + 1
	case t == "mitad" && p.at(i+1).low == "de" && asAgain(i+1, "que"):
		return 0.5, i + 1
	case t == "half" && articles[p.at(i+1).low] && sizes[p.at(i+2).low] && of[p.at(i+3).low] && isForms[p.at(i-1).low]:
		return 0.5, i + 1
	case (t == "a" || t == "one") && fractions[p.at(i+1).low] != 0 && p.at(i+2).low == "as" && asAgain(i+2, "as"):
		return fractions[p.at(i+1).low], i + 2
	}
	return 0, i
}

// magnitude reads a number at token j: digits or words, a sign, a scale, a fraction.
func (p *parser) magnitude(j int, money bool) (magnitude, bool) {
	start := j
	sign := 1.
	if t := p.at(j); (t.raw == "-" || t.raw == "−") && p.at(j+1).kind == number && p.at(j+1).glued && !(t.glued && j > 0) {
		sign, j = -1, j+1
	}
	m := magnitude{scale: 1}
	t := p.at(j)
	switch {
	case t.kind == number:
		v, grain, ok := value(t.raw, p.commaDecimal)
		if !ok {
			return m, false
		}
		m.v, m.grain, m.next = v, grain, j+1
	case articles[t.low] && fractions[p.at(j+1).low] != 0 && of[p.at(j+2).low]:
		m.v, m.grain, m.ratio, m.next = fractions[p.at(j+1).low], 0.01, true, j+2
		m.part = recurring(m.v)
		return m, true
	case t.low == "half" && (of[p.at(j+1).low] || articles[p.at(j+1).low]) || (t.low == "half" && (p.at(j-1).low == "by" || p.at(j-1).low == "than")):
		m.v, m.grain, m.ratio, m.next = 0.5, 0.01, true, j+1
		return m, true
	case (t.low == "a" || t.low == "one") && scales[p.at(j+1).low] >= 100:
		m.v, m.grain, m.next = 1, 1, j+1
	default:
		v, next, ok := p.spelled(j)
		if !ok {
			return m, false
		}
		m.v, m.grain, m.next = v, 1, next
	}
	if h := p.at(m.next); h.raw == "-" && h.glued && fractions[p.at(m.next+1).low] != 0 && p.at(m.next+1).glued && m.v < 20 {
		m.next++ // "two-thirds"
	}
	if n := p.at(m.next).low; fractions[n] != 0 && n != "half" && m.v < 20 && (n != "quarter" && n != "quarters" || of[p.at(m.next+1).low]) {
		m.v, m.grain, m.ratio, m.next = m.v*fractions[n], 0.01, true, m.next+1
		m.part = recurring(m.v)
		return m, true
	}
	if v, next, ok := p.share(m.next); ok && v > m.v {
		m.v, m.grain, m.ratio, m.next = m.v/v, 0.01, true, next
		return m, true
	}
	if p.at(m.next).low == "and" && (p.at(m.next+1).low == "a" || p.at(m.next+1).low == "one") && p.at(m.next+2).low == "half" && m.v == math.Trunc(m.v) {
		m.v, m.grain, m.next = m.v+0.5, 0.5, m.next+3 // "two and a half hours"
	}
	if j == start && t.low == "one" && m.v == 1 && scales[p.at(m.next).low] == 0 {
		if _, _, ok := p.unit(m.next); !ok {
			return m, false // the pronoun
		}
	}
	m.scale, m.next = p.scale(m.next, money)
	m.v, m.grain = sign*m.v*m.scale, m.grain*m.scale
	return m, true
}

// recurring reports whether a fraction has no end as a decimal number.
func recurring(v float64) bool { return math.Abs(v*1000-math.Round(v*1000)) > 1e-6 }

// share reads the "in four" of "one in four" and the "out of 5" of "3 out of 5".
func (p *parser) share(j int) (v float64, next int, ok bool) {
	switch {
	case p.at(j).low == "in":
		j++
	case p.at(j).low == "out" && p.at(j+1).low == "of":
		j += 2
	default:
		return 0, j, false
	}
	t := p.at(j)
	if t.kind == number {
		v, _, ok = value(t.raw, p.commaDecimal)
		if year(t.raw) != 0 {
			return 0, j, false
		}
		next = j + 1
	} else {
		v, next, ok = p.spelled(j)
	}
	if _, _, measured := p.unit(next); measured {
		return 0, j, false // "fell 3 in 4 years"
	}
	return v, next, ok && v > 1
}

// spelled reads a number written in words, without its scale above hundred.
func (p *parser) spelled(j int) (v float64, next int, ok bool) {
	t := p.at(j).low
	switch {
	case tens[t] != 0:
		v, next = tens[t], j+1
		k := next
		if dashes[p.at(k).raw] {
			k++
		}
		if o := ones[p.at(k).low]; o != 0 {
			v, next = v+o, k+1
		}
	case small[t] != 0:
		v, next = small[t], j+1
	case t == "one":
		v, next = 1, j+1
	case p.commaDecimal && foreignSmall[t] != 0 && !p.capital(j):
		v, next = foreignSmall[t], j+1
	default:
		return 0, j, false
	}
	return v, next, true
}

// capital reports whether the word at token j has a capital within a sentence: "Otto" is no number there.
func (p *parser) capital(j int) bool {
	r, _ := utf8.DecodeRuneInString(p.at(j).raw)
	return unicode.IsUpper(r) && j > 0 && p.at(j-1).kind != symbol
}

// scale reads scale words ("million", "thousand million"): their product, 1 if there are none.
func (p *parser) scale(j int, money bool) (float64, int) {
	product := 1.
	for n := 0; n < 2; n++ {
		t := p.at(j)
		s, width := scales[t.low], 1
		switch {
		case s == 0 && p.commaDecimal && foreignScales[t.low] != 0:
			s = foreignScales[t.low]
			if p.at(j+1).raw == "." && (t.low == "mio" || t.low == "mrd") {
				width = 2
			}
		case s == 0 && t.kind == han:
			if s = hanScales[t.raw+p.at(j+1).raw]; s != 0 && p.at(j+1).kind == han {
				width = 2
			} else {
				s = hanScales[t.raw]
			}
		case s == 0 && money && t.glued:
			s = map[string]float64{"k": 1e3, "m": 1e6, "b": 1e9}[t.low]
		}
		if s == 0 {
			break
		}
		product, j = product*s, j+width
	}
	return product, j
}

// rangeEnd reads the second half of a range whose first half ends before token j: "to 80", "–300", "and eight". The range's first
// token is i.
func (p *parser) rangeEnd(i, j int, u unit, money bool) (m magnitude, second unit, next int, ok bool) {
	t := p.at(j)
	between := betweenWords[p.at(i-1).low] || approxWords[p.at(i-1).low] && betweenWords[p.at(i-2).low]
	switch {
	case dashes[t.raw], toWords[t.low] && (t.low == "to" || t.low == "bis" || fromWords[p.at(i-1).low]), andWords[t.low] && between:
	default:
		return m, u, j, false
	}
	k, _ := p.currencyBefore(j + 1)
	m, ok = p.magnitude(k, money)
	if !ok || year(p.at(k).raw) != 0 && u.family == "" {
		return m, u, j, false
	}
	second, next, found := p.unit(m.next)
	if !found {
		second, next = u, m.next
	}
	if u.family != "" && second.family != u.family {
		return m, u, j, false
	}
	if u.family != "" && second.factor != u.factor {
		m.v, m.grain = m.v*second.factor/u.factor, m.grain*second.factor/u.factor
		second = u
	}
	return m, second, next, true
}

// unit reads the unit at token j, composites ("km/h", "euros per kilogram") included.
func (p *parser) unit(j int) (u unit, next int, ok bool) {
	if dashes[p.at(j).raw] && p.at(j).glued && p.at(j+1).glued && p.at(j+1).kind == word {
		j++ // "10-year"
	}
	u, next, ok = p.simpleUnit(j)
	if !ok {
		return u, j, false
	}
	if each := p.at(next).low; each == "a" || each == "an" || each == "each" {
		if per, end, found := p.simpleUnit(next + 1); found && per.family == "time" && (u.family != "time" || per.factor > u.factor) {
			return unit{family: u.family + "/time", factor: u.factor / per.factor}, end, true // "40 tonnes a day"
		}
	}
	if perWord[p.at(next).low] {
		if per, end, found := p.simpleUnit(next + 1); found && per.family != "times" && per.family != "ratio" {
			u.family, u.factor = u.family+"/"+per.family, u.factor/per.factor
			u.offset, next = 0, end
		}
	}
	return u, next, true
}

func (p *parser) simpleUnit(j int) (u unit, next int, ok bool) {
	t := p.at(j)
	two := t.low + " " + p.at(j+1).low
	ratio := unit{family: "ratio", factor: 0.01}
	switch {
	case t.raw == "%" || t.raw == "％" || percents[t.low]:
		if points := p.at(j + 1).low; points == "points" || points == "point" || points == "punkte" {
			return unit{family: "points", factor: 0.01}, j + 2, true
		}
		return ratio, j + 1, true
	case two == "per cent" || two == "pour cent" || two == "por ciento" || two == "por cento" || two == "per cento":
		return ratio, j + 2, true
	case two == "percentage points" || two == "percentage point":
		return unit{family: "points", factor: 0.01}, j + 2, true
	case timesWords[t.low] && (t.low != "x" || t.glued) && (t.low != "mal" || p.commaDecimal):
		return unit{family: "times", factor: 1}, j + 1, true
	case two == "light years" || two == "light year":
		return symbols["ly"], j + 2, true
	case t.low == "light" && dashes[p.at(j+1).raw] && strings.HasPrefix(p.at(j+2).low, "year"):
		return symbols["ly"], j + 3, true
	case t.raw == "°" && (p.at(j+1).raw == "C" || p.at(j+1).raw == "F"):
		return symbols["°"+p.at(j+1).raw], j + 2, true
	case t.raw == "°" || t.low == "degrees" || t.low == "degree" || t.low == "grad" || t.low == "grados" || t.low == "degrés":
		if n := p.at(j + 1); n.low == "celsius" || n.raw == "C" {
			return symbols["°C"], j + 2, true
		} else if n.low == "fahrenheit" || n.raw == "F" {
			return symbols["°F"], j + 2, true
		}
		return unit{family: "degrees", factor: 1}, j + 1, true
	case squares[t.low] || cubes[t.low]:
		power := 2.
		if cubes[t.low] {
			power = 3
		}
		if base, end, found := p.simpleUnit(j + 1); found && base.family == "length" {
			return raised(base, power), end, true
		}
		return u, j, false
	case t.low == "metric" && strings.HasPrefix(p.at(j+1).low, "ton"):
		return symbols["t"], j + 2, true
	case t.kind == han:
		for n := 4; n > 0; n-- {
			joined := ""
			for k := j; k < j+n && p.at(k).kind == han; k++ {
				joined += p.at(k).raw
			}
			if utf8.RuneCountInString(joined) != n {
				continue
			}
			if found, known := symbols[joined]; known {
				return found, j + n, true
			}
		}
		return u, j, false
	}
	if power := p.at(j + 1); power.glued && (power.raw == "²" || power.raw == "³") {
		if found, known := symbols[t.raw+power.raw]; known {
			return found, j + 2, true
		}
	}
	if found, known := symbols[t.raw]; known {
		u, ok = found, true
	} else if found, known := names[t.low]; known {
		u, ok = found, true
	}
	if !ok {
		return u, j, false
	}
	next = j + 1
	if u.family == "power" {
		k := next
		if dashes[p.at(k).raw] && p.at(k).glued {
			k++
		}
		if hourWords[p.at(k).low] {
			return unit{family: "energy", factor: 3600 * u.factor}, k + 1, true // "gigawatt hours"
		}
	}
	if u.family == "length" {
		switch after := p.at(next).low; {
		case squares[after]:
			return raised(u, 2), next + 1, true
		case cubes[after]:
			return raised(u, 3), next + 1, true
		}
	}
	return u, next, true
}

func raised(u unit, power float64) unit {
	if power == 2 {
		return unit{family: "area", factor: u.factor * u.factor}
	}
	return unit{family: "volume", factor: u.factor * u.factor * u.factor}
}

// named reports whether the number at token j belongs to a name: "phase 3", "Falcon 9". The number ends before token next.
func (p *parser) named(j, next int) bool {
	t, before := p.at(j), p.at(j-1)
	if t.kind != number {
		return false
	}
	if before.raw == "." && labels[p.at(j-2).low] {
		return true // "No. 5"
	}
	if labels[before.low] {
		return true
	}
	first, _ := utf8.DecodeRuneInString(before.raw)
	if before.kind != word || !unicode.IsUpper(first) || j < 2 || len(t.raw) > 3 || next != j+1 || months[before.low] != 0 {
		return false
	}
	switch p.at(j - 2).low {
	case "in", "at", "from", "im", "en":
		return false // "In Norland 420 wolves live"
	}
	_, _, measured := p.unit(next)
	return !measured
}
