package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/factstream/factstream/cluster/up"
	"github.com/factstream/factstream/fixtures/standin"
	"github.com/factstream/factstream/shared/text"
)

// Options say what is broken, for how long, and where.
type Options struct {
	Seed     uint64
	Duration time.Duration // of the faults; the end takes up to Calm longer
	Calm     time.Duration // how long it may take until all is settled; 3 minutes when 0
	Bin      string        // directory of the programs
	Dir      string        // for data and logs
	Disk     bool          // fill the disk too, where a file system can be mounted
	Cluster  bool          // three servers and two gateways
	Load     Load          // of the script instead of everything by chance, when it has threads; it ends when all have settled
	Out      io.Writer     // what happens, for people
}

// Report is what a run came to.
type Report struct {
	Seed     uint64
	Script   string // fingerprint of the script
	Took     time.Duration
	Survived map[Kind]int
	Points   map[string]int // hits of each fault point
	Unasked  []string       // processes that ended by themselves
	Disk     string         // why the disk was not filled; empty when it was
	Calls    standin.Stats
	Whole    int // runs that were completed
	Events   int
	Threads  int
	Runs     int
	Spent    int
	Payments
	Dead     uint64
	Findings []string // what is wrong; nothing should be
}

// Faults is how many faults were survived.
func (r Report) Faults() (sum int) {
	for _, n := range r.Survived {
		sum += n
	}
	return sum
}

// workers is how many processes there are of each program: two of each that another may take over from.
var workers = map[string]int{"researcher": 2, "distiller": 2, "judge": 2, "briefer": 2}

// Run breaks a notebook by the script of a seed, waits until all is calm, and audits what is left. Its error says why it could not be
// done; what is wrong with the notebook is in the report.
func Run(ctx context.Context, o Options) (_ Report, err error) {
	began := time.Now()
	if o.Calm <= 0 {
		o.Calm = 3 * time.Minute
	}
	points, err := up.FaultPoints(o.Bin)
	if err != nil {
		return Report{}, err
	}
	h := &harness{Options: o, faults: map[Kind]int{}, report: Report{Seed: o.Seed, Points: map[string]int{}}}
	layout := Layout{Bin: o.Bin, Dir: o.Dir, Workers: maps.Clone(workers), Cluster: o.Cluster}
	times := []string{"RETRY_DELAYS=100ms,300ms", "ACK_WAIT=1s", "LEASE_TTL=2s", "IDLE_TIMEOUT=1500ms"}
	if o.Cluster {
		layout.Workers[Gateway] = 2
		times[1], times[2] = "ACK_WAIT=5s", "LEASE_TTL=10s" // an election takes seconds
	}
	if o.Load.Threads > 0 {
		times = nil // those of the defaults
	}
	if !o.Disk || o.Cluster {
		h.report.Disk = "it was not asked for, or there are three servers"
	} else if h.disk, err = Mount(filepath.Join(o.Dir, "disk")); errors.Is(err, ErrNoDisk) {
		h.report.Disk = err.Error()
	} else if err != nil {
		return h.report, err
	}
	if h.disk != nil {
		layout.Data = filepath.Join(h.disk.Dir, "data")
		defer func() { err = errors.Join(err, h.disk.Unmount()) }()
	}
	if h.provider, err = standin.New(standin.Options{Key: key}); err != nil {
		return h.report, err
	}
	defer h.provider.Close()
	layout.Env = append(times, "TABSTACK_BASE_URL="+h.provider.URL(), "TABSTACK_API_KEY="+key, "OFFLINE=1", "MODEL_ENGINE=auto",
		"OLLAMA_HOST=http://127.0.0.1:1", "LOG_LEVEL=debug")
	if h.field, err = Open(ctx, layout); err != nil {
		return h.report, err
	}
	defer func() { err = errors.Join(err, h.field.Close()) }()

	script := NewScript(o.Seed, o.Duration, Setting{Processes: h.services(), Servers: h.field.Servers, Points: points, Disk: h.disk != nil})
	if o.Load.Threads > 0 {
		script = NewLoadScript(o.Seed, o.Duration, o.Load, h.field.Servers)
	}
	h.report.Script = script.String()
	if err := h.perform(ctx, script); err != nil {
		return h.report, err
	}
	err = h.audit(ctx)
	h.report.Took = time.Since(began)
	return h.report, err
}

