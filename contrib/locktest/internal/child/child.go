// Package child starts the processes of locktest: servers and workers. They end with it, also if it is
// killed.
package child

import (
	"os/exec"
	"runtime"
)

// Process is a process that was started.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
}

// Start starts a command. A goroutine waits for its end. The goroutine keeps its thread, since the
// kernel kills the process when the thread that started it ends.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, done: make(chan struct{})}
	endWithParent(cmd)
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // an error if it was killed
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// Kill ends the process at once and waits for its end. The process may be stopped, or have ended
// already.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // an error means that it has ended already
	<-p.done
}

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Over reports whether the process has ended.
func (p *Process) Over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
