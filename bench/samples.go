package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Value is one figure with its unit, "ns/op" for instance.
type Value struct {
	Figure float64
	Unit   string
}

// Sample is one measurement: a line in a file of Go benchmarks.
type Sample struct {
	Name   string // without "Benchmark"; parts as key=value let benchstat lay them out (-col /by)
	Ops    int    // how many operations it is the mean of
	Values []Value
}

// Samples are measurements in the order in which they were taken.
type Samples []Sample

func (s *Samples) add(name string, ops int, values ...Value) {
	*s = append(*s, Sample{Name: name, Ops: ops, Values: values})
}

// took adds a measurement of time.
func (s *Samples) took(name string, ops int, took time.Duration, more ...Value) {
	s.add(name, ops, append([]Value{{float64(took.Nanoseconds()) / float64(ops), "ns/op"}}, more...)...)
}

// figures returns the figures of one name and unit, oldest first.
func (s Samples) figures(name, unit string) []float64 {
	var out []float64
	for _, sample := range s {
		if sample.Name != name {
			continue
		}
		for _, v := range sample.Values {
			if v.Unit == unit {
				out = append(out, v.Figure)
			}
		}
	}
	return out
}

// ratio is the middle of the ratios of two names' neighbours in time: what slows the machine for a while slows both.
func (s Samples) ratio(above, below, unit string) float64 {
	a, b := s.figures(above, unit), s.figures(below, unit)
	ratios := make([]float64, min(len(a), len(b)))
	for i := range ratios {
		ratios[i] = a[i] / b[i]
	}
	return quantile(ratios, 0.5)
}

func (s Samples) median(name, unit string) float64 { return quantile(s.figures(name, unit), 0.5) }

// duration is a quantile of the times of one name.
func (s Samples) duration(name string, q float64) time.Duration {
	return time.Duration(quantile(s.figures(name, "ns/op"), q))
}

// quantile returns the figure at q (0..1) of the sorted figures, between two of them by their distance; NaN of none.
func quantile(figures []float64, q float64) float64 {
	if len(figures) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(figures))
	at := q * float64(len(sorted)-1)
	below := int(at)
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (at-float64(below))*(sorted[above]-sorted[below])
}

// WriteBenchmarks writes the samples in the format of Go benchmarks. What would keep benchstat from comparing two files of one machine
// (the date, a newer kernel) stands in lines that it passes over.
func (r Report) WriteBenchmarks(w io.Writer) error {
	var b strings.Builder
	for _, line := range r.Machine.lines() {
		fmt.Fprintf(&b, "# %s\n", line)
	}
	fmt.Fprintf(&b, "# measured %s in %s\n", r.Began.UTC().Format(time.RFC3339), r.Took.Round(time.Second))
	for line := range strings.Lines(r.Table()) {
		fmt.Fprintf(&b, "# %s", line)
	}
	fmt.Fprintf(&b, "goos: %s\ngoarch: %s\npkg: github.com/factstream/factstream/bench\ncpu: %s\n", r.Machine.OS, r.Machine.Arch, r.Machine.CPU)
	b.WriteString("Unit events/s better=higher\n")
	for _, s := range r.Samples {
		fmt.Fprintf(&b, "Benchmark%s-%d\t%d", s.Name, r.Machine.Cores, s.Ops)
		for _, v := range s.Values {
			fmt.Fprintf(&b, "\t%s %s", significant(v.Figure), v.Unit)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// significant writes whole numbers as such, and others with what can mean something.
func significant(f float64) string {
	if f >= 1000 {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'g', 5, 64)
}
