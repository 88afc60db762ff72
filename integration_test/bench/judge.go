package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/zklock/go-zklock/contrib/locktest/history"
	"github.com/zklock/go-zklock/contrib/locktest/judge"
	curatorjars "github.com/zklock/go-zklock/integration_test/curator"
	"github.com/zklock/go-zklock/integration_test/kazoo"
)

// tools are the programs that kill holders and watch session directories.
type tools struct{ locktest, worker, zklock string }

// project is where the programs are.
const project = "github.com/zklock/go-zklock/"

// buildTools builds the programs into dir.
func buildTools(ctx context.Context, dir string) (t tools, err error) {
	for path, of := range map[*string]string{&t.locktest: "contrib/locktest/cmd/locktest", &t.worker: "contrib/locktest/workers/zklock", &t.zklock: "cmd/zklock"} {
		*path = filepath.Join(dir, strings.ReplaceAll(of, "/", "-"))
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", *path, project+of).CombinedOutput(); err != nil {
			return t, fmt.Errorf("build %s: %w: %s", of, err, out)
		}
	}
	return t, nil
}

// serversTick is the key of zklock's URL for the tickTime of the servers: see serve.
const serversTick = "tick_time=2s"

// errBroken is the error if the judge says that a library does not exclude.
var errBroken = errors.New("the judge says that the locks do not exclude each other")

// kill has the judge kill holders, and returns the seconds until each had a successor. The files' paths begin with
// path.
func (b *runner) kill(ctx context.Context, t tools, s succession, path string, kills int) ([]float64, error) {
	addrs, ok := b.servers.hosts, true
	if s.servers != "" {
		if addrs, ok = b.addrs[s.servers]; !ok {
			return nil, errors.New("there are no servers of it: see -peers")
		}
	}
	args := []string{
		"-kills", fmt.Sprint(kills), "-names", fmt.Sprint(min(s.chains, kills)), "-beat", s.beat.String(), fmt.Sprintf("-restart=%v", s.restart),
		"-ttl", s.ttl.String(), "-addrs", addrs, "-history", path, "-seed", fmt.Sprint(rand.Uint64()),
	}
	if s.dirs == 0 {
		args = append(args, "-library", s.library)
	}
	var workers []string
	for i := range s.dirs {
		sessions := fmt.Sprintf("%s-sessions-%d", path, i)
		workers = append(workers, fmt.Sprintf("env LOCKTEST_ZKLOCK=%s&session_dir=%s %s", serversTick, sessions, t.worker))
		if !s.reaped {
			continue
		}
		reaper := exec.CommandContext(ctx, t.zklock, "reap", "--wait", sessions)
		if err := reaper.Start(); err != nil {
			return nil, err
		}
		defer func() {
			_ = reaper.Process.Kill() // an error means that it has ended already
			_ = reaper.Wait()         // always an error
		}()
	}
	if s.dirs > 0 {
		args = append(args, "-worker", strings.Join(workers, " + "))
	}
	var output tail
	tool := exec.CommandContext(ctx, t.locktest, args...)
	tool.Stdout, tool.Stderr = &output, &output
	tool.Cancel, tool.WaitDelay = func() error { return tool.Process.Signal(os.Interrupt) }, patience
	tool.Env = append(os.Environ(), "LOCKTEST_ZKLOCK="+serversTick)
	for theirs, mine := range map[string]string{"LOCKTEST_CURATOR": curatorjars.Env, "LOCKTEST_KAZOO": kazoo.Env} {
		if folder := os.Getenv(mine); folder != "" {
			tool.Env = append(tool.Env, theirs+"="+folder)
		}
	}
	failed := tool.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(failed, &exit) && exit.ExitCode() == 1:
		return nil, fmt.Errorf("%w: %s", errBroken, output.String())
	case failed != nil:
		return nil, fmt.Errorf("%w: %s", failed, output.String())
	}
	return b.seconds(s, path, kills)
}

// seconds reads a history.
func (b *runner) seconds(s succession, path string, kills int) ([]float64, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	events, err := history.ReadFrom(file)
	if err != nil {
		return nil, err
	}
	if lost := judge.Measure(events).Losses; lost > 0 {
		b.say("%s: %d holders had lost the lock before they were killed", s.name, lost)
	}
	var seconds []float64
	for _, took := range judge.Successions(events) {
		seconds = append(seconds, took.Seconds())
	}
	if len(seconds) != kills {
		return nil, fmt.Errorf("%d of %d kills were measured: others had lost the lock at that moment", len(seconds), kills)
	}
	return seconds, nil
}
