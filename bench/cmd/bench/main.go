// Command bench measures the notebook on this machine and sets each figure beside what is expected of it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/factstream/factstream/bench"
)

func main() { os.Exit(run()) }

func run() int {
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: where is this program? %v\n", err)
		return 1
	}
	var names []string
	for _, s := range bench.Sections() {
		names = append(names, s.Name)
	}
	opts := bench.Options{Progress: os.Stderr}
	flag.StringVar(&opts.Bin, "bin", filepath.Dir(self), "`directory` of the programs")
	flag.StringVar(&opts.Dir, "dir", filepath.Dir(self), "`directory` in which data is made and removed; it must be on the disk that is meant")
	out := flag.String("out", "", "`file` for the samples in the format of Go benchmarks; a directory: a file in it named after the time; empty: none")
	only := flag.String("only", "", "`sections` to measure, separated by commas: "+strings.Join(names, ", "))
	strict := flag.Bool("strict", false, "end with code 3 when a figure misses what is expected")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "bench: %q is no flag\n", flag.Arg(0))
		return 2
	}
	if *only != "" {
		opts.Sections = strings.Split(*only, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	report, failed := bench.Run(ctx, opts)
	if len(report.Rows) > 0 {
		if code := tell(report, *out, *strict); failed == nil {
			return code
		}
	}
	if failed != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", failed)
		return 1
	}
	return 0
}

// tell shows the report and keeps its samples. It returns the exit code.
func tell(report bench.Report, out string, strict bool) int {
	fmt.Printf("\n%s\n%s", report.Machine, report.Table())
	if out != "" {
		path, err := keep(report, out)
		if err != nil {
			fmt.Fprintf(os.Stderr, "bench: the samples are not kept: %v\n", err)
			return 1
		}
		fmt.Printf("\nEvery sample is in %s (for benchstat).\n", path)
	}
	if misses := report.Misses(); misses > 0 {
		fmt.Printf("\n%d figures miss what is expected.\n", misses)
		if strict {
			return 3
		}
	}
	return 0
}

// keep writes the samples to a file and returns its path.
func keep(report bench.Report, out string) (path string, err error) {
	path = out
	if info, err := os.Stat(out); err == nil && info.IsDir() {
		path = filepath.Join(out, report.Began.UTC().Format("2006-01-02T150405Z")+".txt")
	}
	file, err := os.Create(path)
	if err != nil {
		return "", err
	}
	if err := report.WriteBenchmarks(file); err != nil {
		_ = file.Close()
		return "", err
	}
	return path, file.Close()
}
