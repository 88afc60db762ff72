//go:build unix

package main

import (
	"os"
	"syscall"
)

// pauseProcess stops a process until resume is called. The process does not notice it.
func pauseProcess(p *os.Process) (resume func() error, err error) {
	return func() error { return p.Signal(syscall.SIGCONT) }, p.Signal(syscall.SIGSTOP)
}
