// Package footprint keeps what one process takes of the machine in proportion, since several of a notebook share it: at least six, and
// perhaps a language model beside them.
package footprint

import (
	"os"
	"runtime"
)

// ballastSize is the size of the ballast in bytes: memory that counts as alive and is never touched, so that none is used for it. Garbage
// is collected when what is alive has been doubled, and that is some 4 MB in a process of a small notebook: without ballast a run, which
// leaves about as much behind, means a collection or two in every process in the middle of it. A large notebook does not notice it.
const ballastSize = 8 << 20

var ballast []byte

// Take makes the process use the processors that it uses now divided by share, at least one, and lets it collect no garbage before
// ballastSize bytes of it are there. A second call divides again. A share of 1 leaves the processors as they are, so that the runtime goes
// on following a quota that changes. GOMAXPROCS and GOGC in the environment count instead.
//
// A step of the chain is done by one goroutine, and the Go runtime of a process with a second processor keeps waking threads to look for
// work that is not there, on processors that the other processes need.
func Take(share int) {
	if share > 1 && os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/share))
	}
	if os.Getenv("GOGC") == "" && ballast == nil {
		ballast = make([]byte, ballastSize)
	}
}
