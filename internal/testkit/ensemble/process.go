package ensemble

import (
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
)

// process is a running server.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended and cmd.Wait has returned
	err  error         // the result of cmd.Wait; set before done is closed

	ended atomic.Bool // this package has begun to end the process
}

// startProcess starts java and returns at once. A goroutine waits for the process and ends
// with it.
func startProcess(java string, args []string, log *os.File) (*process, error) {
	cmd := exec.Command(java, args...)
	cmd.Stdout, cmd.Stderr = log, log
	bindToParent(cmd)
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel kills the process when the thread that started it ends,
		// so this goroutine keeps its thread until the process has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// over reports whether the process has ended.
func (p *process) over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends the process at once and waits for its end.
func (p *process) kill() {
	p.ended.Store(true)
	p.cmd.Process.Kill() // an error means that it has ended already
	<-p.done
}
