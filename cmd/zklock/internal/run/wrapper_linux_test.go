package run

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// sessionEnv says that descriptor 3 of a wrapper is the file of its session.
const sessionEnv = "ZKLOCK_TEST_SESSION"

// wrap is what a wrapper does that is a process of its own: it runs the script in its arguments.
func wrap() {
	var sessions []*os.File
	if os.Getenv(sessionEnv) != "" {
		syscall.CloseOnExec(3)
		sessions = append(sessions, os.NewFile(3, "session"))
	}
	_, _ = Run(Config{Command: shell(os.Args[1], os.Args[2:]...), Lease: newLease(), Timing: Timing{Grace: patience}, Signals: CatchSignals(), Log: func(string, ...any) {}, Sessions: sessions})
}

// wrapper returns a wrapper that is not started.
func wrapper(t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, append([]string{script}, args...)...)
	cmd.Env = append(os.Environ(), wrapperEnv+"=1")
	return cmd
}

// commandOf waits for the guard of a wrapper, and returns the group of the command.
func commandOf(t *testing.T, wrapper int) (group int) {
	t.Helper()
	return childOf(t, wrapper, guardName)
}

// states returns the states of the processes of a group, one a letter, except for the one that leads it,
// which is the guard.
func states(t *testing.T, group int) (all string) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == group {
			continue
		}
		if state, of, ok := processState(filepath.Join("/proc", entry.Name(), "stat")); ok && of == group {
			all += string(state)
		}
	}
	return all
}
