//go:build unix

package main

import (
	"os"
	"syscall"
)

// pauseProcess stops a process, which does not notice, until resume is called.
func pauseProcess(p *os.Process) (resume func() error, err error) {
	return func() error { return p.Signal(syscall.SIGCONT) }, p.Signal(syscall.SIGSTOP)
}
