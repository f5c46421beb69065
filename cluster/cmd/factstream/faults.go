package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/factstream/factstream/cluster/up"
	"github.com/factstream/factstream/shared/fault"
	"github.com/factstream/factstream/shared/text"
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
	fmt.Fprint(stdout, faultsUsage, faultsList(points))
	return exitStopped
}

// columns is the width of a terminal that nobody has made wider.
const columns = 80

// faultsList has what each point means beside its name, and wraps it there.
func faultsList(points []fault.Point) string {
	width := 0
	for _, p := range points {
		width = max(width, len(p.Name)+2)
	}
	indent := strings.Repeat(" ", width)
	var list strings.Builder
	for _, p := range points {
		fmt.Fprintf(&list, "%-*s%s\n", width, p.Name, text.Wrap(p.What, width, columns, indent))
	}
	return list.String()
}
