package ensemble_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
)

// crashEnv is the environment variable that makes the test binary the process that crashes.
const crashEnv = "ZKLOCK_TEST_CRASH"

// alive reports whether a process exists and is not a zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The format is "pid (command) state"; the command may contain any characters.
	_, state, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

func TestServersDieWithACrashedTestProcess(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	if os.Getenv(crashEnv) == "1" {
		e, err := ensemble.New(ensemble.Config{Servers: 3})
		must(t, err)
		for _, s := range e.Servers() {
			fmt.Println("pid", s.PID())
		}
		must(t, e.Server(1).Freeze()) // a frozen process has to end, too
		must(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), crashEnv+"=1", "TMPDIR="+t.TempDir())
	out, err := cmd.Output()
	if err == nil {
		t.Fatalf("the process that should have crashed did not:\n%s", out)
	}
	n := 0
	for line := range strings.Lines(string(out)) {
		var pid int
		if _, err := fmt.Sscanf(line, "pid %d", &pid); err == nil {
			n++
			eventually(t, fmt.Sprintf("process %d is gone", pid), func() bool { return !alive(pid) })
		}
	}
	if n != 3 {
		t.Fatalf("%d servers were started, want 3:\n%s", n, out)
	}
}

func TestServersOutliveTheThreadThatStartedThem(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{})
	s := e.Server(0)
	s.Kill()
	started := make(chan error)
	tid := make(chan int, 1)
	var start func()
	start = func() {
		runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
		if syscall.Gettid() == syscall.Getpid() {
			// Only the main thread never ends. While this goroutine is locked
			// to it, another goroutine gets another thread.
			inner := make(chan struct{})
			go func() { defer close(inner); start() }()
			<-inner
			runtime.UnlockOSThread()
			return
		}
		tid <- syscall.Gettid()
		started <- s.Start()
	}
	go start()
	must(t, <-started)
	task := fmt.Sprintf("/proc/self/task/%d", <-tid)
	eventually(t, "the thread has ended", func() bool { _, err := os.Stat(task); return err != nil })
	must(t, s.AwaitServing())
}

func TestNothingRunsAfterClose(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	e, err := ensemble.New(ensemble.Config{})
	must(t, err)
	pid := e.Server(0).PID()
	if !alive(pid) {
		t.Errorf("process %d of a running server does not exist", pid)
	}
	must(t, e.Close())
	if alive(pid) {
		t.Errorf("process %d runs after Close", pid)
	}
	must(t, e.Close())
}

// SIGSTOP is asynchronous: a server that is stopped while it works could answer once more.
func TestFrozenServerDoesNotAnswer(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{})
	s := e.Server(0)
	work := make(chan struct{})
	var workers sync.WaitGroup
	for range 4 { // keep its threads running
		workers.Go(func() {
			for {
				select {
				case <-work:
					return
				default:
					_, _ = s.Stats()
				}
			}
		})
	}
	defer workers.Wait()
	defer close(work)
	for range 30 {
		must(t, s.Freeze())
		for range 3 {
			c, err := net.Dial("tcp", s.Addr())
			must(t, err)
			_, err = c.Write([]byte("ruok"))
			must(t, err)
			must(t, c.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
			if n, err := c.Read(make([]byte, 4)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("a frozen server answered %d bytes, %v", n, err)
			}
			c.Close()
		}
		must(t, s.Thaw())
		must(t, s.AwaitServing())
	}
}
