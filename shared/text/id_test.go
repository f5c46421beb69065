package text

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

func TestIDsAreStableShortTokens(t *testing.T) {
	t.Parallel()
	assert.Equal(t, ID("thread", "fact"), ID("thread", "fact"))
	seen := map[string]bool{}
	for _, parts := range [][]string{nil, {""}, {"", ""}, {"ab", "c"}, {"a", "bc"}, {"abc"}, {"c", "ab"}} {
		id := ID(parts...)
		assert.Regexp(t, regexp.MustCompile(`^[a-z2-7]{24}$`), id)
		assert.True(t, ValidToken(id))
		assert.False(t, seen[id], parts)
		seen[id] = true
	}
	assert.NotEqual(t, RandomID(), RandomID())
	assert.Len(t, RandomID(), 24)
	// Ids are in stored events: this value must never change.
	assert.Equal(t, "rgwz5xmenr5i7m6m4nailwf7", ID("factstream"))
}

func TestValidToken(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"a", "0", "_", "a-b_9", strings.Repeat("a", 64)} {
		assert.True(t, ValidToken(s), s)
	}
	for _, s := range []string{"", "A", "a.b", "*", ">", "a b", "ä", "a\n", "../a", strings.Repeat("a", 65)} {
		assert.False(t, ValidToken(s), s)
	}
}

func TestFingerprintIgnoresCaseSpaceAndForm(t *testing.T) {
	t.Parallel()
	want := Fingerprint("Größe bei 25 °C.")
	for _, same := range []string{"größe bei 25 °c.", "  GRÖSSE bei\n25\u00a0°C. ", norm.NFD.String("Größe bei 25 °C."), "Größe\u3000 bei 25 °C."} {
		if strings.Contains(same, "SS") {
			assert.NotEqual(t, want, Fingerprint(same), "ß and ss are two spellings")
			continue
		}
		assert.Equal(t, want, Fingerprint(same), same)
	}
	for _, other := range []string{"Große bei 25 °C.", "Größe bei 25 °C", "Größe bei 2 5 °C.", "Größe bei −25 °C."} {
		assert.NotEqual(t, want, Fingerprint(other), other)
	}
	assert.Equal(t, "İx a\uFFFDb", Normalise(" I\u0307x  a\xffb "))
	assert.Equal(t, "größe", Canonical("GRÖßE"))
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		assert.Equal(t, Canonical(s), Canonical(Canonical(s)))
		assert.Equal(t, Normalise(s), Normalise(Normalise(s)))
		assert.Equal(t, Fingerprint(s), Fingerprint(Normalise(s)))
	})
}

func TestValidQuestion(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"x", " a\tb\nc\r\nd ", strings.Repeat("ß", MaxQuestion), "  " + strings.Repeat("x", MaxQuestion) + "\n", "👩‍👩‍👧?"} {
		assert.NoError(t, ValidQuestion(s))
	}
	for s, want := range map[string]error{
		"": ErrEmpty, " \n\t": ErrEmpty, "\u200b\u200d": ErrEmpty, strings.Repeat("ß", MaxQuestion+1): ErrTooLong,
		"a\xffb": ErrInvalidUTF8, "a\x00b": ErrControl, "a\x1bb": ErrControl, "a\rb": ErrControl, "a\u0085b": ErrControl,
	} {
		assert.ErrorIs(t, ValidQuestion(s), want, "%.20q", s)
	}
}