// services are the names of all processes but those of the bus.
func (h *harness) services() []string {
	return slices.DeleteFunc(slices.Clone(h.field.Names), func(name string) bool { return slices.Contains(h.field.Servers, name) })
}

// key is what the stand-in accepts.
const key = "chaos-key"

type harness struct {
	Options
	field    *Field
	provider *standin.Server
	disk     *Disk
	watch    *Watch
	public   *public
	report   Report

	mu     sync.Mutex
	faults map[Kind]int
	full   []Fault // when the disk was
	armed  int     // how often points were; each time has a log of its own
	busy   sync.WaitGroup
}

// perform runs the script and brings everything back into order.
func (h *harness) perform(ctx context.Context, script Script) error {
	h.watch = h.field.Watch()
	h.public = &public{urls: h.field.URLs, name: text.RandomID(), counts: map[Kind]int{}, answers: map[int]int{}}
	if err := h.provider.Set(script.Answer, script.Answers...); err != nil {
		return err
	}
	h.say("seed %d, script %s: %d faults of processes, bus and disk, and %d moves of persons, within %s", script.Seed, script.String(), len(script.Steps), len(script.Moves), script.Duration)

	acting, enough := context.WithTimeout(ctx, script.Duration+sendWithin*2)
	defer enough()
	start := time.Now()
	var people sync.WaitGroup
	for person := range persons {
		people.Go(func() {
			for n, m := range script.Moves {
				if m.Person == person && wait(acting, start.Add(m.At)) {
					h.public.act(acting, n, m)
				}
			}
		})
	}
	for n, step := range script.Steps {
		if !wait(ctx, start.Add(step.At)) {
			return context.Cause(ctx)
		}
		if h.done() {
			break
		}
		h.do(ctx, n, step)
	}
	if !h.done() {
		wait(ctx, start.Add(script.Duration))
	}
	h.busy.Wait() // before anything is put in order, what lasts has to end
	h.say("the faults are over after %s", time.Since(start).Round(time.Second))
	if err := h.restore(ctx); err != nil {
		return err
	}
	people.Wait() // who is late does the rest without faults
	return h.settle(ctx)
}

// done says whether all threads of a load have settled; what happens by chance has no such end.
func (h *harness) done() bool {
	h.public.mu.Lock()
	opened := len(h.public.threads)
	h.public.mu.Unlock()
	quiet, _ := h.watch.quiet()
	return h.Load.Threads > 0 && opened == h.Load.Threads && quiet
}

