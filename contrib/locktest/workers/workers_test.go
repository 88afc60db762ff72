// Package workers_test judges the workers of this module on real servers.
package workers_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest"
	"github.com/zklock/go-zklock/contrib/locktest/fault"
	"github.com/zklock/go-zklock/contrib/locktest/judge"
	"github.com/zklock/go-zklock/contrib/locktest/servers"
)

// libraries are the folders of the workers, and what is known of each.
var libraries = map[string]struct {
	passes bool // a run must pass
}{
	"zklock": {passes: true},
	"zk":     {}, // it may fail: it has no tokens, and leaves its node behind if a request after the create fails
}

// TestWorkersAreShort: a worker is short enough to be read together with the documentation of its library.
func TestWorkersAreShort(t *testing.T) {
	for library := range libraries {
		text, err := os.ReadFile(filepath.Join(library, "main.go"))
		if lines := strings.Count(string(text), "\n"); err != nil || lines > 150 {
			t.Errorf("the worker of %s has %d lines, %v, want 150 at most", library, lines, err)
		}
	}
}

// TestWorkers runs each worker on three servers, with all faults. It takes two minutes.
func TestWorkers(t *testing.T) {
	if os.Getenv("ZKLOCK_LONG") != "1" {
		t.Skip("it takes minutes: set ZKLOCK_LONG=1")
	}
	for library, known := range libraries {
		t.Run(library, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), library)
			if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./"+library).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			start, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			ensemble, err := servers.ZooKeeper(start, t.TempDir(), 3)
			if err != nil {
				t.Fatal(err)
			}
			defer ensemble.Close()
			c := locktest.Config{
				Worker: []string{path}, Ensemble: ensemble, TTL: 4 * time.Second, Seed: 7, Grants: 100, LongHolds: 50,
				Faults: fault.Plan{Seed: 7, Kinds: fault.Kinds, For: time.Minute, TTL: 4 * time.Second, Clients: 3, Servers: 3}.Schedule(),
			}
			events, err := locktest.Run(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			f := judge.Measure(events)
			t.Log("\n" + f.Table(library))
			if o, known := judge.Porcupine(judge.Holds(events), time.Minute); !known || !o.Agrees(f.Verdict) {
				t.Errorf("porcupine says %+v (known: %v), and the plain check %+v", o, known, f.Verdict)
			}
			if known.passes && !f.Passed() || f.Grants < c.Grants {
				t.Errorf("%d grants of %d; passed: %v", f.Grants, c.Grants, f.Passed())
			}
		})
	}
}
