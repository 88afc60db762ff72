// Package integration_test holds the tests that need a real ZooKeeper. Each
// starts what it needs; without a ZooKeeper they are skipped, or, with
// ZKLOCK_TEST_REQUIRED=1, fail.
package integration_test

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/integration_test/ensemble"
)

// shared is the server of the tests that do nothing to their server. It is
// started by the first of them and ends with the process.
var shared struct {
	once     sync.Once
	ensemble *ensemble.Ensemble
	err      error
}

// sharedEnsemble returns one running server for a test that does not disturb
// it, and that works under a root of its own.
func sharedEnsemble(t testing.TB) *ensemble.Ensemble {
	t.Helper()
	ensemble.Require(t)
	shared.once.Do(func() {
		shared.ensemble, shared.err = ensemble.New(ensemble.Config{ContainerCheckInterval: time.Second})
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.ensemble
}

func TestMain(m *testing.M) {
	runtime.LockOSThread() // the searched process ends with the thread that started it
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
	slog.SetDefault(searchedLog()) // where drivers log to
	code := m.Run()
	if shared.ensemble != nil {
		if err := shared.ensemble.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(max(code, tellSighted()))
}

func TestSharedEnsembleServesUnderItsURL(t *testing.T) {
	e := sharedEnsemble(t)
	answer, err := e.Server(0).FourLetter("ruok")
	if err != nil || answer != "imok" {
		t.Errorf("ruok: %q, %v", answer, err)
	}
	if sharedEnsemble(t) != e {
		t.Error("a second call started another ensemble")
	}
}
