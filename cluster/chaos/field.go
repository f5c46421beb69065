// Package chaos runs the notebook's real processes on one machine and breaks them: it ends and stops them, arms their fault
// points, takes the bus and the disk away, and has a stand-in for the provider answer badly, all by a script that a seed makes.
// Afterwards it audits what is left.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/factstream/factstream/cluster/supervisor"
	"github.com/factstream/factstream/cluster/up"
	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/fault"
	"github.com/factstream/factstream/shared/lifeline"
)

// Bus is the name of the process that holds the bus when there is one; Gateway that of the way in.
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
	// Workers is how many processes there are of each program that is named; 1 of those that are not. Each gateway has a
	// directory and a port of its own; all else share the data directory.
	Workers map[string]int
	// Cluster is the bus as three servers, bus-1 to bus-3, each with a process and a store of its own.
	Cluster bool
}

// Field is a running notebook, each process of which can be broken by itself. Whatever ends is started again.
type Field struct {
	URL     string   // of the first gateway, without the API's base
	URLs    []string // of all gateways
	JS      jetstream.JetStream
	NC      *nats.Conn
	BusURL  string // with user and password
	DataDir string
	Names   []string // of all processes: "bus", "researcher", "researcher-2", ...
	Servers []string // those of them that are the bus

	layout Layout
	logs   []*os.File

	mu        sync.Mutex
	processes map[string]*process
	changed   chan struct{} // closed and replaced at every change
	unasked   []unasked
	faults    []*Fault // what was done to processes, in the order of its beginning

	services              [][]supervisor.Spec
	stopServices, stopBus func()
}

type process struct {
	pid     int // 0 while it is down
	starts  int
	stopped bool // by SIGSTOP
	ended   bool // this harness has ended it
	away    bool // it ends it again and again
	faults  string
	log     string // of the fault points, which other processes may share
	since   time.Time
	noted   int      // hits in the log before it started
	lasting []*Fault // those whose end has not come
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
	env := append(append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + layout.Dir, "TMPDIR=" + os.TempDir()}, layout.Env...),
		"FACTSTREAM_DATA="+f.DataDir, lifeline.Variable+"="+lifeline.Stdin)
	if layout.Cluster {
		env = append(env, "NATS_REPLICAS="+strconv.Itoa(embedded.Servers))
	}
	if err := f.openBus(ctx, env); err != nil {
		return f, err
	}
	return f, f.openServices(ctx, env)
}

// openBus starts the bus and connects to it.
func (f *Field) openBus(ctx context.Context, env []string) error {
	ports, err := embedded.AnyPorts(embedded.DefaultHost, 2*embedded.Servers)
	if err != nil {
		return err
	}
	var specs []supervisor.Spec
	server := func(name string, env []string, args ...string) error {
		spec, err := f.spec(name, "factstream", env, args...)
		specs, f.Servers = append(specs, spec), append(f.Servers, name)
		return err
	}
	if f.layout.Cluster {
		limit, err := embedded.PrepareCluster(f.DataDir)
		if err != nil {
			return err
		}
		for n := range embedded.Servers {
			m := up.Member{Number: n + 1, Port: ports[n], Routes: [embedded.Servers]int(ports[embedded.Servers:]), MaxStore: limit}
			if err := server(m.Name(), env, m.Args()...); err != nil {
				return err
			}
		}
	} else if err := server(Bus, append(env[:len(env):len(env)], "NATS_PORT="+strconv.Itoa(ports[0])), "bus"); err != nil {
		return err
	}
	f.stopBus = f.keep([][]supervisor.Spec{specs})
	var addresses []string
	for n := range specs {
		addresses = append(addresses, "127.0.0.1:"+strconv.Itoa(ports[n]))
	}
	if err := f.dial(ctx, addresses); err != nil || !f.layout.Cluster {
		return err
	}
	// As the supervisor does before it starts the services; a single bus has done it itself.
	cfg, err := config.Load(nil, func(name string) string { return valueOf(env, name) }, "chaos")
	if err != nil {
		return err
	}
	declaring, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	return topology.Declare(declaring, f.JS, topology.Options{Replicas: cfg.NATS.Replicas, AckWait: cfg.AckWait, LeaseTTL: cfg.LeaseTTL})
}

// valueOf is the value of a variable in an environment, the last one that it is given.
func valueOf(env []string, name string) (value string) {
	for _, pair := range env {
		if text, is := strings.CutPrefix(pair, name+"="); is {
			value = text
		}
	}
	return value
}

// openServices starts the services and waits until the gateways are ready.
func (f *Field) openServices(ctx context.Context, env []string) error {
	ports, err := embedded.AnyPorts(embedded.DefaultHost, max(f.layout.Workers[Gateway], 1))
	if err != nil {
		return err
	}
	groups := make([][]supervisor.Spec, 2)
	for _, program := range programs {
		for i := range max(f.layout.Workers[program], 1) {
			name, group, own := up.Numbered(program, i), 0, append(env[:len(env):len(env)], "NATS_URL="+f.BusURL)
			if program == Gateway {
				address := "127.0.0.1:" + strconv.Itoa(ports[i])
				dir, err := up.GatewayDir(f.DataDir, i)
				if err != nil {
					return err
				}
				group, own = 1, append(own, "FACTSTREAM_HTTP="+address, "FACTSTREAM_DATA="+dir, "FACTSTREAM_KEY_FILE="+filepath.Join(f.DataDir, "secret.key"))
				f.URLs = append(f.URLs, "http://"+address)
			}
			spec, err := f.spec(name, program, own)
			if err != nil {
				return err
			}
			groups[group] = append(groups[group], spec)
		}
	}
	f.URL = f.URLs[0]
	f.services = groups
	f.StartServices()
	return f.Ready(ctx)
}

