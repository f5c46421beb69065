// Package lease lets one holder at a time, over all processes, do something under
// a key: a single permit on a key-value bucket.
package lease

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
)

// Priority orders those who wait.
type Priority int

const (
	// Batch waiters stand back while an Interactive one waits.
	Batch Priority = iota
	// Interactive is for work that a person waits for.
	Interactive
)

func (p Priority) String() string {
	if p == Interactive {
		return "interactive"
	}
	return "batch"
}

// DefaultTTL is how long a dead holder keeps the lease. Less than 10 s is for a
// single server only, since an election may take that long.
const DefaultTTL = 15 * time.Second

// Parts of the TTL, and bounds of one request.
const (
	renewals   = 5 // per TTL
	guardParts = 8 // tenths of the TTL after the last renewal at which the work ends
	retryEvery = 500 * time.Millisecond
	minRequest = 200 * time.Millisecond
	maxRequest = 2 * time.Second
	minPoll    = 20 * time.Millisecond
	maxPoll    = time.Second
)

// waitSuffix is added to a key to name the entry by which interactive waiters make
// batch waiters stand back. It expires with the bucket's TTL if its waiter dies.
const waitSuffix = ".wait"

// ErrLost is the cause of the work's context when the lease was, or may have been,
// lost: somebody else may be working now.
var ErrLost = errors.New("the lease was lost")

// Config configures Leases.
type Config struct {
	TTL    time.Duration // the bucket's
	Name   string        // of this process, for others to see
	Logger zerolog.Logger
}

// Leases gives out the leases of one bucket.
type Leases struct {
	kv  jetstream.KeyValue
	cfg Config
}

// New returns the leases of bucket kv, whose TTL must be cfg.TTL: a per-key TTL
// would be lost at the first renewal.
func New(kv jetstream.KeyValue, cfg Config) *Leases {
	if cfg.TTL <= 0 {
		cfg.TTL = DefaultTTL
	}
	return &Leases{kv: kv, cfg: cfg}
}

// Holder is who holds a lease.
type Holder struct {
	Name     string    `json:"name"`
	Since    time.Time `json:"since"`
	Priority Priority  `json:"priority"`
}

// Option changes one Do.
type Option func(*hold)

// KeepWhileBusAway is for a call that costs money: while the bus is away it goes on
// after the guard, since nobody else can take the lease either. When the bus is
// back, the lease must still be there or be free; else the work ends.
func KeepWhileBusAway() Option { return func(h *hold) { h.keep = true } }

// OnWait is called, once and before waiting, if the lease is not free. The holder
// is the one at that moment, or zero if a batch waiter only stands back.
func OnWait(f func(Holder)) Option { return func(h *hold) { h.onWait = f } }

// Do waits for the lease on key, for as long as it takes, runs fn while it holds
// it, and gives it up. It returns fn's error; or, if ctx ends before fn runs, the
// cause of that. key is one or more tokens separated by dots, such as
// "provider.tabstack"; it must not end in ".wait".
//
// fn must return soon after its context ends. If that ended because the lease was
// lost, its cause is ErrLost, and so is the error that fn returns then.
func (l *Leases) Do(ctx context.Context, key string, priority Priority, fn func(ctx context.Context) error, opts ...Option) error {
	h := &hold{Leases: l, key: key, nonce: rand.Text(), log: l.cfg.Logger.With().Str("lease", key).Logger()}
	h.holder = Holder{Name: l.cfg.Name, Priority: priority}
	for _, opt := range opts {
		opt(h)
	}
	if err := h.acquire(ctx); err != nil {
		return fmt.Errorf("wait for lease %s: %w", key, err)
	}
	return h.run(ctx, fn)
}

type holdKey struct{}

// Confirm says whether the lease that ctx was given with is still held, asking the bus when the last renewal is so old that it may have expired: after the
// process was stopped for a while, say. It is for the moment before something that cannot be taken back. The error is ErrLost, or why the bus could not be asked. A
// context that is not of a Do is an error too.
func Confirm(ctx context.Context) error {
	h, ok := ctx.Value(holdKey{}).(*hold)
	if !ok {
		return fmt.Errorf("%w: the context is of no lease", ErrLost)
	}
	h.mu.Lock()
	fresh := time.Since(h.since) < h.cfg.TTL*guardParts/10
	h.mu.Unlock()
	if fresh {
		return nil
	}
	if _, err := h.extend(); err != nil {
		return fmt.Errorf("confirm lease %s: %w", h.key, err)
	}
	return nil
}

// Holder tells who holds the lease on key; false if it is free.
func (l *Leases) Holder(ctx context.Context, key string) (Holder, bool, error) {
	entry, err := l.kv.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return Holder{}, false, nil
	}
	if err != nil {
		return Holder{}, false, fmt.Errorf("read lease %s: %w", key, err)
	}
	v, err := decode(entry.Value())
	if err != nil {
		return Holder{}, false, fmt.Errorf("read lease %s: %w", key, err)
	}
	return v.Holder, true, nil
}

// value is what is stored under a key.
type value struct {
	Nonce string `json:"nonce"` // of one Do
	Holder
}

func decode(data []byte) (v value, err error) {
	err = json.Unmarshal(data, &v)
	return v, err
}

// hold is one Do.
type hold struct {
	*Leases
	key    string
	nonce  string
	holder Holder
	keep   bool
	onWait func(Holder)
	log    zerolog.Logger

	// Of one who waits: whether the bus did not answer the last request, and from when
	// on the lease may be asked for after that.
	away bool
	from time.Time

	mu       sync.Mutex // of one request at a time: those that renew and those that confirm
	revision uint64
	since    time.Time // just before the request that last renewed the lease was sent
}

