package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
)

// record is everything that the stream has shown since the beginning, deleted threads included, and what it folds to.
type record struct {
	projector *projector.Projector

	mu       sync.Mutex
	notebook *notebook.Notebook
	messages []notebook.Message
	events   []event.Event // those that count: known, applied, not seen before; Seq and Stored are set
	ids      map[string]uint64
	twice    []string // ids that two messages have
}

func newRecord(js jetstream.JetStream) *record {
	r := &record{notebook: notebook.NewNotebook(), ids: map[string]uint64{}}
	r.projector = projector.New(js, projector.Config{Stream: topology.Notebook, Handler: r.apply, Logger: zerolog.Nop()})
	return r
}

func (r *record) apply(_ context.Context, messages []notebook.Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range messages {
		r.messages = append(r.messages, m)
		if e, err := event.Parse(m.Subject, m.Data); err == nil && e.ID != "" {
			id := e.Thread + " " + e.ID
			if r.ids[id] != 0 {
				r.twice = append(r.twice, m.Subject+" "+e.ID)
			}
			r.ids[id] = m.Seq
		}
		if e, applied := r.notebook.Apply(m); applied {
			r.events = append(r.events, e)
		}
	}
	return nil
}

// Watch is what the stream of a field shows from its beginning on, folded.
type Watch struct {
	*record
	js   jetstream.JetStream
	stop func() error
}

// Watch begins to watch; Close ends it.
func (f *Field) Watch() *Watch {
	w := &Watch{record: newRecord(f.JS), js: f.JS}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.projector.Run(ctx) }()
	w.stop = sync.OnceValue(func() error {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})
	return w
}

// Close ends the watching; what was seen stays. It may be called more than once.
func (w *Watch) Close() error { return w.stop() }

// Events are those that counted so far: known, applied, not seen before. Seq and Stored are set.
func (w *Watch) Events() []event.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events)
}

// Calm is nil when every thread has settled as of now and no worker has anything left; else it says what is left.
func (w *Watch) Calm(ctx context.Context) error {
	if _, err := w.projector.CatchUp(ctx); err != nil {
		return err
	}
	if quiet, why := w.quiet(); !quiet {
		return fmt.Errorf("%w: %s", topology.ErrBusy, why)
	}
	return Drained(ctx, w.js)
}

// Drained is nil when every worker has been given all that is in the stream for it and has done it; else it says what is left.
func Drained(ctx context.Context, js jetstream.JetStream) error {
	for _, d := range topology.Durables() {
		if err := d.Drained(ctx, js); err != nil {
			return err
		}
	}
	return nil
}

// missed says whether some of a deleted thread's events may have been purged before they were seen here: sequences are missing between
// its first event that was seen, or the beginning, and its tombstone.
func (r *record) missed(thread string, tombstone uint64) bool {
	first := uint64(0)
	for _, e := range r.events {
		if e.Thread == thread && e.Kind() == "thread.created" {
			first = e.Seq
		}
	}
	before := uint64(0)
	for _, m := range r.messages {
		if m.Seq > before+1 && m.Seq > first && m.Seq <= tombstone {
			return true
		}
		before = m.Seq
	}
	return false
}

// quiet says whether every thread has settled, and names one that has not.
func (r *record) quiet() (bool, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.notebook.Threads() {
		if !t.Exists() {
			continue
		}
		if status, _ := t.Status(); status == notebook.Running {
			return false, t.ID + " is running"
		}
		if steps := notebook.Next(t); len(steps) > 0 {
			return false, t.ID + " waits for " + steps[0].Stage
		}
		if t.Ledger.Held() > 0 {
			return false, t.ID + " has credits reserved"
		}
	}
	return true, ""
}
