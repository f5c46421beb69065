package engine

import (
	"context"
	"sync"
	"time"

	"github.com/factstream/factstream/jetstream/lease"
	"github.com/factstream/factstream/shared/model"
)

// The leases of a model server: one process at a time has it write, and one embed. Two at once would each be slower than half.
const (
	leaseModel = "model"
	leaseEmbed = "embed"
)

// call runs a call of the model when it is the step's turn.
func (m *Engine) call(ctx context.Context, _ model.Priority, fn func(context.Context) error) error {
	err := m.turn(ctx, leaseModel, fn)
	if err == nil {
		err = m.step.Points.Replied.Hit(ctx)
	}
	return err
}

// turn waits for the lease, for as long as it takes, and runs fn under it. The wait is shown, and is no part of the step's work. An
// engine that nobody shares needs no lease.
func (m *Engine) turn(ctx context.Context, key string, fn func(context.Context) error) error {
	if !m.shared {
		return fn(ctx)
	}
	m.limit.pause()
	defer m.limit.resume()
	return m.engines.s.Leases.Do(ctx, key, lease.Batch, func(ctx context.Context) error {
		m.limit.resume()
		return fn(ctx)
	}, lease.OnWait(func(holder lease.Holder) {
		m.wait(ctx, waitText(holder))
	}))
}

func waitText(holder lease.Holder) string {
	if holder.Name == "" {
		return "the model, which somebody is asking right now"
	}
	return "the model, which " + holder.Name + " is using"
}

// stopwatch calls over when it has run for its limit; pauses do not count.
type stopwatch struct {
	mu    sync.Mutex
	timer *time.Timer
	left  time.Duration
	since time.Time // of the latest resume; zero while paused
}

func newStopwatch(limit time.Duration, over func()) *stopwatch {
	return &stopwatch{timer: time.AfterFunc(limit, over), left: limit, since: time.Now()}
}

func (s *stopwatch) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.since.IsZero() && s.timer.Stop() {
		s.left -= time.Since(s.since)
		s.since = time.Time{}
	}
}

func (s *stopwatch) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		s.since = time.Now()
		s.timer.Reset(max(s.left, 0))
	}
}
