package bench

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Verdict says how a figure stands to what is expected of it.
type Verdict string

// The verdicts. A row of which nothing is expected has none.
const (
	None   Verdict = ""
	OK     Verdict = "ok"
	Misses Verdict = "misses"
)

// Row is one line of the table.
type Row struct {
	Section  string // rows of one section stand together below it
	What     string
	Figure   string
	Expected string // "" when nothing is
	Verdict  Verdict
}

// under is the row of a figure that must stay below a bound. Both are shown by the same words, so that no one has to convert.
func under(section, what string, figure, bound float64, show func(float64) string) Row {
	return Row{Section: section, What: what, Figure: show(figure), Expected: "< " + show(bound), Verdict: verdict(figure < bound)}
}

// atMost is the row of a ratio with an upper bound, atLeast of one with a lower bound.
func atMost(section, what string, ratio, bound float64) Row {
	return Row{Section: section, What: what, Figure: times(ratio), Expected: fmt.Sprintf("at most %gx", bound), Verdict: verdict(ratio <= bound)}
}

func atLeast(section, what string, ratio, bound float64) Row {
	return Row{Section: section, What: what, Figure: times(ratio), Expected: fmt.Sprintf("at least %gx", bound), Verdict: verdict(ratio >= bound)}
}

func verdict(holds bool) Verdict {
	if holds { // NaN holds nowhere
		return OK
	}
	return Misses
}

// Widths of the table's columns; together they fit a terminal of 80 columns.
const (
	widthWhat     = 44
	widthFigure   = 12
	widthExpected = 14
)

// Table shows the rows for a person, no line wider than 80 columns.
func (r Report) Table() string {
	var b strings.Builder
	line := func(what, figure, expected string, v Verdict) {
		text := fmt.Sprintf("%s%*s  %-*s%s", pad(what, widthWhat), widthFigure, figure, widthExpected, expected, v)
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	line("", "figure", "expected", "")
	section := ""
	for _, row := range r.Rows {
		if row.Section != section {
			section = row.Section
			b.WriteString(section + "\n")
		}
		line("  "+row.What, row.Figure, row.Expected, row.Verdict)
	}
	return b.String()
}

// pad fills by characters, not bytes.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}

func times(ratio float64) string {
	if math.IsNaN(ratio) {
		return "?"
	}
	if ratio >= 100 {
		return fmt.Sprintf("%.0fx", ratio)
	}
	return fmt.Sprintf("%.2fx", ratio)
}

func millis(ns float64) string {
	d := time.Duration(ns)
	switch {
	case d >= 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= 100*time.Millisecond:
		return fmt.Sprintf("%.0f ms", d.Seconds()*1e3)
	default:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
	}
}

func megabytes(bytes float64) string { return fmt.Sprintf("%.0f MB", bytes/1e6) }

func perSecond(rate float64) string { return fmt.Sprintf("%.0f/s", rate) }
