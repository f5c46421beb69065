// Package sse decodes a stream of server-sent events as its bytes arrive.
//
// The decoder is our own because it stands in the path of a paid call: decoders that search their buffer again from the
// start with every read need seconds for one event of a few megabytes that comes in small pieces, and the provider's
// connection waits meanwhile. This one looks at every byte a fixed number of times, whatever the pieces.
package sse

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"
)

// MaxEvent is the most bytes that one event may hold (its data, or any other of its fields): 16 MiB. It bounds memory
// against a stream that never ends an event; it is far above what a provider sends (hundreds of pages with full text).
const MaxEvent = 16 << 20

// ErrEventTooLarge says that one event exceeded MaxEvent. The stream cannot be read on: the decoder returns it for
// every later call.
var ErrEventTooLarge = errors.New("sse: event is larger than 16 MiB")

// ErrFinished says that Feed was called after Finish.
var ErrFinished = errors.New("sse: stream was finished")

// DefaultName is the name of an event that names none.
const DefaultName = "message"

// Event is one event of the stream.
type Event struct {
	// Name is the event's name; DefaultName when the stream gave none or an empty one.
	Name string
	// Data is the event's data: its data lines joined by LF. It is valid UTF-8 (an invalid sequence became U+FFFD),
	// may be empty, and is the caller's to keep and change. Large data is handed over in the buffer it came into, which
	// may be up to three times as large.
	Data []byte
	// ID is the last event id that the stream had named when this event ended; "" when none.
	ID string
	// Unterminated says that the stream ended before this event's blank line: its data may lack its end. Only Finish
	// returns such an event.
	Unterminated bool
}

// Decoder turns pieces of a byte stream into events. The zero value is ready to use. It is not safe for concurrent use.
//
// It follows the event stream grammar of the HTML standard: lines end with LF, CR or CRLF, wherever the pieces are cut;
// one byte order mark at the very start is dropped; a line that starts with a colon is a comment; data lines are joined;
// an id with NUL is ignored; retry takes digits only; unknown fields are ignored.
type Decoder struct {
	data    []byte // the pending event's data so far
	hasData bool   // a data field was seen: empty data is an event too
	name    []byte // the pending event's name
	id      string // last event id of the stream

	line  lineState
	field field
	key   [maxKey]byte // the field name of the current line so far
	keyN  int
	value []byte // value of the current line, of fields that replace: event, id, retry

	bom    int  // bytes of a leading byte order mark that matched; bomDone afterwards
	skipLF bool // the last line ended with CR at the end of a piece: an LF now belongs to it

	names    map[string]string // names seen, so that a name is allocated once and not per event
	retry    time.Duration
	hasRetry bool
	total    int64
	comments int64
	work     int64 // bytes looked at or copied, counted where it is done: the tests prove that it is linear
	err      error
}

type lineState uint8

const (
	atStart lineState = iota // no byte of the line yet
	inKey                    // in the field name
	afterColon
	inValue
	ignored // comment or unknown field: the rest of the line is passed over, and not kept
)

type field uint8

const (
	fieldNone field = iota
	fieldData
	fieldEvent
	fieldID
	fieldRetry
)

const (
	maxKey = 5 // "event", "retry": a longer field name is unknown
	// copyBelow is the size under which an event's data is copied out and the buffer kept; a larger buffer is handed
	// over whole, so that large data is not copied again, unless less than a third of it is used.
	copyBelow = 32 << 10
	// keepBuffer is the largest buffer that is kept for the next event.
	keepBuffer = 2 * copyBelow
	// wholeRoomAbove is the size above which data that comes in pieces gets room for MaxEvent.
	wholeRoomAbove = 1 << 20
	// maxNames and maxNameKept bound the memory for names if a stream invents one per event.
	maxNames    = 128
	maxNameKept = 64
	bomDone     = 3
)

var byteOrderMark = [bomDone]byte{0xEF, 0xBB, 0xBF}

// Feed takes the next piece of the stream, of any length and cut anywhere, and returns the events that it completed, in
// order (nil when none). p is not kept. When an event grows over MaxEvent, it returns the events completed before that
// together with ErrEventTooLarge.
func (d *Decoder) Feed(p []byte) ([]Event, error) {
	if d.err != nil {
		return nil, d.err
	}
	d.total += int64(len(p))
	var out []Event
	if d.bom < bomDone {
		p = d.dropByteOrderMark(p, &out)
	}
	d.lines(p, &out)
	return out, d.err
}

