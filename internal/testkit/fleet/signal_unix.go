//go:build unix

package fleet

import "syscall"

// freeze stops the process. It returns before each thread has stopped.
func (p *Process) freeze() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

func (p *Process) thaw() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
