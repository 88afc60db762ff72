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

// patience bounds each wait for a process's answer, beyond the time that it was
// told to work.
const patience = 2 * time.Minute

// process is a worker, in whatever language; package worker has the lines that
// it is told and answers with.
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
		_ = cmd.Wait() // how it ended matters only if an answer is missing
	}()
	return p, nil
}

// tell gives the process a line.
func (p *process) tell(format string, args ...any) error {
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

// ask is tell and the answer to it.
func (p *process) ask(format string, args ...any) (string, error) {
	if err := p.tell(format, args...); err != nil {
		return "", err
	}
	return p.answer("done", patience)
}

// close ends the process: by the end of its input, or else for certain.
func (p *process) close() {
	_ = p.stdin.Close()
	timer := time.AfterFunc(10*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	for range p.lines {
	}
	<-p.ended
}

// figures is what a turn yielded, by name.
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
		return nil, errors.New("no figures")
	}
	return f, nil
}

// tail keeps the last of what is written to it.
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

// self is the command of this program as a worker.
func self(library, hosts string) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), workerEnv+"="+hosts+" "+library)
	return cmd, nil
}