// Finish ends the stream. An event whose blank line never came is returned, marked Unterminated; the caller decides
// whether its data is whole. The last line counts although its line end is missing, unless it has no colon: it may then
// be the start of any field.
func (d *Decoder) Finish() ([]Event, error) {
	if d.err != nil {
		if errors.Is(d.err, ErrFinished) {
			return nil, nil
		}
		return nil, d.err
	}
	var out []Event
	if d.bom < bomDone {
		d.lines(byteOrderMark[:d.bom], &out)
		d.bom = bomDone
	}
	if d.line == afterColon || d.line == inValue {
		d.endLine(&out)
	}
	if d.err == nil && d.hasData {
		d.dispatch(&out)
		out[len(out)-1].Unterminated = true
	}
	if d.err != nil {
		return out, d.err
	}
	d.err = ErrFinished
	return out, nil
}

// Bytes is the number of bytes fed so far; comments and everything else count.
func (d *Decoder) Bytes() int64 { return d.total }

// Comments is the number of comment lines begun so far. A provider sends them to show that it is alive.
func (d *Decoder) Comments() int64 { return d.comments }

// Retry is the reconnection time that the stream asked for last, and whether it asked for one.
func (d *Decoder) Retry() (time.Duration, bool) { return d.retry, d.hasRetry }

// dropByteOrderMark matches the first bytes of the stream with the byte order mark and returns what of p is left.
func (d *Decoder) dropByteOrderMark(p []byte, out *[]Event) []byte {
	for len(p) > 0 && d.bom < bomDone {
		if p[0] != byteOrderMark[d.bom] {
			held := d.bom
			d.bom = bomDone
			d.lines(byteOrderMark[:held], out)
			return p
		}
		d.bom++
		p = p[1:]
	}
	return p
}

// lines runs the state machine over p. The next LF and the next CR are searched separately and remembered, so that a
// piece with lines of one kind only is not searched to its end for the other kind once per line.
func (d *Decoder) lines(p []byte, out *[]Event) {
	if d.skipLF && len(p) > 0 {
		d.skipLF = false
		if p[0] == '\n' {
			p = p[1:]
		}
	}
	pos, lf, cr := 0, -1, -1
	for pos < len(p) && d.err == nil {
		if lf < pos {
			lf = d.find(p, pos, '\n')
		}
		if cr < pos {
			cr = d.find(p, pos, '\r')
		}
		end := min(lf, cr)
		d.partOfLine(p[pos:end])
		if end == len(p) || d.err != nil {
			return
		}
		d.endLine(out)
		pos = end + 1
		if p[end] == '\r' {
			if pos == len(p) {
				d.skipLF = true
			} else if p[pos] == '\n' {
				pos++
			}
		}
	}
}

// find returns the index of the first b in p at or after from, or len(p).
func (d *Decoder) find(p []byte, from int, b byte) int {
	i := bytes.IndexByte(p[from:], b)
	if i < 0 {
		d.work += int64(len(p) - from)
		return len(p)
	}
	d.work += int64(i + 1)
	return from + i
}

// partOfLine takes bytes of the current line; they contain no line end.
func (d *Decoder) partOfLine(s []byte) {
	for len(s) > 0 {
		switch d.line {
		case atStart:
			d.keyN = 0
			d.line = inKey
			if s[0] == ':' {
				d.comments++
				d.line = ignored
			}
		case inKey:
			if d.keyN == 0 { // mostly the whole name is at hand
				if i := bytes.IndexByte(s[:min(len(s), maxKey+1)], ':'); i > 0 {
					d.keyN = copy(d.key[:], s[:i])
					d.work += int64(i + 1)
					s = s[i+1:]
					d.openField()
					continue
				}
			}
			c := s[0]
			s = s[1:]
			d.work++
			switch {
			case c == ':':
				d.openField()
			case d.keyN == maxKey:
				d.line = ignored
			default:
				d.key[d.keyN] = c
				d.keyN++
			}
		case afterColon:
			if s[0] == ' ' { // one space after the colon is not part of the value
				s = s[1:]
			}
			d.line = inValue
		case inValue:
			d.work += int64(len(s))
			b := &d.value
			if d.field == fieldData {
				b = &d.data
			}
			if need := len(*b) + len(s); need <= cap(*b) || d.grow(b, need) {
				*b = append(*b, s...)
			}
			return
		case ignored:
			return
		}
	}
}

