package servers_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/servers"
)

// straceIs makes strace a script, in a folder that it returns. The script has the process that it is for in $pid.
func straceIs(t *testing.T, script string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	text := fmt.Sprintf("#!/bin/sh\ncd '%s'\necho $$ >tracer\nfor pid; do :; done\n%s\n", dir, script)
	if err := os.WriteFile(filepath.Join(dir, "strace"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return dir
}

// sleeper is a server that only waits.
func sleeper(t *testing.T) *servers.Processes {
	t.Helper()
	p, err := servers.Run([]servers.Command{{Path: "sleep", Args: []string{"600"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// tracerRuns reports whether the process of the script exists.
func tracerRuns(t *testing.T, dir string) bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "tracer"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(pid)
	return err == nil && process.Signal(syscall.Signal(0)) == nil
}

// TestSlowWaitsUntilStraceHasAttached: calls are slow when Slow returns, and strace runs until they are fast again, or until
// the servers are closed, also if the server was killed meanwhile.
func TestSlowWaitsUntilStraceHasAttached(t *testing.T) {
	dir := straceIs(t, `sleep 0.3; >attached; echo "strace: Process $pid attached with 3 threads" >&2; exec sleep 600`)
	p := sleeper(t)
	for what, ends := range map[string]func() error{
		"fast":          func() error { return p.Slow(0, 0) },
		"killed, fast":  func() error { return cmp.Or(p.Kill(0), p.Slow(0, 0)) },
		"killed, close": func() error { return cmp.Or(p.Kill(0), p.Close()) },
		"close":         p.Close,
	} {
		if err := p.Kill(0); err != nil {
			t.Fatal(err)
		}
		if err := p.Start(0); err != nil {
			t.Fatal(err)
		}
		if err := p.Slow(0, time.Millisecond); err != nil {
			t.Fatal(err)
		}
		attached := filepath.Join(dir, "attached")
		if err := os.Remove(attached); err != nil || !tracerRuns(t, dir) {
			t.Errorf("%s: %v; strace runs: %v, want that it has attached and runs", what, err, tracerRuns(t, dir))
		}
		if err := ends(); err != nil || tracerRuns(t, dir) {
			t.Errorf("%s: %v; strace still runs: %v", what, err, tracerRuns(t, dir))
		}
	}
}

// TestSlowWithoutAttachment: strace that may not attach is an error, with what it printed.
func TestSlowWithoutAttachment(t *testing.T) {
	const refused = "attach: ptrace(PTRACE_SEIZE): Operation not permitted"
	for script, want := range map[string]string{
		`echo "strace: ` + refused + `" >&2; exit 1`: refused,
		`exit 1`: "nothing",
		`echo "strace: Process 1 attached" >&2; exit 1`: "Process 1 attached",
	} {
		straceIs(t, script)
		p := sleeper(t)
		if err := p.Slow(0, time.Millisecond); err == nil || !strings.Contains(err.Error(), "server 1") || !strings.Contains(err.Error(), want) {
			t.Errorf("strace %s: %v, want an error of server 1 with %q", script, err, want)
		}
		if err := p.Slow(0, 0); err != nil {
			t.Error(err)
		}
	}
}
