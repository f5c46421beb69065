package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/artifact"
)

// Report is what a comparison found. Differences are faults; notes are what is otherwise for a good reason.
type Report struct {
	Differences []string
	Notes       []string
	Compared    int64 // events or artifacts that were looked at

	kinds map[string]int
}

// maxOfKind differences of one kind are named; all are counted.
const maxOfKind = 20

func (r *Report) differ(kind, format string, args ...any) {
	if r.kinds == nil {
		r.kinds = map[string]int{}
	}
	if r.kinds[kind]++; r.kinds[kind] <= maxOfKind {
		r.Differences = append(r.Differences, fmt.Sprintf(format, args...))
	}
}

func (r *Report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// close says how many there are that were not named.
func (r *Report) close() Report {
	for kind, n := range r.kinds {
		if n > maxOfKind {
			r.Differences = append(r.Differences, fmt.Sprintf("%s: %d more", kind, n-maxOfKind))
		}
	}
	return *r
}

// Snapshot is the stream of a notebook up to one sequence, as it is compared.
type Snapshot struct {
	js       jetstream.JetStream
	deleted  deletions
	LastSeq  uint64
	Created  time.Time // when the stream was
	Restored bool      // the notebook was restored into this stream
}

// Look takes the present end of the stream. Errors: topology.ErrUnfinishedRestore, or what the bus says.
func Look(ctx context.Context, js jetstream.JetStream) (Snapshot, error) {
	stream, err := js.Stream(ctx, topology.Notebook)
	if err != nil {
		return Snapshot{}, fmt.Errorf("look up the stream %s: %w", topology.Notebook, err)
	}
	info := stream.CachedInfo()
	if _, unfinished := info.Config.Metadata[topology.MetaUnfinished]; unfinished {
		return Snapshot{}, topology.ErrUnfinishedRestore
	}
	deleted, err := readDeletions(ctx, stream)
	if err != nil {
		return Snapshot{}, err
	}
	return Snapshot{js: js, deleted: deleted, LastSeq: info.State.LastSeq, Created: info.Created, Restored: topology.Begins(info.Config.Metadata) > 0}, nil
}

// Moved says whether the stream has gone on, or something was deleted, since the snapshot was taken.
func (s Snapshot) Moved(ctx context.Context) (bool, error) {
	now, err := Look(ctx, s.js)
	return err == nil && (now.LastSeq != s.LastSeq || s.deleted.newer(now.deleted)), err
}

// Each gives the messages of the snapshot, but those that a deletion takes away.
func (s Snapshot) Each(ctx context.Context, upTo uint64, do func([]projector.Message) error) error {
	return Each(ctx, s.js, topology.Notebook, min(upTo, s.LastSeq), func(messages []projector.Message) error {
		return do(slices.DeleteFunc(messages, s.deleted.gone))
	})
}

// Copy is another copy of the messages, in the order of their first sequences.
type Copy struct {
	Name string // for people: "the backup", "notebook.db"
	// Has says whether the copy goes as far as a message of the stream.
	Has      func(projector.Message) bool
	Messages func(ctx context.Context, do func(projector.Message) error) error
	// Header says whether the copy has all headers; else only traceparent is compared.
	Header bool
}

// Copy is the file's copy of the messages.
func (f *File) Copy(name string) Copy {
	return Copy{Name: name, Has: func(m projector.Message) bool { return m.Original <= f.last }, Messages: f.Messages, Header: true}
}

// CompareNames says which attempts the file knows by name and the place does not.
func (s Snapshot) CompareNames(ctx context.Context, store *artifact.Store, f *File) (Report, error) {
	var r Report
	err := f.Names(func(n artifact.Naming) error {
		run := n.Name[:strings.LastIndexByte(n.Name, '.')]
		if s.deleted.runs[run] || s.deleted.threads[n.Thread] > 0 {
			return nil
		}
		r.Compared++
		ref, err := store.Named(ctx, n.Thread, n.Name)
		switch {
		case errors.Is(err, artifact.ErrMissing), errors.Is(err, artifact.ErrCorrupt), err == nil && ref != n.Ref:
			r.differ("attempts", "the raw answer of attempt %s of thread %s is in the backup and missing in the notebook", n.Name, n.Thread)
			return nil
		}
		return err
	})
	return r.close(), err
}

// Compare compares the messages of the stream with those of a copy, by their first sequences. What the stream has behind the end of the copy, and
// threads that were deleted since, are notes.
func (s Snapshot) Compare(ctx context.Context, c Copy) (Report, error) {
	var r Report
	stream := newQueue(ctx, func(ctx context.Context, do func(projector.Message) error) error {
		return s.Each(ctx, s.LastSeq, func(messages []projector.Message) error {
			for _, m := range messages {
				if err := do(m); err != nil {
					return err
				}
			}
			return nil
		})
	})
	defer stream.stop()
	held := newQueue(ctx, c.Messages)
	defer held.stop()

	since := map[string]int{} // deleted threads -> events that only the copy has
	behind := 0
	a, b := stream.next(), held.next()
	for a != nil || b != nil {
		switch {
		case b == nil || a != nil && a.Original < b.Original:
			if !c.Has(*a) {
				behind++
			} else {
				r.differ("missing events", "event %d (%s) is missing in %s", a.Original, a.Subject, c.Name)
			}
			a = stream.next()
		case a == nil || b.Original < a.Original:
			if s.deleted.threads[threadOf(b.Subject)] > 0 {
				since[threadOf(b.Subject)]++
			} else {
				r.differ("extra events", "event %d (%s) is in %s and missing in the stream", b.Original, b.Subject, c.Name)
			}
			b = held.next()
		default:
			r.Compared++
			for _, what := range changed(*a, *b, c.Header) {
				r.differ("changed events", "event %d (%s): its %s in %s is not that in the stream", a.Original, a.Subject, what, c.Name)
			}
			a, b = stream.next(), held.next()
		}
	}
	if err := errors.Join(stream.err(), held.err()); err != nil {
		return r, err
	}
	if behind > 0 {
		r.note("the notebook has gone on since %s: events behind its end: %d", c.Name, behind)
	}
	for thread, n := range since {
		r.note("thread %s was deleted since %s: events of it that are only there: %d", thread, c.Name, n)
	}
	slices.Sort(r.Notes)
	return r.close(), nil
}

func changed(a, b projector.Message, header bool) (what []string) {
	if a.Subject != b.Subject {
		what = append(what, "subject")
	}
	if !bytes.Equal(a.Data, b.Data) {
		what = append(what, "body")
	}
	if !a.Time.Equal(b.Time) {
		what = append(what, "time")
	}
	const trace = "traceparent"
	if header && !reflect.DeepEqual(Kept(a.Header), Kept(b.Header)) || a.Header.Get(trace) != b.Header.Get(trace) {
		what = append(what, "header")
	}
	return what
}

// CheckArtifacts reads every artifact that the events of the snapshot name and says which are missing or corrupt. Those of deleted runs are gone
// for good reason.
func (s Snapshot) CheckArtifacts(ctx context.Context, store *artifact.Store, progress func(done int64)) (Report, error) {
	var r Report
	w := newWanted(s.deleted.runs)
	err := s.Each(ctx, s.LastSeq, func(messages []projector.Message) error {
		for _, m := range messages {
			w.add(m)
		}
		return nil
	})
	if err != nil {
		return r, err
	}
	for _, ref := range w.refs() {
		name := ref.Ref
		err := readThrough(ctx, store, ref)
		switch {
		case errors.Is(err, artifact.ErrMissing):
			r.differ("missing artifacts", "artifact %s is missing", name)
		case errors.Is(err, artifact.ErrCorrupt):
			r.differ("corrupt artifacts", "artifact %s is corrupt: its content is not what its hash names", name)
		case err != nil:
			return r, err
		}
		if r.Compared++; progress != nil {
			progress(r.Compared)
		}
	}
	return r.close(), nil
}

func readThrough(ctx context.Context, store *artifact.Store, ref artifact.Ref) error {
	content, err := store.Reader(ctx, ref)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, content)
	return errors.Join(err, content.Close())
}

// queue turns a function that gives messages into one that is asked for them.
type queue struct {
	messages chan projector.Message
	cancel   context.CancelFunc
	failed   error
}

func newQueue(ctx context.Context, read func(context.Context, func(projector.Message) error) error) *queue {
	ctx, cancel := context.WithCancel(ctx)
	q := &queue{messages: make(chan projector.Message, 64), cancel: cancel}
	go func() {
		defer close(q.messages)
		q.failed = read(ctx, func(m projector.Message) error {
			select {
			case q.messages <- m:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	return q
}

// next is the next message, nil at the end.
func (q *queue) next() *projector.Message {
	m, ok := <-q.messages
	if !ok {
		return nil
	}
	return &m
}

// err is why the messages ended; it is asked after next has given nil.
func (q *queue) err() error { return q.failed }

func (q *queue) stop() {
	q.cancel()
	for range q.messages { // until the reading has ended
	}
}
