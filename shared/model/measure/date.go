package measure

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// date reads the date that starts at token i and returns the token after it, or i if none does.
func (p *parser) date(i int) int {
	for _, read := range []func(int) (Date, int){p.isoDate, p.numericDate, p.hanDate, p.dayMonth, p.monthDay, p.periodOfYear, p.plainYear} {
		d, next := read(i)
		if next == i {
			continue
		}
		d.Start, d.End = p.span(i, next)
		if d.Part == "" && d.Month == 0 {
			d.Part = p.partBefore(i)
		}
		p.dates = append(p.dates, d)
		return next
	}
	return i
}

// year returns the year that four digits name, 0 if they are none.
func year(raw string) int {
	if len(raw) != 4 {
		return 0
	}
	y, err := strconv.Atoi(raw)
	if err != nil || y < 1400 || y > 2199 {
		return 0
	}
	return y
}

// whole returns the number that one or two digits name, 0 if it is not within 1..max.
func whole(t token, max int) int {
	if t.kind != number || len(t.raw) > 2 {
		return 0
	}
	n, err := strconv.Atoi(t.raw)
	if err != nil || n > max {
		return 0
	}
	return n
}

func (p *parser) isoDate(i int) (d Date, next int) {
	y, m := year(p.at(i).raw), whole(p.at(i+2), 12)
	if y == 0 || m == 0 || p.at(i+1).raw != "-" || !p.at(i+1).glued || len(p.at(i+2).raw) != 2 {
		return d, i
	}
	d, next = Date{Year: y, Month: m}, i+3
	if day := whole(p.at(i+4), 31); p.at(i+3).raw == "-" && day != 0 {
		d.Day, next = day, i+5
	}
	return d, next
}

// numericDate reads "03.06.2025", the day first, "2025/6/3", and "13/2/2026" and the like, of which not every one says which is the month.
func (p *parser) numericDate(i int) (d Date, next int) {
	if parts := strings.Split(p.at(i).raw, "."); p.at(i).kind == number && len(parts) == 3 {
		numbers := [3]int{}
		for k, part := range parts {
			numbers[k] = whole(token{kind: number, raw: part}, 31)
		}
		if y := year(parts[2]); y != 0 && numbers[0] != 0 && numbers[1] != 0 && numbers[1] <= 12 {
			return Date{Year: y, Month: numbers[1], Day: numbers[0]}, i + 1
		}
		if y := year(parts[0]); y != 0 && numbers[1] != 0 && numbers[1] <= 12 && numbers[2] != 0 {
			return Date{Year: y, Month: numbers[1], Day: numbers[2]}, i + 1
		}
		return d, i
	}
	for k := i + 1; k <= i+4; k++ {
		if !p.at(k).glued || (k-i)%2 == 1 && p.at(k).raw != "/" && p.at(k).raw != "-" || p.at(k).raw != p.at(i+1).raw && (k-i)%2 == 1 {
			return d, i
		}
	}
	first, second, last := whole(p.at(i), 31), whole(p.at(i+2), 31), whole(p.at(i+4), 31)
	y := year(p.at(i + 4).raw)
	switch {
	case year(p.at(i).raw) != 0 && second != 0 && second <= 12 && last != 0:
		return Date{Year: year(p.at(i).raw), Month: second, Day: last}, i + 5
	case y == 0 || first == 0 || second == 0 || first > 12 && second > 12:
		return d, i
	case first == second:
		return Date{Year: y, Month: first, Day: first}, i + 5
	case first > 12:
		return Date{Year: y, Month: second, Day: first}, i + 5
	case second > 12:
		return Date{Year: y, Month: first, Day: second}, i + 5
	}
	return Date{Year: y, Either: [2]int{first, second}}, i + 5
}

// hanDate reads 2024年3月5日 and its parts.
func (p *parser) hanDate(i int) (d Date, next int) {
	next = i
	if y := year(p.at(i).raw); y != 0 && p.at(i+1).raw == "年" && p.at(i+2).raw != "間" {
		d.Year, next = y, i+2
	}
	if m := whole(p.at(next), 12); m != 0 && p.at(next+1).raw == "月" {
		d.Month, next = m, next+2
		if day := whole(p.at(next), 31); day != 0 && (p.at(next+1).raw == "日" || p.at(next+1).raw == "号") {
			d.Day, next = day, next+2
		}
	}
	return d, next
}

// dayMonth reads "5 March 2024", "5th of March", "5. März 2024", "5 de marzo de 2024".
func (p *parser) dayMonth(i int) (d Date, next int) {
	day := whole(p.at(i), 31)
	if day == 0 {
		return d, i
	}
	j := i + 1
	if t := p.at(j); t.glued && (t.low == "st" || t.low == "nd" || t.low == "rd" || t.low == "th" || t.low == "er" || t.raw == "." || t.raw == "º") {
		j++
	}
	if l := p.at(j).low; l == "of" || l == "de" {
		j++
	}
	m := int(months[p.at(j).low])
	if m == 0 {
		return d, i
	}
	d, next = Date{Month: m, Day: day}, j+1
	if y, end := p.yearAfter(next); y != 0 {
		d.Year, next = y, end
	}
	return d, next
}

