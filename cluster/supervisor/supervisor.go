// Package supervisor keeps child processes running and takes them down in order. No child outlives it: on Linux the
// kernel kills them with it, and everywhere their standard input is a pipe that closes with it (package lifeline).
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Spec says what a child is.
type Spec struct {
	Name string
	Path string   // of the program
	Args []string // without the program's name
	Env  []string // the whole environment, NAME=value
	// Again is added to Env at every start but the first, so that a child can tell a crash from a fresh start.
	Again []string
	// Each, when it is not nil, is called before every start for what is added to Env after that.
	Each func() []string
	// Output takes what the child writes to standard output and error. Its Write must not fail: a child whose output is
	// not read any more is ended by the system.
	Output io.Writer
}

// Kind is what happened to a child.
type Kind string

// What can happen to a child.
const (
	Started    Kind = "started"     // PID is set
	StartError Kind = "start error" // Err says why; it is tried again after Wait
	Ended      Kind = "ended"       // unasked; Err says how; it is started again after Wait
	Stopped    Kind = "stopped"     // because it was asked to; Err says how
	Killed     Kind = "killed"      // it did not stop within the grace, or there was no time; Stopped follows
)

// Event tells what happened to the child called Name.
type Event struct {
	Kind Kind
	Name string
	PID  int
	Err  error
	Wait time.Duration
}

// Options are the times, and who is told. Zero values mean the defaults.
type Options struct {
	// Backoff is the wait before a child is started again; it doubles from one start to the next up to MaxBackoff, and
	// begins anew after the child ran for Healthy.
	Backoff, MaxBackoff, Healthy time.Duration
	// Grace is how long a child may take to stop before it is killed.
	Grace time.Duration
	// Hurry, when it closes, kills at once whatever is still stopping.
	Hurry <-chan struct{}
	// Tell is called with every event, one at a time.
	Tell func(Event)
}

// The defaults of Options.
const (
	DefaultBackoff    = 200 * time.Millisecond
	DefaultMaxBackoff = 10 * time.Second
	DefaultHealthy    = 30 * time.Second
	DefaultGrace      = 10 * time.Second
)

func (o Options) withDefaults() Options {
	for field, fallback := range map[*time.Duration]time.Duration{
		&o.Backoff: DefaultBackoff, &o.MaxBackoff: DefaultMaxBackoff, &o.Healthy: DefaultHealthy, &o.Grace: DefaultGrace,
	} {
		if *field <= 0 {
			*field = fallback
		}
	}
	if o.Tell == nil {
		o.Tell = func(Event) {}
	}
	return o
}

// Run keeps the children of all groups running until ctx ends. It then stops group after group, the last one first: the
// children of one group together, by SIGTERM, each with the grace; the next group only when all of them are gone. When
// Run returns no child is left.
func Run(ctx context.Context, groups [][]Spec, opts Options) {
	opts = opts.withDefaults()
	var telling sync.Mutex
	tell := opts.Tell
	opts.Tell = func(e Event) {
		telling.Lock()
		defer telling.Unlock()
		tell(e)
	}
	spawn := newSpawner()
	defer spawn.close()

	type running struct {
		stop context.CancelFunc
		done sync.WaitGroup
	}
	started := make([]*running, len(groups))
	for i, group := range groups {
		// Not derived from ctx: the groups end one after the other.
		groupCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
		started[i] = &running{stop: stop}
		for _, spec := range group {
			started[i].done.Go(func() { keep(groupCtx, spec, spawn, opts) })
		}
	}
	<-ctx.Done()
	for i := len(started) - 1; i >= 0; i-- {
		started[i].stop()
		started[i].done.Wait()
	}
}

// keep starts the child again and again until ctx ends, and stops it then.
func keep(ctx context.Context, spec Spec, spawn *spawner, opts Options) {
	wait := opts.Backoff
	for first := true; ; first = false {
		if ctx.Err() != nil {
			return
		}
		began := time.Now()
		kind, pid, err := live(ctx, spec, first, spawn, opts)
		if kind == Stopped {
			opts.Tell(Event{Kind: Stopped, Name: spec.Name, PID: pid, Err: err})
			return
		}
		if time.Since(began) >= opts.Healthy {
			wait = opts.Backoff
		}
		opts.Tell(Event{Kind: kind, Name: spec.Name, PID: pid, Err: err, Wait: wait})
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = min(2*wait, opts.MaxBackoff)
	}
}

// live is one life of the child: from its start to its end, of itself or because ctx ended. It returns StartError, Ended
// or Stopped.
func live(ctx context.Context, spec Spec, first bool, spawn *spawner, opts Options) (kind Kind, pid int, err error) {
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Env = spec.Env
	if !first {
		cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], spec.Again...)
	}
	if spec.Each != nil {
		cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], spec.Each()...)
	}
	cmd.Stdout, cmd.Stderr = spec.Output, spec.Output
	cmd.WaitDelay = time.Second // for output that a process of the child's own still holds open
	cmd.SysProcAttr = attributes()
	lifeline, err := cmd.StdinPipe() // its other end closes when this process ends, however that happens
	if err != nil {
		return StartError, 0, err
	}
	defer lifeline.Close() //nolint:errcheck // Wait closes it too
	if err := spawn.start(cmd); err != nil {
		return StartError, 0, err
	}
	pid = cmd.Process.Pid
	opts.Tell(Event{Kind: Started, Name: spec.Name, PID: pid})

	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return Ended, pid, describe(err)
	case <-ctx.Done():
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		_ = cmd.Process.Kill()
	}
	grace := time.NewTimer(opts.Grace)
	defer grace.Stop()
	select {
	case err := <-ended:
		return Stopped, pid, describe(err)
	case <-grace.C:
	case <-opts.Hurry:
	}
	_ = cmd.Process.Kill()
	opts.Tell(Event{Kind: Killed, Name: spec.Name, PID: pid})
	return Stopped, pid, describe(<-ended)
}

// describe makes an end with code 0 readable too: a service has no reason to end by itself.
func describe(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		return fmt.Errorf("exit status 0, but its output stayed open: %w", err)
	}
	return err
}
