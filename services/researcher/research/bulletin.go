package research

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/services/researcher/provider"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/progress"
	"github.com/factstream/factstream/shared/trail"
)

// bulletin tells those who watch what a run is doing: the provider's events go to the trail, and the state of the run
// (waiting for what, or the provider's own word for its phase) to the board. All of it is best effort and done beside
// the call, which it can neither delay nor end.
type bulletin struct {
	r       *Researcher
	j       job
	entries chan entry
	changed chan struct{}
	ended   sync.WaitGroup

	mu      sync.Mutex
	state   progress.State
	dropped int
}

// entry is one message for the trail.
type entry struct {
	subject string
	body    []byte
}

const (
	// queued entries are held while the bus is slow; what comes after them is dropped from the trail, never from the spool.
	queued = 256
	// lastWords is how long the end of a run waits for the rest of its trail.
	lastWords = time.Second
)

// publish begins a bulletin; end must be called.
func (r *Researcher) publish(ctx context.Context, j job) *bulletin {
	b := &bulletin{r: r, j: j, entries: make(chan entry, queued), changed: make(chan struct{}, 1)}
	b.ended.Go(func() { b.run(context.WithoutCancel(ctx)) })
	return b
}

// run writes until end: what is queued at once, and the state again and again, since the board forgets after a minute. What a run waits for is told
// at once, its phase when it has gone on for a while.
func (b *bulletin) run(ctx context.Context) {
	seen := time.NewTimer(progress.Unseen)
	defer seen.Stop()
	early := true
	again := time.NewTicker(max(b.r.Config.AckWait*4/15, 100*time.Millisecond))
	defer again.Stop()
	for {
		select {
		case e, ok := <-b.entries:
			if !ok {
				return
			}
			if err := b.r.NC.Publish(e.subject, e.body); err != nil {
				b.lose()
			}
		case <-b.changed:
			if !early || b.waits() {
				b.write(ctx)
			}
		case <-seen.C:
			early = false
			b.write(ctx)
		case <-again.C:
			b.write(ctx)
		}
	}
}

func (b *bulletin) write(ctx context.Context) {
	b.mu.Lock()
	state := b.state
	b.mu.Unlock()
	if state.State != "" {
		b.r.Progress.Write(ctx, b.j.thread, b.j.run, event.StageRun, state)
	}
}

func (b *bulletin) waits() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.State == progress.Waiting
}

// waiting says what the run waits for; running names the phase that it is in.
func (b *bulletin) waiting(text string) { b.say(progress.Waiting, text) }
func (b *bulletin) running(text string) { b.say(progress.Running, text) }

func (b *bulletin) say(state, text string) {
	b.mu.Lock()
	if b.state.State != state {
		b.state.Since = b.r.Now().UTC()
	}
	b.state.State, b.state.Text = state, text
	b.mu.Unlock()
	select {
	case b.changed <- struct{}{}:
	default: // it is about to be written
	}
}

// event puts an event of an attempt into the trail, and its name on the board, verbatim.
func (b *bulletin) event(a attempt, e provider.Event) {
	b.running(e.Name)
	body, err := json.Marshal(trail.New(e.Seq, e.Name, e.At, e.Data))
	if err != nil {
		b.lose()
		return
	}
	select {
	case b.entries <- entry{topology.TrailSubject(a.thread, a.run, a.n), body}:
	default:
		b.lose()
	}
}

func (b *bulletin) lose() {
	b.mu.Lock()
	b.dropped++
	b.mu.Unlock()
}

// end lets the rest of the trail go out, for a moment at most.
func (b *bulletin) end() {
	close(b.entries)
	gone := make(chan struct{})
	go func() {
		b.ended.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-time.After(lastWords):
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dropped > 0 {
		b.r.Log.Info().Str("run", b.j.run).Int("events", b.dropped).Msg("events left out of the trail; the raw answer has them")
	}
}
