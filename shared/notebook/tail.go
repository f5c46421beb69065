package notebook

import (
	"context"
	"errors"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/jetstream/topology"
)

// Tail is the notebook of a process: the stream folded in memory, from the first message on, once. It stays there for as long as the process does, so that
// it has no texts that no decision reads: its facts are without excerpts, and Completed reads again what a run brought.
type Tail struct {
	js        jetstream.JetStream
	projector *projector.Projector

	mu       sync.RWMutex
	notebook *Notebook
	changed  chan struct{} // closed at the next change
}

// NewTail makes a tail at the beginning of the stream. Nothing is read before Run.
func NewTail(js jetstream.JetStream, log zerolog.Logger) *Tail {
	t := &Tail{js: js, notebook: NewNotebook(), changed: make(chan struct{})}
	t.notebook.withoutExcerpts = true
	t.projector = projector.New(js, projector.Config{Stream: topology.Notebook, Handler: t.apply, Logger: log})
	return t
}

// Run folds the stream until ctx ends. It returns projector.ErrStreamChanged when the stream was made anew: the process must then start again.
func (t *Tail) Run(ctx context.Context) error { return t.projector.Run(ctx) }

func (t *Tail) apply(_ context.Context, messages []Message) error {
	t.mu.Lock()
	for _, m := range messages {
		t.notebook.Apply(m)
	}
	close(t.changed)
	t.changed = make(chan struct{})
	t.mu.Unlock()
	return nil
}

// Position is the last sequence applied.
func (t *Tail) Position() uint64 { return t.projector.Position() }

// WaitFor returns when the sequence is applied, or with the error of ctx.
func (t *Tail) WaitFor(ctx context.Context, seq uint64) error { return t.projector.WaitFor(ctx, seq) }

// CatchUp returns when the tail has reached the stream's last sequence of the moment of the call, and gives it. While the bus is away it asks again
// until ctx ends, so that give it a deadline.
func (t *Tail) CatchUp(ctx context.Context) (uint64, error) {
	for try := 0; ; try++ {
		seq, err := t.projector.CatchUp(ctx)
		if err == nil || ctx.Err() != nil || errors.Is(err, projector.ErrStopped) || errors.Is(err, projector.ErrStreamChanged) {
			return seq, err
		}
		if pauseErr := pause(ctx, try, false); pauseErr != nil {
			return 0, errors.Join(err, pauseErr)
		}
	}
}

// View reads the state of one thread. The thread must not be kept or changed: take what is needed, or Clone it.
func (t *Tail) View(thread string, read func(*Thread)) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	read(t.notebook.Thread(thread))
}

// ViewAll reads the whole notebook, under the same terms as View.
func (t *Tail) ViewAll(read func(*Notebook)) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	read(t.notebook)
}

// Until returns when the condition holds for a thread, or with the error of ctx.
func (t *Tail) Until(ctx context.Context, thread string, holds func(*Thread) bool) error {
	for {
		t.mu.RLock()
		ok, changed := holds(t.notebook.Thread(thread)), t.changed
		t.mu.RUnlock()
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// seen says whether an event of this id was appended to the thread after a sequence.
func (t *Tail) seen(thread, id string, after uint64) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.notebook.seen(thread, id, after)
}