// grow gives b, which is the pending event's data or a value, room for need bytes. It fails if an event may not be as
// large; so no buffer ever has room for more.
//
// Room doubles while that is little. What grows over wholeRoomAbove gets at once all the room that there may be: the
// system backs new memory only where it is written, so the rest of it costs addresses, while to go on doubling would
// write every byte twice, into memory of which as much is thrown away as is used. A first piece that is large gets what
// it needs, for it may be all.
func (d *Decoder) grow(b *[]byte, need int) bool {
	if need > MaxEvent {
		d.fail()
		return false
	}
	d.work += int64(len(*b))
	if need > wholeRoomAbove && len(*b) > 0 {
		*b = append(wholeRoom(), *b...)
		return true
	}
	*b = append(make([]byte, 0, max(min(2*cap(*b), wholeRoomAbove), need)), *b...)
	return true
}

// wholeRooms are buffers with room for MaxEvent whose data was copied out. To clear a new one takes longer than an event
// that fills a part of it. The collector takes them away when they are not used.
var wholeRooms sync.Pool

func wholeRoom() []byte {
	if room, ok := wholeRooms.Get().(*[MaxEvent]byte); ok {
		return room[:0]
	}
	return make([]byte, 0, MaxEvent)
}

// kept returns b, whose content nobody needs any more, to be used again; nil if it is so large that a decoder that waits
// for its next event must not hold it.
func kept(b []byte) []byte {
	if cap(b) > keepBuffer {
		giveBack(b)
		return nil
	}
	return b[:0]
}

func giveBack(b []byte) {
	if cap(b) == MaxEvent {
		wholeRooms.Put((*[MaxEvent]byte)(b[:MaxEvent]))
	}
}

// openField is called when the field name of the current line is complete.
func (d *Decoder) openField() {
	d.line = afterColon
	switch string(d.key[:d.keyN]) {
	case "data":
		d.field = fieldData
		if d.hasData { // a stream of empty data lines grows by their line ends only
			if n := len(d.data); n == cap(d.data) && !d.grow(&d.data, n+1) {
				return
			}
			d.data = append(d.data, '\n')
		}
		d.hasData = true
	case "event":
		d.field = fieldEvent
	case "id":
		d.field = fieldID
	case "retry":
		d.field = fieldRetry
	default:
		d.field = fieldNone
		d.line = ignored
	}
}

// endLine applies the current line: a blank one ends the event, a field without colon has an empty value.
func (d *Decoder) endLine(out *[]Event) {
	switch d.line {
	case atStart:
		d.dispatch(out)
		return
	case inKey:
		d.openField()
	}
	if d.line != ignored {
		d.applyField()
	}
	d.line, d.field = atStart, fieldNone
}

// applyField takes over the value of a field that replaces (data was appended as it came).
func (d *Decoder) applyField() {
	switch d.field {
	case fieldData:
		return
	case fieldEvent:
		d.name = append(d.name[:0], d.value...)
	case fieldID:
		if bytes.IndexByte(d.value, 0) < 0 {
			d.id = string(wellFormed(d.value))
		}
	case fieldRetry:
		if ms, ok := digits(d.value); ok {
			d.retry, d.hasRetry = time.Duration(ms)*time.Millisecond, true
		}
	}
	d.work += int64(len(d.value))
	d.value = kept(d.value)
}

// dispatch ends the pending event and forgets it; without a data field there is none.
func (d *Decoder) dispatch(out *[]Event) {
	if d.hasData {
		d.work += int64(len(d.data))
		e := Event{Name: d.eventName(), ID: d.id}
		switch valid := utf8.Valid(d.data); {
		case !valid:
			e.Data = wellFormed(d.data)
			d.data = kept(d.data)
		case len(d.data) < copyBelow, len(d.data) < cap(d.data)/3:
			d.work += int64(len(d.data))
			e.Data = append(make([]byte, 0, len(d.data)), d.data...)
			d.data = kept(d.data)
		default:
			e.Data = d.data
			d.data = nil
		}
		*out = append(*out, e)
	}
	d.hasData = false
	d.name = kept(d.name)
}

func (d *Decoder) eventName() string {
	if len(d.name) == 0 {
		return DefaultName
	}
	if s, ok := d.names[string(d.name)]; ok {
		return s
	}
	s := string(wellFormed(d.name))
	if d.names == nil {
		d.names = make(map[string]string)
	}
	if len(d.names) < maxNames && len(d.name) <= maxNameKept {
		d.names[string(d.name)] = s
	}
	return s
}

func (d *Decoder) fail() {
	d.err = fmt.Errorf("after %d bytes of the stream: %w", d.total, ErrEventTooLarge)
	d.data, d.value, d.name, d.hasData, d.line = nil, nil, nil, false, ignored
}

// digits reads a retry value: ASCII digits only, at least one, and a number of milliseconds that a Duration can hold.
func digits(s []byte) (int64, bool) {
	if len(s) == 0 || len(s) > 12 {
		return 0, false
	}
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(string(s), 10, 64)
	return n, err == nil
}
