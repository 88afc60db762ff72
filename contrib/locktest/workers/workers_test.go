// Package workers_test judges the workers of this module on real servers.
package workers_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// libraries are the folders of the workers, and what is known of each.
var libraries = map[string]struct {
	file   string
	passes bool // a run must pass; the others may fail, which is what they are judged for
}{
	"zklock":  {"main.go", true},
	"zk":      {"main.go", false},
	"curator": {"Worker.java", false},
	"kazoo":   {"worker.py", false},
	"etcd":    {"main.go", false},
	"redsync": {"main.go", false},
}

// TestWorkersAreShort: a worker is short enough to be read together with the documentation of its library.
func TestWorkersAreShort(t *testing.T) {
	for library, known := range libraries {
		text, err := os.ReadFile(filepath.Join(library, known.file))
		if lines := strings.Count(string(text), "\n"); err != nil || lines > 150 {
			t.Errorf("the worker of %s has %d lines, %v, want 150 at most", library, lines, err)
		}
	}
}

// TestWorkers runs each worker on three servers, with all faults, by the command. It takes more than a minute for
// each.
func TestWorkers(t *testing.T) {
	if os.Getenv("ZKLOCK_LONG") != "1" {
		t.Skip("it takes minutes: set ZKLOCK_LONG=1")
	}
	command := filepath.Join(t.TempDir(), "locktest")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", command, "github.com/zklock/go-zklock/contrib/locktest/cmd/locktest")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for library, known := range libraries {
		t.Run(library, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), command, "-library", library, "-for", "1m", "-seed", "7").CombinedOutput()
			t.Logf("%s", out)
			var failed *exec.ExitError
			switch {
			case strings.Contains(string(out), "found: install"):
				t.Skip("the library or its servers are not installed")
			case errors.As(err, &failed) && failed.ExitCode() == 1 && !known.passes:
			case err != nil:
				t.Error(err)
			}
		})
	}
}
