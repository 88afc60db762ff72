// Package workers_test judges the workers of this module on real servers.
package workers_test

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// libraries are the folders of the workers, and whether a run of each must pass. The others may fail, which is
// what they are judged for.
var libraries = map[string]bool{"zklock": true, "zk": false, "curator": false, "kazoo": false, "etcd": false, "redsync": false}

// modes are those of zklock's worker, whose runs must pass.
var modes = []string{"alone", "async", "keep", "sessions", "dir", "writer", "all", "election", "curator", "kazoo", "zk"}

// TestWorkersAreShort: a worker is short enough to be read together with the documentation of its library.
func TestWorkersAreShort(t *testing.T) {
	for library := range libraries {
		files, err := filepath.Glob(filepath.Join(library, "*.*"))
		if err != nil || len(files) == 0 {
			t.Errorf("the worker of %s: %d files, %v", library, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if lines := strings.Count(string(text), "\n"); err != nil || lines > 150 {
				t.Errorf("%s has %d lines, %v, want 150 at most", file, lines, err)
			}
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
	passes := maps.Clone(libraries)
	for _, mode := range modes {
		passes["zklock:"+mode] = true
	}
	for library, must := range passes {
		t.Run(library, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), command, "-library", library, "-for", "1m", "-seed", "7").CombinedOutput()
			t.Logf("%s", out)
			var failed *exec.ExitError
			switch {
			case strings.Contains(string(out), "found: install"):
				t.Skip("the library or its servers are not installed")
			case errors.As(err, &failed) && failed.ExitCode() == 1 && !must:
			case err != nil:
				t.Error(err)
			}
		})
	}
}
