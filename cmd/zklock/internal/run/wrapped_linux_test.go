package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// lease is a lease that a test moves.
type lease struct {
	mu    sync.Mutex
	until time.Time // guarded by mu
	looks int       // guarded by mu; how often Until was called since the last move
	done  chan struct{}
}

// newLease returns a lease that is long enough for every test.
func newLease() *lease { return &lease{until: time.Now().Add(time.Hour), done: make(chan struct{})} }

func (l *lease) Until() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looks++
	return l.until
}

func (l *lease) Valid() bool { return time.Now().Before(l.Until()) }

func (l *lease) Done() <-chan struct{} { return l.done }

// move sets the end of the lease, from now on.
func (l *lease) move(left time.Duration) (until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until, l.looks = time.Now().Add(left), 0
	return l.until
}

func (l *lease) looked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.looks
}

// messages are the messages of a wrapper.
type messages struct {
	mu   sync.Mutex
	list []string // guarded by mu
}

func (m *messages) log(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = append(m.list, fmt.Sprintf(format, args...))
}

// all returns the messages so far, one a line.
func (m *messages) all() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.list, "\n")
}

// signals are those of the test's process.
var signals = sync.OnceValue(CatchSignals)

// wrapped is a Run that goes on.
type wrapped struct {
	t       *testing.T
	lease   *lease
	said    messages
	revoked chan struct{}
	ended   chan struct{} // closed when Run has returned

	result Result // these are set by then
	err    error
}

// shell returns a command that runs a script, with its arguments.
func shell(script string, args ...string) Command {
	return Command{Path: "/bin/sh", Args: append([]string{"sh", "-c", script, "sh"}, args...), Env: os.Environ()}
}

// begin begins a Run of a wrapper that has files of sessions.
func begin(t *testing.T, timing Timing, c Command, sessions ...*os.File) *wrapped {
	t.Helper()
	w := &wrapped{t: t, lease: newLease(), revoked: make(chan struct{}), ended: make(chan struct{})}
	caught := signals()
	go func() {
		defer close(w.ended)
		w.result, w.err = Run(Config{Command: c, Lease: w.lease, Timing: timing, Signals: caught, Log: w.said.log, Revoked: w.revoked, Sessions: sessions})
	}()
	return w
}

// end waits until Run has returned, and checks that it has left no child.
func (w *wrapped) end() Result {
	w.t.Helper()
	select {
	case <-w.ended:
	case <-time.After(patience):
		w.t.Fatalf("Run has not returned within %v: %s", patience, w.said.all())
	}
	if w.err != nil {
		w.t.Fatal(w.err)
	}
	if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != syscall.ECHILD {
		w.t.Errorf("Run has left a child: %d, %v", pid, err)
	}
	return w.result
}

// isOver reports whether Run has returned.
func (w *wrapped) isOver() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// child is a child of this process.
type child struct {
	pid         int
	name, state string
}

// children returns the children of this process, those that are dead and not collected, too.
func children(t *testing.T) []child {
	t.Helper()
	return childrenOf(t, os.Getpid())
}

func childrenOf(t *testing.T, parent int) (all []child) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		text, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "stat"))
		_, rest, _ := strings.Cut(string(text), " (")
		name, rest, _ := strings.Cut(rest, ") ")
		fields := strings.Fields(rest) // the state, the parent
		pid, err := strconv.Atoi(entry.Name())
		if err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			all = append(all, child{pid, name, fields[0]})
		}
	}
	return all
}

// guard waits until the wrapper has a guard other than those, and returns its process id.
func (w *wrapped) guard(others ...int) (pid int) {
	w.t.Helper()
	return childOf(w.t, os.Getpid(), guardName, others...)
}

// childOf waits until a process has a child of that name, other than those, and returns its process id.
func childOf(t *testing.T, parent int, name string, others ...int) (pid int) {
	t.Helper()
	eventually(t, "there is a "+name, func() bool {
		for _, c := range childrenOf(t, parent) {
			if c.name == name && c.state != "Z" && !slices.Contains(others, c.pid) {
				pid = c.pid
				return true
			}
		}
		return false
	})
	return pid
}

// witness is a named pipe that processes of a command open for writing, and have open until they
// are dead.
type witness struct {
	t    *testing.T
	path string
	fd   int
}

func newWitness(t *testing.T) *witness {
	t.Helper()
	w := &witness{t: t, path: filepath.Join(t.TempDir(), "witness")}
	if err := syscall.Mkfifo(w.path, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.fd, err = syscall.Open(w.path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(w.fd) })
	return w
}

// alive reports whether a process is alive that has the pipe open.
func (w *witness) alive() bool {
	w.t.Helper()
	for {
		n, err := syscall.Read(w.fd, make([]byte, 1))
		switch {
		case err == syscall.EINTR:
		case errors.Is(err, syscall.EAGAIN):
			return true
		case err == nil && n == 0:
			return false
		default:
			w.t.Fatalf("read the pipe: %d bytes, %v", n, err)
		}
	}
}

// lives waits until a process has the pipe open, and dies until none has.
func (w *witness) lives() {
	w.t.Helper()
	eventually(w.t, "a process of the command is alive", w.alive)
}

func (w *witness) dies() {
	w.t.Helper()
	eventually(w.t, "all processes of the command are dead", func() bool { return !w.alive() })
}
