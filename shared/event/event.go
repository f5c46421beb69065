// Package event holds the notebook's events: one file per event type, each with a JSON Schema beside it, and one registry that
// parses them all. An event says what was accepted; it is never filtered again by those who read it.
package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// ErrMalformed is returned by Parse for a body or subject that is not an event of this notebook, whatever its type.
var ErrMalformed = errors.New("malformed event")

// Data is the part of an event that its type defines.
type Data interface {
	// Kind is the family and the verb, "run.completed": the first two tokens of the subject.
	Kind() string
}

// Event is one change of the notebook. The JSON form is the body of the message; Entity, Seq and Stored come from the message itself.
type Event struct {
	ID     string    `json:"id"`
	Type   string    `json:"type"` // factstream.<family>.<verb>.v<version>
	Time   time.Time `json:"time"` // when it was decided, UTC
	Thread string    `json:"thread"`
	Run    string    `json:"run,omitempty"`
	Cause  string    `json:"cause,omitempty"` // id of the event that led to it
	N      int       `json:"n"`               // attempt, generation or closing; see docs/architecture.md
	Data   Data      `json:"data"`

	Entity string `json:"-"` // the id token of the subject: run, question, cycle, fact or pair; "0" for the thread itself
	Seq    uint64 `json:"-"` // stream sequence, 0 before it was stored
	// Original is the sequence in the stream where it was first stored: Seq, unless the notebook was restored.
	Original uint64    `json:"-"`
	Stored   time.Time `json:"-"` // the store's own time
}

// Kind is the kind of the event's data.
func (e Event) Kind() string { return e.Data.Kind() }

// Subject is where the event is published: <family>.<verb>.<thread>.<id>.<n>, always five tokens.
func (e Event) Subject() string {
	return e.Data.Kind() + "." + e.Thread + "." + e.Entity + "." + strconv.Itoa(e.N)
}

// Unknown is an event of a type that this version does not know: kept raw, skipped by every fold.
type Unknown struct {
	kind string
	Raw  json.RawMessage
}

// Kind is taken from the subject.
func (u Unknown) Kind() string { return u.kind }

// MarshalJSON gives the data back as it came.
func (u Unknown) MarshalJSON() ([]byte, error) {
	if len(u.Raw) == 0 {
		return []byte("null"), nil
	}
	return u.Raw, nil
}

// Marshal gives the body of an event.
func Marshal(e Event) ([]byte, error) {
	if e.Type == "" {
		e.Type = TypeOf(e.Data)
	}
	e.Time = e.Time.UTC()
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return nil, fmt.Errorf("encode %s: %w", e.Type, err)
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

type envelope[D any] struct {
	ID     string    `json:"id"`
	Type   string    `json:"type"`
	Time   time.Time `json:"time"`
	Thread string    `json:"thread"`
	Run    string    `json:"run"`
	Cause  string    `json:"cause"`
	N      int       `json:"n"`
	Data   D         `json:"data"`
}

// event is without the data.
func (env envelope[D]) event(entity string) Event {
	return Event{ID: env.ID, Type: env.Type, Time: env.Time, Thread: env.Thread, Run: env.Run, Cause: env.Cause, N: env.N, Entity: entity}
}

// Parse reads an event from its subject and body. A type or version that is not registered gives Unknown data and no error;
// ErrMalformed means that the subject and the body are not an event at all, or that they disagree.
func Parse(subject string, body []byte) (Event, error) {
	tokens := strings.Split(subject, ".")
	if len(tokens) != 5 {
		return Event{}, fmt.Errorf("%w: subject %q has %d tokens, not 5", ErrMalformed, subject, len(tokens))
	}
	n, err := strconv.Atoi(tokens[4])
	if err != nil || n < 0 {
		return Event{}, fmt.Errorf("%w: subject %q does not end with a number", ErrMalformed, subject)
	}
	kind := tokens[0] + "." + tokens[1]
	if e, ok := parseNewest(tokens, kind, n, body); ok {
		return e, nil
	}
	var env envelope[json.RawMessage]
	if err := json.Unmarshal(body, &env); err != nil {
		return Event{}, fmt.Errorf("%w: %s: %w", ErrMalformed, subject, err)
	}
	e := env.event(tokens[3])
	if strings.HasPrefix(kind, "ext.") {
		e.Thread, e.N = tokens[2], n
		e.Data = Unknown{kind: kind, Raw: env.Data}
		return e, nil
	}
	if env.ID == "" || env.Thread != tokens[2] || env.N != n {
		return Event{}, fmt.Errorf("%w: body and subject %q disagree (id %q, thread %q, n %d)", ErrMalformed, subject, env.ID, env.Thread, env.N)
	}
	entry, known := registry[env.Type]
	if !known || entry.kind != kind {
		e.Data = Unknown{kind: kind, Raw: env.Data}
		return e, nil
	}
	data := entry.make()
	if err := json.Unmarshal(env.Data, data); err != nil {
		return Event{}, fmt.Errorf("%w: data of %s: %w", ErrMalformed, env.Type, err)
	}
	e.Data = entry.value(data)
	return e, nil
}

// parseNewest reads a body in one pass by taking it for the newest version of the subject's kind, which nearly all are: every process folds every event,
// and this is most of that work. It says false for whatever is not plainly that, and for what is wrong; the second pass then tells what it is.
func parseNewest(tokens []string, kind string, n int, body []byte) (Event, bool) {
	newest, known := latest[kind]
	if !known {
		return Event{}, false
	}
	data := newest.make()
	env := envelope[any]{Data: data}
	if json.Unmarshal(body, &env) != nil || env.Type != newest.typ || env.ID == "" || env.Thread != tokens[2] || env.N != n {
		return Event{}, false
	}
	if env.Data != data || reflect.ValueOf(data).Elem().IsZero() { // null, or perhaps not there at all
		return Event{}, false
	}
	e := env.event(tokens[3])
	e.Data = newest.value(data)
	return e, true
}
