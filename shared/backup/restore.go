package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/settings"
)

// Source is what a notebook is restored from: a File, or less. Each method gives everything in order and ends with do's error.
type Source interface {
	// LastSequence is that of the stream that the source is of, up to which it is whole.
	LastSequence() uint64
	Messages(ctx context.Context, do func(projector.Message) error) error
	Artifacts(ctx context.Context, do func(artifact.Ref, io.Reader) error) error
	Names(do func(artifact.Naming) error) error
	Trail(do func(projector.Message) error) error
	Settings() (settings.Patch, error)
}

// LastSequence implements Source.
func (f *File) LastSequence() uint64 { return f.manifest.LastSequence }

// RestoreOptions say how the bus of the place is declared.
type RestoreOptions struct {
	Topology topology.Options
	// Progress as in Options.
	Progress func(what string, done, total int64)
}

// Restored says what was put into the place.
type Restored struct {
	Events, Artifacts, Names, Trail int64
	First, Last                     uint64   // sequences that the events have now; both 0 when there are none
	Missing                         []string // artifacts that events name and that the source does not have, in order
}

var (
	// ErrNotEmpty: the place has a notebook already. Nothing was changed.
	ErrNotEmpty = errors.New("the place is not empty")
	// ErrInUse: services or readers are connected to the place. Nothing was changed.
	ErrInUse = errors.New("the place is in use")
	// ErrInterfered: somebody else wrote into the stream during the restore.
	ErrInterfered = errors.New("somebody else wrote into the notebook during the restore")
)

// Margin is how far behind the last sequence of the source a restored notebook begins. The notebook may have gone on after the backup, and who has
// seen an event of that time must be told that it is gone, not be given another event of the same number.
const Margin = 100_000

// Prepare looks whether a notebook may be restored into the place of js, clears what a restore that was cut short left there, and declares the
// topology. Errors: ErrNotEmpty, ErrInUse, or what the bus says.
func Prepare(ctx context.Context, js jetstream.JetStream, opts topology.Options) error {
	stream, err := js.Stream(ctx, topology.Notebook)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return topology.Declare(ctx, js, opts)
	}
	if err != nil {
		return fmt.Errorf("look up the stream %s: %w", topology.Notebook, err)
	}
	info := stream.CachedInfo()
	if _, unfinished := info.Config.Metadata[topology.MetaUnfinished]; unfinished {
		if err := clear(ctx, js, stream); err != nil {
			return err
		}
	} else if info.State.Msgs > 0 {
		return notEmpty(ctx, stream)
	}
	if err := unused(ctx, js, stream); err != nil {
		return err
	}
	return topology.Declare(ctx, js, opts)
}

func notEmpty(ctx context.Context, stream jetstream.Stream) error {
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter("thread.created.>"))
	if err != nil {
		return fmt.Errorf("look up the stream %s: %w", topology.Notebook, err)
	}
	return fmt.Errorf("%w: its notebook is in use or was: threads created: %d; events: %d, from sequence %d to %d, the last of %s", ErrNotEmpty,
		len(info.State.Subjects), info.State.Msgs, info.State.FirstSeq, info.State.LastSeq, info.State.LastTime.UTC().Format(time.RFC3339))
}

// clear takes away what a restore that was cut short has written.
func clear(ctx context.Context, js jetstream.JetStream, stream jetstream.Stream) error {
	trail, err := js.Stream(ctx, topology.Trail)
	if err == nil {
		err = trail.Purge(ctx)
	}
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("clear the stream %s: %w", topology.Trail, err)
	}
	if err := stream.Purge(ctx); err != nil {
		return fmt.Errorf("clear the stream %s: %w", topology.Notebook, err)
	}
	return mark(ctx, js, func(meta map[string]string) { delete(meta, topology.MetaUnfinished) })
}

// mark changes the metadata of the stream.
func mark(ctx context.Context, js jetstream.JetStream, change func(map[string]string)) error {
	stream, err := js.Stream(ctx, topology.Notebook)
	if err != nil {
		return fmt.Errorf("look up the stream %s: %w", topology.Notebook, err)
	}
	cfg := stream.CachedInfo().Config
	cfg.Metadata = maps.Clone(cfg.Metadata)
	if cfg.Metadata == nil {
		cfg.Metadata = map[string]string{}
	}
	change(cfg.Metadata)
	if _, err := js.UpdateStream(ctx, cfg); err != nil {
		return fmt.Errorf("mark the stream %s: %w", topology.Notebook, err)
	}
	return nil
}

