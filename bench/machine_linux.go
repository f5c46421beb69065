package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

func (m *Machine) look(dir string) {
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if model, ok := field(text, "model name\t"); ok {
			m.CPU = model
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = string(bytes.TrimSpace(text))
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		first, _, _ := strings.Cut(string(text), " ")
		if load, err := strconv.ParseFloat(first, 64); err == nil {
			m.Load = load
		}
	}
	if text, err := os.ReadFile("/proc/self/mountinfo"); err == nil {
		if kind := fileSystem(string(text), dir); kind != "" {
			m.Disk = kind
			m.InMemory = kind == "tmpfs" || kind == "ramfs"
		}
	}
}

// field finds "key: value" in the text of a file below /proc.
func field(text []byte, key string) (value string, ok bool) {
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if name, value, found := strings.Cut(lines.Text(), ":"); found && name == key {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

// kilobytes reads a field of a file below /proc that is given in kB, in bytes.
func kilobytes(path, key string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	value, ok := field(text, key)
	if !ok {
		return 0, fmt.Errorf("%s has no %s", path, key)
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %s: %w", path, key, err)
	}
	return n * 1024, nil
}

// fileSystem finds the kind of file system that a directory is on in the text of /proc/self/mountinfo.
func fileSystem(text, dir string) (kind string) {
	longest := -1
	for line := range strings.Lines(text) {
		before, after, found := strings.Cut(line, " - ")
		fields, about := strings.Fields(before), strings.Fields(after)
		if !found || len(fields) < 5 || len(about) == 0 {
			continue
		}
		at := fields[4]
		if inside := dir == at || strings.HasPrefix(dir, strings.TrimSuffix(at, "/")+"/"); inside && len(at) >= longest {
			longest, kind = len(at), about[0] // a later mount on the same place hides the earlier
		}
	}
	return kind
}

// errNotTold: this system does not tell a figure. The row is then left out.
var errNotTold = errors.New("this system does not tell")

// flushes counts the flushes of the disk that dir is on, by everybody: it is what a write has to wait for that must survive a power cut.
func flushes(dir string) (int64, error) {
	var stat syscall.Stat_t
	if err := syscall.Stat(dir, &stat); err != nil {
		return 0, err
	}
	major, minor := (stat.Dev>>8)&0xfff, stat.Dev&0xff|(stat.Dev>>12)&0xfff00
	device, err := filepath.EvalSymlinks(fmt.Sprintf("/sys/dev/block/%d:%d", major, minor))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errNotTold, err)
	}
	if _, err := os.Stat(filepath.Join(device, "partition")); err == nil {
		device = filepath.Dir(device) // flushes are counted at the whole disk
	}
	text, err := os.ReadFile(filepath.Join(device, "stat"))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errNotTold, err)
	}
	const nth = 15 // of the fields in the kernel's Documentation/block/stat.rst, from 0
	fields := strings.Fields(string(text))
	if len(fields) <= nth {
		return 0, fmt.Errorf("%w: the kernel is older than 5.5", errNotTold)
	}
	return strconv.ParseInt(fields[nth], 10, 64)
}

// proportional is the memory of a process, in bytes; of pages that it shares with others its part.
func proportional(pid int) (int64, error) {
	return kilobytes(fmt.Sprintf("/proc/%d/smaps_rollup", pid), "Pss")
}

// peak is the most memory that a process has had at once, in bytes.
func peak(pid int) (int64, error) { return kilobytes(fmt.Sprintf("/proc/%d/status", pid), "VmHWM") }

// family returns a process and its children by name.
func family(pid int) (map[string]int, error) {
	all, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		return nil, err
	}
	found := map[string]int{}
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		own, _ := field(text, "Pid")
		parent, _ := field(text, "PPid")
		if name, ok := field(text, "Name"); ok && (own == strconv.Itoa(pid) || parent == strconv.Itoa(pid)) {
			if found[name], err = strconv.Atoi(own); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	return found, nil
}
