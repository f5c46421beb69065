package notebook

import (
	"context"
	"errors"
	"fmt"

	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/event"
)

// ErrNoAnswer: what a run brought cannot be read, for good: the run has not completed, or its event is not in the stream any more. When that is since its
// thread was deleted, the tail has seen so by then.
var ErrNoAnswer = errors.New("there is no answer of the run to read")

// Completed reads again what a run brought: its run.completed event, of which the state keeps a Completion only. While the bus is away it asks again until
// ctx ends. It fails with ErrNoAnswer, or with the error of ctx.
func (t *Tail) Completed(ctx context.Context, thread, run string) (event.RunCompleted, error) {
	var seq uint64
	t.View(thread, func(th *Thread) {
		if r := th.Runs[run]; r != nil && r.Completed != nil {
			seq = r.EndSeq
		}
	})
	if seq == 0 {
		return event.RunCompleted{}, fmt.Errorf("%w: run %s has not completed", ErrNoAnswer, run)
	}
	for try := 0; ; try++ {
		m, err := projector.Get(ctx, t.js, topology.Notebook, seq)
		switch {
		case err == nil:
			return completedOf(m)
		case errors.Is(err, projector.ErrNoMessage):
			if _, err := t.CatchUp(ctx); err != nil {
				return event.RunCompleted{}, err
			}
			return event.RunCompleted{}, fmt.Errorf("%w: %w", ErrNoAnswer, err)
		}
		if pauseErr := pause(ctx, try, false); pauseErr != nil {
			return event.RunCompleted{}, errors.Join(pauseErr, err)
		}
	}
}

func completedOf(m Message) (event.RunCompleted, error) {
	e, err := event.Parse(m.Subject, m.Data)
	if err != nil {
		return event.RunCompleted{}, fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	completed, ok := e.Data.(event.RunCompleted)
	if !ok {
		return event.RunCompleted{}, fmt.Errorf("%w: message %d is %s", ErrNoAnswer, m.Seq, e.Type)
	}
	return completed, nil
}
