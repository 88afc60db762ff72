//go:build unix

package ensemble

import (
	"fmt"
	"syscall"
	"time"
)

// terminate asks the process to end. It wakes a frozen process, so that it can end, too.
func (p *process) terminate() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.thaw()
}

// freeze stops the process and waits until all its threads have stopped: the kernel stops
// each one when it next leaves the kernel or is interrupted, which is after kill returns.
func (p *process) freeze() error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for end := time.Now().Add(stopTimeout); ; time.Sleep(time.Millisecond) {
		still, err := stopped(p.cmd.Process.Pid)
		if still || err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("its threads still run %v after SIGSTOP", stopTimeout)
		}
	}
}

func (p *process) thaw() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
