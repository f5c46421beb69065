package sse

import "unicode/utf8"

// wellFormed returns s as valid UTF-8: s itself when it is, else a copy in which every maximal part of an ill-formed
// sequence became one U+FFFD, as browsers decode it. (bytes.ToValidUTF8 makes one of a whole run, a conversion to runes
// one of every byte.)
func wellFormed(s []byte) []byte {
	if utf8.Valid(s) {
		return s
	}
	out := make([]byte, 0, len(s)+utf8.UTFMax)
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		if r == utf8.RuneError && n <= 1 {
			n = brokenPrefix(s)
		}
		out = utf8.AppendRune(out, r)
		s = s[n:]
	}
	return out
}

// brokenPrefix is the length of the longest start of s that begins a sequence which is not completed; at least 1.
func brokenPrefix(s []byte) int {
	need, low, high := 0, byte(0x80), byte(0xBF)
	switch c := s[0]; {
	case c >= 0xC2 && c <= 0xDF:
		need = 1
	case c >= 0xE0 && c <= 0xEF:
		need = 2
		switch c {
		case 0xE0: // shorter encodings exist
			low = 0xA0
		case 0xED: // surrogates
			high = 0x9F
		}
	case c >= 0xF0 && c <= 0xF4:
		need = 3
		switch c {
		case 0xF0:
			low = 0x90
		case 0xF4: // beyond U+10FFFF
			high = 0x8F
		}
	}
	n := 1
	for ; n <= need && n < len(s) && s[n] >= low && s[n] <= high; n++ {
		low, high = 0x80, 0xBF
	}
	return n
}
