// Package chaos runs the notebook's real processes on one machine and breaks them: it ends and stops them, arms their fault
// points, takes the bus and the disk away, and has a stand-in for the provider answer badly, all by a script that a seed makes.
// Afterwards it audits what is left.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/factstream/factstream/cluster/supervisor"
	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/shared/fault"
	"github.com/factstream/factstream/shared/lifeline"
)

// Bus is the name of the process that holds the bus; Gateway that of the way in.
const (
	Bus     = "bus"
	Gateway = "gateway"
)

// Layout says which processes a field has.
type Layout struct {
	Bin string // directory of the programs
	Dir string // data and logs; made when missing
	// Data is the data directory; below Dir when empty.
	Data string
	// Env is what all processes are told beside where they are; nothing else of this process's environment counts.
	Env []string
	// Workers is how many processes there are of each program that is named; 1 of those that are not.
	Workers map[string]int
}

// Field is a running notebook, each process of which can be broken by itself. Whatever ends is started again.
type Field struct {
	URL     string // of the gateway, without the API's base
	JS      jetstream.JetStream
	NC      *nats.Conn
	BusURL  string // with user and password
	DataDir string
	Names   []string // of all processes: "bus", "researcher", "researcher-2", ...

	layout Layout
	logs   []*os.File

	mu        sync.Mutex
	processes map[string]*process
	changed   chan struct{} // closed and replaced at every change
	unasked   []string      // how processes ended that nobody had ended

	services              [][]supervisor.Spec
	stopServices, stopBus func()
}

type process struct {
	pid     int // 0 while it is down
	starts  int
	stopped bool // by SIGSTOP
	ended   bool // this harness has ended it
	faults  string
	log     string
}

// programs are those of the services, the gateway last.
var programs = []string{"researcher", "distiller", "judge", "briefer", Gateway}

// quick are the times of the supervisor: what is ended all the time must not wait for its next start.
var quick = supervisor.Options{Backoff: 50 * time.Millisecond, MaxBackoff: 400 * time.Millisecond, Healthy: 2 * time.Second}

// Open starts all processes and waits until the gateway is ready. Close stops them.
func Open(ctx context.Context, layout Layout) (_ *Field, err error) {
	f := &Field{layout: layout, DataDir: layout.Data, processes: map[string]*process{}, changed: make(chan struct{})}
	if f.DataDir == "" {
		f.DataDir = filepath.Join(layout.Dir, "data")
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	for _, dir := range []string{f.DataDir, f.LogDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return f, err
		}
	}
	busPort, err := freePort()
	if err != nil {
		return f, err
	}
	gatewayPort, err := freePort()
	if err != nil {
		return f, err
	}
	env := append(append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + layout.Dir, "TMPDIR=" + os.TempDir()}, layout.Env...),
		"FACTSTREAM_DATA="+f.DataDir, "FACTSTREAM_HTTP=127.0.0.1:"+gatewayPort, "NATS_PORT="+busPort, lifeline.Variable+"="+lifeline.Stdin)
	f.URL = "http://127.0.0.1:" + gatewayPort
	bus, err := f.spec(Bus, "factstream", env, "bus")
	if err != nil {
		return f, err
	}
	f.stopBus = f.keep([][]supervisor.Spec{{bus}})
	if err := f.dial(ctx, "127.0.0.1:"+busPort); err != nil {
		return f, err
	}
	groups := make([][]supervisor.Spec, 2)
	for _, program := range programs {
		for i := range max(layout.Workers[program], 1) {
			name, group := program, 0
			if i > 0 {
				name += "-" + strconv.Itoa(i+1)
			}
			if program == Gateway {
				group = 1
			}
			spec, err := f.spec(name, program, append(env[:len(env):len(env)], "NATS_URL="+f.BusURL))
			if err != nil {
				return f, err
			}
			groups[group] = append(groups[group], spec)
		}
	}
	f.services = groups
	f.StartServices()
	return f, f.Ready(ctx)
}

// LogDir is where each process's output is, <name>.log.
func (f *Field) LogDir() string { return filepath.Join(f.layout.Dir, "logs") }

func (f *Field) spec(name, program string, env []string, args ...string) (supervisor.Spec, error) {
	log, err := os.OpenFile(filepath.Join(f.LogDir(), name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return supervisor.Spec{}, err
	}
	f.logs = append(f.logs, log)
	f.Names = append(f.Names, name)
	p := &process{}
	f.mu.Lock()
	f.processes[name] = p
	f.mu.Unlock()
	return supervisor.Spec{Name: name, Path: filepath.Join(f.layout.Bin, program), Args: args, Env: env, Output: log, Each: func() []string {
		f.mu.Lock()
		defer f.mu.Unlock()
		return []string{fault.Variable + "=" + p.faults, fault.LogVariable + "=" + p.log}
	}}, nil
}

// keep runs a supervisor; the function that it returns stops it and waits.
func (f *Field) keep(groups [][]supervisor.Spec) func() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	times := quick
	times.Tell = f.tell
	go func() {
		defer close(done)
		supervisor.Run(ctx, groups, times)
	}()
	return func() {
		cancel()
		<-done
	}
}

