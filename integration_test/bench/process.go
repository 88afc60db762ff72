package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// patience bounds each wait for a process's answer, in addition to the time of the work itself.
const patience = 2 * time.Minute

// process is a worker, in any language. Package worker documents the commands and the
// answers.
type process struct {
	name   string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  chan string
	stderr tail
	ended  chan struct{}
}

func startProcess(name string, cmd *exec.Cmd) (*process, error) {
	p := &process{name: name, cmd: cmd, lines: make(chan string, 1), ended: make(chan struct{})}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.stdin, cmd.Stderr = stdin, &p.stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	go func() {
		defer close(p.ended)
		defer close(p.lines)
		for scan := bufio.NewScanner(stdout); scan.Scan(); {
			p.lines <- scan.Text()
		}
		_ = cmd.Wait() // a process that ended too early shows by its missing answer
	}()
	return p, nil
}

// send sends a line to the process.
func (p *process) send(format string, args ...any) error {
	if _, err := fmt.Fprintf(p.stdin, format+"\n", args...); err != nil {
		return fmt.Errorf("%s: %w: %s", p.name, err, p.stderr.String())
	}
	return nil
}

// answer waits for a line that begins with want, and returns the rest of it.
func (p *process) answer(want string, limit time.Duration) (string, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case line, ok := <-p.lines:
		if !ok {
			return "", fmt.Errorf("%s has ended: %s", p.name, p.stderr.String())
		}
		word, rest, _ := strings.Cut(line, " ")
		if word != want {
			return "", fmt.Errorf("%s: %s", p.name, line)
		}
		return rest, nil
	case <-timer.C:
		return "", fmt.Errorf("%s did not answer for %v", p.name, limit)
	}
}

// ask sends a line to the process and returns the answer.
func (p *process) ask(format string, args ...any) (string, error) {
	if err := p.send(format, args...); err != nil {
		return "", err
	}
	return p.answer("done", patience)
}

// work sends a command that the process prepares, lets it begin, and returns the answer, which may take
// as long as the work and patience.
func (p *process) work(command string, length time.Duration) (string, error) {
	if err := p.send("%s", command); err != nil {
		return "", err
	}
	if _, err := p.answer("ready", patience); err != nil {
		return "", err
	}
	if err := p.send("go"); err != nil {
		return "", err
	}
	return p.answer("done", length+patience)
}

// close ends the process by closing its input, and kills it if it has not ended after 10
// seconds.
func (p *process) close() {
	_ = p.stdin.Close()
	timer := time.AfterFunc(10*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	for range p.lines {
	}
	<-p.ended
}

// figures are the results of a turn, by name.
type figures map[string]float64

// parseFigures reads "key=value key=value".
func parseFigures(line string) (figures, error) {
	f := make(figures)
	for _, word := range strings.Fields(line) {
		key, value, _ := strings.Cut(word, "=")
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("figures %q: %w", line, err)
		}
		f[key] = v
	}
	if len(f) == 0 {
		return nil, errors.New("the answer has no figures")
	}
	return f, nil
}

// tail keeps the last bytes that are written to it.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (t *tail) Write(b []byte) (int, error) {
	const most = 2 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(b)
	if n := t.buf.Len(); n > 2*most {
		t.buf.Next(n - most)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(t.buf.String())
}

// ours returns a function that makes the command that runs this program as a worker.
func (b *runner) ours(library string) func() (*exec.Cmd, error) {
	return func() (*exec.Cmd, error) {
		exe, err := os.Executable()
		if err != nil {
			return nil, err
		}
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), workerEnv+"="+b.servers.hosts+" "+library)
		return cmd, nil
	}
}
