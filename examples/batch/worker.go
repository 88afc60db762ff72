package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// The variables that make this program a worker: the path of its database, the ensemble's
// URL, and whether it records no tokens. Arguments would be visible to other users, and
// the URL may contain a password.
const (
	workerEnv   = "BATCH_WORKER"
	urlEnv      = "BATCH_URL"
	unfencedEnv = "BATCH_UNFENCED"
)

// starter starts workers: processes if the ensemble is real, goroutines if it is in memory.
type starter struct {
	url      string
	path     string // of the database
	unfenced bool
	ensemble *memdriver.Ensemble // the one in memory, or nil
}

func newStarter(url, path string, unfenced bool) *starter {
	s := &starter{url: url, path: path, unfenced: unfenced}
	if strings.HasPrefix(url, "mem://") {
		s.ensemble = memdriver.New(memdriver.WithTickTime(tick))
	}
	return s
}

func (s *starter) close() {
	if s.ensemble != nil {
		_ = s.ensemble.Close()
	}
}

// worker is a worker as the play sees it. Its methods are for one goroutine at a time.
type worker struct {
	in    io.Writer
	lines *bufio.Scanner
	pause func() (resume func() error, err error)
	end   func() // ends it if it still works, and returns when it has ended
}

func (w *worker) goAhead() error {
	_, err := fmt.Fprintln(w.in)
	return err
}

// follow prints what the worker does and lets it go on, up to the given line or to its
// last one. It returns that line.
func (w *worker) follow(to, name string, out io.Writer) (last string, err error) {
	for w.lines.Scan() {
		text := w.lines.Text()
		fmt.Fprintln(out, name, text)
		switch {
		case text == to || !strings.HasPrefix(text, writes) && !strings.HasPrefix(text, holds):
			return text, nil
		case strings.HasPrefix(text, writes):
			if err := w.goAhead(); err != nil {
				return "", err
			}
		}
	}
	return "", errors.Join(fmt.Errorf("%s has ended without a word", name), w.lines.Err())
}

func (s *starter) start(ctx context.Context) (*worker, error) {
	if s.ensemble != nil {
		return s.startGoroutine(ctx)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, program) // killed when ctx ends
	cmd.Env = append(os.Environ(), workerEnv+"="+s.path, urlEnv+"="+s.url, fmt.Sprintf("%s=%t", unfencedEnv, s.unfenced))
	cmd.Stderr = os.Stderr
	in, errIn := cmd.StdinPipe()
	lines, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut); err != nil {
		cancel()
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	return &worker{
		in: in, lines: bufio.NewScanner(lines),
		pause: func() (func() error, error) { return pauseProcess(cmd.Process) },
		end:   func() { cancel(); _ = cmd.Wait() },
	}, nil
}

// workerProcess is the whole life of a worker that is a process.
func workerProcess(ctx context.Context, path string) error {
	client, err := zklock.Open(os.Getenv(urlEnv))
	if err != nil {
		return err
	}
	defer client.Close()
	runJob(ctx, client, path, os.Getenv(unfencedEnv) == "true", os.Stdin, os.Stdout)
	return nil
}
