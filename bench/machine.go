package bench

import (
	"fmt"
	"runtime"
)

// Machine is what the figures were taken on. Fields that this system does not tell are "unknown".
type Machine struct {
	OS, Arch string
	CPU      string // model
	Cores    int    // that this process may use
	Kernel   string
	Go       string
	Disk     string  // file system of the data and what it lies on
	InMemory bool    // that file system keeps nothing: waiting for it costs nothing
	Load     float64 // processes that wanted to run in the minute before; negative: unknown
}

const unknown = "unknown"

func thisMachine(dir string) Machine {
	m := Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.GOMAXPROCS(0), Go: runtime.Version(), CPU: unknown, Kernel: unknown, Disk: unknown, Load: -1}
	m.look(dir)
	return m
}

// Busy says that others were using the machine: figures are then worse than it can do.
func (m Machine) Busy() bool { return m.Load > 0.5*float64(m.Cores) }

func (m Machine) lines() []string {
	lines := []string{
		fmt.Sprintf("%s, %d cores; %s/%s, kernel %s; %s", m.CPU, m.Cores, m.OS, m.Arch, m.Kernel, m.Go),
		"data on " + m.Disk,
	}
	if m.InMemory {
		lines = append(lines, "That is memory, no disk: what waits for the disk is too fast here.")
	}
	if m.Busy() {
		lines = append(lines, fmt.Sprintf("The machine is busy (load %.1f): times are longer than it needs.", m.Load))
	}
	return lines
}

// String is the machine in a few lines.
func (m Machine) String() string {
	out := ""
	for _, line := range m.lines() {
		out += line + "\n"
	}
	return out
}
