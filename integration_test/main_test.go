// Package integration_test has the tests that need real ZooKeeper servers. Each test starts
// the servers that it needs. If no ZooKeeper is installed, these tests are skipped; with
// ZKLOCK_TEST_REQUIRED=1 they fail.
package integration_test

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
)

// shared is the server, and trio the three servers, of the tests that do not disturb their
// servers.
var shared, trio sharedServers

// sharedServers are started by the first test that uses them, and end with the process.
type sharedServers struct {
	once     sync.Once
	ensemble *ensemble.Ensemble
	err      error
}

func (s *sharedServers) get(t testing.TB, start func() (*ensemble.Ensemble, error)) *ensemble.Ensemble {
	t.Helper()
	s.once.Do(func() { s.ensemble, s.err = start() })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.ensemble
}

// sharedEnsemble returns the shared server. A test that uses it must not disturb it, and
// must use a separate root.
func sharedEnsemble(t testing.TB) *ensemble.Ensemble {
	t.Helper()
	if os.Getenv(ensemble.ServersEnv) == "" {
		ensemble.Require(t)
	}
	return shared.get(t, func() (*ensemble.Ensemble, error) {
		if e, err := ensemble.Running(); e != nil || err != nil {
			return e, err
		}
		return ensemble.New(ensemble.Config{ContainerCheckInterval: time.Second})
	})
}

// trioOfServers returns the three servers. The same holds for a test that uses them.
func trioOfServers(t testing.TB) *ensemble.Ensemble {
	t.Helper()
	ensemble.Require(t)
	return trio.get(t, func() (*ensemble.Ensemble, error) {
		return ensemble.New(ensemble.Config{Servers: 3, MaxSessionTimeout: time.Minute})
	})
}

func TestMain(m *testing.M) {
	runtime.LockOSThread() // the kernel ends the searched process when the thread that started it ends
	if code, ran := runSearched(); ran {
		os.Exit(code)
	}
	runtime.UnlockOSThread()
	if code, ran := runPeer(); ran {
		os.Exit(code)
	}
	if code, ran := runWorker(); ran {
		os.Exit(code)
	}
	slog.SetDefault(searchedLog()) // drivers log there
	code := m.Run()
	for _, s := range []*sharedServers{&shared, &trio} {
		if s.ensemble == nil {
			continue
		}
		if err := s.ensemble.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(max(code, reportSighted()))
}

// TestSharedEnsembleMayRunAlready runs a test of this package on a server that is given to it.
func TestSharedEnsembleMayRunAlready(t *testing.T) {
	t.Parallel()
	if os.Getenv(ensemble.ServersEnv) != "" {
		t.Skip("the servers are given to this run already")
	}
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{})
	before, err := e.Server(0).Status()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOperatorDeletesTheHoldersNode$", "-test.v")
	// Without Java and ZooKeeper, the test can use the given server only.
	cmd.Env = append(os.Environ(), ensemble.ServersEnv+"="+e.Hosts(), ensemble.HomeEnv+"=/nonexistent", ensemble.RequiredEnv+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestOperatorDeletesTheHoldersNode") {
		t.Errorf("%v\n%s", err, out)
	}
	after, err := e.Server(0).Status()
	if err != nil {
		t.Fatal(err)
	}
	if after.Zxid < before.Zxid+10 {
		t.Errorf("the test made %d transactions on the given server", after.Zxid-before.Zxid)
	}
}

func TestSharedEnsembleServesUnderItsURL(t *testing.T) {
	t.Parallel()
	e := sharedEnsemble(t)
	answer, err := e.Server(0).FourLetter("ruok")
	if err != nil || answer != "imok" {
		t.Errorf("ruok: %q, %v", answer, err)
	}
	if sharedEnsemble(t) != e {
		t.Error("a second call started another ensemble")
	}
}
