// Package projection keeps notebook.db: the event stream as one SQLite file that can be held, and the folded notebook that the API reads.
//
// Some messages and the cursor behind them are one transaction, so the file is always the notebook as it was at one position. What is in it
// follows from the stream alone: a file that was lost, belongs to another stream or was made by another version is made again.
//
// The file follows what is folded within some milliseconds, at once when it is read. Who watches is told from memory, as soon as an event is folded;
// whatever is asked afterwards waits until the file has that event, too.
package projection

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/notebook"
)

// Config of a projection. All fields but Readers are required.
type Config struct {
	Path      string // of notebook.db; its directory must exist
	JS        jetstream.JetStream
	Artifacts *artifact.Store
	Log       zerolog.Logger
	Readers   int // connections for reading; 0: 4
}

// Projection is an open notebook.db and the notebook folded from it. It is safe for use by several goroutines.
type Projection struct {
	path      string
	js        jetstream.JetStream
	artifacts *artifact.Store
	log       zerolog.Logger
	unlock    func()
	writer    *sql.DB // one connection
	prepared  statements
	readers   *sql.DB
	projector *projector.Projector
	unfetched chan struct{} // a batch brought a text by reference
	begins    uint64        // first sequence of a restored stream
	newest    *window
	pending   *pending
	slow      time.Duration // slowWrite, but in tests

	mu       sync.RWMutex
	notebook *notebook.Notebook
	changed  chan struct{} // closed when more is folded
}

// Open opens the file, makes it anew if it does not belong to the stream, and folds what it holds. Nothing is read from the stream before Run.
// A file that is damaged, or holds events that the stream has lost, is kept beside the new one.
// ErrLocked is returned when another process has it open for writing.
func Open(ctx context.Context, cfg Config) (*Projection, error) {
	if cfg.Readers == 0 {
		cfg.Readers = 4
	}
	unlock, err := lock(cfg.Path + ".lock")
	if err != nil {
		return nil, err
	}
	p := &Projection{
		path: cfg.Path, js: cfg.JS, artifacts: cfg.Artifacts, log: cfg.Log, unlock: unlock,
		notebook: notebook.NewNotebook(), changed: make(chan struct{}), unfetched: make(chan struct{}, 1), prepared: statements{},
		pending: newPending(0), slow: slowWrite,
	}
	cursor, err := p.open(ctx, cfg)
	if lost := errors.Is(err, errLost); lost || isDamaged(err) {
		p.closeFiles()
		if lost {
			err = keepLost(cfg, err)
		} else {
			cfg.Log.Warn().Err(err).Str("file", cfg.Path).Msg("notebook.db is damaged: it is put aside and made again from the stream")
			err = putAside(cfg.Path, cfg.Path+".damaged")
		}
		if err != nil {
			unlock()
			return nil, err
		}
		p.notebook = notebook.NewNotebook()
		cursor, err = p.open(ctx, cfg)
	}
	if err != nil {
		p.closeFiles()
		unlock()
		return nil, err
	}
	p.newest, p.pending = newWindow(cursor.seq), newPending(cursor.seq)
	p.projector = projector.New(cfg.JS, projector.Config{
		Stream: topology.Notebook, From: cursor.seq, Created: cursor.created, Handler: p.apply, Logger: cfg.Log,
	})
	return p, nil
}

// keepLost puts a file aside that may be the only copy of some events, each under a name of its own.
func keepLost(cfg Config, reason error) error {
	kept, err := free(cfg.Path + ".lost")
	if err != nil {
		return err
	}
	if err := putAside(cfg.Path, kept); err != nil {
		return err
	}
	cfg.Log.Warn().AnErr("reason", reason).Str("kept", kept).
		Msg("notebook.db has events that the stream has lost: it is kept, and another is made; factstream restore --from-db brings them back, into an empty place")
	return nil
}

func (p *Projection) open(ctx context.Context, cfg Config) (cursor, error) {
	var err error
	if p.writer, err = openWriter(ctx, cfg.Path); err != nil {
		return cursor{}, err
	}
	at, err := p.checkCursor(ctx)
	if err != nil {
		return cursor{}, err
	}
	if p.readers, err = openReaders(ctx, cfg.Path, cfg.Readers); err != nil {
		return cursor{}, err
	}
	stream, err := cfg.JS.Stream(ctx, topology.Notebook)
	if err != nil {
		return cursor{}, fmt.Errorf("look up stream %s: %w", topology.Notebook, err)
	}
	p.begins = topology.Begins(stream.CachedInfo().Config.Metadata)
	return at, p.fold(ctx)
}

// Begins is the first sequence of a restored notebook: what has a lower one is of an earlier stream. It is 0 when the notebook was never restored.
func (p *Projection) Begins() uint64 { return p.begins }

// fold makes the notebook from the raw events of the file.
func (p *Projection) fold(ctx context.Context) error {
	err := p.eachRaw(ctx, "", nil, func(m notebook.Message) { p.notebook.Apply(m) })
	if err != nil {
		return fmt.Errorf("fold notebook.db: %w", err)
	}
	return nil
}