const (
	looks    = 3 // for who is connected; a worker between two requests shows in the next
	lookWait = 100 * time.Millisecond
)

// unused fails when somebody waits for events, or holds a lease.
func unused(ctx context.Context, js jetstream.JetStream, stream jetstream.Stream) error {
	for look := range looks {
		var who []string
		consumers := stream.ListConsumers(ctx)
		for info := range consumers.Info() {
			if info.NumWaiting > 0 || info.PushBound || info.NumAckPending > 0 {
				name := info.Config.Durable
				if name == "" {
					name = "a reader " + info.Config.Description
				}
				who = append(who, strings.TrimSpace(name))
			}
		}
		if err := consumers.Err(); err != nil {
			return fmt.Errorf("look who reads the stream %s: %w", topology.Notebook, err)
		}
		leases, err := js.KeyValue(ctx, topology.BucketLeases)
		if err == nil {
			var keys []string
			if keys, err = leases.Keys(ctx); errors.Is(err, jetstream.ErrNoKeysFound) {
				err = nil
			}
			for _, key := range keys {
				who = append(who, "the holder of the lease "+key)
			}
		}
		if err != nil && !errors.Is(err, jetstream.ErrBucketNotFound) {
			return fmt.Errorf("look who holds a lease: %w", err)
		}
		if len(who) > 0 {
			slices.Sort(who)
			return fmt.Errorf("%w: stop all services and readers first; connected are: %s", ErrInUse, strings.Join(slices.Compact(who), ", "))
		}
		if look == looks-1 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookWait):
		}
	}
	return nil
}

// Restore puts source into a place that Prepare has found empty. Events are published in their order, with their bodies, headers and first times; their
// sequences go on Margin behind the last one of the source, so that no number of the earlier stream is given again. The place says that it is unfinished until
// all is there; when Restore fails, the next Prepare clears it. Errors: ErrInterfered, or what source, bus or disk say.
func Restore(ctx context.Context, place Place, source Source, opts RestoreOptions) (Restored, error) {
	r := &restorer{place: place, source: source, opts: opts, there: map[string]bool{}, wanted: newWanted(nil)}
	for _, step := range []func(context.Context) error{r.begin, r.artifacts, r.names, r.events, r.trail, r.settings, r.end} {
		if err := step(ctx); err != nil {
			return r.done, fmt.Errorf("restore: %w", err)
		}
	}
	return r.done, nil
}

type restorer struct {
	place  Place
	source Source
	opts   RestoreOptions
	done   Restored
	begins uint64
	there  map[string]bool // artifacts that the place has
	wanted *wanted
}

func (r *restorer) tell(what string, done int64) {
	if r.opts.Progress != nil {
		r.opts.Progress(what, done, 0)
	}
}

// begin marks the place and moves its stream to where the notebook goes on.
func (r *restorer) begin(ctx context.Context) error {
	stream, err := r.place.JS.Stream(ctx, topology.Notebook)
	if err != nil {
		return fmt.Errorf("look up the stream %s: %w", topology.Notebook, err)
	}
	r.begins = max(r.source.LastSequence(), stream.CachedInfo().State.LastSeq) + Margin + 1
	err = mark(ctx, r.place.JS, func(meta map[string]string) {
		meta[topology.MetaUnfinished] = "yes"
		meta[topology.MetaBegins] = strconv.FormatUint(r.begins, 10)
	})
	if err != nil {
		return err
	}
	if err := stream.Purge(ctx, jetstream.WithPurgeSequence(r.begins)); err != nil { // of an empty stream: only moves it
		return fmt.Errorf("move the stream %s to sequence %d: %w", topology.Notebook, r.begins, err)
	}
	return nil
}

func (r *restorer) artifacts(ctx context.Context) error {
	return r.source.Artifacts(ctx, func(ref artifact.Ref, content io.Reader) error {
		if err := r.place.Artifacts.PutAs(ctx, ref, content); err != nil {
			return err
		}
		r.there[ref.Ref] = true
		r.done.Artifacts++
		r.tell("artifacts", r.done.Artifacts)
		return nil
	})
}

