// Package bench measures the notebook on the machine that it runs on, with the programs as they are shipped, and sets each
// figure beside what is expected of it.
//
// A figure alone says as much about the machine as about the program. So what can be compared is measured in turns within
// one run (the chain and the bare hops below it, one decoder and another), the middle of many samples counts, and every
// sample is kept in the format of Go benchmarks, for benchstat.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Options say what is measured, and where.
type Options struct {
	Bin string // directory of the programs: factstream and the five services
	// Dir is where data directories are made and removed again. It must be on the disk that a notebook would be on: in
	// memory, for instance, waiting for the disk costs nothing.
	Dir      string
	Sections []string  // names of Sections; empty: all
	Progress io.Writer // is told what is being measured, line by line
}

// Section is one part of what is measured.
type Section struct {
	Name    string
	About   string
	measure func(context.Context, *run) ([]Row, error)
}

// Sections returns all parts, in the order in which they are measured.
func Sections() []Section {
	return []Section{
		{"chain", "a replayed fast run, from POST runs until the thread is settled", measureChain},
		{"start", "factstream up until /readyz is 200, and the memory of its processes", measureStart},
		{"decoder", "shared/sse beside tmaxmax/go-sse and bytes.IndexByte", measureDecoders},
		{"appends", "events appended under the condition of their thread, fsync on", measureAppends},
		{"rebuild", "notebook.db made again from the stream by the gateway", measureRebuild},
	}
}

// ErrNoSection: Options.Sections has a name that there is not.
var ErrNoSection = errors.New("there is no such section")

// Report is what was measured.
type Report struct {
	Machine Machine
	Began   time.Time
	Took    time.Duration
	Rows    []Row
	Samples Samples
}

// Misses is how many rows miss what is expected of them.
func (r Report) Misses() int {
	misses := 0
	for _, row := range r.Rows {
		if row.Verdict == Misses {
			misses++
		}
	}
	return misses
}

// run is what the sections share.
type run struct {
	effort
	bin, dir string
	samples  Samples
	progress io.Writer
	made     int // directories so far
}

// Run measures the sections one after the other. It starts processes on free ports of 127.0.0.1 and leaves none behind, and no file.
// Errors say which section could not be measured, and why; the report then holds those before it. A figure that misses what is expected is no error.
func Run(ctx context.Context, opts Options) (Report, error) {
	sections, err := choose(opts.Sections)
	if err != nil {
		return Report{}, err
	}
	return measure(ctx, opts, sections, usual)
}

// effort is how much is measured: enough that the middle of it holds on a machine that others use too, in two to three minutes.
type effort struct {
	chainRuns, chainWarmup int // the first fifteen runs of a start or so take a fifth to a third longer than those after them
	starts                 int
	decoderRounds          int
	decoderSample          time.Duration // as many passes as fit, at least one
	largeEvent             int           // bytes
	appendRounds           int
	appendSample           time.Duration
	rebuilds, events       int
}

var usual = effort{
	chainRuns: 60, chainWarmup: 20, starts: 6, decoderRounds: 12, decoderSample: 25 * time.Millisecond, largeEvent: 4 << 20,
	appendRounds: 8, appendSample: 600 * time.Millisecond, rebuilds: 3, events: 100_000,
}

func measure(ctx context.Context, opts Options, sections []Section, much effort) (Report, error) {
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return Report{}, fmt.Errorf("make the directory for the data: %w", err)
	}
	dir, err := os.MkdirTemp(opts.Dir, "bench-")
	if err != nil {
		return Report{}, fmt.Errorf("make the directory for the data: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // what is left is in a directory of its own
	defer http.DefaultClient.CloseIdleConnections()
	r := &run{effort: much, bin: opts.Bin, dir: dir, progress: opts.Progress}
	report := Report{Machine: thisMachine(dir), Began: time.Now()}
	for _, section := range sections {
		r.say("%s: %s", section.Name, section.About)
		kept := len(r.samples)
		rows, failed := section.measure(ctx, r)
		if failed != nil {
			r.samples, err = r.samples[:kept], fmt.Errorf("measure %s: %w", section.Name, failed)
			break
		}
		report.Rows = append(report.Rows, rows...)
	}
	report.Samples, report.Took = r.samples, time.Since(report.Began)
	return report, err
}

func choose(names []string) ([]Section, error) {
	all := Sections()
	if len(names) == 0 {
		return all, nil
	}
	var chosen, known []string
	var sections []Section
	for _, s := range all {
		known = append(known, s.Name)
		if slices.Contains(names, s.Name) {
			chosen, sections = append(chosen, s.Name), append(sections, s)
		}
	}
	for _, name := range names {
		if !slices.Contains(chosen, name) {
			return nil, fmt.Errorf("%w: %q (there are: %s)", ErrNoSection, name, strings.Join(known, ", "))
		}
	}
	return sections, nil
}

func (r *run) say(format string, args ...any) { fmt.Fprintf(r.progress, format+"\n", args...) }

// place is a fresh path for a data directory.
func (r *run) place(name string) string {
	r.made++
	return filepath.Join(r.dir, fmt.Sprintf("%s-%d", name, r.made))
}
