package brief

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/factstream/factstream/jetstream/batch"
	"github.com/factstream/factstream/shared/engine"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/telemetry"
)

// ahead does steps of a closing with a quick engine: the next is made while the outcome of one is being appended. What it gives back is
// left to be done one by one, where a failure is named: everything if the engine is a slow one or not there, and what comes from the
// first step on that failed. The error is one for which the message comes again.
func (b *Briefer) ahead(ctx context.Context, c closing, remaining []string, delivered int) (left []string, err error) {
	slow := len(remaining) < 2
	b.Tail.View(c.thread, func(t *notebook.Thread) { slow = slow || t.Settings.Engine == model.EngineOllama })
	if slow {
		return remaining, nil
	}
	left = remaining
	step := engine.Step{
		Thread: c.thread, Entity: c.entity(), Stage: remaining[0], Trigger: c.event, Delivered: delivered,
		Wanted: func(t *notebook.Thread) bool { _, current := c.of(t); return current != nil },
	}
	var failed error
	err = b.engines.Do(ctx, step, func(work context.Context, m *engine.Engine) error {
		if !m.Quick() {
			return nil
		}
		now := b.produce(work, c, left[0], m)
		for now.err == nil {
			next := make(chan made, 1)
			if len(left) > 1 {
				stage := left[1]
				go func() { next <- b.produce(work, c, stage, m) }()
			} else {
				close(next)
			}
			if failed = m.Recorded(); failed != nil {
				<-next
				return failed
			}
			if !b.has(c.thread, m.Info.Engine) { // a person has set another since: the rest is that one's
				<-next
				return nil
			}
			failed = b.record(ctx, c, now)
			now = <-next // whatever became of the append: nothing of a step goes on after it
			if errors.Is(failed, batch.ErrTooLarge) {
				failed = nil
				return nil
			}
			if failed != nil {
				return failed
			}
			if left = left[1:]; len(left) == 0 {
				return nil
			}
		}
		b.Log.Debug().Err(now.err).Str("thread", c.thread).Str("stage", now.stage).Msg("a step failed; going on one by one")
		return nil
	})
	if failed != nil || ctx.Err() != nil {
		return left, err
	}
	return left, nil // an engine that is not there is met again, and said, by each step
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

// record appends the outcome of a step.
func (b *Briefer) record(ctx context.Context, c closing, out made) error {
	if err := pointMade.Hit(ctx); err != nil {
		return err
	}
	if err := b.append(ctx, c, out.stage, out.command); err != nil {
		return err
	}
	b.Metrics.Step(out.stage, telemetry.OutcomeDone, b.Now().Sub(out.began))
	return pointAppended.Hit(ctx)
}
