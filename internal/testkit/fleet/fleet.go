// Package fleet runs processes for tests that need several: each process is the test binary
// again, in a role that the test chooses. The tests of the modules below contrib use it.
//
//	func TestMain(m *testing.M) {
//		os.Exit(fleet.Main(m, map[string]fleet.Role{"migrate": migrate}))
//	}
//
//	p := fleet.Start(t, "migrate", url)
//	p.Expect("began")
//	p.Kill()
package fleet

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// environment is the variable with the role and the arguments of a member process.
const environment = "ZKLOCK_TEST_FLEET"

// patience bounds each wait for a process.
const patience = 2 * time.Minute

// Role is the work of a member process. The process ends when the Role has returned.
type Role func(m *Member) error

// Member is the member process's own view.
type Member struct {
	// Args are the arguments that the test gave to Start.
	Args []string

	mu    sync.Mutex  // for os.Stdout
	lines chan string // from the test; closed when the test has ended
}

// Say prints a line: a word, and the rest. The test can wait for it with Expect. Each line is
// one write, so that the lines of a process that is killed are whole. It is safe for concurrent
// use.
func (m *Member) Say(word string, rest ...string) {
	line := strings.ReplaceAll(strings.Join(append([]string{word}, rest...), " "), "\n", " ")
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _ = io.WriteString(os.Stdout, line+"\n")
}

// Await waits for a line that the test sends with Process.Send. It returns an error when the
// test has ended.
func (m *Member) Await() (string, error) { return m.AwaitIn(context.Background()) }

// AwaitIn waits like Await. If ctx ends first, the member says "cancelled" and the cause, and
// AwaitIn returns the cause: the member's work must stop.
func (m *Member) AwaitIn(ctx context.Context) (string, error) {
	select {
	case line, ok := <-m.lines:
		if !ok {
			return "", io.EOF
		}
		return line, nil
	case <-ctx.Done():
		m.Say("cancelled", context.Cause(ctx).Error())
		return "", context.Cause(ctx)
	}
}

// order is what a member process is to do.
type order struct {
	Role string
	Args []string
}

// Main is for TestMain. In a member process it runs the role, and in all others the tests. It
// returns the exit code.
func Main(m *testing.M, roles map[string]Role) int {
	text := os.Getenv(environment)
	if text == "" {
		return m.Run()
	}
	member := &Member{lines: make(chan string)}
	go func() {
		defer close(member.lines)
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			member.lines <- lines.Text()
		}
	}()
	var o order
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		role, ok := roles[o.Role]
		if !ok {
			err = fmt.Errorf("TestMain does not have the role %q", o.Role)
		} else {
			member.Args = o.Args
			err = role(member)
		}
	}
	if err != nil {
		member.Say("error", err.Error())
		return 1
	}
	member.Say("done")
	return 0
}

// Process is the test's view of a member process. Its methods, Send and Kill apart, are for the
// test's goroutine only.
type Process struct {
	t     testing.TB
	cmd   *exec.Cmd
	stdin io.Writer
	lines chan string // closed when the process has ended
	ended chan struct{}
}

// Start starts a process in a role of TestMain. The process is killed when the test has ended.
func Start(t testing.TB, role string, args ...string) *Process {
	t.Helper()
	text, err := json.Marshal(order{Role: role, Args: args})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{t: t, cmd: exec.Command(self), lines: make(chan string, 1<<14), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), environment+"="+string(text))
	p.cmd.Stderr = os.Stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			p.lines <- lines.Text()
		}
		_ = p.cmd.Wait() // a killed process ends with an error, too
		close(p.lines)
	}()
	t.Cleanup(p.Kill)
	return p
}

// Expect waits for a line that begins with a word, and returns the rest of the line. It skips
// other lines. It fails the test when the process says that it has failed, and when it ends.
func (p *Process) Expect(word string) string {
	p.t.Helper()
	return p.ExpectWithout(word, "")
}

// ExpectWithout waits like Expect. If it reads a line that begins with the word other before that,
// the test fails.
func (p *Process) ExpectWithout(word, other string) string {
	p.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		select {
		case line, ok := <-p.lines:
			first, rest, _ := strings.Cut(line, " ")
			switch {
			case !ok:
				p.t.Fatalf("process %d has ended without saying %q", p.cmd.Process.Pid, word)
			case first == word:
				return rest
			case first == other:
				p.t.Fatalf("process %d has said %q too early", p.cmd.Process.Pid, line)
			case first == "error":
				p.t.Fatalf("process %d: %s", p.cmd.Process.Pid, rest)
			}
		case <-limit.C:
			p.t.Fatalf("process %d has not said %q for %v", p.cmd.Process.Pid, word, patience)
		}
	}
}

// Silent fails the test if the process has said a line that begins with one of the words. It
// consumes what the process has said so far.
func (p *Process) Silent(words ...string) {
	p.t.Helper()
	for {
		select {
		case line, ok := <-p.lines:
			if first, _, _ := strings.Cut(line, " "); ok && slices.Contains(words, first) {
				p.t.Errorf("process %d has said %q too early", p.cmd.Process.Pid, line)
			}
			if ok {
				continue
			}
		default:
		}
		return
	}
}

// Send sends a line. The member waits for it with Await.
func (p *Process) Send(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		p.t.Error(err)
	}
}

// Kill ends the process with SIGKILL, if it has not ended yet, and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // an error means that it has ended already
	for range p.lines {
	}
	<-p.ended
}
