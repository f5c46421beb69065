package topology

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// families lists the first tokens of the subjects of NOTEBOOK. A stream over
// "*.*.*.*.*" would overlap with what others keep on the same server, so the
// families are named.
var families = []string{
	"thread", "question", "questions", "run", "attempt", "facts", "contradictions", "brief", "coverage",
	"watch", "fact", "contradiction", "passages", "graph", "answer", "stage", extFamily,
}

// extFamily is that of events of others.
const extFamily = "ext"

const (
	trailSubjects = "trail.*.*.*"
	deadSubjects  = "dead.>"
)

// NoID and NoThread stand in a subject for an id that does not apply: the id of an event that
// is about the thread itself is "0", the thread of an answer over several is "_".
const (
	NoID     = "0"
	NoThread = "_"
)

// ErrSubject is wrapped by the errors of Parse, and by Check.
var ErrSubject = errors.New("not a subject of the notebook")

// Parts are the five tokens of a subject of NOTEBOOK:
// <family>.<verb>.<thread>.<id>.<n>.
type Parts struct {
	Family string
	Verb   string
	Thread string
	ID     string
	N      int // never negative
}

// Subject builds the subject of an event. The tokens must be valid (see Check);
// they come from ids that this project makes.
func Subject(family, verb, thread, id string, n int) string {
	return family + "." + verb + "." + thread + "." + id + "." + strconv.Itoa(n)
}

// String is the subject that the parts came from.
func (p Parts) String() string { return Subject(p.Family, p.Verb, p.Thread, p.ID, p.N) }

// Check returns an error that wraps ErrSubject if the parts do not form a subject
// of NOTEBOOK: an unknown family, an empty token, one with a dot, wildcard, white
// space or control character, or a negative n.
func (p Parts) Check() error {
	if !slices.Contains(families, p.Family) {
		return fmt.Errorf("%w: %q is no family", ErrSubject, p.Family)
	}
	for _, token := range []string{p.Verb, p.Thread, p.ID} {
		if !validToken(token) {
			return fmt.Errorf("%w: %q is no token", ErrSubject, token)
		}
	}
	if p.N < 0 {
		return fmt.Errorf("%w: n is %d", ErrSubject, p.N)
	}
	return nil
}

// Parse splits a subject of NOTEBOOK into its parts. Its errors wrap ErrSubject.
func Parse(subject string) (Parts, error) {
	tokens := strings.Split(subject, ".")
	if len(tokens) != 5 {
		return Parts{}, fmt.Errorf("%w: %q has %d tokens, not 5", ErrSubject, subject, len(tokens))
	}
	n, err := strconv.Atoi(tokens[4])
	if err != nil || strconv.Itoa(n) != tokens[4] { // one spelling per number, so that a subject is its parts
		return Parts{}, fmt.Errorf("%w: %q does not end in a number", ErrSubject, subject)
	}
	p := Parts{Family: tokens[0], Verb: tokens[1], Thread: tokens[2], ID: tokens[3], N: n}
	if err := p.Check(); err != nil {
		return Parts{}, fmt.Errorf("parse subject %q: %w", subject, err)
	}
	return p, nil
}

// ThreadFilter is the one filter under which every append to a thread is
// conditioned, and which selects the thread's events. Appends under different
// filter strings are not ordered against each other, so there is no second one.
func ThreadFilter(thread string) string { return "*.*." + thread + ".>" }

// TrailSubject is where the provider events of one attempt of a run go.
func TrailSubject(thread, run string, attempt int) string {
	return "trail." + thread + "." + run + "." + strconv.Itoa(attempt)
}

// ThreadTrail selects all trail events of a thread, RunTrail those of one run.
func ThreadTrail(thread string) string   { return "trail." + thread + ".>" }
func RunTrail(thread, run string) string { return "trail." + thread + "." + run + ".*" }

// DeadSubject is where a worker keeps what it could not decode.
func DeadSubject(durable string) string { return "dead." + durable }

// KeySubject is where a bucket keeps the value of a key. What is published to it without asking for an answer is kept all the same.
func KeySubject(bucket, key string) string { return "$KV." + bucket + "." + key }

func notebookSubjects() []string {
	subjects := make([]string, len(families))
	for i, f := range families {
		subjects[i] = f + ".*.*.*.*"
	}
	return subjects
}

// isFamily tells whether a subject of the stream selects one family of events, known
// or not.
func isFamily(subject string) bool {
	family, rest, _ := strings.Cut(subject, ".")
	return validToken(family) && rest == "*.*.*.*"
}

func validToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r == 0x7f || r == '.' || r == '*' || r == '>'
	})
}
