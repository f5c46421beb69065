// Package footprint keeps what one process takes of the machine in proportion, since several of a notebook share it: at least six, and
// perhaps a language model beside them.
package footprint

import (
	"os"
	"runtime"
)

// heap is counted as alive from the start, in bytes, and never touched, so it takes no memory. Garbage is collected when what is alive
// has been doubled, and that of a small notebook is some 4 MB in each process: without this a run, which leaves about as much behind,
// means a collection or two in every process in the middle of it. A large notebook does not notice it.
const heap = 8 << 20

var reserve []byte

// Take makes the process use the processors divided by share, at least one, and collect garbage not before there is some.
//
// A step of the chain is done by one goroutine, and the Go runtime of a process with a second processor keeps waking threads to look for
// work that is not there, on processors that the other processes need. GOMAXPROCS in the environment counts instead, as GOGC does for the
// heap.
func Take(share int) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/share))
	}
	if os.Getenv("GOGC") == "" && reserve == nil {
		reserve = make([]byte, heap)
	}
}