// run runs fn while the lease is renewed, and gives the lease up, also if fn
// panics.
func (h *hold) run(ctx context.Context, fn func(ctx context.Context) error) (err error) {
	work, end := context.WithCancelCause(context.WithValue(ctx, holdKey{}, h))
	stop := make(chan struct{})
	var renewing sync.WaitGroup
	renewing.Go(func() { h.renew(stop, end) })
	defer func() {
		close(stop)
		renewing.Wait()
		h.release(ctx)
		if err != nil && errors.Is(context.Cause(work), ErrLost) && !errors.Is(err, ErrLost) {
			err = fmt.Errorf("%w: %w", ErrLost, err)
		}
		end(nil)
	}()
	return fn(work)
}

// renew keeps the lease until stop is closed, and ends the work when it is lost.
func (h *hold) renew(stop <-chan struct{}, end context.CancelCauseFunc) {
	disarm := h.guard(h.since, end)
	defer func() { disarm() }()
	next := time.NewTimer(time.Until(h.since.Add(h.cfg.TTL / renewals)))
	defer next.Stop()
	var failing time.Time // since when; zero while renewals succeed
	for {
		select {
		case <-stop:
			return
		case <-next.C:
		}
		renewed, err := h.extend()
		switch {
		case errors.Is(err, ErrLost):
			h.log.Warn().Err(err).Msg("lease lost")
			end(err)
			return
		case err != nil:
			if failing.IsZero() { // what follows until it is renewed again is the same
				failing = time.Now()
				h.log.Warn().Err(err).Bool("going_on", h.keep).Msg("lease not renewed, trying again")
			}
			next.Reset(retryEvery)
			continue
		}
		if !failing.IsZero() {
			h.log.Warn().Dur("after", time.Since(failing)).Msg("lease renewed again")
			failing = time.Time{}
		}
		disarm()
		disarm = h.guard(renewed, end)
		next.Reset(time.Until(renewed.Add(h.cfg.TTL / renewals)))
	}
}

// guard ends the work when the lease has not been renewed for most of its TTL,
// counted from before the request that renewed it was sent: then the server may
// have let it expire. A call that is kept while the bus is away has no guard; it
// ends when a request finds another holder.
func (h *hold) guard(since time.Time, end context.CancelCauseFunc) (disarm func()) {
	if h.keep {
		return func() {}
	}
	t := time.AfterFunc(time.Until(since.Add(h.cfg.TTL*guardParts/10)), func() {
		end(fmt.Errorf("%w: not renewed in time", ErrLost))
	})
	return func() { t.Stop() }
}

// extend renews the lease once. After a refusal it looks who holds it: this Do,
// by a request that was thought to have failed; nobody, then it is taken again; or
// another, which is ErrLost. Any other error leaves it open. It returns the time from which the lease counts.
func (h *hold) extend() (time.Time, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), h.requestTimeout())
	defer cancel()
	since := time.Now()
	revision, err := h.kv.Update(ctx, h.key, h.value(), h.revision)
	if refused(err) {
		owner, found, rerr := h.read(ctx)
		switch {
		case rerr != nil:
			return h.since, rerr
		case !found:
			revision, err = h.kv.Create(ctx, h.key, h.value())
			if refused(err) { // by whom, the next look will tell
				return h.since, err
			}
		case owner.Nonce != h.nonce:
			return h.since, fmt.Errorf("%w: %s holds it since %s", ErrLost, owner.Name, owner.Since.Format(time.RFC3339))
		default:
			revision, err = h.kv.Update(ctx, h.key, h.value(), h.revision) // the revision that read found
		}
	}
	if err != nil {
		return h.since, err
	}
	h.revision, h.since = revision, since
	return since, nil
}

// read looks at the key. If this Do holds it, its revision is adopted.
func (h *hold) read(ctx context.Context) (owner value, found bool, err error) {
	entry, err := h.kv.Get(ctx, h.key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return value{}, false, nil
	}
	if err != nil {
		return value{}, false, err
	}
	if owner, err = decode(entry.Value()); err != nil {
		return value{}, false, fmt.Errorf("lease %s: %w", h.key, err)
	}
	if owner.Nonce == h.nonce {
		h.revision = entry.Revision()
	}
	return owner, true, nil
}

// release gives the lease up, if it is still this Do's. What cannot be given up
// expires.
func (h *hold) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxRequest)
	defer cancel()
	if err := h.tryRelease(ctx); err != nil {
		h.log.Warn().Err(err).Msg("lease not given up, it will expire")
	}
}

func (h *hold) tryRelease(ctx context.Context) error {
	if h.revision != 0 { // which would be no condition at all
		if err := h.kv.Delete(ctx, h.key, jetstream.LastRevision(h.revision)); !refused(err) {
			return err
		}
	}
	owner, found, err := h.read(ctx)
	if err != nil || !found || owner.Nonce != h.nonce {
		return err
	}
	return h.kv.Delete(ctx, h.key, jetstream.LastRevision(h.revision))
}

func (h *hold) value() []byte {
	data, err := json.Marshal(value{Nonce: h.nonce, Holder: h.holder})
	if err != nil {
		panic(err) // strings, a time and a number
	}
	return data
}

func (h *hold) requestTimeout() time.Duration {
	return min(max(h.cfg.TTL/renewals, minRequest), maxRequest)
}

// refused tells whether the server surely did not do it because the key is not as
// was assumed.
func refused(err error) bool {
	if errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return true
	}
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// closedForGood tells whether waiting for the bus has become senseless.
func closedForGood(err error) bool { return errors.Is(err, nats.ErrConnectionClosed) }
