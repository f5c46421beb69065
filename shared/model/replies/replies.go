// Package replies keeps what models answered, so that nothing is asked twice: a step that was interrupted after its reply came finds
// it again, with the request and the numbered choices that it answers, whatever the step would ask today.
//
// A reply stands in a JetStream key-value bucket under <thread>.<hash of the question's key>, gzipped JSON. The first reply kept
// under a key stays: a second worker that asked at the same time gets the first one's.
package replies

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/text"
)

// Bucket is what Store needs of a key-value bucket; a jetstream.KeyValue is one.
type Bucket interface {
	Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error)
	Put(ctx context.Context, key string, value []byte) (uint64, error)
	Create(ctx context.Context, key string, value []byte, opts ...jetstream.KVCreateOpt) (uint64, error)
	Purge(ctx context.Context, key string, opts ...jetstream.KVDeleteOpt) error
	ListKeysFiltered(ctx context.Context, filters ...string) (jetstream.KeyLister, error)
}

// ErrTooLarge means that a reply with its request does not fit into a message. It cannot happen with the tasks of package model
// (their prompts end near 60 KB); nothing was kept, and the reply was not used.
var ErrTooLarge = errors.New("the model's reply is too large to be kept")

const (
	maxValue = 900 << 10 // bytes; messages of other people's clusters end at 1 MiB, headers and subject included
	maxJSON  = 64 << 20  // bytes that a kept value may unpack to

	// listTimeout is what listing the replies of a thread may take; it is well under a second.
	listTimeout = 10 * time.Second
)

// Store keeps replies in a bucket. It implements model.Keeper.
type Store struct {
	Bucket Bucket
	Now    func() time.Time

	// Patience is for how long keeping a reply is tried again while the bus does not take it, since the reply costs minutes to get
	// again; 0 means 20 s. Pause is the time between two tries; 0 means 500 ms.
	Patience time.Duration
	Pause    time.Duration
}

// New returns a store with the usual times.
func New(bucket Bucket) *Store { return &Store{Bucket: bucket, Now: time.Now} }

var _ model.Keeper = (*Store)(nil)

// Do returns the record kept under key with Found set, or calls, keeps what came and returns it. A call that fails keeps nothing and
// its error is returned as it is. If the bucket cannot be read, call is not made. A record that cannot be read is replaced.
func (s *Store) Do(ctx context.Context, key model.Key, req model.Request, call func(context.Context) (model.Reply, error)) (model.Record, error) {
	name, err := Name(key)
	if err != nil {
		return model.Record{}, err
	}
	record, state, err := s.find(ctx, name)
	if err != nil || state == kept {
		return record, err
	}
	return s.ask(ctx, name, req, call, state)
}

func (s *Store) ask(ctx context.Context, name string, req model.Request, call func(context.Context) (model.Reply, error), before state) (model.Record, error) {
	reply, err := call(ctx)
	if err != nil {
		return model.Record{}, err
	}
	record, err := model.NewRecord(req, reply, s.Now().UTC())
	if err != nil {
		return model.Record{}, err
	}
	return s.keep(ctx, name, record, before)
}

// Name is the key of the bucket for a reply. A thread that cannot stand in one is an error.
func Name(key model.Key) (string, error) {
	if !text.ValidToken(key.Thread) {
		return "", fmt.Errorf("keep a reply: bad thread id %q", key.Thread)
	}
	return key.Thread + "." + text.ID("reply", key.Digest, key.Cause, key.Step), nil
}

// DeleteThread removes every reply of a thread and returns how many there were.
func (s *Store) DeleteThread(ctx context.Context, thread string) (int, error) {
	if !text.ValidToken(thread) {
		return 0, fmt.Errorf("delete replies: bad thread id %q", thread)
	}
	names, err := s.names(ctx, thread)
	if err != nil {
		return 0, fmt.Errorf("list the replies of thread %s: %w", thread, err)
	}
	for n, name := range names {
		if err := s.Bucket.Purge(ctx, name); err != nil {
			return n, fmt.Errorf("delete reply %s: %w", name, err)
		}
	}
	return len(names), nil
}

// names lists the replies of a thread. The library ends a list that has stopped coming only with its context, and then as if it were whole.
func (s *Store) names(ctx context.Context, thread string) (names []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	lister, err := s.Bucket.ListKeysFiltered(ctx, thread+".>")
	if err != nil {
		return nil, err
	}
	for name := range lister.Keys() {
		names = append(names, name)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return names, nil
}

type state int

const (
	absent state = iota
	kept
	unreadable
)

func (s *Store) find(ctx context.Context, name string) (model.Record, state, error) {
	entry, err := s.Bucket.Get(ctx, name)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return model.Record{}, absent, nil
	case err != nil:
		return model.Record{}, absent, fmt.Errorf("look up reply %s: %w", name, err)
	}
	record, err := unpack(entry.Value())
	if err != nil {
		return model.Record{}, unreadable, nil
	}
	record.Found = true
	return record, kept, nil
}

// keep puts a new record, or returns the one that another worker kept meanwhile.
func (s *Store) keep(ctx context.Context, name string, record model.Record, before state) (model.Record, error) {
	value, err := pack(record)
	if err != nil {
		return model.Record{}, fmt.Errorf("keep reply %s: %w", name, err)
	}
	wait, cancel := context.WithTimeout(ctx, orElse(s.Patience, 20*time.Second))
	defer cancel()
	for {
		err = s.put(wait, name, value, before)
		if err == nil {
			return record, nil
		}
		if errors.Is(err, jetstream.ErrKeyExists) {
			other, state, err := s.find(ctx, name)
			if err != nil || state == kept {
				return other, err
			}
			before = unreadable // or expired meanwhile: put it whatever stands there
			continue
		}
		pause := time.NewTimer(orElse(s.Pause, 500*time.Millisecond))
		select {
		case <-wait.Done():
			pause.Stop()
			if ctx.Err() != nil {
				return model.Record{}, context.Cause(ctx)
			}
			return model.Record{}, fmt.Errorf("keep reply %s: %w", name, err)
		case <-pause.C:
		}
	}
}

func (s *Store) put(ctx context.Context, name string, value []byte, before state) error {
	if before == unreadable {
		_, err := s.Bucket.Put(ctx, name, value)
		return err
	}
	_, err := s.Bucket.Create(ctx, name, value)
	return err
}

// writers are used again: each has tables of about a megabyte, so that a new one for every reply would keep the collector busy.
var writers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

func pack(record model.Record) ([]byte, error) {
	data, err := json.Marshal(record)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := writers.Get().(*gzip.Writer)
	defer writers.Put(w)
	w.Reset(&b)
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if b.Len() > maxValue {
		return nil, fmt.Errorf("%w: %d bytes packed, at most %d", ErrTooLarge, b.Len(), maxValue)
	}
	return b.Bytes(), nil
}

func unpack(value []byte) (record model.Record, err error) {
	r, err := gzip.NewReader(bytes.NewReader(value))
	if err != nil {
		return record, err
	}
	data, err := io.ReadAll(io.LimitReader(r, maxJSON))
	if err != nil {
		return record, err
	}
	err = json.Unmarshal(data, &record)
	return record, err
}

func orElse(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}