// yearAfter reads the year of a date whose month ends before token j: "2024", ", 2024", "of 2024", "de 2024".
func (p *parser) yearAfter(j int) (y, next int) {
	if t := p.at(j); t.raw == "," || t.raw == "." || t.low == "of" || t.low == "de" || t.low == "del" {
		j++
	}
	return year(p.at(j).raw), j + 1
}

// monthDay reads "March 5, 2024", "March 2024", "in March".
func (p *parser) monthDay(i int) (d Date, next int) {
	t := p.at(i)
	m := int(months[t.low])
	if m == 0 || t.kind != word {
		return d, i
	}
	d, next = Date{Month: m}, i+1
	if day := whole(p.at(next), 31); day != 0 {
		if _, _, measured := p.unit(next + 1); !measured {
			end := next + 1
			if s := p.at(end); s.glued && (s.low == "st" || s.low == "nd" || s.low == "rd" || s.low == "th") {
				end++
			}
			d.Day, next = day, end
		}
	}
	if y, end := p.yearAfter(next); y != 0 {
		d.Year, next = y, end
	}
	if d.Day == 0 && d.Year == 0 && commonMonths[t.low] {
		first, _ := utf8.DecodeRuneInString(t.raw)
		if !unicode.IsUpper(first) || !timePrepositions[p.at(i-1).low] {
			return d, i // "may", "march"
		}
	}
	return d, next
}

// periodOfYear reads "third quarter of 2023", "Q3 2023", "first half of 2020", "summer 2021", "in winter".
func (p *parser) periodOfYear(i int) (d Date, next int) {
	t := p.at(i)
	j := i + 1
	switch {
	case ordinals[t.low] != 0 && quarterWords[p.at(j).low]:
		d.Part, j = "q"+strconv.Itoa(ordinals[t.low]), j+1
	case ordinals[t.low] != 0 && ordinals[t.low] <= 2 && halfWords[p.at(j).low]:
		d.Part, j = "h"+strconv.Itoa(ordinals[t.low]), j+1
	case len(t.low) == 2 && (t.raw[0] == 'Q' && t.raw[1] >= '1' && t.raw[1] <= '4' || t.raw[0] == 'H' && (t.raw[1] == '1' || t.raw[1] == '2')):
		d.Part = t.low
	case seasons[t.low] != "" && t.kind == word:
		d.Part = seasons[t.low]
	default:
		return d, i
	}
	if y, end := p.yearAfter(j); y != 0 {
		d.Year, j = y, end
	} else if d.Part[0] == 'h' && !(p.at(j).low == "of" && p.at(j+1).low == "the" && p.at(j+2).low == "year") {
		return d, i // "the second half of the match"
	} else if after := p.at(j); seasons[t.low] != "" && (!timePrepositions[p.at(i-1).low] && !articles[p.at(i-1).low] || after.kind == word && !englishWords[after.low] && !continentalWords[after.low]) {
		return d, i // "hot spring", "in summer clothes"
	}
	return d, j
}

// plainYear reads a year that stands for itself: after a preposition, an article or another year, in brackets, before the end; and decades.
func (p *parser) plainYear(i int) (d Date, next int) {
	t := p.at(i)
	y := year(t.raw)
	if y == 0 {
		return d, i
	}
	if s := p.at(i + 1); s.glued && s.low == "s" {
		return Date{Year: y, Part: "decade"}, i + 2
	}
	if _, _, measured := p.unit(i + 1); measured {
		return d, i
	}
	before, after := p.at(i-1), p.at(i+1)
	// "2010–2020", "2010 and 2020": the year before has been read as a date already.
	chained := len(p.dates) > 0 && i >= 2 && p.dates[len(p.dates)-1].End == p.at(i-2).end
	switch {
	case timePrepositions[before.low], partWords[before.low] != "", months[before.low] != 0, i == 0, chained, before.raw == "(", before.raw == "-" && partWords[p.at(i-2).low] != "":
	case articles[before.low] || before.low == "this" || before.low == "its":
	case after.kind != word:
	case before.kind == word && (timePrepositions[after.low] || p.commaDecimal && yearFollowers[after.low]):
	case p.commaDecimal && before.kind == word && after.raw == after.low: // "wurde 2016 eröffnet"; German nouns have capitals
	default:
		return d, i // "enrolled 1840 adults"
	}
	next = i + 1
	if p.at(next).raw == "/" && p.at(next).glued && p.at(next+1).kind == number && len(p.at(next+1).raw) <= 4 {
		next += 2 // "2023/24"
	}
	return Date{Year: y}, next
}

func (p *parser) partBefore(i int) string {
	before := p.at(i - 1)
	if before.raw == "-" {
		before = p.at(i - 2)
	}
	return partWords[before.low]
}
