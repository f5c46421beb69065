package lease

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// acquire waits until this Do holds the lease. Waiters look again whenever the key
// changes, and from time to time: a watch is blind for up to 20 s after a
// reconnect, and an expiry shows in none.
func (h *hold) acquire(ctx context.Context) error {
	waited := false
	var changes <-chan struct{}
	stopWatching := func() {}
	defer func() { stopWatching() }()
	defer func() {
		if waited && h.holder.Priority == Interactive {
			h.stepDown(ctx)
		}
	}()
	for ctx.Err() == nil {
		var held bool
		var owner value
		err := h.standBack(ctx)
		if err == nil {
			held, owner, err = h.try(ctx)
		}
		if held {
			return nil
		}
		if err != nil {
			if closedForGood(err) {
				return err
			}
			if ctx.Err() == nil {
				h.log.Debug().Err(err).Msg("cannot ask for the lease, trying again")
			}
		}
		if !waited {
			waited = true
			changes, stopWatching = h.watch(ctx)
			if h.onWait != nil {
				h.onWait(owner.Holder)
			}
		}
		if h.holder.Priority == Interactive {
			h.standUp(ctx)
		}
		select {
		case <-ctx.Done():
		case <-changes:
		case <-time.After(min(max(h.cfg.TTL/renewals, minPoll), maxPoll)):
		}
	}
	h.release(ctx) // the last request may have been granted unheard
	return context.Cause(ctx)
}

// errBack is while the bus has just come back.
var errBack = errors.New("the bus was away: its holder looks for the lease first")

// standBack returns nil when the lease may be asked for. After the bus was away an
// entry may have expired whose holder goes on (see KeepWhileBusAway): it is given
// time for one request before somebody else takes the lease. That the bus is back,
// the leader of the bucket says; reads are answered by any replica.
func (h *hold) standBack(ctx context.Context) error {
	if h.away {
		ctx, cancel := context.WithTimeout(ctx, h.requestTimeout())
		defer cancel()
		if _, err := h.kv.Status(ctx); err != nil {
			return err
		}
		h.away, h.from = false, time.Now().Add(h.requestTimeout()+2*retryEvery)
	}
	if time.Now().Before(h.from) {
		return errBack
	}
	return nil
}

// try asks for the lease once. If it is not free, owner is who holds it, or zero
// for a batch waiter that stood back.
func (h *hold) try(ctx context.Context) (held bool, owner value, err error) {
	ctx, cancel := context.WithTimeout(ctx, h.requestTimeout())
	defer cancel()
	if h.holder.Priority == Batch {
		_, err := h.kv.Get(ctx, h.key+waitSuffix)
		if err == nil {
			return false, value{}, nil
		}
		if !errors.Is(err, jetstream.ErrKeyNotFound) {
			h.away = true
			return false, value{}, err
		}
	}
	since := time.Now()
	h.holder.Since = since.UTC()
	revision, err := h.kv.Create(ctx, h.key, h.value())
	if err == nil {
		h.revision, h.since = revision, since
		return true, value{}, nil
	}
	h.away = !refused(err)
	owner, found, rerr := h.read(ctx)
	if rerr != nil || !found {
		return false, value{}, errors.Join(err, rerr)
	}
	if owner.Nonce != h.nonce {
		return false, owner, nil
	}
	// An earlier request was granted, who knows when: renew, so that it is known.
	since = time.Now()
	if revision, err = h.kv.Update(ctx, h.key, h.value(), h.revision); err != nil {
		return false, value{}, err
	}
	h.revision, h.since = revision, since
	return true, value{}, nil
}

// watch signals changes of the key and of its waiters' entry until stopped. It
// returns at once: making the watch may take as long as ctx lasts, when a server is
// killed with the request, and polling goes on meanwhile. If the bus cannot watch,
// polling has to do.
func (h *hold) watch(ctx context.Context) (changes <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	out := make(chan struct{}, 1)
	go func() {
		watcher, err := h.kv.WatchFiltered(ctx, []string{h.key, h.key + waitSuffix}, jetstream.UpdatesOnly(), jetstream.MetaOnly())
		if err != nil {
			h.log.Debug().Err(err).Msg("cannot watch the lease, polling only")
			return
		}
		defer func() { _ = watcher.Stop() }() // the connection may be gone
		for {
			select {
			case <-ctx.Done():
				return
			case entry, ok := <-watcher.Updates():
				if !ok {
					return
				}
				if entry == nil || entry.Operation() == jetstream.KeyValuePut {
					continue // renewals, and persons who begin to wait, make nothing free
				}
				select {
				case out <- struct{}{}:
				default:
				}
			}
		}
	}()
	return out, cancel
}

// standUp tells batch waiters that a person waits.
func (h *hold) standUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, h.requestTimeout())
	defer cancel()
	if _, err := h.kv.Put(ctx, h.key+waitSuffix, h.value()); err != nil && ctx.Err() == nil {
		h.log.Debug().Err(err).Msg("cannot show that a person waits")
	}
}

// stepDown takes that back, unless another person has stood up since.
func (h *hold) stepDown(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.requestTimeout())
	defer cancel()
	entry, err := h.kv.Get(ctx, h.key+waitSuffix)
	if err != nil {
		return // gone, or will expire
	}
	if v, err := decode(entry.Value()); err != nil || v.Nonce != h.nonce {
		return
	}
	if err := h.kv.Delete(ctx, h.key+waitSuffix, jetstream.LastRevision(entry.Revision())); err != nil {
		h.log.Debug().Err(err).Msg("waiting entry not removed, it will expire")
	}
}
