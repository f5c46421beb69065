package text

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWrapBreaksAtSpacesAndKeepsLongWordsWhole(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text   string
		first  int
		width  int
		indent string
		want   string
	}{
		{"", 0, 10, "", ""},
		{"one two", 0, 10, "  ", "one two"},
		{"one two three", 0, 10, "  ", "one two\n  three"},
		{"one two three", 4, 10, "    ", "one\n    two\n    three"},
		{"1234567890", 0, 10, "", "1234567890"},
		{"a 12345678901 b", 0, 10, "", "a\n12345678901\nb"},
		{"größe größe", 0, 11, "", "größe größe"},
	} {
		require.Equal(t, c.want, Wrap(c.text, c.first, c.width, c.indent))
	}
}
