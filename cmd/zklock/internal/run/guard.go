//go:build unix

package run

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// guardName is the first argument of a guard, and on Linux the name of its process. It does
// not contain the name of this program: pkill with that name must not end both.
const guardName = "lock-guard"

// IsGuard reports whether this process was started to be a guard. Then it must call BeGuard and
// nothing else.
func IsGuard() bool { return len(os.Args) == 1 && os.Args[0] == guardName }

// Descriptors of a guard, above the three standard ones.
const (
	guardAlive = 3 // a pipe that ends with the wrapper
	guardReady = 4 // a pipe: the guard writes one byte to it when it works
)

// BeGuard waits for the wrapper's end and then kills the process group, and with it this
// process. It does not return.
func BeGuard() {
	// Signals to the group are for the command. A stop cannot be ignored: the wrapper lets
	// the guard continue.
	for n := syscall.Signal(1); n < 32; n++ {
		switch n {
		case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGCONT, syscall.SIGCHLD, syscall.SIGURG,
			syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGTRAP:
		default:
			signal.Ignore(n)
		}
	}
	nameProcess(guardName)
	_ = os.Chdir("/") // it must not keep a file system busy
	ready := os.NewFile(guardReady, "ready")
	_, _ = ready.Write([]byte{1})
	_ = ready.Close()
	var b [1]byte
	for {
		n, err := syscall.Read(guardAlive, b[:])
		if err != syscall.EINTR && n <= 0 {
			break
		}
	}
	for {
		_ = syscall.Kill(0, syscall.SIGKILL)
	}
}

// guardStart bounds the wait for a guard that was started. Without load, that takes some
// milliseconds. Only tests change it.
var guardStart = 5 * time.Second

// guard is the wrapper's view of its guard.
type guard struct {
	pid   int
	alive *os.File // the guard reads the end of the pipe when this is closed
	ended bool     // it has ended, and is not collected
}

// end ends a guard that is not collected. It kills the guard before it closes the pipe: a guard
// that reads the end of the pipe kills its group.
func (g *guard) end() {
	_ = syscall.Kill(g.pid, syscall.SIGKILL)
	_ = g.alive.Close()
}

// reap ends a guard that is not collected, and waits for its end.
func (g *guard) reap() {
	g.end()
	for {
		if _, err := syscall.Wait4(g.pid, nil, 0, nil); err != syscall.EINTR {
			return
		}
	}
}

// startGuard starts a guard in a process group and returns when it works. group 0 means a
// new group, which the guard leads. If it returns a guard together with an error, the caller
// must end and collect that process.
func startGuard(group int) (*guard, error) {
	self, err := executable()
	if err != nil {
		return nil, fmt.Errorf("find the program for the guard: %w", err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open a file for the guard: %w", err)
	}
	defer null.Close()
	aliveR, aliveW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe to the guard: %w", err)
	}
	defer aliveR.Close()
	readyR, readyW, err := os.Pipe()
	if err != nil {
		aliveW.Close()
		return nil, fmt.Errorf("make a pipe from the guard: %w", err)
	}
	defer readyR.Close()
	pid, err := syscall.ForkExec(self, []string{guardName}, &syscall.ProcAttr{
		Env:   []string{"GOMAXPROCS=1", "GOTRACEBACK=none"},
		Files: []uintptr{null.Fd(), null.Fd(), null.Fd(), aliveR.Fd(), readyW.Fd()},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pgid: group},
	})
	readyW.Close()
	if err != nil {
		aliveW.Close()
		return nil, fmt.Errorf("start the guard: %w", err)
	}
	g := &guard{pid: pid, alive: aliveW}
	_ = readyR.SetReadDeadline(time.Now().Add(guardStart))
	if n, err := readyR.Read(make([]byte, 1)); n != 1 {
		return g, fmt.Errorf("the guard does not work: %v", err)
	}
	return g, nil
}
