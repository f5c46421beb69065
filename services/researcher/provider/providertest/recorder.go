package providertest

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/factstream/factstream/services/researcher/provider"
)

// Recorder is a sink that keeps everything. It is safe for concurrent use. The zero value is ready.
type Recorder struct {
	// BytesError and EventError, when not nil, are asked what to return; they get how much came before.
	BytesError func(before int) error
	EventError func(before int) error

	mu     sync.Mutex
	bytes  []byte
	events []provider.Event
	news   chan struct{}
	early  []string
}

var _ provider.Sink = (*Recorder)(nil)

// Bytes implements provider.Sink.
func (r *Recorder) Bytes(p []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.BytesError != nil {
		if err := r.BytesError(len(r.bytes)); err != nil {
			return err
		}
	}
	r.bytes = append(r.bytes, p...)
	return nil
}

// Event implements provider.Sink. It notes an event whose first data line did not come through Bytes before.
func (r *Recorder) Event(e provider.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.EventError != nil {
		if err := r.EventError(len(r.events)); err != nil {
			return err
		}
	}
	first, _, _ := bytes.Cut(e.Data, []byte("\n"))
	if !bytes.ContainsRune(first, '\uFFFD') && !bytes.Contains(r.bytes, first) {
		r.early = append(r.early, fmt.Sprintf("event %d (%s)", e.Seq, e.Name))
	}
	r.events = append(r.events, e)
	if r.news != nil {
		close(r.news)
		r.news = nil
	}
	return nil
}

// Kept returns a copy of all bytes so far.
func (r *Recorder) Kept() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Clone(r.bytes)
}

// Events returns the events so far.
func (r *Recorder) Events() []provider.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]provider.Event(nil), r.events...)
}

// Await returns when at least n events have come, or with the context's error.
func (r *Recorder) Await(ctx context.Context, n int) error {
	for {
		r.mu.Lock()
		if len(r.events) >= n {
			r.mu.Unlock()
			return nil
		}
		if r.news == nil {
			r.news = make(chan struct{})
		}
		news := r.news
		r.mu.Unlock()
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// untimed returns the events without the times at which they were read.
func untimed(events []provider.Event) []provider.Event {
	out := append([]provider.Event(nil), events...)
	for i := range out {
		out[i].At = time.Time{}
	}
	return out
}
