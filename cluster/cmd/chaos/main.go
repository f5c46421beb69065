// Command chaos breaks a notebook of its own, by a script that a seed makes, and says whether anything was lost or paid twice.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/factstream/factstream/cluster/chaos"
)

func main() {
	os.Exit(run())
}

func run() int {
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintf(os.Stderr, "chaos: where is this program? %v\n", err)
		return 1
	}
	options := chaos.Options{Out: os.Stdout}
	keep := false
	flag.Uint64Var(&options.Seed, "seed", uint64(time.Now().Unix()), "of the script: the same `number` makes the same faults")
	flag.DurationVar(&options.Duration, "duration", time.Minute, "how `long` faults happen; the end takes a while longer")
	flag.DurationVar(&options.Calm, "calm", 3*time.Minute, "how `long` it may take until everything has settled")
	flag.BoolVar(&options.Disk, "disk", true, "fill the disk too (on a file system in memory that only root can mount)")
	flag.BoolVar(&options.Cluster, "cluster", false, "three servers of the bus and two gateways")
	flag.IntVar(&options.Load.Threads, "threads", 0, "instead of everything by chance, research so `many` threads while the servers are killed one after the other")
	flag.DurationVar(&options.Load.Every, "every", 10*time.Second, "how `long` from one of these kills to the next")
	flag.StringVar(&options.Bin, "bin", filepath.Dir(self), "`directory` of the programs")
	flag.StringVar(&options.Dir, "dir", "", "`directory` for data and logs (a temporary one, removed when all is well)")
	flag.BoolVar(&keep, "keep", false, "keep the temporary directory")
	flag.Parse()
	if options.Dir == "" {
		if options.Dir, err = os.MkdirTemp("", "factstream-chaos-"); err != nil {
			fmt.Fprintf(os.Stderr, "chaos: %v\n", err)
			return 1
		}
	} else {
		keep = true
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	report, err := chaos.Run(ctx, options)
	if err == nil && len(report.Findings) == 0 && !keep {
		err = os.RemoveAll(options.Dir)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "chaos: seed %d: %v\ndata and logs are in %s\n", options.Seed, err, options.Dir)
		return 1
	}
	show(report)
	if len(report.Findings) > 0 {
		fmt.Printf("\n%d findings; %s repeats the script; data and logs are in %s\n", len(report.Findings), again(options), options.Dir)
		return 1
	}
	fmt.Printf("\nNothing was lost, and nothing that was kept was paid for twice. %s repeats the script.\n", again(options))
	return 0
}

// again is the command that makes the same script.
func again(o chaos.Options) string {
	if o.Load.Threads > 0 { // which make does not offer
		return fmt.Sprintf("bin/chaos -seed %d -duration %s -cluster=%t -threads %d -every %s", o.Seed, o.Duration, o.Cluster, o.Load.Threads, o.Load.Every)
	}
	command := fmt.Sprintf("make chaos SEED=%d DURATION=%s", o.Seed, o.Duration)
	if o.Cluster {
		command += " CLUSTER=1"
	}
	return command
}

func show(r chaos.Report) {
	fmt.Printf("\n%d faults in %s\n", r.Faults(), r.Took.Round(time.Second))
	for _, kind := range slices.Sorted(maps.Keys(r.Survived)) {
		fmt.Printf("  %5d  %s\n", r.Survived[kind], kind)
	}
	fmt.Printf("fault points that struck: %d of them\n", len(r.Points))
	for _, point := range slices.Sorted(maps.Keys(r.Points)) {
		fmt.Printf("  %5d  %s\n", r.Points[point], point)
	}
	if r.Disk != "" {
		fmt.Printf("the disk was not filled: %s\n", r.Disk)
	}
	for _, end := range r.Unasked {
		fmt.Printf("ended by itself: %s\n", end)
	}
	fmt.Printf("%d events, %d threads, %d runs, %d credits; %d calls, %d whole; %d dead letters\n", r.Events, r.Threads, r.Runs, r.Spent, r.Calls.Calls, r.Calls.Whole, r.Dead)
	fmt.Printf("whole answers of runs that a person had cancelled or deleted: %d\n", r.Void)
	fmt.Printf("answers that a fault destroyed before they could be kept: %d\n", len(r.Rebought))
	explain(r.Rebought)
	fmt.Printf("calls made while another was open, by a fault: %d\n", len(r.Overlaps))
	explain(r.Overlaps)
	for _, finding := range r.Findings {
		fmt.Printf("WRONG: %s\n", finding)
	}
}

// explain prints what each is put down to.
func explain(all []chaos.Explained) {
	for _, one := range all {
		fmt.Printf("  %s\n", one)
	}
}
