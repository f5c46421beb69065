package text

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxQuestion is how many code points a question may have after trimming: what the research API takes.
const MaxQuestion = 10_000

// What can be wrong with a question.
var (
	ErrEmpty       = errors.New("the question is empty")
	ErrTooLong     = fmt.Errorf("the question has more than %d characters", MaxQuestion)
	ErrInvalidUTF8 = errors.New("the question is not valid UTF-8")
	ErrControl     = errors.New("the question has a control character other than tab and line break")
)

// ValidQuestion says whether s can be put as a question: valid UTF-8 (ErrInvalidUTF8), with at least one visible
// character (ErrEmpty), at most MaxQuestion code points after white space at both ends is cut (ErrTooLong), and no
// control character but tab, newline and the carriage return before a newline (ErrControl). It returns nil or an error
// that wraps exactly one of these.
func ValidQuestion(s string) error {
	if !utf8.ValidString(s) {
		return ErrInvalidUTF8
	}
	s = strings.TrimSpace(s)
	visible := strings.ContainsFunc(s, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) })
	if !visible {
		return ErrEmpty
	}
	if n := utf8.RuneCountInString(s); n > MaxQuestion {
		return fmt.Errorf("%w: it has %d", ErrTooLong, n)
	}
	for i, r := range s {
		lineBreak := r == '\n' || r == '\t' || r == '\r' && strings.HasPrefix(s[i+1:], "\n")
		if unicode.IsControl(r) && !lineBreak {
			return fmt.Errorf("%w: U+%04X", ErrControl, r)
		}
	}
	return nil
}
