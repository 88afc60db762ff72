package run

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/wait"
)

// patience bounds every wait of a test. A test that reaches it has found a hang.
const patience = 20 * time.Second

// wrapperEnv makes this test binary a wrapper of the command in its arguments.
const wrapperEnv = "ZKLOCK_TEST_WRAPPER"

func TestMain(m *testing.M) {
	guardStart = 3 * patience // a guard that a test makes slow does not fail
	if IsGuard() {
		dawdle()
		BeGuard()
	}
	if IsCloser() {
		BeCloser(testify)
	}
	if os.Getenv(wrapperEnv) != "" {
		wrap()
		return
	}
	// With nohup, this process was started with HUP ignored, and its children would inherit
	// that. They do not inherit that it is caught.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	os.Exit(m.Run())
}

// slowFile is the file whose existence makes the guards of a wrapper slow.
func slowFile(wrapper int) string {
	self, _ := os.Executable()
	return fmt.Sprintf("%s.%d.slow", self, wrapper)
}

// dawdle waits until the guards of the wrapper need not be slow.
func dawdle() {
	slow := slowFile(os.Getppid())
	for begin := time.Now(); time.Since(begin) < 4*patience; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(slow); err != nil {
			return
		}
		_ = os.WriteFile(slow+".begun", nil, 0o666)
	}
}

// slowness makes the guards of this process slow to start.
type slowness struct {
	t    *testing.T
	file string
}

// slowGuards makes guards that start from now on wait until release is called.
func slowGuards(t *testing.T) *slowness {
	t.Helper()
	return slowGuardsOf(t, os.Getpid())
}

func slowGuardsOf(t *testing.T, wrapper int) *slowness {
	t.Helper()
	s := &slowness{t: t, file: slowFile(wrapper)}
	if err := os.WriteFile(s.file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.release()
		_ = os.Remove(s.file + ".begun")
	})
	return s
}

// await waits until a guard waits.
func (s *slowness) await() {
	s.t.Helper()
	eventually(s.t, "a guard begins", func() bool { _, err := os.Stat(s.file + ".begun"); return err == nil })
}

func (s *slowness) release() { _ = os.Remove(s.file) }

var eventually = wait.Until
