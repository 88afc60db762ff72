//go:build linux

package command_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestRunThatWaitsHasNoHelpers: a run that waits for long for its lock is one process. When it has the lock, its command has a
// guard and a closer.
func TestRunThatWaitsHasNoHelpers(t *testing.T) {
	t.Parallel()
	e := servers(t)
	name, said := newName(t), "echo ready; sleep 1000"
	holder := start(t, urlOf(e.Hosts()), nil, "run", name, "--", "sh", "-c", said)
	eventually(t, "a lock is held", func() bool { return holder.stdout.String() == "ready\n" })
	waiter := start(t, urlOf(e.Hosts()), nil, "run", name, "--", "sh", "-c", said)
	helpers := func() (n int) {
		for _, what := range []string{"lock-guard", "lock-closer"} {
			if childOf(waiter.cmd.Process.Pid, what) != 0 {
				n++
			}
		}
		return n
	}
	awaitQueue(t, observer(t, e), name, 2)
	eventually(t, "the run that waits is one process", func() bool { return helpers() == 0 })
	holder.signal(t, syscall.SIGTERM)
	eventually(t, "the other command runs", func() bool { return waiter.stdout.String() == "ready\n" })
	if n := helpers(); n != 2 {
		t.Errorf("the command has %d helpers, want a guard and a closer", n)
	}
	waiter.signal(t, syscall.SIGTERM)
	for _, p := range []*process{holder, waiter} {
		if code := p.code(t); code != 128+15 || p.stderr.String() != "" {
			t.Errorf("%d, %q", code, p.stderr.String())
		}
	}
}

// TestGuardInitializesLittle: a guard starts without the packages that it does not need. Without a wrapper it kills its own
// group, which this one has for itself.
func TestGuardInitializesLittle(t *testing.T) {
	t.Parallel()
	var trace bytes.Buffer
	cmd := &exec.Cmd{Path: plain.binary(t), Args: []string{"lock-guard"}, Env: append(os.Environ(), "GODEBUG=inittrace=1"), Stderr: &trace,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	_ = cmd.Run()
	if cmd.ProcessState == nil || !strings.Contains(cmd.ProcessState.String(), "killed") {
		t.Errorf("the guard has ended with %v, want KILL", cmd.ProcessState)
	}
	if !strings.Contains(trace.String(), "init os @") {
		t.Errorf("the trace is %q", trace.String())
	}
	for _, not := range []string{"net/http", "html/template", "github.com/spf13/cobra", "github.com/zklock/go-zklock/zklock"} {
		if strings.Contains(trace.String(), "init "+not+" @") {
			t.Errorf("a guard initializes %s", not)
		}
	}
}
