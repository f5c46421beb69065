// Package dead keeps what a worker could not decode, with the reason, until a
// person has looked at it, and remembers what a person has let pass.
package dead

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/topology"
)

// Item is one dead letter.
type Item struct {
	Seq       uint64    // its own sequence in DEAD; names it
	Time      time.Time // when it was kept
	Reason    string    // for people; one line of at most 1,000 bytes
	Durable   string    // the worker that could not decode it
	Stream    string    // where it came from
	StreamSeq uint64    // and its sequence there
	Subject   string    // and its subject there
	Data      []byte    // as it was; empty if it is too large to be kept twice
}

// ErrNotFound: there is no dead letter with that sequence (any more).
var ErrNotFound = errors.New("no such dead letter")

const (
	headerReason    = "Factstream-Reason"
	headerDurable   = "Factstream-Durable"
	headerStream    = "Factstream-Stream"
	headerStreamSeq = "Factstream-Stream-Seq"
	headerSubject   = "Factstream-Subject"

	maxReason = 1000
	maxPage   = 500

	// listTimeout bounds one page: the library's own would end it without an error.
	listTimeout = connect.DefaultRequestTimeout
)

// Put keeps item; its Seq and Time are the stream's to give. The same message of
// the same worker is kept once, as long as the server remembers it (2 minutes).
func Put(ctx context.Context, js jetstream.JetStream, item Item) error {
	msg := &nats.Msg{Subject: topology.DeadSubject(item.Durable), Data: item.Data, Header: nats.Header{
		headerReason:    {oneLine(item.Reason)},
		headerDurable:   {item.Durable},
		headerStream:    {item.Stream},
		headerStreamSeq: {strconv.FormatUint(item.StreamSeq, 10)},
		headerSubject:   {oneLine(item.Subject)},
	}}
	id := jetstream.WithMsgID(item.Durable + "." + item.Stream + "." + strconv.FormatUint(item.StreamSeq, 10))
	_, err := js.PublishMsg(ctx, msg, id)
	if errors.Is(err, nats.ErrMaxPayload) { // its stream still has it
		msg.Data = nil
		_, err = js.PublishMsg(ctx, msg, id)
	}
	if err != nil {
		return fmt.Errorf("keep dead letter of %s at %d: %w", item.Durable, item.StreamSeq, err)
	}
	return nil
}

// List returns up to limit (1 to 500) items with sequences above after, oldest
// first. more tells whether others follow; go on after the last one's Seq.
func List(ctx context.Context, js jetstream.JetStream, after uint64, limit int) (items []Item, more bool, err error) {
	limit = min(max(limit, 1), maxPage)
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	answers, err := jetstreamext.GetBatch(ctx, js, topology.Dead, limit+1, jetstreamext.GetBatchSeq(after+1))
	if err != nil {
		return nil, false, fmt.Errorf("list dead letters: %w", err)
	}
	for m, err := range answers {
		if errors.Is(err, jetstreamext.ErrNoMessages) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("list dead letters: %w", err)
		}
		if len(items) == limit {
			more = true
			break
		}
		items = append(items, fromRaw(m))
	}
	if !more && ctx.Err() != nil { // the library ends a list that stopped coming as if it were whole
		return nil, false, fmt.Errorf("list dead letters: %w", ctx.Err())
	}
	return items, more, nil
}

// Of returns the items of one message of a stream: one for each worker that could
// not decode it.
func Of(ctx context.Context, js jetstream.JetStream, stream string, seq uint64) ([]Item, error) {
	var letters []Item
	for after, more := uint64(0), true; more; {
		items, others, err := List(ctx, js, after, maxPage)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			after = item.Seq
			if item.Stream == stream && item.StreamSeq == seq {
				letters = append(letters, item)
			}
		}
		more = others && len(items) > 0
	}
	return letters, nil
}

// Get returns the item with sequence seq, or ErrNotFound.
func Get(ctx context.Context, js jetstream.JetStream, seq uint64) (Item, error) {
	stream, err := js.Stream(ctx, topology.Dead)
	if err != nil {
		return Item{}, fmt.Errorf("read dead letter %d: %w", seq, err)
	}
	if seq == 0 { // sequences begin at 1, and the server takes a request for 0 as an empty one
		return Item{}, fmt.Errorf("%w: %d", ErrNotFound, seq)
	}
	m, err := stream.GetMsg(ctx, seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return Item{}, fmt.Errorf("%w: %d", ErrNotFound, seq)
	}
	if err != nil {
		return Item{}, fmt.Errorf("read dead letter %d: %w", seq, err)
	}
	return fromRaw(m), nil
}

// Delete forgets the item with sequence seq, or returns ErrNotFound.
func Delete(ctx context.Context, js jetstream.JetStream, seq uint64) error {
	stream, err := js.Stream(ctx, topology.Dead)
	if err != nil {
		return fmt.Errorf("delete dead letter %d: %w", seq, err)
	}
	err = stream.DeleteMsg(ctx, seq)
	if err == nil {
		return nil
	}
	// The library keeps only the text of the server's refusal, so look why.
	if _, gone := stream.GetMsg(ctx, seq); errors.Is(gone, jetstream.ErrMsgNotFound) {
		if connect.Unanswered(err) { // it was this request, most likely
			return nil
		}
		return fmt.Errorf("%w: %d", ErrNotFound, seq)
	}
	return fmt.Errorf("delete dead letter %d: %w", seq, err)
}

// Count is how many dead letters are kept.
func Count(ctx context.Context, js jetstream.JetStream) (uint64, error) {
	stream, err := js.Stream(ctx, topology.Dead)
	if err != nil {
		return 0, fmt.Errorf("count dead letters: %w", err)
	}
	return stream.CachedInfo().State.Msgs, nil
}

func fromRaw(m *jetstream.RawStreamMsg) Item {
	seq, err := strconv.ParseUint(m.Header.Get(headerStreamSeq), 10, 64)
	if err != nil {
		seq = 0 // put there by somebody else; shown as it is
	}
	return Item{
		Seq: m.Sequence, Time: m.Time,
		Reason: m.Header.Get(headerReason), Durable: m.Header.Get(headerDurable),
		Stream: m.Header.Get(headerStream), StreamSeq: seq, Subject: m.Header.Get(headerSubject),
		Data: m.Data,
	}
}

// oneLine makes s fit for a header.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	if len(s) > maxReason {
		s = strings.ToValidUTF8(s[:maxReason], "")
	}
	return s
}