func (f *Field) tell(e supervisor.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.processes[e.Name]
	switch e.Kind {
	case supervisor.Started:
		p.pid, p.stopped, p.ended = e.PID, false, false
		p.starts++
	case supervisor.Ended:
		killed := e.Err != nil && strings.Contains(e.Err.Error(), "killed") // by this harness, or by a fault point
		if !p.ended && !killed {
			f.unasked = append(f.unasked, fmt.Sprintf("%s: %v", e.Name, e.Err))
		}
		p.pid = 0
	default:
		p.pid = 0
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// dial connects to the bus when it has made its credentials and listens.
func (f *Field) dial(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	file := embedded.CredentialsFile(f.DataDir)
	var user, password string
	if err := poll(ctx, "the bus makes its credentials", func() bool {
		var err error
		user, password, err = connect.ReadCredentials(file)
		return err == nil
	}); err != nil {
		return err
	}
	u := url.URL{Scheme: "nats", Host: address, User: url.UserPassword(user, password)}
	f.BusURL = u.String()
	var err error
	f.NC, f.JS, err = connect.Dial(ctx, connect.Config{URL: f.BusURL, Name: "chaos", Logger: zerolog.Nop()})
	return err
}

// startWithin is how long a start may take on a machine that is busy.
const startWithin = 60 * time.Second

// Ready waits until the gateway says that it is ready.
func (f *Field) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	return poll(ctx, "the gateway is ready", func() bool { return f.ready(ctx) })
}

func (f *Field) ready(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close() //nolint:errcheck // only read
	_, err = io.Copy(io.Discard, response.Body)
	return err == nil && response.StatusCode == http.StatusOK
}

// Arm sets the fault points of a process from its next start on; log notes which have struck. Empty faults disarm it.
func (f *Field) Arm(name, faults, log string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.processes[name].faults, f.processes[name].log = faults, log
}

// Kill ends a process as kill -9 does. It is false when the process is down already.
func (f *Field) Kill(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.processes[name]
	if p.pid == 0 || syscall.Kill(p.pid, syscall.SIGKILL) != nil {
		return false
	}
	p.ended, p.stopped = true, false
	return true
}

// Stop holds a process as SIGSTOP does, Continue lets it go on. They are false when it is down, or not in that state.
func (f *Field) Stop(name string) bool     { return f.hold(name, true) }
func (f *Field) Continue(name string) bool { return f.hold(name, false) }

func (f *Field) hold(name string, stop bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, signal := f.processes[name], syscall.SIGCONT
	if stop {
		signal = syscall.SIGSTOP
	}
	if p.pid == 0 || p.stopped == stop || syscall.Kill(p.pid, signal) != nil {
		return false
	}
	p.stopped = stop
	return true
}

// Away ends a process again and again until back is called.
func (f *Field) Away(name string) (back func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			f.Kill(name)
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond): // it takes longer than that to come up
			}
		}
	}()
	return func() {
		close(stop)
		<-done
	}
}

// PID is the process id of a process, 0 while it is down.
func (f *Field) PID(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.processes[name].pid
}

// Restart ends processes as kill -9 does and waits until each runs again.
func (f *Field) Restart(ctx context.Context, names ...string) error {
	before := map[string]int{}
	for _, name := range names {
		before[name] = f.Starts(name)
		f.Kill(name)
	}
	for _, name := range names {
		if err := f.await(ctx, name+" is started again", func() bool { return f.processes[name].starts > before[name] && f.processes[name].pid != 0 }); err != nil {
			return err
		}
	}
	return nil
}

// Starts is how often a process was started.
func (f *Field) Starts(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.processes[name].starts
}

// Unasked tells how processes ended that neither this harness nor a fault point had ended.
func (f *Field) Unasked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.unasked...)
}

// await waits for a condition of the processes; it is asked with the lock held.
func (f *Field) await(ctx context.Context, what string, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for {
		f.mu.Lock()
		ok, changed := holds(), f.changed
		f.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("it does not come about that %s: %w", what, context.Cause(ctx))
		}
	}
}

// StartServices starts the services when they are stopped; it does not wait for them.
func (f *Field) StartServices() {
	if f.stopServices == nil {
		f.stopServices = f.keep(f.services)
	}
}

// StopServices stops the services and leaves the bus; for looking at what is left.
func (f *Field) StopServices() {
	if f.stopServices == nil {
		return
	}
	for _, name := range f.Names {
		f.Continue(name) // who is held cannot stop
	}
	f.stopServices()
	f.stopServices = nil
}

// Close stops everything.
func (f *Field) Close() error {
	f.StopServices()
	if f.NC != nil {
		f.NC.Close()
	}
	if f.stopBus != nil {
		f.Continue(Bus)
		f.stopBus()
		f.stopBus = nil
	}
	var faults []error
	for _, log := range f.logs {
		faults = append(faults, log.Close())
	}
	f.logs = nil
	return errors.Join(faults...)
}

// poll asks until a condition holds that nothing tells of.
func poll(ctx context.Context, what string, holds func() bool) error {
	for !holds() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("it does not come about that %s: %w", what, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// freePort is a port of this machine that nothing listens on.
func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close() //nolint:errcheck // it was only tried
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, err
}
