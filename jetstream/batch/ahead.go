package batch

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Ahead sends messages without waiting for one to be stored before the next is sent. Each but the first is stored only if
// it directly follows the one before it in the stream: what is behind a message that was refused is refused too, and so is
// everything from the place on where anybody else's message came between. It is for one goroutine.
//
// The link is the expected id of the last message. Ids are random, so that the server's search for duplicates, of which
// they are a part, finds none.
type Ahead struct {
	js   jetstream.JetStream
	last string // id of the last one sent
}

// Sent is a message on its way.
type Sent struct{ ack jetstream.PubAckFuture }

// AheadPossible reports whether the connection is to a server by itself, whose streams have no replicas. With replicas,
// the one that leads compares a condition with what is stored and what is on its way under the same filter; it would not
// see that a message by another condition is.
func AheadPossible(nc *nats.Conn) bool { return nc.IsConnected() && nc.ConnectedClusterName() == "" }

// NewAhead begins with no message.
func NewAhead(js jetstream.JetStream) *Ahead { return &Ahead{js: js} }

// Send sends a message: the first under a condition, each other behind the one before it. The errors are ErrTooLarge and
// ErrUnknown; nothing may be sent after one.
func (a *Ahead) Send(m Message, first Expect) (*Sent, error) {
	msg := &nats.Msg{Subject: m.Subject, Header: maps.Clone(m.Header), Data: m.Data}
	if msg.Header == nil {
		msg.Header = nats.Header{}
	}
	if err := fits(a.js.Conn(), []*nats.Msg{msg}); err != nil {
		return nil, err
	}
	if a.last == "" {
		first.set(msg.Header)
	} else {
		msg.Header.Set(jetstream.ExpectedLastMsgIDHeader, a.last)
	}
	a.last = rand.Text()
	msg.Header.Set(jetstream.MsgIDHeader, a.last)
	ack, err := a.js.PublishMsgAsync(msg, jetstream.WithRetryAttempts(0))
	if err != nil {
		return nil, classify(err)
	}
	return &Sent{ack}, nil
}

// Stored waits for the server's word and returns the sequence. The errors are those of Publish; an end of ctx is
// ErrUnknown.
func (s *Sent) Stored(ctx context.Context) (seq uint64, err error) {
	select {
	case ack := <-s.ack.Ok():
		return ack.Sequence, nil
	case err := <-s.ack.Err():
		return 0, classify(err)
	case <-ctx.Done():
		return 0, fmt.Errorf("%w: %w", ErrUnknown, context.Cause(ctx))
	}
}
