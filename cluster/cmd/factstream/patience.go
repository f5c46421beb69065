package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/factstream/factstream/jetstream/topology"
)

const (
	// lookFor is how long a command that only reads tries again when the bus does not answer: servers that fall are there again, and have
	// elected their leaders, long before.
	lookFor   = time.Minute
	lookPause = time.Second
)

// patiently repeats look, which changes nothing, while the bus does not answer for a moment, as when one of three servers falls; within bounds
// the time after which no try begins any more.
func patiently(ctx context.Context, within, pause time.Duration, stderr io.Writer, look func() error) error {
	began := time.Now()
	for {
		err := look()
		if err == nil || ctx.Err() != nil || !topology.Transient(err) {
			return err
		}
		if time.Since(began) > within {
			return fmt.Errorf("the bus does not answer, are more than half of its servers there? %w", err)
		}
		fmt.Fprintln(stderr, "The bus did not answer, beginning anew.")
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
