package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/factstream/factstream/shared/sse"
)

// Protocol gives the events of one stream their meaning. A value reads one stream.
type Protocol interface {
	// Take reads the next event. final says that it is the terminal one and the report is whole. A failure (Code and
	// Detail are enough) says that the event ends the call without one.
	Take(name string, data []byte) (final bool, failure *Error)
	// Whole says whether a stream that ended without a terminal event brought its report nevertheless.
	Whole() bool
	// Late says for a person what an event after the terminal one means; "" when it means nothing.
	Late(name string, data []byte) string
	// Result is what was read; it is asked for once, after the end.
	Result() Result
}

// Reading is how Read is to read one stream.
type Reading struct {
	Provider string           // for failures
	Protocol Protocol         // what the events mean
	Sink     Sink             // who keeps them
	Now      func() time.Time // stamps the events
	Secret   string           // is taken out of every text of a failure
	Billing  string           // sentence on what an unfinished call may cost, for failures
	// Ended is called once, when the terminal event has come and the stream is only read out. It may be nil.
	Ended func()
}

const (
	// readSize is the most that is read at once. It only bounds a buffer: a read returns as soon as there is something.
	readSize = 32 << 10
	// trailing bounds what is still read after the terminal event.
	trailing = 1 << 20
	doneMark = "[DONE]"
)

// MaxAnswer is how many bytes of one answer are taken, unpacked if it was compressed. Reports with the full text of 200
// pages have some 4 MiB; without a bound, a stream that never ends (or unpacks to a thousand times its size) would fill the
// disk that the notebook is on before its time is over.
const MaxAnswer = 256 << 20

// Read reads one stream to its terminal event. That event is the only success: the end of the stream before it is a
// failure with code truncated. A last event whose blank line never came counts if its JSON is whole, however the stream
// ended, because a paid report is not thrown away for a missing byte. What follows the terminal event changes nothing;
// it is read on only as far as it is at hand, to say in a warning if an error came after the report.
//
// ctx ends the reading between two reads (and within one if the stream itself depends on it). A cause of ctx that is
// CodeStall, CodeTimeout or CodeTransport becomes that failure; any other is CodeCancelled.
func Read(ctx context.Context, stream io.Reader, reading Reading) (Result, error) {
	s := &progress{Reading: reading}
	buf := make([]byte, readSize)
	for {
		if ctx.Err() != nil {
			return s.ended(ctx, ctx.Err())
		}
		n, err := stream.Read(buf)
		if n > 0 {
			if failure := s.piece(buf[:n]); failure != nil {
				return Result{}, s.complete(failure)
			}
		}
		if err != nil || s.after > trailing {
			return s.ended(ctx, err)
		}
	}
}

// progress is the state of one Read.
type progress struct {
	Reading
	decoder sse.Decoder
	final   bool
	after   int64 // bytes after the terminal event
	last    string
	events  int
	warn    []string
}

// piece keeps and decodes the next bytes.
func (s *progress) piece(p []byte) *Error {
	if !s.final && s.decoder.Bytes()+int64(len(p)) > MaxAnswer {
		return &Error{Code: CodeAnswerTooLarge, Detail: fmt.Sprintf(
			"The answer is larger than %d MiB and has not come to its end, so the connection was closed. %s", MaxAnswer>>20, s.Billing)}
	}
	kept := s.Sink.Bytes(p)
	if s.final {
		s.after += int64(len(p))
	} else if kept != nil {
		return &Error{Code: CodeNotKept, Err: kept, Detail: "What the provider sent could not be kept, so the call was ended: " +
			sentence(kept.Error()) + " " + s.Billing}
	}
	events, err := s.decoder.Feed(p)
	for _, e := range events {
		if failure := s.event(e); failure != nil {
			return failure
		}
	}
	if err != nil && !s.final {
		return &Error{Code: CodeEventTooLarge, Err: err, Detail: fmt.Sprintf(
			"An event of the stream is larger than %d MiB, so it cannot be read to its end. %s", sse.MaxEvent>>20, s.Billing)}
	}
	return nil
}

