package text

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Words returns the words of s in lower case (after NFKC, so that ﬁ is fi and ² is 2), in order, repeats included.
//
// A word is a run of letters and digits, an apostrophe inside it kept as '. Each Han, Kana, Thai, Lao, Khmer or Burmese
// character is a word of its own, since these scripts set no spaces. A number keeps its points and commas and a percent
// sign ("3.5", "1,200", "25%", "25 %" too); a unit of two letters or more that stands close behind it is a word of its own
// ("450Wh": "450", "wh"; but "5g", "10th"). Everything else separates. Signs are not kept.
func Words(s string) []string { return slices.Collect(WordsSeq(s)) }

// WordsSeq gives what Words returns one by one, for who counts them only.
func WordsSeq(s string) iter.Seq[string] {
	return func(yield func(string) bool) { eachWord(strings.ToLower(norm.NFKC.String(s)), yield) }
}

// WordSet is the set of the words of a list that white space separates, as they are written there.
func WordSet(list string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		set[w] = true
	}
	return set
}

func eachWord(s string, yield func(string) bool) {
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case unicode.IsDigit(c):
			end := numberEnd(s, i)
			number := s[i:end]
			letters := end + wordLength(s[end:])
			switch unit := s[end:letters]; {
			case unit == "":
				if sign := percentSign(s[end:]); sign > 0 {
					number += "%"
					end += sign
				}
			case utf8.RuneCountInString(unit) == 1 || ordinalEndings[unit]:
				number += unit
				end = letters
			}
			if !yield(number) {
				return
			}
			i = end
		case isUnspaced(c):
			end := i + n
			for end < len(s) {
				mark, size := utf8.DecodeRuneInString(s[end:])
				if !unicode.IsMark(mark) {
					break
				}
				end += size
			}
			if !yield(s[i:end]) {
				return
			}
			i = end
		case unicode.IsLetter(c):
			end := i + wordLength(s[i:])
			if !yield(strings.ReplaceAll(s[i:end], "’", "'")) {
				return
			}
			i = end
		default:
			i += n
		}
	}
}

var ordinalEndings = WordSet("st nd rd th")

// numberEnd returns the end of the number at i: digits, and points and commas between digits.
func numberEnd(s string, i int) int {
	for i < len(s) {
		c, n := utf8.DecodeRuneInString(s[i:])
		if c == '.' || c == ',' {
			after, _ := utf8.DecodeRuneInString(s[i+1:])
			if !unicode.IsDigit(after) {
				break
			}
		} else if !unicode.IsDigit(c) {
			break
		}
		i += n
	}
	return i
}

// wordLength returns the length of the run of letters, digits, marks and inner apostrophes at the start of s.
func wordLength(s string) int {
	for i, c := range s {
		if unicode.IsLetter(c) && !isUnspaced(c) || i > 0 && (unicode.IsDigit(c) || unicode.IsMark(c)) {
			continue
		}
		if i > 0 && (c == '\'' || c == '’') {
			next, _ := utf8.DecodeRuneInString(s[i+utf8.RuneLen(c):])
			if unicode.IsLetter(next) && !isUnspaced(next) {
				continue
			}
		}
		return i
	}
	return len(s)
}

// percentSign returns the length of a percent sign at the start of s, with one space before it.
func percentSign(s string) int {
	for _, sign := range []string{"%", " %"} {
		if strings.HasPrefix(s, sign) {
			return len(sign)
		}
	}
	return 0
}

// isUnspaced reports whether c is a letter of a script that sets no spaces between words.
func isUnspaced(c rune) bool {
	return c >= 0x0e00 && unicode.IsLetter(c) &&
		(isHanOrKana(c) || unicode.In(c, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar))
}

// Truncate returns s if it has at most maxRunes code points, else as many whole graphemes of it as fit with the "…"
// that then ends it. The result never has more than maxRunes code points; maxRunes below 1 gives "".
func Truncate(s string, maxRunes int) string {
	if maxRunes < 1 {
		return ""
	}
	if len(s) <= maxRunes || utf8.RuneCountInString(s) <= maxRunes {
		return s
	}
	w := graphemeWalk{rest: s, state: -1}
	room, end := maxRunes-1, 0
	for w.next() {
		room -= utf8.RuneCountInString(s[w.start:w.end])
		if room < 0 {
			break
		}
		end = w.end
	}
	return strings.TrimRightFunc(s[:end], unicode.IsSpace) + "…"
}
