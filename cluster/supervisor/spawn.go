package supervisor

import (
	"os/exec"
	"runtime"
)

// spawner starts processes from one thread that lives as long as any of them. On Linux the signal that a child gets at
// its parent's death comes when the thread that made it ends, not the process, and Go ends threads as it likes unless a
// goroutine holds them.
type spawner struct {
	requests chan spawnRequest
}

type spawnRequest struct {
	cmd  *exec.Cmd
	done chan<- error
}

func newSpawner() *spawner {
	s := &spawner{requests: make(chan spawnRequest)}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for r := range s.requests {
			r.done <- r.cmd.Start()
		}
	}()
	return s
}

func (s *spawner) start(cmd *exec.Cmd) error {
	done := make(chan error)
	s.requests <- spawnRequest{cmd, done}
	return <-done
}

// close is called when no child is left.
func (s *spawner) close() { close(s.requests) }
