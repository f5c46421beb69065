package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/factstream/factstream/cluster/up"
)

const faultsUsage = `At each of these points a service can be ended (kill -9), stopped, failed or
delayed, by a variable in its environment:

  FACTSTREAM_FAULT="researcher.saved=kill"              at the first hit
  FACTSTREAM_FAULT="judge.made=stop@3"                  at the third
  FACTSTREAM_FAULT="judge.made=delay:2s,judge.kept=fail"  several
  FACTSTREAM_FAULT_LOG=FILE   each that struck is noted there, and strikes once

`

// runFaults prints the fault points of all services.
func runFaults(stdout, stderr io.Writer) int {
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintf(stderr, "factstream: where is this program? %v\n", err)
		return exitFailed
	}
	points, err := up.FaultPoints(filepath.Dir(self))
	if err != nil {
		fmt.Fprintf(stderr, "factstream: %v\n", err)
		return exitFailed
	}
	fmt.Fprint(stdout, faultsUsage)
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, p := range points {
		fmt.Fprintf(table, "%s\t%s\n", p.Name, p.What)
	}
	if err := table.Flush(); err != nil {
		return exitFailed
	}
	return exitStopped
}
