package config

import (
	"fmt"
	"io"
)

// Secret is a value that must never be shown: an API key, an access token, a URL with a password in it.
// Every way of printing or encoding it shows only whether it is set; Reveal is the one way to its text.
type Secret string

// Reveal returns the secret's text, for the one place that has to send it.
func (s Secret) Reveal() string { return string(s) }

// Set says whether there is a secret at all.
func (s Secret) Set() bool { return s != "" }

// String returns "(set)" or "(not set)".
func (s Secret) String() string {
	if s.Set() {
		return "(set)"
	}
	return "(not set)"
}

// Format writes String for every verb, so that %q, %x and %#v cannot show the text either.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText encodes String; JSON and log encoders use it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
