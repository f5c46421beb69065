package logging

import (
	"bytes"
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// shortestSecret is the least length that is redacted: blotting out every "a" would hide the log, not the secret.
const shortestSecret = 4

const blot = "[redacted]"

// Redactor knows the secrets of a process and keeps them out of what is written. It may be used by several goroutines,
// and secrets may be added at any time (a key saved while the process runs). The zero value knows none.
type Redactor struct {
	mu    sync.RWMutex
	forms [][]byte // every form of every secret, longest first, so that none is left behind as the rest of a shorter one
}

// NewRedactor returns a redactor that knows secrets.
func NewRedactor(secrets ...string) *Redactor {
	r := &Redactor{}
	r.Add(secrets...)
	return r
}

// Add makes secrets known, also as they look inside a JSON string or a URL. Those shorter than four bytes are ignored.
func (r *Redactor) Add(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, secret := range secrets {
		if len(secret) < shortestSecret {
			continue
		}
		quoted, _ := json.Marshal(secret)
		for _, form := range []string{
			secret,
			string(quoted[1 : len(quoted)-1]), // in JSON by encoding/json, which also escapes < > &
			strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(secret), // in JSON by zerolog, which does not
			url.QueryEscape(secret),
			url.PathEscape(secret),
		} {
			if !slices.ContainsFunc(r.forms, func(known []byte) bool { return string(known) == form }) {
				r.forms = append(r.forms, []byte(form))
			}
		}
	}
	slices.SortFunc(r.forms, func(a, b []byte) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(string(a), string(b))
	})
}

// Redact returns text with every known secret blotted out.
func (r *Redactor) Redact(text []byte) []byte {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, form := range r.forms {
		if bytes.Contains(text, form) {
			text = bytes.ReplaceAll(text, form, []byte(blot))
		}
	}
	return text
}

// Writer passes on to out what is written, redacted. A secret must not be cut over two writes, as it never is by a
// logger, which writes whole lines.
func (r *Redactor) Writer(out io.Writer) io.Writer { return redacting{r, out} }

type redacting struct {
	redactor *Redactor
	out      io.Writer
}

// Write reports the length of p, not of its redacted form, as io.Writer demands.
func (w redacting) Write(p []byte) (int, error) {
	if _, err := w.out.Write(w.redactor.Redact(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
