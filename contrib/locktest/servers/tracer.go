package servers

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/internal/child"
)

// attaching is how long strace may take until it has attached to all threads of a server.
const attaching = 30 * time.Second

// trace starts strace, which delays each call of fsync and fdatasync of a process, and waits until it has attached.
func trace(pid int, by time.Duration) (*child.Process, error) {
	path, err := exec.LookPath("strace")
	if err != nil {
		return nil, errors.New("no strace found: install it, or choose no delay of fsync")
	}
	const calls = "fsync,fdatasync"
	said := &attachment{line: fmt.Sprintf("Process %d attached", pid), done: make(chan struct{})}
	cmd := exec.Command(path, "-f", "-o", os.DevNull, "-e", "trace="+calls,
		"-e", fmt.Sprintf("inject=%s:delay_enter=%d", calls, by.Microseconds()), "-p", fmt.Sprint(pid))
	cmd.Stderr = said
	cmd.WaitDelay = time.Second // a child of strace may keep its standard error open
	tracer, err := child.Start(cmd)
	if err != nil {
		return nil, err
	}
	limit := time.NewTimer(attaching)
	defer limit.Stop()
	select {
	case <-said.done:
		return tracer, nil
	case <-tracer.Done():
		err = errors.New("strace has ended before it had attached")
	case <-limit.C:
		tracer.Kill()
		err = fmt.Errorf("strace has not attached within %v", attaching)
	}
	return nil, fmt.Errorf("%w; it printed %s", err, said.text())
}

// attachment is the standard error of strace. It takes all lines: strace, and the server with it, would wait for a reader.
type attachment struct {
	line string        // what strace prints when it has attached
	done chan struct{} // closed then

	mu      sync.Mutex
	printed []byte // until then; guarded by mu
}

// Write takes what strace prints.
func (a *attachment) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-a.done:
		return len(p), nil
	default:
	}
	if a.printed = append(a.printed, p...); strings.Contains(string(a.printed), a.line) {
		close(a.done)
	}
	return len(p), nil
}

// text is what strace has printed.
func (a *attachment) text() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return cmp.Or(strings.TrimSpace(string(a.printed)), "nothing")
}
