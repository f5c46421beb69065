package supervisor

import "syscall"

// attributes give the child a process group of its own, so that Ctrl-C in a terminal reaches only the supervisor, which
// stops the children in order; and have the kernel kill it when the supervisor dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
