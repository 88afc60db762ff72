//go:build linux

package command_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/census"
	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/wait"
	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/zkdriver"
)

// root is the root of all locks of these tests.
const root = "/command"

// longTimeout is the session timeout of all tests whose sessions do not expire: they keep their locks even if an answer takes seconds.
const longTimeout = 30 * time.Second

// timeout is that of sessions that a test lets expire, and tick the servers' tickTime. With ZKLOCK_SHIPPED they are the defaults.
var timeout, tick = times()

func times() (timeout, tick time.Duration) {
	if census.AsShipped() {
		return longTimeout, 2 * time.Second
	}
	return 10 * time.Second, 500 * time.Millisecond
}

// urlOf returns the URL of some servers, with a long session timeout. A run that waits while servers are
// down goes on waiting.
func urlOf(hosts string) string { return urlWith(hosts, longTimeout) }

// quickURL is urlOf with a session that soon expires.
func quickURL(hosts string) string { return urlWith(hosts, timeout) }

func urlWith(hosts string, timeout time.Duration) string {
	return "zk://" + hosts + root + "?tick_time=" + tick.String() + "&session_timeout=" + timeout.String() + "&connect_timeout=" + patience.String()
}

// process is a process of the command under test.
type process struct {
	cmd    *exec.Cmd
	stdout buffer
	stderr buffer
	done   chan struct{} // closed when it has ended
}

// buffer is what a process has printed so far.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// start starts the command under test. It is killed at the end of the test.
func start(t testing.TB, url string, env []string, args ...string) *process {
	t.Helper()
	p := prepared(binary(t), args...)
	p.cmd.Env = append(os.Environ(), append([]string{"ZKLOCK_URL=" + url}, env...)...)
	p.begin(t)
	return p
}

// prepared returns a process that is not started yet.
func prepared(name string, args ...string) *process {
	p := &process{cmd: exec.Command(name, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.cmd.WaitDelay = patience / 2
	return p
}

// begin starts the process that was prepared.
func (p *process) begin(t testing.TB) {
	t.Helper()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("%v, ended %v, printed %q and %q", p.cmd.Args, p.cmd.ProcessState, p.stdout.String(), p.stderr.String())
		}
	})
}

// signal sends a signal to the process.
func (p *process) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal %v: %v", sig, err)
	}
}

// code waits for the end of the process and returns its exit code, or -1 if a signal has ended
// it.
func (p *process) code(t testing.TB) int {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-p.done:
	case <-limit.C:
		t.Fatalf("%v has not ended within %v; it printed %q", p.cmd.Args, patience, p.stderr.String())
	}
	return p.cmd.ProcessState.ExitCode()
}

// finish runs the command under test to its end and returns its exit code, and what it has
// printed.
func finish(t testing.TB, url string, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	p := start(t, url, env, args...)
	code = p.code(t)
	return code, p.stdout.String(), p.stderr.String()
}

// finishWith is finish for a process that reads a text from its standard input.
func finishWith(t testing.TB, url, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	p := prepared(binary(t), args...)
	p.cmd.Env = append(os.Environ(), "ZKLOCK_URL="+url)
	p.cmd.Stdin = strings.NewReader(stdin)
	p.begin(t)
	code = p.code(t)
	return code, p.stdout.String(), p.stderr.String()
}

var eventually = wait.Until

// names makes names of locks that no other test uses.
var names struct {
	sync.Mutex
	given int
}

func newName(t testing.TB) string {
	names.Lock()
	defer names.Unlock()
	names.given++
	return fmt.Sprintf("%s/%d-%d", t.Name(), os.Getpid(), names.given)
}

// observer opens a client of the servers, for what a test wants to know of a queue.
func observer(t testing.TB, e *ensemble.Ensemble) *zklock.Client {
	t.Helper()
	c, err := zklock.Open(urlOf(e.Hosts()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// awaitQueue waits until a name has n contenders.
func awaitQueue(t testing.TB, c *zklock.Client, name string, n int) []zklock.Contender {
	t.Helper()
	var queue []zklock.Contender
	eventually(t, fmt.Sprintf("%s has %d contenders", name, n), func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		var err error
		if queue, err = c.Contenders(ctx, name); err != nil {
			t.Fatal(err)
		}
		return len(queue) == n
	})
	return queue
}

// lines returns the lines of a file.
func lines(t testing.TB, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}
