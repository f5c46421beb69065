//go:build !linux

package supervisor

import "syscall"

// attributes give the child a process group of its own, so that Ctrl-C in a terminal reaches only the supervisor, which
// stops the children in order. That the supervisor died a child learns here by its lifeline alone.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
