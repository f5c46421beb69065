package topology

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// tryFor bounds the first request, and every next one that much more up to
	// longestTry: one that was with a server when it died is never answered, and a busy
	// disk takes its time.
	tryFor     = 2 * time.Second
	longestTry = 10 * time.Second
	pause      = 250 * time.Millisecond
)

// patiently repeats, until ctx ends, what may fail while other processes declare the
// same thing, a leader is being elected, or a server is away. Refusals end it at
// once. The error is one that a person can do something about where that is known.
func patiently(ctx context.Context, nc *nats.Conn, opts Options, declare func(ctx context.Context) error) error {
	before := nc.LastError()
	for n := time.Duration(1); ; n++ {
		try, cancel := context.WithTimeout(ctx, min(n*tryFor, longestTry))
		err := declare(try)
		cancel()
		if err == nil || !Transient(err) {
			return explain(err, opts)
		}
		if err := violation(nc, before); err != nil { // no other answer will come
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", explain(err, opts), context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// violation says what the user of nc was refused since its last error was before.
// The server tells the connection, and whoever asked hears nothing.
func violation(nc *nats.Conn, before error) error {
	err := nc.LastError()
	if err == before || !errors.Is(err, nats.ErrPermissionViolation) {
		return nil
	}
	return fmt.Errorf("%w: it needs to publish to $JS.>, $KV.>, $O.> and the subjects of %s, %s and %s: %w", ErrRights, Notebook, Trail, Dead, err)
}

// Codes of the server's API that mean something here.
const (
	noPeers              jetstream.ErrorCode = 10005 // also what a cluster says before its servers have found each other
	storageExceeded      jetstream.ErrorCode = 10047
	memoryExceeded       jetstream.ErrorCode = 10028
	invalidConfig        jetstream.ErrorCode = 10052
	subjectsOverlap      jetstream.ErrorCode = 10065
	accountExceeded      jetstream.ErrorCode = 10002
	streamsExceeded      jetstream.ErrorCode = 10027
	consumersExceeded    jetstream.ErrorCode = 10026
	ackPendingExceeded   jetstream.ErrorCode = 10121
	replicasNotSupported jetstream.ErrorCode = 10074 // of a server that is alone
)

// Transient tells whether the server may answer otherwise a moment later: no answer
// and 5xx codes are those of elections and of servers that are still starting, all
// but those that speak of configurations and limits.
func Transient(err error) bool {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders) ||
			errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrDisconnected) || errors.Is(err, nats.ErrReconnectBufExceeded)
	}
	switch api.ErrorCode {
	case storageExceeded, memoryExceeded, invalidConfig, replicasNotSupported:
		return false
	case noPeers:
		return true
	}
	return api.Code >= 500
}

// explain adds to what the server said why it said so and what helps.
func explain(err error, opts Options) error {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return err
	}
	switch api.ErrorCode {
	case replicasNotSupported:
		return fmt.Errorf("%w: %d are asked for, but the server is alone: set NATS_REPLICAS=1, or give it a cluster: %w", ErrReplicas, opts.Replicas, err)
	case noPeers:
		return fmt.Errorf("%w: %d are asked for, and that many servers with JetStream and room are not there: start them, or set NATS_REPLICAS to how many there are: %w", ErrReplicas, opts.Replicas, err)
	case storageExceeded:
		return fmt.Errorf("%w: no room for %d MiB of files on each server: raise max_file_store of the servers, or max_store of the account: %w", ErrAccount, reserved(opts)>>20, err)
	case memoryExceeded:
		return fmt.Errorf("%w: no memory for the bucket %s: raise max_memory_store of the servers, or max_mem of the account: %w", ErrAccount, BucketProgress, err)
	case accountExceeded, streamsExceeded, consumersExceeded, ackPendingExceeded:
		return fmt.Errorf("%w: the notebook has %d streams, needs %d consumers on one of them and %d unacknowledged messages each: raise max_streams, max_consumers or max_ack_pending: %w",
			ErrAccount, streamCount(opts), minConsumers, maxAckPending, err)
	case subjectsOverlap:
		return fmt.Errorf("%w: give it an account of its own: %w", ErrTaken, err)
	}
	return err
}
