//go:build linux

// Package command_test tests the command zklock on real servers. The tests build it, run it as
// a process, and judge what happens from outside: by a file to which the commands append, by
// the states of processes, and by exit codes.
package command_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/go-zklock/integration_test/ensemble"
)

// patience bounds every wait of a test. A test that reaches it has found a hang.
const patience = 2 * time.Minute

// built is the command under test.
var built struct {
	once sync.Once
	dir  string
	path string
	err  error
}

// binary builds the command, with the race detector if this test has it.
func binary(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "zklock-"); built.err != nil {
			return
		}
		built.path = filepath.Join(built.dir, "zklock")
		args := []string{"build", "-o", built.path}
		if raceEnabled {
			args = append(args, "-race")
		}
		cmd := exec.Command("go", append(args, "./cmd/zklock")...)
		cmd.Dir = "../.."
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("go build: %v\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

// shared are three servers for all tests. A test that disturbs them repairs them at its end.
// A follower that is cut off from its leader serves its clients for longer than a session
// timeout: see ensemble.Config.SyncLimit.
var shared struct {
	once     sync.Once
	ensemble *ensemble.Ensemble
	err      error
}

func servers(t testing.TB) *ensemble.Ensemble {
	t.Helper()
	ensemble.Require(t)
	shared.once.Do(func() {
		shared.ensemble, shared.err = ensemble.New(ensemble.Config{Servers: 3, SyncLimit: 20, ContainerCheckInterval: time.Second})
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.ensemble
}

func TestMain(m *testing.M) {
	if work() {
		return
	}
	// With nohup, this process was started with HUP ignored, and its children would inherit
	// that. A child begins with the default for a signal that its parent handles.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	code := m.Run()
	if shared.ensemble != nil {
		if err := shared.ensemble.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}
