package model

import (
	"math"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/factstream/factstream/shared/text"
)

// Drops counts what a check dropped or put right, by cause.
type Drops map[string]int

// Causes in Drops. Those that name a whole item mean that the item is gone; the others that a part of it was left out or mended.
const (
	DropEmpty           = "empty_text"         // item: no text
	DropTooLong         = "too_long"           // item: text over its limit
	DropAddress         = "web_address"        // item: text holds a web address
	DropDuplicate       = "duplicate"          // item: said before
	DropOverLimit       = "over_limit"         // item: more than were asked for
	DropNoSentence      = "no_sentence"        // item: a fact that names no sentence of the list
	DropNoFact          = "no_fact"            // item: a sentence of the brief that names no fact of the list
	DropDisputedFact    = "disputed_fact"      // item: states a disputed fact as settled
	DropUnknownDispute  = "unknown_dispute"    // item: a dispute that is not on the list
	DropUnknownTopic    = "unknown_topic"      // item: an assignment to a topic that is not on the list
	DropUnknownSentence = "unknown_sentence"   // part: a sentence number that is not on the list
	DropUnknownPage     = "unknown_page"       // part: a page number that is not on the list; the fact stays, without a page
	DropUnknownFact     = "unknown_fact"       // part (of a brief's sentence) or item (of coverage)
	DropPercent         = "percent_confidence" // mended: 95 was read as 0.95
	DropConfidence      = "bad_confidence"     // mended: below 0 or over 100 became 0
	DropTag             = "tag"                // part: a tag that is empty, too long, repeated or one too many
	DropReason          = "reason"             // part: a reason that was cut or left out
	DropLeftOut         = "left_out"           // a choice that did not fit into the task and was never shown
	DropUnassigned      = "unassigned"         // a fact of coverage that got no topic
)

func (d Drops) add(cause string) { d[cause]++ }

// Total is the sum over all causes.
func (d Drops) Total() int {
	n := 0
	for _, c := range d {
		n += c
	}
	return n
}

// Merge adds the counts of other to d.
func (d Drops) Merge(other Drops) {
	for cause, n := range other {
		d[cause] += n
	}
}

var (
	citation = regexp.MustCompile(`\s*\[\d+(?:\s*[,–-]\s*\d+)*\]`)
	address  = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://|\bwww\.|\bmailto:|\bjavascript:\S|\bdata:[a-z]+/`)
)

// hasAddress is address.MatchString. Hardly a sentence has a colon or a point that it could be true of, and the expression takes longer than
// all else that is done to one.
func hasAddress(s string) bool {
	for i := range len(s) {
		if s[i] == ':' || s[i] == '.' && i > 0 && s[i-1]|' ' == 'w' {
			return address.MatchString(s)
		}
	}
	return false
}

// sentence makes a text that a model wrote fit to be kept: one line without citation marks, which are the server's to write. It
// returns the cause for which the text must be dropped, or "".
func sentence(s string, max int) (line, cause string) {
	line = uncited(s)
	switch {
	case !hasWord(line):
		return "", DropEmpty
	case runes(line) > max:
		return "", DropTooLong
	case hasAddress(line):
		return "", DropAddress
	}
	return line, ""
}

// uncited is s as one line without citation marks.
func uncited(s string) string {
	s = fold(s)
	if strings.Contains(s, "[") { // hardly a sentence has one, and the expression takes longer than all else that is done to it
		s = citation.ReplaceAllString(s, "")
	}
	return strings.TrimSpace(s)
}

// reason is sentence for a text that may as well be missing: too long is cut, and what cannot stand is left out.
func reason(s string, drops Drops) string {
	if fold(s) == "" {
		return ""
	}
	line, cause := sentence(s, maxReason)
	if cause == DropTooLong {
		if line = text.Truncate(uncited(s), maxReason); hasAddress(line) {
			line = ""
		}
	}
	if cause != "" {
		drops.add(DropReason)
	}
	return line
}

const maxReason = 300 // characters of the reason that a verdict or a question carries

// share reads a confidence or score, 0..1. Models also write percentages: over 1 and up to 100 is read as one. What is no share at
// all (negative, over 100) tells nothing, so it becomes 0, the least.
func share(v float64, drops Drops) float64 {
	switch {
	case v >= 0 && v <= 1:
		return v
	case v > 1 && v <= 100:
		drops.add(DropPercent)
		return math.Round(v*100) / 10000
	default:
		drops.add(DropConfidence)
		return 0
	}
}

// fold makes one line of s: normalised as all text of the notebook, and without control and direction-override characters, which
// would let a text show otherwise than it is.
func fold(s string) string {
	if printable(s) {
		return text.Normalise(s)
	}
	return text.Normalise(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), text.TurnsDirection(r), r == 0xFEFF:
			return -1
		}
		return r
	}, s))
}

// printable reports whether s has no characters but those of ASCII that are seen, and spaces.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// same is the form in which two texts are compared for being the same.
func same(s string) string { return text.Canonical(fold(s)) }

func runes(s string) int { return utf8.RuneCountInString(s) }

func hasWord(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) >= 0
}

// pick returns the distinct numbers for which known holds, in order, and counts the others under cause.
func pick(numbers []int, known func(int) bool, drops Drops, cause string) []int {
	var out []int
	seen := map[int]bool{}
	for _, n := range numbers {
		if !known(n) {
			drops.add(cause)
			continue
		}
		if !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out
}
