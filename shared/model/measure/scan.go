package measure

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type kind uint8

const (
	word   kind = iota // letters, with the digits that are written into it ("CO2", "COVID-19")
	number             // digits with separators
	han                // one character of a script without spaces
	symbol             // any other character
)

type token struct {
	kind       kind
	raw        string // as written
	low        string // lower case
	start, end int
	glued      bool // nothing stands between it and the token before
}

// scan cuts a sentence into tokens. White space is left out. It is linear.
func scan(s string) []token {
	var toks []token
	glued := false
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		j, k := i+n, symbol
		switch {
		case unicode.IsSpace(r):
			i, glued = j, false
			continue
		case spaceless(r):
			k = han
		case unicode.IsDigit(r) && r < 0x80:
			k, j = number, digits(s, i)
		case unicode.IsLetter(r):
			k, j = word, letters(s, i)
		}
		raw := s[i:j]
		toks = append(toks, token{kind: k, raw: raw, low: strings.ToLower(raw), start: i, end: j, glued: glued})
		i, glued = j, true
	}
	return toks
}

func spaceless(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r == 'ー'
}

func isDigit(s string, i int) bool { return i >= 0 && i < len(s) && s[i] >= '0' && s[i] <= '9' }

// digits returns the end of the number that starts at i: digits, and single separators between digits ("1,240", "3.5", "15'000",
// "15 000" and the like with groups of three).
func digits(s string, i int) int {
	first := i
	for isDigit(s, i) {
		i++
	}
	lead := i - first
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch r {
		case '.', ',', '\'', '’':
			if !isDigit(s, i+n) || r != '.' && r != ',' && !group(s, i+n) {
				return i
			}
		case ' ', '\u00a0', '\u202f', '\u2009':
			// A space groups thousands only where every group has three digits: "15 000", not "in 2024 300 people".
			if lead > 3 || !group(s, i+n) {
				return i
			}
		default:
			return i
		}
		i += n
		for isDigit(s, i) {
			i++
		}
	}
	return i
}

// group reports whether exactly three digits stand at i.
func group(s string, i int) bool {
	return isDigit(s, i) && isDigit(s, i+1) && isDigit(s, i+2) && !isDigit(s, i+3)
}

// letters returns the end of the word that starts at i. A word takes in digits ("CO2"), inner apostrophes ("Meridian's") and a hyphen
// before a short number ("COVID-19"; not "mid-2024").
func letters(s string, i int) int {
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case spaceless(r):
			return i
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.Is(unicode.M, r):
			i += n
		case r == '\'' || r == '’':
			next, _ := utf8.DecodeRuneInString(s[i+n:])
			if !unicode.IsLetter(next) {
				return i
			}
			i += n
		case r == '-':
			j := i + n
			for isDigit(s, j) {
				j++
			}
			if d := j - i - n; d == 0 || d > 3 {
				return i
			}
			i = j
		default:
			return i
		}
	}
	return i
}

var withoutSeparators = strings.NewReplacer(".", "", ",", "")

// value reads a written number. grain is the worth of one step of its last digit that counts: trailing zeros of a whole number do not.
func value(raw string, commaDecimal bool) (v, grain float64, ok bool) {
	s := strings.Map(func(r rune) rune {
		switch r {
		case ' ', '\'', '’', '\u00a0', '\u202f', '\u2009':
			return -1
		}
		return r
	}, raw)
	dots, commas := strings.Count(s, "."), strings.Count(s, ",")
	decimal := byte(0)
	switch {
	case dots > 0 && commas > 0:
		decimal = s[strings.LastIndexAny(s, ".,")]
		if strings.Count(s, string(decimal)) > 1 {
			return 0, 0, false
		}
	case dots == 1 && strings.HasSuffix(s, ".000") && s != "0.000": // thousands in every language: nobody measures to three zeros and no more
	case commas == 1 && strings.HasSuffix(s, ",000") && s != "0,000":
	case dots == 1 && (!commaDecimal || len(s)-strings.IndexByte(s, '.') != 4):
		decimal = '.'
	case commas == 1 && (commaDecimal || len(s)-strings.IndexByte(s, ',') != 4):
		decimal = ','
	}
	whole, frac := s, ""
	if decimal != 0 {
		i := strings.LastIndexByte(s, decimal)
		whole, frac = s[:i], s[i+1:]
	}
	whole = withoutSeparators.Replace(whole)
	if len(whole)+len(frac) > 30 || len(whole) == 0 {
		return 0, 0, false
	}
	grain = 1
	for _, c := range whole + frac {
		v = v*10 + float64(c-'0')
	}
	for range frac {
		v, grain = v/10, grain/10
	}
	if frac == "" {
		for t := strings.TrimRight(whole, "0"); len(t) > 0 && len(t) < len(whole); whole = whole[:len(whole)-1] {
			grain *= 10
		}
	}
	return v, grain, true
}
