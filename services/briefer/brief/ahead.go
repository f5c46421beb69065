package brief

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/factstream/factstream/jetstream/batch"
	"github.com/factstream/factstream/shared/engine"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/telemetry"
)

// ahead does the steps of a closing with a quick engine: the next is made while the outcome of one is being appended, and each
// outcome is sent before it is known whether that of the one before is stored, if the server can tell (notebook.Chain). What it gives
// back is left to be done one by one, where a failure is named: everything if the engine is a slow one or not there, and what comes
// from the first step on that failed or was not stored. The error is one for which the message comes again.
func (b *Briefer) ahead(ctx context.Context, c closing, remaining []string, delivered int, began time.Time) (left []string, settled bool, err error) {
	slow := len(remaining) < 2
	b.Tail.View(c.thread, func(t *notebook.Thread) { slow = slow || t.Settings.Engine == model.EngineOllama })
	if slow {
		return remaining, false, nil
	}
	w := &sending{b: b, c: c, chain: b.Appender.Chain(c.thread), left: remaining, began: began}
	step := engine.Step{
		Thread: c.thread, Entity: c.entity(), Stage: remaining[0], Trigger: c.event, Delivered: delivered,
		Wanted: func(t *notebook.Thread) bool { _, current := c.of(t); return current != nil },
	}
	var failed error
	err = b.engines.Do(ctx, step, func(work context.Context, m *engine.Engine) error {
		if !m.Quick() {
			return nil
		}
		failed = b.writeAhead(ctx, work, w, remaining, m)
		return failed
	})
	if failed != nil || ctx.Err() != nil {
		return w.left, w.settled, err
	}
	return w.left, w.settled, nil // an engine that is not there is met again, and said, by each step
}

// writeAhead makes the outcomes of the steps and appends them, up to the first that fails.
func (b *Briefer) writeAhead(ctx, work context.Context, w *sending, stages []string, m *engine.Engine) error {
	now := b.produce(work, w.c, stages[0], m)
	for i := 1; now.err == nil; i++ {
		next := make(chan made, 1)
		if i < len(stages) {
			go func() { next <- b.produce(work, w.c, stages[i], m) }()
		} else {
			close(next)
		}
		err := m.Recorded()
		if err == nil && !b.has(w.c.thread, m.Info.Engine) { // a person has set another since: the rest is that one's
			err = errOtherEngine
		}
		if err == nil {
			err = w.append(ctx, now)
		}
		now = <-next // whatever became of the append: nothing of a step goes on after it
		if err == nil && i == len(stages) {
			return w.settle(ctx)
		}
		if err != nil {
			if errors.Is(err, errOtherEngine) || errors.Is(err, batch.ErrTooLarge) || errors.Is(err, errNotStored) {
				err = nil
			}
			return errors.Join(err, w.flush(ctx))
		}
	}
	b.Log.Debug().Err(now.err).Str("thread", w.c.thread).Str("stage", now.stage).Msg("a step failed; going on one by one")
	return w.flush(ctx)
}

var (
	errOtherEngine = errors.New("the thread has another engine now")
	errNotStored   = errors.New("an outcome that was sent is not stored")
)

// sending is what was sent of a closing, and what is left of it.
type sending struct {
	b       *Briefer
	c       closing
	chain   *notebook.Chain
	sent    []made // in the chain, not known to be stored
	left    []string
	began   time.Time
	settled bool
}

// append sends the outcome of a step, or, where the chain takes no more, waits for what was sent and then appends it. The error is
// errNotStored when something that was sent is not.
func (w *sending) append(ctx context.Context, out made) error {
	if err := pointMade.Hit(ctx); err != nil {
		return err
	}
	err := w.chain.Append(ctx, out.command, w.c.origin(out.stage))
	if err == nil {
		w.sent = append(w.sent, out)
		return nil
	}
	if err := w.stored(ctx); err != nil {
		return err
	}
	if err := w.b.append(ctx, w.c, out.stage, out.command); err != nil {
		return err
	}
	return w.done(ctx, out)
}

// settle sends the end of the closing behind its last outcome. Without a chain it is left to be done.
func (w *sending) settle(ctx context.Context) error {
	if len(w.sent) > 0 && w.chain.Append(ctx, notebook.Settle{ClosingStep: w.c.step()}, w.c.origin(event.StageClose)) == nil {
		w.sent = append(w.sent, made{stage: event.StageClose, began: w.began})
	}
	return w.flush(ctx)
}

// flush waits for what was sent. That something of it is not stored is no error here: it stays among what is left.
func (w *sending) flush(ctx context.Context) error {
	if err := w.stored(ctx); !errors.Is(err, errNotStored) {
		return err
	}
	return nil
}

// stored waits for what was sent. What is not stored stays among what is left.
func (w *sending) stored(ctx context.Context) error {
	n, err := w.chain.Stored(ctx)
	stored, rest := w.sent[:min(n, len(w.sent))], w.sent[min(n, len(w.sent)):]
	w.sent = nil
	for _, out := range stored {
		if err := w.done(ctx, out); err != nil {
			return err
		}
	}
	if err == nil && len(rest) > 0 {
		return errNotStored
	}
	return err
}

// done counts an outcome that is appended.
func (w *sending) done(ctx context.Context, out made) error {
	w.b.Metrics.Step(out.stage, telemetry.OutcomeDone, w.b.Now().Sub(out.began))
	if out.stage == event.StageClose {
		w.settled = true
		return pointSettled.Hit(ctx)
	}
	w.left = w.left[1:]
	return pointAppended.Hit(ctx)
}

// has says whether a thread is worked with an engine.
func (b *Briefer) has(thread, engine string) (same bool) {
	b.Tail.View(thread, func(t *notebook.Thread) { same = t.Settings.Engine == engine })
	return same
}

// made is the outcome of a step before it is appended, or why there is none.
type made struct {
	stage   string
	began   time.Time
	command notebook.Command
	err     error
}

// produce makes the outcome of a step. A panic is an error: it may be another goroutine's than the worker's, which would catch it.
func (b *Briefer) produce(ctx context.Context, c closing, stage string, m *engine.Engine) (out made) {
	out = made{stage: stage, began: b.Now()}
	defer func() {
		if p := recover(); p != nil {
			out.err = fmt.Errorf("the step %s panicked: %v\n%s", stage, p, debug.Stack())
		}
	}()
	work := b.steps[stage]
	if work == nil {
		out.err = fmt.Errorf("%w: %s", errUnknownStep, stage)
		return out
	}
	m = m.As(stage)
	m.Say(ctx, "")
	out.command, out.err = work(ctx, c, m)
	return out
}
