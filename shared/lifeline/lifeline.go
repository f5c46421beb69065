// Package lifeline ends a service together with whatever started it. A supervisor that is killed cannot tell its
// children to stop; but the pipe that it holds to each child's standard input closes with it, on every system.
package lifeline

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Variable in the environment tells a child that its standard input is the supervisor's lifeline. Without it standard
// input is left alone, so that a service can be started by hand.
const Variable = "FACTSTREAM_LIFELINE"

// Stdin is the value of Variable that says so.
const Stdin = "stdin"

// Grace is how long a process may take to stop after its supervisor is gone; then it is ended where it stands, so that
// a step which hangs cannot leave it behind. Everything is built to survive that.
const Grace = 5 * time.Second

// ErrParentGone is the cause of the context's end when the supervisor died.
var ErrParentGone = errors.New("the supervisor of this process is gone")

// Context ends on SIGINT, on SIGTERM, and when the supervisor is gone (its cause is then ErrParentGone, and the process
// exits with code 1 after Grace at the latest). A main function calls it once; stop releases the signals.
func Context(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	ctx, stopSignals := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	ctx, stopWatching := WatchParent(ctx)
	return ctx, func() {
		stopWatching()
		stopSignals()
	}
}

// WatchParent ends the returned context when the supervisor is gone; without a supervisor it only derives one.
func WatchParent(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	if os.Getenv(Variable) == Stdin {
		go watch(os.Stdin, cancel, func() {
			time.AfterFunc(Grace, func() { os.Exit(1) })
		})
	}
	return ctx, func() { cancel(context.Canceled) }
}

// watch reads until the pipe ends, which nothing but the end of its writer brings about.
func watch(pipe io.Reader, cancel context.CancelCauseFunc, gone func()) {
	_, _ = io.Copy(io.Discard, pipe)
	gone()
	cancel(ErrParentGone)
}
