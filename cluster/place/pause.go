package place

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/factstream/factstream/shared/notebook"
)

// PauseAll pauses every thread that is running and returns how many there were. why is a sentence that says to a reader of the thread on whose word.
func PauseAll(ctx context.Context, js jetstream.JetStream, why string, log zerolog.Logger) (paused int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	tail := notebook.NewTail(js, log)
	ended := make(chan error, 1)
	go func() { ended <- tail.Run(ctx) }()
	defer func() { cancel(); err = errors.Join(err, <-ended) }()
	if _, err := tail.CatchUp(ctx); err != nil {
		return 0, err
	}
	var running []string
	tail.ViewAll(func(n *notebook.Notebook) {
		for _, t := range n.Threads() {
			if t.Standing == notebook.Running {
				running = append(running, t.ID)
			}
		}
	})
	appender := notebook.NewAppender(js, tail, time.Now)
	for _, thread := range running {
		if _, err := appender.Append(ctx, thread, notebook.Pause{Why: why}, notebook.Origin{}); err != nil {
			return paused, fmt.Errorf("pause thread %s: %w", thread, err)
		}
		paused++
	}
	return paused, nil
}
