package brief

import (
	"context"
	"time"

	"github.com/factstream/factstream/shared/engine"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/telemetry"
)

// ahead does steps of a closing with a quick engine: the next is made while the outcome of one is being appended. What it could not do
// is left to be done one by one, where a failure is named: everything if the engine is a slow one.
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
	err = b.engines.Do(ctx, step, func(work context.Context, m *engine.Engine) error {
		if !m.Quick() {
			return nil
		}
		now := b.produce(work, c, left[0], m)
		for {
			next := make(chan made, 1)
			if len(left) > 1 {
				stage := left[1]
				go func() { next <- b.produce(work, c, stage, m) }()
			} else {
				close(next)
			}
			err := b.record(ctx, c, now, m)
			now = <-next
			if err != nil {
				return err
			}
			if left = left[1:]; len(left) == 0 {
				return nil
			}
		}
	})
	if err != nil && ctx.Err() == nil {
		b.Log.Debug().Err(err).Str("thread", c.thread).Strs("stages", left).Msg("going on one by one")
		err = nil
	}
	return left, err
}

// made is the outcome of a step before it is appended, or why there is none.
type made struct {
	stage   string
	command notebook.Command
	took    time.Duration
	err     error
}

func (b *Briefer) produce(ctx context.Context, c closing, stage string, m *engine.Engine) made {
	out := made{stage: stage, err: errUnknownStep}
	if work, known := steps[stage]; known {
		began := b.Now()
		out.command, out.err = work(b, ctx, c, m.As(stage))
		out.took = b.Now().Sub(began)
	}
	return out
}

// record appends an outcome.
func (b *Briefer) record(ctx context.Context, c closing, out made, m *engine.Engine) error {
	if out.err != nil {
		return out.err
	}
	if err := m.Recorded(); err != nil {
		return err
	}
	if err := pointMade.Hit(ctx); err != nil {
		return err
	}
	if err := b.append(ctx, c, out.stage, out.command); err != nil {
		return err
	}
	b.Metrics.Step(out.stage, telemetry.OutcomeDone, out.took)
	return pointAppended.Hit(ctx)
}
