//go:build unix

package child

import "syscall"

// Stop suspends the process, and Continue lets it go on. The process may have ended.
func (p *Process) Stop() error { return p.signal(syscall.SIGSTOP) }

// Continue lets a process go on that was stopped.
func (p *Process) Continue() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !p.Over() {
		return err
	}
	return nil
}
