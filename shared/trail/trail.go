// Package trail is what a provider said during an attempt, event by event, in the form that is shown to people: as it is published while the call is under
// way, and as it is read again from the raw answer that was kept.
package trail

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/factstream/factstream/shared/sse"
)

// Event is one event of a provider. It is the body of a message of the stream TRAIL.
type Event struct {
	Seq  int             `json:"seq"` // from 1 in its attempt
	Name string          `json:"name"`
	At   time.Time       `json:"at"`
	Data json.RawMessage `json:"data"`
}

// MaxData is the largest data of an event that a trail carries, in bytes; the whole of it is in the raw answer.
const MaxData = 256 << 10

// New makes an event from the provider's data: the JSON itself, {"raw": text} when it is not JSON, of "complete" the message and the timestamp only, since
// its report and pages are kept elsewhere, and of one over MaxData the same with a note.
func New(seq int, name string, at time.Time, data []byte) Event {
	return Event{Seq: seq, Name: name, At: at.UTC(), Data: trimmed(shown(name, data))}
}

func shown(name string, data []byte) json.RawMessage {
	if !json.Valid(data) {
		return marshal(struct {
			Raw string `json:"raw"`
		}{string(data)})
	}
	if name != "complete" {
		return data
	}
	var short head
	if json.Unmarshal(data, &short) != nil { // JSON, but no object
		return json.RawMessage(`{}`)
	}
	return marshal(short)
}

type head struct {
	Message   json.RawMessage `json:"message,omitempty"`
	Timestamp json.RawMessage `json:"timestamp,omitempty"`
}

func trimmed(data json.RawMessage) json.RawMessage {
	if len(data) <= MaxData {
		return data
	}
	var short struct {
		head
		Trimmed int    `json:"trimmed"` // bytes of the whole data
		Note    string `json:"note"`
	}
	if json.Unmarshal(data, &short.head) != nil || len(short.Message) > MaxData/2 {
		short.Message = nil
	}
	if len(short.Timestamp) > MaxData/2 {
		short.Timestamp = nil
	}
	short.Trimmed, short.Note = len(data), "The event is too large for the trail; the whole of it is in the raw answer."
	return marshal(short)
}

func marshal(v any) json.RawMessage {
	body, err := json.Marshal(v)
	if err != nil { // the raw messages in it came from valid JSON
		return json.RawMessage(`{}`)
	}
	return body
}

// Decode reads the trail of an ended attempt again from its raw answer. at stands for the time of each event, which the answer does not tell. What could be read
// before an error is returned with it: of an answer that was cut, or an event over the decoder's limit.
func Decode(raw io.Reader, at time.Time) ([]Event, error) {
	var decoder sse.Decoder
	var trail []Event
	add := func(events []sse.Event) {
		for _, e := range events {
			trail = append(trail, New(len(trail)+1, e.Name, at, e.Data))
		}
	}
	piece := make([]byte, 64<<10)
	for {
		n, err := raw.Read(piece)
		events, decodeErr := decoder.Feed(piece[:n])
		add(events)
		switch {
		case decodeErr != nil:
			return trail, fmt.Errorf("decode the raw answer: %w", decodeErr)
		case errors.Is(err, io.EOF):
			events, err := decoder.Finish()
			add(events)
			if err != nil {
				return trail, fmt.Errorf("decode the raw answer: %w", err)
			}
			return trail, nil
		case err != nil:
			return trail, fmt.Errorf("read the raw answer: %w", err)
		}
	}
}
