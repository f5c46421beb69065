package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzHasAddress(f *testing.F) {
	for _, s := range []string{
		"", "Plain.", "see https://example.org", "HTTP://X", "www.example.org", "WwW.example", "ww.w", "wwww.", "a www. b", "xwww.y", "mailto:me", "javascript:x", "javaſcript:x",
		"data:text/plain", "at 10:30", "v.w.", ".", ":", "K://", "日本www.例",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { require.Equal(t, address.MatchString(s), hasAddress(s)) })
}