func (r *restorer) names(ctx context.Context) error {
	return r.source.Names(func(n artifact.Naming) error {
		if !r.there[n.Ref.Ref] {
			return nil // nothing would be found under it
		}
		r.done.Names++
		return r.place.Artifacts.Name(ctx, n.Thread, n.Name, n.Ref)
	})
}

// window is how many messages are on their way at once, answerWithin for how long the oldest of them may be without an answer after the one before it
// was answered.
const (
	window       = 256
	answerWithin = 15 * time.Second
)

// events publishes every message on the condition that it comes right behind the one before, so that nobody else can write in between unseen.
func (r *restorer) events(ctx context.Context) error {
	next := r.begins
	var waiting []jetstream.PubAckFuture
	settle := func(most int) error {
		for len(waiting) > most {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case err := <-waiting[0].Err():
				var api *jetstream.APIError
				if errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
					return fmt.Errorf("%w: %w", ErrInterfered, err)
				}
				return err
			case <-waiting[0].Ok():
				waiting = waiting[1:]
			case <-time.After(answerWithin): // the library waits for the answer to such a publish for ever
				return fmt.Errorf("publish events: %w", jetstream.ErrAsyncPublishTimeout)
			}
		}
		return nil
	}
	err := r.source.Messages(ctx, func(m projector.Message) error {
		msg := &nats.Msg{Subject: m.Subject, Data: m.Data, Header: published(m)}
		future, err := r.place.JS.PublishMsgAsync(msg, jetstream.WithExpectLastSequence(next-1))
		if err != nil {
			return fmt.Errorf("publish event %d: %w", m.Seq, err)
		}
		next++
		waiting = append(waiting, future)
		r.wanted.add(m)
		if r.done.Events++; r.done.Events%window == 0 {
			r.tell("events", r.done.Events)
		}
		return settle(window)
	})
	if err == nil {
		err = settle(0)
	}
	if err != nil {
		return err
	}
	if next > r.begins {
		r.done.First, r.done.Last = r.begins, next-1
	}
	for _, ref := range r.wanted.refs() {
		if !r.there[ref.Ref] {
			r.done.Missing = append(r.done.Missing, ref.Ref)
		}
	}
	return nil
}

// published is the header of a restored message: its own without what was meant for the server that stored it first, and where it was then.
func published(m projector.Message) nats.Header {
	header := Kept(m.Header)
	topology.SetOriginal(header, m.Original, m.Time)
	return header
}

// Kept is the part of a header that a restore keeps, and by which copies are compared. It is never nil.
func Kept(header nats.Header) nats.Header {
	kept := nats.Header{}
	for name, values := range header {
		if !strings.HasPrefix(name, "Nats-") && !topology.IsOriginal(name) {
			kept[name] = slices.Clone(values)
		}
	}
	return kept
}

func (r *restorer) trail(ctx context.Context) error {
	return r.source.Trail(func(m projector.Message) error {
		if _, err := r.place.JS.PublishMsg(ctx, &nats.Msg{Subject: m.Subject, Data: m.Data, Header: published(m)}); err != nil {
			return fmt.Errorf("publish the trail: %w", err)
		}
		r.done.Trail++
		return nil
	})
}

func (r *restorer) settings(ctx context.Context) error {
	patch, err := r.source.Settings()
	if err != nil || patch == (settings.Patch{}) {
		return err
	}
	return r.place.Settings.Save(ctx, patch)
}

// end looks whether all is there and takes the mark away.
func (r *restorer) end(ctx context.Context) error {
	stream, err := r.place.JS.Stream(ctx, topology.Notebook)
	if err != nil {
		return fmt.Errorf("look up the stream %s: %w", topology.Notebook, err)
	}
	state := stream.CachedInfo().State
	if int64(state.Msgs) != r.done.Events || r.done.Events > 0 && (state.FirstSeq != r.done.First || state.LastSeq != r.done.Last) {
		return fmt.Errorf("%w: it has %d events from %d to %d, and %d were restored from %d to %d", ErrInterfered,
			state.Msgs, state.FirstSeq, state.LastSeq, r.done.Events, r.done.First, r.done.Last)
	}
	return mark(ctx, r.place.JS, func(meta map[string]string) { delete(meta, topology.MetaUnfinished) })
}
