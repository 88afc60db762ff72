package integration_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/wait"
	"github.com/zklock/go-zklock/zklock"
)

// buildServer returns the program of make server.
func buildServer(t *testing.T) string {
	t.Helper()
	ensemble.Require(t)
	program := filepath.Join(t.TempDir(), "server")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./server").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// On a busy machine a server may take a minute until it serves. A TERM ends it before that, with its data.
func TestServerForTryingEndsWhileItStarts(t *testing.T) {
	t.Parallel()
	program, data := buildServer(t), t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-port", "0")
	cmd.Env = append(os.Environ(), "TMPDIR="+data)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	files := func() []string {
		all, err := filepath.Glob(filepath.Join(data, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	wait.Until(t, "its data", func() bool { return len(files()) > 0 })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(out.String(), "stopped before it did serve") {
		t.Errorf("it ended with %v after a TERM at its start, and printed %q", err, out.String())
	}
	if left := files(); len(left) > 0 {
		t.Errorf("it left %q", left)
	}
}

// TestServerForTryingServesUntilItIsInterrupted runs the command of make server.
func TestServerForTryingServesUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	program := buildServer(t)
	port := strconv.Itoa(ensemble.FreePort(t)) // no other test gets it until the server listens
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-port", port)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(line, "zk://127.0.0.1:"+port) {
		t.Errorf("it printed %q (%v), want the address with port %s", line, err, port)
	}
	c := dial(t, "127.0.0.1:"+port, nil)
	lock, err := zklock.All(c.Mutex("a"), c.Mutex("b")).Acquire(within(t))
	if err != nil {
		t.Fatal(err)
	}
	release(t, lock)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("its end after an interrupt: %v, want no error", err)
	}
	if again := exec.CommandContext(ctx, program, "-port", strconv.Itoa(-1)); again.Run() == nil {
		t.Error("it accepts the port -1")
	}
}

// TestServersForTryingGoOnWithoutOne: make server SERVERS=3 prints the hosts of a URL, and of each server the process. Locks work
// while one of them is stopped, as the documents let a reader try.
func TestServersForTryingGoOnWithoutOne(t *testing.T) {
	t.Parallel()
	program := buildServer(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-port", "0", "-servers", "3")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	_, hosts, _ := strings.Cut(line, "zk://")
	hosts, _, _ = strings.Cut(hosts, ". ")
	if err != nil || strings.Count(hosts, ",") != 2 {
		t.Fatalf("it printed %q (%v), want three hosts", line, err)
	}
	process := 0
	for _, host := range strings.Split(hosts, ",") {
		line, _ := lines.ReadString('\n')
		at, pid, _ := strings.Cut(strings.TrimSpace(line), " is process ")
		if process, err = strconv.Atoi(pid); err != nil || at != host {
			t.Errorf("it printed %q of %s", line, host)
		}
	}
	c := dial(t, hosts, nil)
	if err := syscall.Kill(process, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	lock, err := c.Mutex("a").Acquire(within(t))
	if err != nil {
		t.Fatal(err)
	}
	release(t, lock)
	if err := errors.Join(c.Close(), syscall.Kill(process, syscall.SIGCONT), cmd.Process.Signal(os.Interrupt), cmd.Wait()); err != nil {
		t.Error(err)
	}
	if none := exec.CommandContext(ctx, program, "-servers", "0"); none.Run() == nil {
		t.Error("it accepts no servers")
	}
}