// wait returns at a time, or false when ctx ends before.
func wait(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// do brings one fault about. What lasts goes on beside the next.
func (h *harness) do(ctx context.Context, n int, s Step) {
	switch s.Kind {
	case KindKill, KindBusKill:
		if h.field.Kill(s.Target) {
			h.struck(s.Kind)
		}
	case KindHold, KindBusHold:
		if h.field.Stop(s.Target) {
			h.lasting(s, func(from time.Time) {
				wait(ctx, from.Add(s.For))
				h.field.Continue(s.Target)
			})
		}
	case KindPoint:
		h.armed++
		h.field.Arm(s.Target, s.Faults, h.struckLog(h.armed))
		if h.field.Kill(s.Target) {
			h.struck(KindKill)
		}
	case KindBusAway:
		h.lasting(s, func(from time.Time) {
			back := h.field.Away(s.Target)
			wait(ctx, from.Add(s.For))
			back()
		})
	case KindLow, KindFull:
		leave := int64(lowLeaves)
		if s.Kind == KindFull {
			leave = 0
		}
		if err := h.disk.Fill(leave); err != nil {
			h.say("the disk is not filled: %v", err)
			return
		}
		h.lasting(s, func(from time.Time) {
			wait(ctx, from.Add(s.For))
			if err := h.disk.Empty(); err != nil {
				h.say("the disk is not emptied: %v", err)
			}
			if s.Kind == KindFull { // with less room than a call needs no call is made, and whatever is under way has enough
				h.mu.Lock()
				defer h.mu.Unlock()
				h.full = append(h.full, Fault{Target: theDisk, What: "full", From: from, To: time.Now()})
			}
		})
	case KindPoison:
		h.public.mu.Lock()
		thread := "poisoned"
		if len(h.public.threads) > 0 && n%2 == 0 {
			thread = h.public.threads[n%len(h.public.threads)]
		}
		h.public.mu.Unlock()
		fill := strings.NewReplacer("%t", thread, "%i", fmt.Sprintf("poison-%d", n))
		publishing, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		if _, err := h.field.JS.Publish(publishing, fill.Replace(s.Target), []byte(fill.Replace(s.Body))); err == nil {
			h.struck(s.Kind)
		}
	}
}

func (h *harness) struckLog(n int) string {
	return filepath.Join(h.Dir, fmt.Sprintf("struck-%04d", n))
}

// struck counts a fault.
func (h *harness) struck(kind Kind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults[kind]++
}

func (h *harness) lasting(s Step, until func(from time.Time)) {
	from := time.Now()
	h.busy.Go(func() {
		until(from)
		h.struck(s.Kind)
	})
}

// restore takes every fault away.
func (h *harness) restore(ctx context.Context) error {
	if h.Load.Threads > 0 {
		return h.field.Ready(ctx) // whoever was killed is up again, and nothing else was done
	}
	if err := h.provider.Set(standin.Answer{Piece: 2048}); err != nil {
		return err
	}
	if h.disk != nil {
		if err := h.disk.Empty(); err != nil {
			return err
		}
	}
	for _, name := range h.field.Names {
		h.field.Arm(name, "", "")
		h.field.Continue(name)
	}
	if err := h.field.Restart(ctx, h.services()...); err != nil {
		return err
	}
	return h.field.Ready(ctx)
}

// settle waits until every thread has settled and no worker has anything left; it is a finding when that takes too long.
func (h *harness) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.Calm)
	defer cancel()
	began := time.Now()
	for {
		err := h.watch.Calm(ctx)
		if err == nil {
			break
		}
		select {
		case <-ctx.Done():
			h.finding("after %s it is not calm: %v", h.Calm, err)
			return nil
		case <-time.After(200 * time.Millisecond):
		}
	}
	h.say("all is calm %s after the last fault", time.Since(began).Round(100*time.Millisecond))
	return nil
}

func (h *harness) finding(format string, args ...any) {
	h.report.Findings = append(h.report.Findings, fmt.Sprintf(format, args...))
}

func (h *harness) say(format string, args ...any) {
	if h.Out != nil {
		_, _ = fmt.Fprintf(h.Out, format+"\n", args...)
	}
}

// audit looks at what is left.
func (h *harness) audit(ctx context.Context) error {
	h.hits()
	audit, err := h.field.Audit(ctx, h.watch, h.provider.Calls(), h.full...)
	if err != nil {
		return err
	}
	found := append(findings(h.report.Findings), audit.Findings...)
	found.promises(h.public.promises, h.watch.record)
	for _, odd := range h.public.odd {
		found.add("%s", odd)
	}
	h.report.Payments, h.report.Dead = audit.Payments, audit.Dead
	h.count(audit.Spent)
	h.report.Findings = found
	return nil
}

// hits counts the fault points that struck.
func (h *harness) hits() {
	for n := range h.armed {
		content, err := os.ReadFile(h.struckLog(n + 1))
		if err != nil {
			continue // none of them was met
		}
		for line := range strings.Lines(string(content)) {
			name, _, _ := strings.Cut(line, " ")
			h.report.Points[name]++
			h.faults[KindPoint]++
		}
	}
}

// count fills in the figures of the report.
func (h *harness) count(spent map[string]int) {
	for _, c := range h.provider.Calls() {
		switch {
		case c.Status >= 400 && c.Status < 500:
			h.faults[KindRefused]++
		case !whole(c) && c.Outcome != standin.Open:
			h.faults[KindAnswer]++
		}
	}
	for kind, n := range h.public.counts {
		h.faults[kind] += n
	}
	h.report.Survived = h.faults
	h.report.Calls = h.provider.Stats()
	h.report.Events = len(h.watch.messages)
	h.report.Threads = len(slices.Compact(slices.Sorted(slices.Values(h.public.threads))))
	for _, e := range h.watch.events {
		switch e.Kind() {
		case "run.requested":
			h.report.Runs++
		case "run.completed":
			h.report.Whole++
		}
	}
	for _, n := range spent {
		h.report.Spent += n
	}
	h.report.Unasked = h.field.Unasked()
}
