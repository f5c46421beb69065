package chaos

import (
	"fmt"
	"time"
)

// Fault is one thing that was done to a process, to the disk, or to the connection of a call.
type Fault struct {
	Target string // the name of the process, or what else it happened to
	PID    int    // of the process as it was then; 0 of what is none
	What   string // what was done: "killed", "stopped", "full"
	From   time.Time
	To     time.Time // when it went on, or was started again; zero while it lasts
}

// What else there is than processes.
const (
	theDisk     = "the disk"
	theProvider = "the provider's connection"
)

// clock is the form of times for people: that of the logs, without the day.
const clock = "15:04:05.000"

// String says what was done, and when.
func (f Fault) String() string {
	process, lasted := "", ", and it lasts"
	if f.PID != 0 {
		process = fmt.Sprintf(" (process %d)", f.PID)
	}
	if !f.To.IsZero() {
		lasted = fmt.Sprintf(" for %.1f s", f.To.Sub(f.From).Seconds())
	}
	return fmt.Sprintf("%s%s was %s at %s%s", f.Target, process, f.What, f.From.Format(clock), lasted)
}

// during says whether some of it lay within a time; a zero end is none.
func (f Fault) during(from, to time.Time) bool {
	return (f.To.IsZero() || !f.To.Before(from)) && (to.IsZero() || !f.From.After(to))
}

// Faults are what was done so far to the processes, in the order of its beginning: by this harness, by fault points, and by themselves.
func (f *Field) Faults() []Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]Fault, len(f.faults))
	for i, one := range f.faults {
		all[i] = *one
	}
	return all
}

// strike notes that a fault of a process begins now. The lock is held.
func (f *Field) strike(name, what string) {
	p := f.processes[name]
	one := &Fault{Target: name, PID: p.pid, What: what, From: time.Now()}
	f.faults, p.lasting = append(f.faults, one), append(p.lasting, one)
}

// over notes that the process goes on, or is there again. The lock is held.
func (p *process) over() {
	for _, one := range p.lasting {
		one.To = time.Now()
	}
	p.lasting = nil
}
