package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/factstream/factstream/cluster/supervisor"
	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/shared/lifeline"
)

// patience is how long anything that is waited for may take, on a machine that is much slower and busy.
const patience = 2 * time.Minute

// process is one of the programs as it is shipped. It does not outlive this process.
type process struct {
	pid    int
	began  time.Time
	output *output
	ended  chan error // how it ended, unasked
	stop   func()     // stops it and waits until it is gone
}

// spawn starts a program and returns when it has a process id.
func (r *run) spawn(ctx context.Context, program string, env []string, args ...string) (*process, error) {
	p := &process{output: &output{}, ended: make(chan error, 1)}
	life, cancel := context.WithCancel(context.Background())
	gone, started, failed := make(chan struct{}), make(chan int, 1), make(chan error, 1)
	p.stop = sync.OnceFunc(func() {
		cancel()
		<-gone
	})
	tell := func(e supervisor.Event) {
		switch e.Kind {
		case supervisor.Started:
			started <- e.PID
		case supervisor.StartError:
			failed <- e.Err
			cancel()
		case supervisor.Ended:
			p.ended <- e.Err
			cancel() // a second life would be no measurement
		}
	}
	spec := supervisor.Spec{Name: program, Path: filepath.Join(r.bin, program), Args: args, Env: r.environment(env), Output: p.output}
	p.began = time.Now()
	go func() {
		defer close(gone)
		supervisor.Run(life, [][]supervisor.Spec{{spec}}, supervisor.Options{Backoff: time.Hour, Grace: patience, Tell: tell})
	}()
	select {
	case p.pid = <-started:
		return p, nil
	case err := <-failed:
		p.stop()
		return nil, fmt.Errorf("start %s: %w", program, err)
	case <-ctx.Done():
		p.stop()
		return nil, context.Cause(ctx)
	}
}

// environment is all that a program is told: nothing of this process's own configuration counts, and nothing outside the machine is called.
func (r *run) environment(more []string) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "TMPDIR=" + r.dir, "OFFLINE=1", "MODEL_ENGINE=extractive", lifeline.Variable + "=" + lifeline.Stdin,
	}, more...)
}

var (
	errEnded = errors.New("the program ended by itself")
	errSlow  = errors.New("it takes too long")
)

// until asks every few milliseconds whether a condition holds that nothing tells of, while the process lives.
func (p *process) until(ctx context.Context, what string, every time.Duration, holds func(context.Context) bool) error {
	return p.within(ctx, patience, what, every, holds)
}

// within is until with a patience of its own.
func (p *process) within(ctx context.Context, patience time.Duration, what string, every time.Duration, holds func(context.Context) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errSlow)
	defer cancel()
	for !holds(ctx) {
		select {
		case err := <-p.ended:
			return fmt.Errorf("until %s: %w (%w)\n%s", what, errEnded, err, p.output)
		case <-ctx.Done():
			return fmt.Errorf("until %s: %w\n%s", what, context.Cause(ctx), p.output)
		case <-time.After(every):
		}
	}
	return nil
}

// freePorts are ports of this machine that nothing listens on.
func freePorts(n int) ([]string, error) {
	ports, err := embedded.AnyPorts(embedded.DefaultHost, n)
	texts := make([]string, len(ports))
	for i, port := range ports {
		texts[i] = strconv.Itoa(port)
	}
	return texts, err
}

// output is the end of what a process has written.
type output struct {
	mu   sync.Mutex
	text []byte
}

const outputKept = 16 << 10

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	if over := len(o.text) - outputKept; over > 0 {
		o.text = bytes.Clone(o.text[over:])
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.TrimSpace(string(o.text))
}
