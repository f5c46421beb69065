// Package fault names the places at which a process can be killed, stopped, delayed or failed, so that tests prove what survives it. Without FACTSTREAM_FAULT
// in the environment a point does nothing but a look at an empty map.
//
//	FACTSTREAM_FAULT="researcher.saved=kill"            at the first hit
//	FACTSTREAM_FAULT="researcher.saved=kill@3"          at the third
//	FACTSTREAM_FAULT="judge.replied=delay:2s,…=fail"    several, with a comma between
//
// With --fault-points a service prints its points and ends.
//
// With FACTSTREAM_FAULT_LOG=FILE each fault that struck is appended to the file as "point action" before it does, so that a harness knows it was hit; one that
// is in the file already does not strike again, so that a process which was killed and started anew gets further than the last time.
package fault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Variables of the environment.
const (
	Variable    = "FACTSTREAM_FAULT"
	LogVariable = "FACTSTREAM_FAULT_LOG"
)

// ErrInjected is what a point returns that was told to fail.
var ErrInjected = errors.New("injected fault")

// Point is a named place in a step.
type Point struct {
	Name string // <service>.<place>
	What string // what has been done there and what has not
}

var (
	mu     sync.Mutex
	points = map[string]Point{}
	plan   = sync.OnceValues(func() (*faults, error) { return parse(os.Getenv(Variable), os.Getenv(LogVariable)) })
)

// New registers a point. Call it once for each, in a package variable.
func New(name, what string) Point {
	mu.Lock()
	defer mu.Unlock()
	if _, twice := points[name]; twice {
		panic("fault point " + name + " is registered twice")
	}
	p := Point{Name: name, What: what}
	points[name] = p
	return p
}

// Points lists what is registered in this process, by name.
func Points() []Point {
	mu.Lock()
	defer mu.Unlock()
	all := make([]Point, 0, len(points))
	for _, p := range points {
		all = append(all, p)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all
}

// Flag as an argument of a service asks for its points.
const Flag = "--fault-points"

// Asked says whether args ask for the points instead of the service.
func Asked(args []string) bool { return slices.Contains(args, Flag) }

// Print writes what is registered in this process, by name: one line for each, name and what it means with a tab between.
// ReadPoints reads it.
func Print(out io.Writer) error {
	for _, p := range Points() {
		if _, err := fmt.Fprintf(out, "%s\t%s\n", p.Name, p.What); err != nil {
			return err
		}
	}
	return nil
}

// ReadPoints reads what Print wrote. Its error names the line that is not of that form.
func ReadPoints(text string) ([]Point, error) {
	var all []Point
	for line := range strings.Lines(text) {
		name, what, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok || name == "" || what == "" {
			return nil, fmt.Errorf("%q is not a fault point and what it means", line)
		}
		all = append(all, Point{Name: name, What: what})
	}
	return all, nil
}

// Check gives the error of a FACTSTREAM_FAULT that cannot be read, for the start of a process.
func Check() error {
	_, err := plan()
	return err
}

// Hit is called where the point is. It returns ErrInjected, the cause of ctx when that ends during a delay, or nil; or it does not return.
func (p Point) Hit(ctx context.Context) error {
	f, err := plan()
	if err != nil || f == nil {
		return err
	}
	return f.hit(ctx, p.Name)
}

type faults struct {
	log string

	mu    sync.Mutex
	armed map[string]*armed
}

type armed struct {
	action string // kill, stop, fail or delay
	delay  time.Duration
	nth    int // strikes at this hit
	hits   int
}

func parse(text, log string) (*faults, error) {
	if text == "" {
		return nil, nil
	}
	f := &faults{log: log, armed: map[string]*armed{}}
	for _, part := range strings.Split(text, ",") {
		name, action, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%s: %q is not point=action", Variable, part)
		}
		a := &armed{nth: 1}
		action, nth, numbered := strings.Cut(action, "@")
		if numbered {
			n, err := strconv.Atoi(nth)
			if err != nil || n < 1 {
				return nil, fmt.Errorf("%s: %q does not end with a number from 1", Variable, part)
			}
			a.nth = n
		}
		action, delay, delayed := strings.Cut(action, ":")
		a.action = action
		switch action {
		case "kill", "stop", "fail":
		case "delay":
			d, err := time.ParseDuration(delay)
			if err != nil || !delayed {
				return nil, fmt.Errorf("%s: %q has no duration such as delay:2s", Variable, part)
			}
			a.delay = d
		default:
			return nil, fmt.Errorf("%s: action %q is not kill, stop, fail or delay:DURATION", Variable, action)
		}
		f.armed[name] = a
	}
	return f, f.disarmStruck()
}

func (f *faults) disarmStruck() error {
	if f.log == "" {
		return nil
	}
	struck, err := os.ReadFile(f.log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read which faults have struck: %w", err)
	}
	for _, line := range strings.Split(string(struck), "\n") {
		if name, _, ok := strings.Cut(line, " "); ok {
			delete(f.armed, name)
		}
	}
	return nil
}

func (f *faults) hit(ctx context.Context, name string) error {
	f.mu.Lock()
	a := f.armed[name]
	strikes := false
	if a != nil {
		a.hits++
		strikes = a.hits == a.nth
	}
	f.mu.Unlock()
	if !strikes {
		return nil
	}
	if err := f.note(name, a.action); err != nil {
		return err
	}
	switch a.action {
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way
	case "stop":
		return syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case "fail":
		return fmt.Errorf("%w at %s", ErrInjected, name)
	}
	timer := time.NewTimer(a.delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

func (f *faults) note(name, action string) error {
	if f.log == "" {
		return nil
	}
	file, err := os.OpenFile(f.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("note the fault %s: %w", name, err)
	}
	_, err = fmt.Fprintf(file, "%s %s\n", name, action)
	return errors.Join(err, file.Close())
}
