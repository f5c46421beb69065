// Package engine gives a step of the chain the model that its thread is worked with, and the terms on which it may be asked: one
// process at a time, for as long as the step is wanted and no longer than it may take, with every reply and vector of a language model
// kept before use.
//
// A worker opens Engines once. Engines.Do runs one step: it picks the thread's engine (and records the choice of auto), watches
// whether the step is still wanted, and turns what the model's failures mean into what the worker does next. RunStage is a whole
// worker for a stage of a run.
package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/jetstream/worker"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/ollama"
	"github.com/factstream/factstream/shared/model/replies"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/progress"
	"github.com/factstream/factstream/shared/service"
)

// DefaultLimit is how long a step may work; waiting for its turn does not count.
const DefaultLimit = 20 * time.Minute

// Options are the times that the environment does not set. Zero values mean the defaults.
type Options struct {
	Limit time.Duration // of one step's work
	// Backoff is the pause before a step that found the model away is tried again, by the number of deliveries so far; by
	// default 10 s, doubling to 5 minutes.
	Backoff func(delivered int) time.Duration
}

// Engines are the models that a process may use. It is safe for use by several goroutines at once.
type Engines struct {
	s       *service.Service
	options Options
	replies *replies.Store
	vectors vectors

	mu      sync.Mutex
	client  *ollama.Engine // for the configuration below
	clients config.Ollama
}

// Open opens what models need on the bus of s.
func Open(ctx context.Context, s *service.Service, options Options) (*Engines, error) {
	kept, err := s.JS.KeyValue(ctx, topology.BucketReplies)
	if err != nil {
		return nil, fmt.Errorf("open the bucket %s: %w", topology.BucketReplies, err)
	}
	cache, err := s.JS.KeyValue(ctx, topology.BucketVectors)
	if err != nil {
		return nil, fmt.Errorf("open the bucket %s: %w", topology.BucketVectors, err)
	}
	if options.Limit <= 0 {
		options.Limit = DefaultLimit
	}
	if options.Backoff == nil {
		options.Backoff = worker.Backoff
	}
	store := replies.New(kept)
	store.Now = s.Now
	return &Engines{s: s, options: options, replies: store, vectors: vectors{cache, s.Log}}, nil
}

// Step is the work that a model is wanted for.
type Step struct {
	Thread    string
	Entity    string // id of the run, or number of the cycle
	Stage     string // as events name it; progress is shown under it
	Trigger   string // id of the event that the step works on: replies are kept under it
	Delivered int    // how often the message was delivered, from 1
	// Wanted says whether the step still has to be done. The thread of a step that is wanted exists.
	Wanted func(*notebook.Thread) bool
	Points Points
}

// ErrUnwanted is the cause of a step's context when its time is over: its thread is gone, its outcome is there, or another
// generation has begun.
var ErrUnwanted = errors.New("the step is no longer wanted")

// Do runs fn with the engine of the step's thread. The context that fn gets ends when the step is no longer wanted, or has worked for
// longer than it may.
//
// It returns nil when fn did, and when the step is not wanted (replies that it kept for a deleted thread are removed). Failures of
// the model come back as the worker takes them: Later with class model_away while the model may come back, else GiveUp with the
// failure's class. Every other error is returned as it is.
func (e *Engines) Do(ctx context.Context, step Step, fn func(ctx context.Context, m *Engine) error) error {
	work, end := context.WithCancelCause(ctx)
	limit := newStopwatch(e.options.Limit, func() { end(fmt.Errorf("%w: it worked for over %s", model.ErrTimeout, e.options.Limit)) })
	defer limit.pause()
	var watching sync.WaitGroup
	defer watching.Wait()
	defer end(nil)
	watching.Go(func() {
		gone := func(t *notebook.Thread) bool { return !step.wanted(t) }
		if e.s.Tail.Until(work, step.Thread, gone) == nil {
			end(ErrUnwanted)
		}
	})
	shown := &sign{}
	watching.Go(func() { shown.repeat(work, max(e.s.Config.AckWait*4/15, progress.Unseen)) })

	err := e.do(work, step, limit, shown, fn)
	if step.unwanted(e.s.Tail) {
		return e.leave(ctx, step)
	}
	if err != nil && errors.Is(context.Cause(work), model.ErrTimeout) {
		err = context.Cause(work)
	}
	return e.outcome(ctx, step, err)
}