// event hands one event to the sink and to the protocol.
func (s *progress) event(e sse.Event) *Error {
	if s.final {
		if text := s.Protocol.Late(e.Name, e.Data); text != "" {
			s.warn = append(s.warn, text)
		}
		return nil
	}
	s.events++
	s.last = e.Name
	kept := s.Sink.Event(Event{Seq: s.events, Name: e.Name, Data: e.Data, At: s.Now()})
	final, failure := s.Protocol.Take(e.Name, e.Data)
	if failure != nil {
		failure.Detail = sentence(failure.Detail) + " " + s.Billing
		return failure
	}
	if s.final = final; final && s.Ended != nil {
		s.Ended()
	}
	if kept != nil && !final {
		return &Error{Code: CodeNotKept, Err: kept, Detail: "An event of the provider could not be kept, so the call was ended: " +
			sentence(kept.Error()) + " " + s.Billing}
	}
	return nil
}

// ended decides what the end of the stream means; err is how it ended.
func (s *progress) ended(ctx context.Context, err error) (Result, error) {
	if !s.final {
		if failure := s.flush(); failure != nil {
			return Result{}, s.complete(failure)
		}
	}
	if !s.final && s.Protocol.Whole() {
		s.final = true
	}
	if !s.final {
		return Result{}, s.complete(s.cut(ctx, err))
	}
	result := s.Protocol.Result()
	result.Counts.Bytes, result.Counts.Events, result.Counts.Comments = s.decoder.Bytes(), s.events, s.decoder.Comments()
	result.Warnings = append(result.Warnings, s.warn...)
	return result, nil
}

// flush takes the last event of a stream that ended before that event's blank line, if its data is whole.
func (s *progress) flush() *Error {
	events, _ := s.decoder.Finish() // too large: nothing is left to take
	for _, e := range events {
		if !whole(e.Data) {
			continue
		}
		if failure := s.event(e); failure != nil {
			return failure
		}
		if s.final {
			s.warn = append(s.warn, "The stream ended without the blank line after its last event; the report in it is whole and counts.")
		}
	}
	return nil
}

// cut is the failure of a stream that ended before its terminal event.
func (s *progress) cut(ctx context.Context, err error) *Error {
	got := fmt.Sprintf("after %d bytes and %d events", s.decoder.Bytes(), s.events)
	if s.last != "" {
		got += fmt.Sprintf(" (the last was %q)", cut(s.last))
	}
	if stray, ok := s.Protocol.(interface{ Stray() []byte }); ok && len(stray.Stray()) > 0 {
		got += fmt.Sprintf("; the stream said %q", cut(string(redactBytes(stray.Stray(), s.Secret))))
	}
	if ctx.Err() != nil {
		e := Interrupted(ctx)
		e.Detail = sentence(e.Detail+" "+got) + " " + s.Billing
		return e
	}
	e := &Error{Code: CodeTruncated, Retryable: true, Detail: sentence("The stream ended before its report, "+got) + " " + s.Billing}
	if err != nil && !errors.Is(err, io.EOF) {
		e.Err = err
		e.Detail = sentence("The connection broke before the report, "+got) + " " + s.Billing
	}
	return e
}

// Interrupted is the failure of a call whose context ended: stall, timeout or transport if its cause says so, else
// cancelled. Its Detail is the start of a sentence that may be continued.
func Interrupted(ctx context.Context) *Error {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, CodeStall):
		return &Error{Code: CodeStall, Retryable: true, Err: cause, Detail: "Nothing came for too long, so the connection was closed"}
	case errors.Is(cause, CodeTimeout):
		return &Error{Code: CodeTimeout, Err: cause, Detail: "The call took longer than it may, so the connection was closed"}
	}
	if errors.Is(cause, CodeTransport) {
		return &Error{Code: CodeTransport, Retryable: true, Err: cause, Detail: "No connection to the provider was made in time"}
	}
	return &Error{Code: CodeCancelled, Err: cause, Detail: "The call was cancelled and its connection closed"}
}

func (s *progress) complete(e *Error) *Error {
	e.Provider = s.Provider
	e.Detail = string(redactBytes([]byte(e.Detail), s.Secret))
	return e
}

// whole says whether the data of an event that lacks its blank line can be taken as it is: a JSON object (a number or a
// word might go on) or the mark that ends a chat stream.
func whole(data []byte) bool {
	data = bytes.TrimSpace(data)
	return len(data) > 0 && (data[0] == '{' && json.Valid(data) || string(data) == doneMark)
}
