//go:build unix

package run

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// guardName is the first argument of a guard, and on Linux the name of its process. It does
// not contain the name of this program: pkill with that name must not end both.
const guardName = "lock-guard"

// IsGuard reports whether this process was started to be a guard. Then it must call BeGuard and
// nothing else.
func IsGuard() bool { return len(os.Args) == 1 && os.Args[0] == guardName }

// Descriptors of a guard and of a closer, above the three standard ones.
const (
	guardAlive = 3 // a pipe that ends with the wrapper
	guardReady = 4 // a pipe: the guard writes one byte to it when it works
	guardFiles = 5 // the first of the files of sessions
)

// BeGuard waits for the wrapper's end and then kills the process group, and with it this
// process. It does not return.
func BeGuard() {
	beHelper(guardName)
	awaitWrapper()
	for {
		_ = syscall.Kill(0, syscall.SIGKILL)
	}
}

// beHelper makes this process one that the wrapper's end ends, and nothing else. Signals to the group
// are for the command. A stop cannot be ignored: the wrapper lets the process continue.
func beHelper(name string) {
	for n := syscall.Signal(1); n < 32; n++ {
		switch n {
		case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGCONT, syscall.SIGCHLD, syscall.SIGURG,
			syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGTRAP:
		default:
			signal.Ignore(n)
		}
	}
	nameProcess(name)
	_ = os.Chdir("/") // it must not keep a file system busy
}

// awaitWrapper reports to the wrapper that this process works, and waits for the wrapper's end.
func awaitWrapper() {
	ready := os.NewFile(guardReady, "ready")
	_, _ = ready.Write([]byte{1})
	_ = ready.Close()
	var b [1]byte
	for {
		n, err := syscall.Read(guardAlive, b[:])
		if err != syscall.EINTR && n <= 0 {
			return
		}
	}
}

// guardStart bounds the wait for a guard that was started. Without load, that takes some
// milliseconds. Only tests change it.
var guardStart = 5 * time.Second

// guard is the wrapper's view of its guard, or of its closer.
type guard struct {
	what  string
	pid   int
	alive *os.File // the process reads the end of the pipe when this is closed
	ready *os.File // await reads a byte from it; nil once it has
	ended bool     // it has ended, and is not collected
}

// end ends a guard that is not collected. It kills the guard before it closes the pipe: a guard
// that reads the end of the pipe kills its group.
func (g *guard) end() {
	_ = syscall.Kill(g.pid, syscall.SIGKILL)
	g.closePipes()
}

func (g *guard) closePipes() {
	_ = g.alive.Close()
	_ = g.ready.Close() // an error if it is nil
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
// new group, which the guard leads. The guard has files open until it ends. If startGuard returns a
// guard together with an error, the caller must end and collect that process.
func startGuard(group int, files []*os.File) (*guard, error) {
	g, err := fork("guard", []string{guardName}, group, files)
	if err != nil {
		return nil, err
	}
	return g, g.await()
}

// fork starts this program as a guard or a closer.
func fork(what string, args []string, group int, files []*os.File) (*guard, error) {
	self, err := executable()
	if err != nil {
		return nil, fmt.Errorf("find the program for the %s: %w", what, err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open a file for the %s: %w", what, err)
	}
	defer null.Close()
	aliveR, aliveW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe to the %s: %w", what, err)
	}
	defer aliveR.Close()
	readyR, readyW, err := os.Pipe()
	if err != nil {
		aliveW.Close()
		return nil, fmt.Errorf("make a pipe from the %s: %w", what, err)
	}
	defer readyW.Close()
	descriptors := []uintptr{null.Fd(), null.Fd(), null.Fd(), aliveR.Fd(), readyW.Fd()}
	for _, f := range files {
		descriptors = append(descriptors, f.Fd())
	}
	descriptors = closeOthers(descriptors)
	env := []string{"GOMAXPROCS=1", "GOTRACEBACK=none"}
	env = append(env, filesForCloser()...)
	pid, err := syscall.ForkExec(self, args, &syscall.ProcAttr{
		Env:   env,
		Files: descriptors,
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pgid: group},
	})
	if err != nil {
		aliveW.Close()
		readyR.Close()
		return nil, fmt.Errorf("start the %s: %w", what, err)
	}
	return &guard{what: what, pid: pid, alive: aliveW, ready: readyR}, nil
}

// filesForCloser returns the environment variables that name the system's authorities and the files of
// Kerberos. The paths are absolute, since beHelper changes the folder.
func filesForCloser() (env []string) {
	for _, key := range []string{"SSL_CERT_FILE", "KRB5_CLIENT_KTNAME", "KRB5CCNAME"} {
		if value, set := os.LookupEnv(key); set {
			env = append(env, key+"="+absolute(strings.TrimPrefix(value, "FILE:")))
		}
	}
	for _, key := range []string{"SSL_CERT_DIR", "KRB5_CONFIG"} { // lists
		if value, set := os.LookupEnv(key); set {
			paths := filepath.SplitList(value)
			for i := range paths {
				paths[i] = absolute(paths[i])
			}
			env = append(env, key+"="+strings.Join(paths, string(filepath.ListSeparator)))
		}
	}
	return env
}

// absolute returns the absolute path of a file. An empty path is none, and stays.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil && path != "" {
		return abs
	}
	return path
}

// await waits until the process works.
func (g *guard) await() error {
	ready := g.ready
	g.ready = nil
	defer ready.Close()
	_ = ready.SetReadDeadline(time.Now().Add(guardStart))
	if n, err := ready.Read(make([]byte, 1)); n != 1 {
		return fmt.Errorf("the %s does not work: %v", g.what, err)
	}
	return nil
}
