package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	readyWithin = 3 * time.Second
	memoryUnder = 250e6 // bytes
	processes   = 6
)

const (
	sampleFirst  = "Ready/start=first"
	sampleLater  = "Ready/start=later"
	sampleMemory = "Memory/process=" // and its name, or "all"
	unitPSS      = "PSS-bytes"
)

// measureStart starts a notebook on an empty directory and, after one run, again on what is then there; in between it looks at the memory of the
// processes. Building is not in it.
func measureStart(ctx context.Context, r *run) ([]Row, error) {
	var names []string
	for range r.starts {
		data := r.place("start")
		memory, err := firstStart(ctx, r, data)
		if err != nil {
			return nil, err
		}
		if memory != nil {
			total := 0.0
			names = slices.Sorted(maps.Keys(memory))
			for _, name := range names {
				r.samples.add(sampleMemory+name, 1, Value{memory[name], unitPSS})
				total += memory[name]
			}
			r.samples.add(sampleMemory+"all", 1, Value{total, unitPSS})
		}
		u, err := r.up(ctx, data)
		if err != nil {
			return nil, err
		}
		u.stop()
		r.samples.took(sampleLater, 1, u.ready)
	}
	s := r.samples
	section := fmt.Sprintf("start of factstream up until /readyz is 200 (%d starts, p50)", r.starts)
	rows := []Row{
		under(section, "the first, on an empty directory", float64(s.duration(sampleFirst, 0.5)), float64(readyWithin), millis),
		under(section, "a later one, after one run", float64(s.duration(sampleLater, 0.5)), float64(readyWithin), millis),
	}
	if names == nil {
		return rows, nil
	}
	section = fmt.Sprintf("memory after one replayed run (PSS, p50 of %d)", r.starts)
	rows = append(rows, under(section, fmt.Sprintf("the %d processes together", processes), s.median(sampleMemory+"all", unitPSS), memoryUnder, megabytes))
	for _, name := range names {
		rows = append(rows, Row{Section: section, What: "  " + name, Figure: megabytes(s.median(sampleMemory+name, unitPSS))})
	}
	return rows, nil
}

// firstStart returns the memory of each process by its name, in bytes; nil where the system does not tell.
func firstStart(ctx context.Context, r *run, data string) (map[string]float64, error) {
	u, err := r.up(ctx, data)
	if err != nil {
		return nil, err
	}
	defer u.stop()
	r.samples.took(sampleFirst, 1, u.ready)
	thread, err := u.create(ctx)
	if err != nil {
		return nil, err
	}
	if _, _, err := u.replay(ctx, thread, "fast"); err != nil {
		return nil, err
	}
	found, err := family(u.pid)
	if errors.Is(err, errNotTold) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(found) != processes {
		return nil, fmt.Errorf("%w: %d processes, not %d: %v", errUnfit, len(found), processes, found)
	}
	memory := map[string]float64{}
	for name, pid := range found {
		bytes, err := proportional(pid)
		if err != nil {
			return nil, fmt.Errorf("memory of %s: %w", name, err)
		}
		memory[name] = float64(bytes)
	}
	return memory, nil
}
