package projection

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/factstream/factstream/jetstream/projector"
)

const (
	// linger is how long a change waits for others that go into the same transaction, unless somebody asks the file. The nine events of a run come
	// within less, and one transaction for them costs little more than one of its own for each.
	linger = 50 * time.Millisecond
	// pendingEvents and pendingBytes bound what may be folded ahead of the file; a batch is never refused for its own size.
	pendingEvents = 4 * projector.DefaultBatch
	pendingBytes  = 8 << 20
)

// pending is what is folded and not in the file yet. One goroutine adds and one takes; any may wait.
type pending struct {
	came chan struct{} // there is something to take, or a reason not to linger
	left chan struct{} // something was taken

	mu      sync.Mutex
	batches []*batch
	events  int
	bytes   int
	folded  uint64 // sequence of the last message that was added
	written uint64 // of the last that is in the file
	trouble error  // why what is pending could not be written yet
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

// add queues what was folded, which goes into one transaction. It waits while there is too much already.
func (q *pending) add(ctx context.Context, batches []*batch) error {
	for !q.put(batches) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-q.left:
		}
	}
	signal(q.came)
	return nil
}

func (q *pending) put(batches []*batch) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.batches) > 0 && (q.events >= pendingEvents || q.bytes >= pendingBytes) {
		return false
	}
	for _, b := range batches {
		q.batches, q.folded = append(q.batches, b), b.last
		q.events += b.messages
		q.bytes += b.size
	}
	return true
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

// takeAll takes what there is.
func (q *pending) takeAll() []*batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	batches := q.batches
	q.batches, q.events, q.bytes = nil, 0, 0
	signal(q.left)
	return batches
}

// advance notes what the file has now, and says whether it could not be written before.
func (q *pending) advance(to uint64) (recovered bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	recovered = q.trouble != nil
	q.written, q.trouble = to, nil
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

// catchUp returns when the file has what is folded at this moment. Errors: the cause of ctx's end; projector.ErrStopped when nothing is written any
// more; and, unless patient, why the file cannot be written.
func (q *pending) catchUp(ctx context.Context, patient bool) error {
	w, seq, err := q.enter(patient)
	if w == nil {
		return err
	}
	defer q.leave(w)
	select {
	case <-ctx.Done():
		return fmt.Errorf("wait until notebook.db has %d: %w", seq, context.Cause(ctx))
	case <-w.over:
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.written >= seq {
		return nil
	}
	return q.hopeless(patient)
}

// enter begins to wait for what is folded; w is nil when there is nothing to wait for, or no hope.
func (q *pending) enter(patient bool) (w *waiter, seq uint64, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.written >= q.folded {
		return nil, q.folded, nil
	}
	if err := q.hopeless(patient); err != nil {
		return nil, q.folded, err
	}
	w = &waiter{seq: q.folded, patient: patient, over: make(chan struct{})}
	q.waiters[w] = struct{}{}
	signal(q.came)
	return w, w.seq, nil
}

// hopeless is why it is no use to wait; nil when it is. q.mu is held.
func (q *pending) hopeless(patient bool) error {
	switch {
	case q.closed:
		return projector.ErrStopped
	case !patient:
		return q.trouble
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
