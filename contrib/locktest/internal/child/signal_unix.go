//go:build unix

package child

import (
	"errors"
	"os"
	"syscall"
)

// Stop suspends a process until Continue. The process may have ended. Its threads on other processors may
// still run for a moment.
func (p *Process) Stop() error { return p.signal(syscall.SIGSTOP) }

// Continue lets a process go on that was stopped.
func (p *Process) Continue() error { return p.signal(syscall.SIGCONT) }

// Terminate asks a process to end. It may have ended.
func (p *Process) Terminate() error { return p.signal(syscall.SIGTERM) }

// Quit asks a process to print the stacks of its threads. A program in Go ends then.
func (p *Process) Quit() error { return p.signal(syscall.SIGQUIT) }

func (p *Process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}