// Projections are the files of the gateways' projections.
func (f *Field) Projections() (files []string) {
	for i := range f.URLs {
		dir, err := up.GatewayDir(f.DataDir, i)
		if err == nil { // it was made at the start
			files = append(files, filepath.Join(dir, "notebook.db"))
		}
	}
	return files
}

// LogDir is where each process's output is, <name>.log.
func (f *Field) LogDir() string { return filepath.Join(f.layout.Dir, "logs") }

func (f *Field) logFile(name string) string { return filepath.Join(f.LogDir(), name+".log") }

func (f *Field) spec(name, program string, env []string, args ...string) (supervisor.Spec, error) {
	log, err := os.OpenFile(f.logFile(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return supervisor.Spec{}, err
	}
	f.logs = append(f.logs, log)
	f.Names = append(f.Names, name)
	p := &process{}
	f.mu.Lock()
	f.processes[name] = p
	f.mu.Unlock()
	return supervisor.Spec{Name: name, Path: filepath.Join(f.layout.Bin, program), Args: args, Env: env, Output: log, Each: func() []string { return f.arm(name) }}, nil
}

// arm gives the environment of a process that is about to start, and notes which hits are those of earlier ones.
func (f *Field) arm(name string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.processes[name]
	p.noted = len(p.hits(name))
	return []string{fault.Variable + "=" + p.faults, fault.LogVariable + "=" + p.log}
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
		p.over()
		p.pid, p.stopped, p.ended = e.PID, false, false
		p.since = time.Now()
		p.starts++
	case supervisor.Ended:
		if hit := p.hit(e.Name); hit != "" && !p.ended {
			f.strike(e.Name, "ended by its fault point ("+hit+")")
		} else if !p.ended {
			said := fmt.Sprintf("%s: %v; its last words: %s", e.Name, e.Err, lastWords(f.logFile(e.Name)))
			f.unasked = append(f.unasked, unasked{said, p.since, time.Now()})
		}
		p.pid = 0
	default:
		p.pid = 0
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// unasked is the end of a process that nobody had ended.
type unasked struct {
	said        string // which it was, how it ended, and its last words
	since, till time.Time
}

// hits are the faults that end a process, as the points of this one have noted them.
func (p *process) hits(name string) (all []string) {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, programOf(name)+".") && (strings.HasSuffix(line, " kill") || strings.HasSuffix(line, " fail")) {
			all = append(all, line)
		}
	}
	return all
}

// hit is the fault that a point of the process has noted since it was started; empty if none has.
func (p *process) hit(name string) string {
	if all := p.hits(name); len(all) > p.noted {
		return all[len(all)-1]
	}
	return ""
}

// lastWords is the last line of a log, cut where it is long.
func lastWords(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1][:min(300, len(lines[len(lines)-1]))])
}

// dial connects to the bus when it has made its credentials and listens.
func (f *Field) dial(ctx context.Context, addresses []string) error {
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
	urls := make([]string, len(addresses))
	for i, address := range addresses {
		u := url.URL{Scheme: "nats", Host: address, User: url.UserPassword(user, password)}
		urls[i] = u.String()
	}
	f.BusURL = strings.Join(urls, ",")
	var err error
	f.NC, f.JS, err = connect.Dial(ctx, connect.Config{URL: f.BusURL, Name: "chaos", Logger: zerolog.Nop()})
	return err
}

// startWithin is how long a start may take on a machine that is busy.
const startWithin = 60 * time.Second

// Ready waits until every gateway says that it is ready.
func (f *Field) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for _, url := range f.URLs {
		if err := poll(ctx, "the gateway is ready", func() bool { return ready(ctx, url) }); err != nil {
			return err
		}
	}
	return nil
}

func ready(ctx context.Context, url string) bool {
	status, _, err := get(ctx, url+"/readyz")
	return err == nil && status == http.StatusOK
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
	if !p.ended { // else it is on its way out
		f.strike(name, map[bool]string{false: "killed", true: "kept away"}[p.away])
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
	if stop {
		f.strike(name, "stopped")
	} else {
		p.over()
	}
	return true
}

// Away ends a process again and again until back is called.
func (f *Field) Away(name string) (back func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	f.keepAway(name, true)
	go func() {
		defer close(done)
		defer f.keepAway(name, false)
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

func (f *Field) keepAway(name string, away bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.processes[name].away = away
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

// ends gives the ends of processes that nobody had ended.
func (f *Field) ends() []unasked {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.unasked)
}

// Unasked tells how processes ended that neither this harness nor a fault point had ended.
func (f *Field) Unasked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, one := range f.unasked {
		all = append(all, one.said)
	}
	return all
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
		for _, server := range f.Servers {
			f.Continue(server)
		}
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
