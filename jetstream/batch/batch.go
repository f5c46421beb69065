// Package batch appends messages to a stream under one condition: one message as
// a plain publish, several as one atomic batch.
package batch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"
)

// Message is one message to append.
type Message struct {
	Subject string
	Header  nats.Header // may be nil; never changed
	Data    []byte
}

// Expect is the condition: the last sequence of the stream under Filter is
// LastSeq (0: there is none). All appends that must be ordered against each other
// must use the same filter string; the zero Expect is no condition.
type Expect struct {
	Filter  string
	LastSeq uint64
}

func (e Expect) set(h nats.Header) {
	if e != (Expect{}) {
		h.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(e.LastSeq, 10))
		h.Set(jetstream.ExpectedLastSubjSeqSubjHeader, e.Filter)
	}
}

// MaxMessages is how many messages one atomic batch may hold, by the server's
// default limit.
const MaxMessages = 1000

var (
	// ErrConflict: the condition did not hold, nothing was stored.
	ErrConflict = errors.New("the stream has moved on")
	// ErrUnknown: the messages may or may not be stored, all of them or none. Read
	// the stream to learn which.
	ErrUnknown = errors.New("unknown whether it was stored")
	// ErrTooLarge: a message is over the server's maximum payload, or the batch has
	// too many messages. Nothing was sent.
	ErrTooLarge = errors.New("too large to append")
)

// Publish appends the messages in order, all or none, if the condition holds, and
// returns the sequence of the last one. No messages is no work: 0 and nil.
//
// Errors wrap ErrConflict, ErrTooLarge or ErrUnknown; each failure that is not
// surely a refusal of the condition is unknown, since a publish that returned an
// error may still be stored.
func Publish(ctx context.Context, js jetstream.JetStream, messages []Message, expect Expect) (lastSeq uint64, err error) {
	if len(messages) == 0 {
		return 0, nil
	}
	out := make([]*nats.Msg, len(messages))
	for i, m := range messages {
		out[i] = &nats.Msg{Subject: m.Subject, Header: maps.Clone(m.Header), Data: m.Data}
		if out[i].Header == nil {
			out[i].Header = nats.Header{}
		}
	}
	if err := fits(js.Conn(), out); err != nil {
		return 0, err
	}
	expect.set(out[0].Header)
	if len(out) == 1 {
		lastSeq, err = publishOne(ctx, js, out[0])
	} else {
		lastSeq, err = publishBatch(ctx, js, out)
	}
	if err != nil {
		return 0, classify(err)
	}
	return lastSeq, nil
}

func publishOne(ctx context.Context, js jetstream.JetStream, msg *nats.Msg) (uint64, error) {
	// No retry inside the library: whether to send again is decided after reading.
	ack, err := js.PublishMsg(ctx, msg, jetstream.WithRetryAttempts(0))
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

func publishBatch(ctx context.Context, js jetstream.JetStream, msgs []*nats.Msg) (uint64, error) {
	// Only the commit is answered: an acknowledgement of the first message would
	// cost a round trip and say nothing that the commit does not.
	b, err := jetstreamext.NewBatchPublisher(js, jetstreamext.BatchFlowControl{AckFirst: false})
	if err != nil {
		return 0, err
	}
	last := len(msgs) - 1
	for _, m := range msgs[:last] {
		if err := b.AddMsg(m); err != nil {
			return 0, err
		}
	}
	ack, err := b.CommitMsg(ctx, msgs[last])
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// headroom is what this package and the library may add to a message's headers:
// the condition with its filter, and the id, number and commit mark of a batch.
const headroom = 1024

func fits(nc *nats.Conn, msgs []*nats.Msg) error {
	if len(msgs) > MaxMessages {
		return fmt.Errorf("%w: %d messages, the limit of a batch is %d", ErrTooLarge, len(msgs), MaxMessages)
	}
	limit := nc.MaxPayload() // 0 before the first connection: then the server says so
	for _, m := range msgs {
		size := len(m.Data)
		for key, values := range m.Header {
			for _, v := range values {
				size += len(key) + len(v) + len(": \r\n")
			}
		}
		if limit > 0 && int64(size+headroom) > limit {
			return fmt.Errorf("%w: message on %s has %d bytes, the server takes %d", ErrTooLarge, m.Subject, size, limit)
		}
	}
	return nil
}

// Codes of the server by which it refuses a condition: for one message with the
// sequence it found, and for a batch without it; and for one that was to follow another.
const (
	wrongLastMsgID         jetstream.ErrorCode = 10070
	wrongLastSequence      jetstream.ErrorCode = 10071
	wrongLastSequenceBatch jetstream.ErrorCode = 10164
)

func classify(err error) error {
	var api *jetstream.APIError
	if errors.As(err, &api) && slices.Contains([]jetstream.ErrorCode{wrongLastMsgID, wrongLastSequence, wrongLastSequenceBatch}, api.ErrorCode) {
		return fmt.Errorf("%w: %w", ErrConflict, err)
	}
	if errors.Is(err, nats.ErrMaxPayload) {
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}
