package text

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Normalise returns s as it is stored and shown: valid UTF-8 (each run of broken bytes becomes U+FFFD), NFC, every run
// of white space one space, none at the ends. Case is kept.
func Normalise(s string) string {
	return norm.NFC.String(FoldSpace(strings.ToValidUTF8(s, "\uFFFD")))
}

// Canonical returns the text that a fingerprint is made of: Normalise, in lower case by Unicode's own mapping (no
// locale's). Two statements with the same canonical text are the same statement. It is idempotent.
func Canonical(s string) string {
	// Lower-casing can leave a sequence that composes, so NFC comes again.
	return norm.NFC.String(strings.ToLower(Normalise(s)))
}

// Fingerprint identifies a statement whatever its case, spacing and Unicode form: an id (24 characters of [a-z2-7])
// made of its canonical text.
func Fingerprint(s string) string {
	return ID("fingerprint", Canonical(s))
}

// FoldSpace makes every run of Unicode white space one space and drops it at both ends.
func FoldSpace(s string) string {
	if folded(s) {
		return s
	}
	return strings.Join(strings.Fields(s), " ")
}

// folded reports whether every white space of s is one space between two other characters. Most texts are, and need no copy.
func folded(s string) bool {
	space := true // before the character, or the beginning
	for _, c := range s {
		switch {
		case c == ' ':
			if space {
				return false
			}
		case c <= ' ' || c > '~' && unicode.IsSpace(c):
			return false
		}
		space = c == ' '
	}
	return s == "" || !space
}