// Run applies the stream until ctx ends. It returns projector.ErrStreamChanged when the stream was made anew meanwhile; opened again, the
// projection begins anew too.
func (p *Projection) Run(ctx context.Context) error {
	running, ctx := errgroup.WithContext(ctx)
	ctx, cancel := context.WithCancel(ctx)
	running.Go(func() error {
		p.fetchTexts(ctx)
		return nil
	})
	running.Go(func() error {
		defer p.pending.close()
		return p.follow(ctx)
	})
	running.Go(func() error {
		defer cancel() // when it ends, so do the others
		return p.projector.Run(ctx)
	})
	return running.Wait()
}

// Close closes the file. Run must have ended.
func (p *Projection) Close() error {
	err := p.closeFiles()
	p.unlock()
	return err
}

func (p *Projection) closeFiles() error {
	var errs []error
	for _, db := range []*sql.DB{p.readers, p.writer} { // the writer last: it then folds the write-ahead log into the file
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// apply folds messages, hands what they change to follow, and tells who watches. For all others that is one step: who sees what is folded, or is told,
// finds it in the file, since a reader waits for what follow has. There is room before, since what is folded can neither be held back nor be folded again.
func (p *Projection) apply(ctx context.Context, messages []notebook.Message) error {
	if err := p.pending.room(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b := collect(p.notebook, messages)
	p.pending.add(b)
	p.newest.take(b)
	p.tell()
	return nil
}

// tell wakes who watches. p.mu is held.
func (p *Projection) tell() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// follow writes what is folded until ctx ends, and then once more what waits, unless a write was under way that failed: the next start reads it again.
func (p *Projection) follow(ctx context.Context) error {
	for {
		batches := p.pending.take(ctx)
		if batches == nil {
			break
		}
		if err := p.writeUntilDone(ctx, batches); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
	}
	if batches := p.pending.takeAll(); batches != nil { // else the next start reads it again
		if err := p.write(context.WithoutCancel(ctx), batches, p.projector.Created()); err != nil {
			p.log.Warn().Err(err).Msg("notebook.db does not have the newest events yet; they are read again at the next start")
			return nil
		}
		p.pending.advance(batches[len(batches)-1].last)
	}
	return nil
}

// writeUntilDone writes what was folded, which cannot be taken back: a write that fails (a full disk) is tried again until it works or ctx ends. The
// position stays before it, and Trouble tells.
func (p *Projection) writeUntilDone(ctx context.Context, batches []*batch) error {
	last := batches[len(batches)-1].last
	defer time.AfterFunc(p.slow, func() { p.pending.slower(last) }).Stop()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := p.write(ctx, batches, p.projector.Created())
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return nil
		}
		if isDamaged(err) || isMissing(err) {
			return p.giveUp(err)
		}
		p.pending.stuck(err)
		p.log.Error().Err(err).Uint64("after", p.Position()).Msg("cannot write notebook.db, trying again")
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
	if err := pointWritten.Hit(ctx); err != nil {
		return err
	}
	if p.pending.advance(last) { // who watches from far behind could not go on
		p.mu.Lock()
		p.tell()
		p.mu.Unlock()
	}
	if slices.ContainsFunc(batches, func(b *batch) bool { return b.unfetched }) {
		signal(p.unfetched)
	}
	return nil
}

// giveUp ends the projection: no second try would write this file. One that is damaged is put aside at once, since the damage may lie where the next
// Open does not look. The file is made again by it.
func (p *Projection) giveUp(err error) error {
	err = fmt.Errorf("notebook.db cannot be written and is made again at the next start: %w", err)
	if isDamaged(err) {
		return errors.Join(err, putAside(p.path, p.path+".damaged"))
	}
	return err
}

// Trouble is why the newest events could not be written yet; nil when all is well.
func (p *Projection) Trouble() error { return p.pending.why() }

// Position is the last sequence that is in the file.
func (p *Projection) Position() uint64 { return p.pending.position(p.projector.Position()) }

// Seen is the last sequence that is folded: View shows it, and Events tells it.
func (p *Projection) Seen() uint64 { return max(p.newest.last(), p.projector.Position()) }

// End is the last sequence of the stream.
func (p *Projection) End(ctx context.Context) (uint64, error) { return p.projector.LastSeq(ctx) }

// Lag is how many sequences the stream is ahead of the file.
func (p *Projection) Lag(ctx context.Context) (uint64, error) {
	last, err := p.End(ctx)
	if err != nil {
		return 0, err
	}
	_ = p.pending.catchUp(ctx, last, false) // it is shown either way
	if position := p.Position(); position < last {
		return last - position, nil
	}
	return 0, nil
}

// WaitFor returns when the sequence is in the file, or with the error of ctx.
func (p *Projection) WaitFor(ctx context.Context, seq uint64) error {
	defer p.pending.hurry()()
	if err := p.projector.WaitFor(ctx, seq); err != nil {
		return err
	}
	return p.pending.catchUp(ctx, seq, true)
}

// file is for reading. It has what is folded at this moment, unless it cannot be written.
func (p *Projection) file(ctx context.Context) *sql.DB {
	_ = p.pending.catchUp(ctx, math.MaxUint64, false) // the query says if it is ctx
	return p.readers
}

// Changed is closed when more is folded.
func (p *Projection) Changed() <-chan struct{} {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.changed
}

// View reads the state of one thread. The thread must not be kept or changed.
func (p *Projection) View(thread string, read func(*notebook.Thread)) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	read(p.notebook.Thread(thread))
}

// ViewAll reads the whole notebook, under the same terms as View.
func (p *Projection) ViewAll(read func(*notebook.Notebook)) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	read(p.notebook)
}
