package projection

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/factstream/factstream/jetstream/projector"
)

const (
	// linger is how long a change waits for others that go into the same transaction, unless somebody asks the file. The nine events of a run come
	// within less, and one transaction for them costs little more than one of its own for each.
	linger = 50 * time.Millisecond
	// pendingEvents and pendingBytes bound what may be folded ahead of the file, but for the size of one batch: it is added when there is less.
	pendingEvents = 4 * projector.DefaultBatch
	pendingBytes  = 8 << 20
	// slowWrite is how long one write may take before those who read do not wait for it any more: a program that holds the file, or a disk that
	// hangs, is no error for ten seconds, or never.
	slowWrite = 500 * time.Millisecond
)

// errSlow is why who reads does not wait for the write that is under way.
var errSlow = errors.New("notebook.db takes long to write")

// pending is what is folded and not in the file yet. One goroutine adds and one takes; any may wait.
type pending struct {
	came chan struct{} // there is something to take, or a reason not to linger
	left chan struct{} // something is in the file now, so that there may be room

	mu      sync.Mutex
	batches []*batch
	taken   []*batch // and not in the file yet
	events  int      // of both
	bytes   int
	folded  uint64 // sequence of the last message that was added
	written uint64 // of the last that is in the file
	trouble error  // why what is pending could not be written yet
	late    bool   // the write that is under way takes long
	closed  bool   // nothing is written any more
	hurries int    // who wants what comes to be written at once
	waiters map[*waiter]struct{}
}

// waiter waits until the file has a sequence.
type waiter struct {
	seq     uint64
	patient bool          // and goes on waiting while the file cannot be written
	over    chan struct{} // closed when there is nothing to wait for
}

// newPending is empty, behind a file that ends at a sequence.
func newPending(end uint64) *pending {
	return &pending{came: make(chan struct{}, 1), left: make(chan struct{}, 1), folded: end, written: end, waiters: map[*waiter]struct{}{}}
}

// room waits while there is too much already.
func (q *pending) room(ctx context.Context) error {
	for q.full() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-q.left:
		}
	}
	return nil
}

func (q *pending) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.batches)+len(q.taken) > 0 && (q.events >= pendingEvents || q.bytes >= pendingBytes)
}

// add queues what was folded. It goes into one transaction.
func (q *pending) add(b *batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.batches, q.folded = append(q.batches, b), b.last
	q.events += b.messages
	q.bytes += b.size
	signal(q.came)
}

// take waits for something, and lingers until nobody can wait any more; it gives nothing when ctx ended.
func (q *pending) take(ctx context.Context) []*batch {
	var late <-chan time.Time
	for {
		some, all := q.look()
		switch {
		case all:
			return q.takeAll()
		case some && late == nil:
			timer := time.NewTimer(linger)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-ctx.Done():
			return nil
		case <-late:
			return q.takeAll()
		case <-q.came:
		}
	}
}

// look says whether there is something, and whether it must be written now: somebody waits for it, or it is a transaction's worth.
func (q *pending) look() (some, now bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.batches) == 0 {
		return false, false
	}
	return true, q.hurries > 0 || len(q.waiters) > 0 || q.events >= projector.DefaultBatch || q.bytes >= pendingBytes/2
}

// takeAll takes what there is. It counts as pending until advance.
func (q *pending) takeAll() []*batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	batches := q.batches
	q.batches, q.taken = nil, append(q.taken, batches...)
	return batches
}

// advance notes what the file has now, and says whether it may have been read without that.
func (q *pending) advance(to uint64) (recovered bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	recovered = q.trouble != nil || q.late
	q.written, q.trouble, q.late = to, nil, false
	for len(q.taken) > 0 && q.taken[0].last <= to {
		q.events -= q.taken[0].messages
		q.bytes -= q.taken[0].size
		q.taken[0], q.taken = nil, q.taken[1:]
	}
	signal(q.left)
	q.release(func(w *waiter) bool { return w.seq <= to })
	return recovered
}

// stuck notes that the file cannot be written.
func (q *pending) stuck(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.trouble = err
	q.release(func(w *waiter) bool { return !w.patient })
}

// slower notes that the write of what ends at a sequence takes long.
func (q *pending) slower(last uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.written < last {
		q.late = true
		q.release(func(w *waiter) bool { return !w.patient })
	}
}

// close lets go who waits: nothing is written any more.
func (q *pending) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.release(func(*waiter) bool { return true })
}

// release lets go some of those that wait. q.mu is held.
func (q *pending) release(which func(*waiter) bool) {
	for w := range q.waiters {
		if which(w) {
			close(w.over)
			delete(q.waiters, w)
		}
	}
}

// hurry keeps anything from lingering until release is called.
func (q *pending) hurry() (release func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.hurries++
	signal(q.came)
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.hurries--
	}
}

// catchUp returns when the file has what is folded at this moment, or up to a sequence if that is less. Errors: the cause of ctx's end;
// projector.ErrStopped when nothing is written any more; and, unless patient, why the file cannot be written, or errSlow.
func (q *pending) catchUp(ctx context.Context, upTo uint64, patient bool) error {
	q.mu.Lock()
	seq := min(q.folded, upTo)
	q.mu.Unlock()
	for {
		w, err := q.enter(seq, patient)
		if w == nil {
			return err
		}
		select {
		case <-ctx.Done():
			q.leave(w)
			return fmt.Errorf("wait until notebook.db has %d: %w", seq, context.Cause(ctx))
		case <-w.over: // it is there, or there is no hope; or that has changed meanwhile
		}
	}
}

// enter begins to wait for a sequence; w is nil when there is nothing to wait for, or no hope.
func (q *pending) enter(seq uint64, patient bool) (w *waiter, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.written >= seq {
		return nil, nil
	}
	if err := q.hopeless(patient); err != nil {
		return nil, err
	}
	w = &waiter{seq: seq, patient: patient, over: make(chan struct{})}
	q.waiters[w] = struct{}{}
	signal(q.came)
	return w, nil
}

// hopeless is why it is no use to wait; nil when it is. q.mu is held.
func (q *pending) hopeless(patient bool) error {
	switch {
	case q.closed:
		return projector.ErrStopped
	case !patient && q.trouble != nil:
		return q.trouble
	case !patient && q.late:
		return errSlow
	}
	return nil
}

func (q *pending) leave(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.waiters, w)
}

// position is the last sequence that the file has, or is known to lack nothing of: at is one up to which all was added.
func (q *pending) position(at uint64) uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.written < q.folded {
		return q.written
	}
	return max(q.written, at)
}

func (q *pending) why() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.trouble
}

// signal wakes whoever waits at c, or will.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is awake, or will be
	}
}
