package topology

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrBusy is wrapped by the errors of Drained that say what a worker has still to do.
var ErrBusy = errors.New("there is something to do")

// Drained returns nil when the worker of the row has been given everything that is in NOTEBOOK for it, and has acknowledged it. Else the error says
// what is left and wraps ErrBusy, or is that of a question to the server.
func (d Durable) Drained(ctx context.Context, js jetstream.JetStream) error {
	stream, err := js.Stream(ctx, Notebook)
	if err != nil {
		return fmt.Errorf("ask for the stream %s: %w", Notebook, err)
	}
	last := uint64(0)
	for _, filter := range d.Filters {
		m, err := stream.GetLastMsgForSubject(ctx, filter)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("ask for the last message of %s: %w", filter, err)
		}
		last = max(last, m.Sequence)
	}
	consumer, err := js.Consumer(ctx, Notebook, d.Name)
	if err != nil {
		return fmt.Errorf("ask for the consumer %s: %w", d.Name, err)
	}
	// A consumer may not have counted a message yet that the stream has; its ack floor cannot be ahead.
	now := consumer.CachedInfo() // just asked for
	if now.NumPending > 0 || now.NumAckPending > 0 || now.AckFloor.Stream < last {
		return fmt.Errorf("%w: %s has %d messages before it and %d in hand, and has done those up to %d of %d", ErrBusy, d.Name,
			now.NumPending, now.NumAckPending, now.AckFloor.Stream, last)
	}
	return nil
}
