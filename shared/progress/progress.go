// Package progress tells what a step is doing right now. It is for people who watch: it lives in memory for a minute, is
// written when that is easy, and nothing is ever decided by it. What is not there counts as pending.
package progress

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/text"
)

// The states of a step that is under way. That one is done or failed is told by events, not here.
const (
	Waiting = "waiting" // for a lease, a model, a moment: Text says for what, as it goes on after "waits for"
	Running = "running"
)

// Unseen is how long a step goes on before it is shown: nobody can read what is over sooner.
const Unseen = 100 * time.Millisecond

// State is what a step is doing.
type State struct {
	State  string    `json:"state"`
	Since  time.Time `json:"since"` // when the state began
	Text   string    `json:"text,omitempty"`
	Engine string    `json:"engine,omitempty"`
}

// Entry is the state of one step: Entity is the run's id, or the number of the cycle.
type Entry struct {
	Entity, Stage string
	State
}

const (
	// every is the least time between two writes of a step in the same state.
	every = 500 * time.Millisecond
	// forget is when the time of a step's last write is of no more use: the bucket's time to live.
	forget = time.Minute
)

// Board is the bucket of progress. It may be used by several goroutines.
type Board struct {
	nc     *nats.Conn
	bucket jetstream.KeyValue
	now    func() time.Time

	mu   sync.Mutex
	last map[string]written
}

type written struct {
	at    time.Time
	state string
}

// Open opens the bucket that topology.Declare made. Times are taken from now.
func Open(ctx context.Context, js jetstream.JetStream, now func() time.Time) (*Board, error) {
	bucket, err := js.KeyValue(ctx, topology.BucketProgress)
	if err != nil {
		return nil, fmt.Errorf("open the bucket %s: %w", topology.BucketProgress, err)
	}
	return &Board{nc: js.Conn(), bucket: bucket, now: now, last: map[string]written{}}, nil
}

// Write notes what stage of entity (a run's id or a cycle's number) of thread is doing. It is left out when the same
// state was written less than half a second ago, when the bus is away, when ctx has ended, and when a name cannot stand in a key. It waits for
// nothing and nobody learns whether the bus took it: no step fails or waits because of it.
func (b *Board) Write(ctx context.Context, thread, entity, stage string, state State) {
	for _, name := range []string{thread, entity, stage} {
		if !text.ValidToken(name) {
			return
		}
	}
	key := thread + "." + entity + "." + stage
	if ctx.Err() != nil || !b.nc.IsConnected() || !b.due(key, state.State) {
		return
	}
	body, err := json.Marshal(state)
	if err != nil {
		return // a time that JSON cannot express
	}
	_ = b.nc.Publish(topology.KeySubject(topology.BucketProgress, key), body)
}

// Read returns what the steps of thread are doing, in the order in which they were last heard of.
func (b *Board) Read(ctx context.Context, thread string) ([]Entry, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watcher, err := b.bucket.Watch(ctx, thread+".>", jetstream.IgnoreDeletes())
	if err != nil {
		return nil, fmt.Errorf("read the progress of thread %s: %w", thread, err)
	}
	defer watcher.Stop() //nolint:errcheck // the context ends it too
	var entries []Entry
	for {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("read the progress of thread %s: %w", thread, ctx.Err())
		case update, ok := <-watcher.Updates():
			if !ok || update == nil { // nil: all there is was told
				return entries, nil
			}
			if entry, ok := parse(update.Key(), update.Value()); ok {
				entries = append(entries, entry)
			}
		}
	}
}

// due says whether key is to be written now, and takes it that it is.
func (b *Board) due(key, state string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if last, ok := b.last[key]; ok && last.state == state && now.Sub(last.at) < every {
		return false
	}
	for old, last := range b.last {
		if now.Sub(last.at) >= forget {
			delete(b.last, old)
		}
	}
	b.last[key] = written{now, state}
	return true
}

// parse leaves out what another version may have written.
func parse(key string, value []byte) (Entry, bool) {
	parts := strings.Split(key, ".")
	if len(parts) != 3 {
		return Entry{}, false
	}
	entry := Entry{Entity: parts[1], Stage: parts[2]}
	err := json.Unmarshal(value, &entry.State)
	return entry, err == nil
}
