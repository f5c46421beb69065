// Package document changes a value of a key-value bucket that several processes
// write, so that no change is lost.
package document

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/factstream/factstream/jetstream/connect"
)

// Read returns the value of key and its revision; nil and 0 when there is none.
func Read(ctx context.Context, bucket jetstream.KeyValue, key string) (value []byte, revision uint64, err error) {
	entry, err := bucket.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	return entry.Value(), entry.Revision(), nil
}

// Change replaces the value of key by what change makes of it, given nil when
// there is none. When another writer was faster, change is called again with what
// that one wrote; also when the bus did not say whether the value was written and
// another one stands there then. A change that returns nil leaves the value as it
// is. Errors are those of change, of the bus, or of ctx.
func Change(ctx context.Context, bucket jetstream.KeyValue, key string, change func(old []byte) ([]byte, error)) error {
	var unsure []byte // what may be written, since the answer was lost once
	for {
		old, revision, err := Read(ctx, bucket, key)
		if err != nil || unsure != nil && bytes.Equal(old, unsure) {
			return err
		}
		value, err := change(old)
		if err != nil || value == nil {
			return err
		}
		if revision == 0 {
			_, err = bucket.Create(ctx, key, value)
		} else {
			_, err = bucket.Update(ctx, key, value, revision)
		}
		switch {
		case conflict(err):
		case unsure == nil && connect.Unanswered(err) && ctx.Err() == nil:
			unsure = value
		default:
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rand.N(20 * time.Millisecond)):
		}
	}
}

func conflict(err error) bool {
	var api jetstream.JetStreamError
	return errors.Is(err, jetstream.ErrKeyExists) ||
		errors.As(err, &api) && api.APIError() != nil && api.APIError().ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}
