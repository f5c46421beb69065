package text

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
)

// idBytes is how much of a hash an id keeps: 120 bits, so that two of a billion ids collide with a chance below
// 1e-18, and exactly 24 characters of base32 without padding.
const idBytes = 15

// base32 in lower case: the ids stand in NATS subjects, bucket keys, file names and URLs, where neither dots nor
// letters that differ only in case are safe.
var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// ID derives an id from its parts: 24 characters of [a-z2-7], the same for the same parts, for ever. Each part is
// hashed with its length before it, so ID("ab", "c") and ID("a", "bc") differ. ID() of no parts is a constant.
func ID(parts ...string) string {
	h := sha256.New()
	var length [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(p)))
		h.Write(length[:])
		h.Write([]byte(p))
	}
	return idEncoding.EncodeToString(h.Sum(nil)[:idBytes])
}

// RandomID returns a new random id of the same form as ID.
func RandomID() string {
	var b [idBytes]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return idEncoding.EncodeToString(b[:])
}

// ValidToken reports whether s may stand as one token of a NATS subject and as a key of a bucket, as an id given from
// outside must: 1 to 64 characters of [a-z0-9_-].
func ValidToken(s string) bool {
	if len(s) == 0 || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