func (e *Engines) do(ctx context.Context, step Step, limit *stopwatch, shown *sign, fn func(ctx context.Context, m *Engine) error) error {
	if step.unwanted(e.s.Tail) {
		return ErrUnwanted
	}
	m, err := e.of(ctx, step, shown)
	if err != nil {
		return err
	}
	m.limit = limit
	err = fn(ctx, m)
	if recorded := m.Recorded(); err == nil { // waited for in any case: nothing of a step goes on after it
		err = recorded
	}
	return err
}

func (s Step) wanted(t *notebook.Thread) bool { return t.Exists() && s.Wanted(t) }

func (s Step) unwanted(tail *notebook.Tail) (unwanted bool) {
	tail.View(s.Thread, func(t *notebook.Thread) { unwanted = !s.wanted(t) })
	return unwanted
}

// leave ends a step that is not wanted. Whoever deleted its thread has removed the replies that were there then.
func (e *Engines) leave(ctx context.Context, step Step) error {
	deleted := false
	e.s.Tail.View(step.Thread, func(t *notebook.Thread) { deleted = t.Deleted })
	if !deleted {
		return nil
	}
	if _, err := e.replies.DeleteThread(ctx, step.Thread); err != nil {
		return fmt.Errorf("remove what was kept for the deleted thread %s: %w", step.Thread, err)
	}
	return nil
}

// Engine is the model of one step's thread, asked on that step's terms. Its methods may be called by several goroutines of the step.
type Engine struct {
	Info model.Info // as it was when the step began

	step    Step
	model   model.Model
	engines *Engines
	limit   *stopwatch
	shown   *sign
	shared  bool // a server's, which others use too: it is asked under a lease, and its replies are kept
	since   time.Time

	recorded func() error // waits until the choice of auto is recorded; nil when there was none, or it is
}

// As is the same engine for another stage of the same step, as a closing has several.
func (m *Engine) As(stage string) *Engine {
	other := *m
	other.step.Stage = stage
	other.since = m.engines.s.Now()
	return &other
}

// Call is what the tasks of package model are asked with. Part tells apart several calls of one stage for one trigger, such as
// the chunks of a report; it may be empty.
func (m *Engine) Call(part string) model.Call {
	call := model.Call{Model: m.model, Turn: m.call, Thread: m.step.Thread, Trigger: m.step.Trigger, Part: part}
	if m.shared { // what the engine without a model says is made again faster than it is kept, and is the same
		call.Replies = keeper{m.engines.replies, m.step.Points.Kept}
	}
	return call
}

// CallPair is Call for a verdict on two texts, which belongs to them and not to what brought them together. Both are fingerprints.
func (m *Engine) CallPair(elder, newer string) model.Call {
	call := m.Call("")
	call.Pair = elder + "." + newer
	return call
}

// Quick says that the engine is part of the process: what it is asked takes milliseconds, and asked again it says the same.
func (m *Engine) Quick() bool { return !m.shared }

// Recorded returns when it is recorded that auto picked this engine for the thread, if it did. It is called before an outcome is
// appended, and fails when the thread has another engine by now; then the step is to be done again.
func (m *Engine) Recorded() error {
	if m.recorded == nil {
		return nil
	}
	return m.recorded()
}

// Say shows what the step is doing, best effort: a word or two such as "chunk 2 of 5". In a step's first 100 ms nothing is shown.
func (m *Engine) Say(ctx context.Context, text string) {
	m.show(ctx, progress.State{State: progress.Running, Since: m.since, Text: text})
}

// wait shows what the step waits for.
func (m *Engine) wait(ctx context.Context, text string) {
	m.show(ctx, progress.State{State: progress.Waiting, Since: m.engines.s.Now(), Text: text})
}

func (m *Engine) show(ctx context.Context, state progress.State) {
	state.Engine = m.Info.Engine
	m.shown.put(ctx, func(ctx context.Context) {
		m.engines.s.Progress.Write(ctx, m.step.Thread, m.step.Entity, m.step.Stage, state)
	})
}

// sign is what a step shows, again and again: a write may get lost, and the board forgets after a minute.
type sign struct {
	mu    sync.Mutex
	write func(context.Context)
	lit   bool // the step goes on for longer than progress.Unseen
}

func (s *sign) put(ctx context.Context, write func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write = write
	if s.lit {
		write(ctx)
	}
}

func (s *sign) repeat(ctx context.Context, every time.Duration) {
	again := time.NewTimer(progress.Unseen)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
		again.Reset(every)
		s.mu.Lock()
		s.lit = true
		if s.write != nil {
			s.write(ctx)
		}
		s.mu.Unlock()
	}
}
