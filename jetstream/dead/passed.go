package dead

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/factstream/factstream/jetstream/document"
	"github.com/factstream/factstream/jetstream/topology"
)

const (
	// passedKey is the key of the bucket of settings under which the passed sequences
	// stand, as a JSON list in ascending order.
	passedKey = "passed"
	// maxPassed sequences are remembered, the newest: with up to 20 digits each they
	// stay below the 1 MiB that a message may have.
	maxPassed = 40_000
)

// Pass remembers that a person has seen the message of a sequence of NOTEBOOK, which
// nobody can read or apply, and lets it be. The message itself stays. Passing it
// again does nothing.
func Pass(ctx context.Context, js jetstream.JetStream, seq uint64) error {
	bucket, err := js.KeyValue(ctx, topology.BucketSettings)
	if err == nil {
		err = document.Change(ctx, bucket, passedKey, func(old []byte) ([]byte, error) {
			passed, err := parsePassed(old)
			at, known := slices.BinarySearch(passed, seq)
			if err != nil || known {
				return nil, err
			}
			passed = slices.Insert(passed, at, seq)
			return json.Marshal(passed[max(0, len(passed)-maxPassed):])
		})
	}
	if err != nil {
		return fmt.Errorf("pass message %d: %w", seq, err)
	}
	return nil
}

// Passed returns the sequences of NOTEBOOK that were passed, ascending.
func Passed(ctx context.Context, js jetstream.JetStream) (passed []uint64, err error) {
	var value []byte
	bucket, err := js.KeyValue(ctx, topology.BucketSettings)
	if err == nil {
		value, _, err = document.Read(ctx, bucket, passedKey)
	}
	if err == nil {
		passed, err = parsePassed(value)
	}
	if err != nil {
		return nil, fmt.Errorf("list passed messages: %w", err)
	}
	return passed, nil
}

func parsePassed(value []byte) (passed []uint64, err error) {
	if value != nil {
		err = json.Unmarshal(value, &passed)
	}
	return passed, err
}
