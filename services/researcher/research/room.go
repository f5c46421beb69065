package research

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/factstream/factstream/jetstream/connect"
)

// errNoRoom means that an answer might not be kept, so that no call may start now.
var errNoRoom = errors.New("not enough space for an answer")

// waitForRoom returns when there is room for an answer, or with the cause of ctx's end. It waits as long as it takes,
// before the lease is asked for: a full disk is no failure of the run, and goes away by itself or by a person.
func (r *Researcher) waitForRoom(ctx context.Context, watching *bulletin) error {
	for {
		err := r.room(ctx)
		if err == nil || !errors.Is(err, errNoRoom) {
			return err
		}
		watching.waiting("more room: " + err.Error())
		r.Log.Warn().Err(err).Msg("no call is started")
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(r.options.Room):
		}
	}
}

// room returns errNoRoom with the figures when less is free than a call needs, and another error when nobody can tell.
func (r *Researcher) room(ctx context.Context) error {
	free, err := r.options.Free(ctx)
	if err != nil {
		return err
	}
	if free < r.options.MinFree {
		return fmt.Errorf("%w: %d MiB are free and %d are needed before a call may start", errNoRoom, free>>20, r.options.MinFree>>20)
	}
	return nil
}

// free is the lesser of what the bus may still store and what the spool's file system has.
func (r *Researcher) free(ctx context.Context) (int64, error) {
	var fs syscall.Statfs_t
	err := syscall.Statfs(string(r.spool), &fs)
	if errors.Is(err, syscall.ENOENT) { // somebody cleared the data directory under the running process
		if err = os.MkdirAll(string(r.spool), 0o700); err == nil {
			err = syscall.Statfs(string(r.spool), &fs)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("look for the free space of %s: %w", r.spool, err)
	}
	free := int64(fs.Bavail) * int64(fs.Bsize) //nolint:unconvert // the types differ between systems
	store, err := r.store.free(ctx, r.JS)
	if err != nil {
		return 0, err
	}
	return min(free, store), nil
}

// storeFor is how long the bus's answer counts: a run looks before it asks for its turn and once more when it has it, and the two are most often one moment.
const storeFor = time.Second

// busStore remembers what the bus said last about its store.
type busStore struct {
	mu    sync.Mutex
	asked time.Time
	bytes int64
}

// free is how many bytes the bus may still store, as it said a second ago at most; the greatest number when it has no limit.
func (b *busStore) free(ctx context.Context, js jetstream.JetStream) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.asked.IsZero() && time.Since(b.asked) < storeFor {
		return b.bytes, nil
	}
	bytes, limited, err := connect.StoreFree(ctx, js)
	if err != nil {
		return 0, err
	}
	if !limited {
		bytes = math.MaxInt64
	}
	b.asked, b.bytes = time.Now(), bytes
	return bytes, nil
}
