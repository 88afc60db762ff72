//go:build linux

package command_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zklock/go-zklock/zklock/once"
)

// TestRunOnceOnTwoHosts: of two runs for one slot one runs the command, whether the other comes while it runs or
// after it, and that one has an exit code of its own. A later slot runs, and an earlier one does not.
func TestRunOnceOnTwoHosts(t *testing.T) {
	t.Parallel()
	e := servers(t)
	url, watch, name := urlOf(e.Hosts()), observer(t, e), newName(t)
	first := start(t, url, nil, "run", "--once", "2026-11-22", name, "--", "sh", "-c", "echo $ZKLOCK_SLOT; read line")
	if code := first.code(t); code != 1 || first.stdout.String() != "2026-11-22\n" { // there is no line to read
		t.Fatalf("a command that fails: %d, %q", code, first.stdout.String())
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	first = start(t, url, nil, "run", "--once", "2026-11-22", name, "--", "sh", "-c", "echo ready; read line <"+fifo)
	first.prints(t, "ready\n")
	second := start(t, url, nil, "run", "--once", "2026-11-22", name, "--", "echo", "again")
	awaitQueue(t, watch, name, 2)
	if err := os.WriteFile(fifo, []byte("go on\n"), 0); err != nil {
		t.Fatal(err)
	}
	if code := first.code(t); code != 0 {
		t.Errorf("the first: %d", code)
	}
	if code, said := second.code(t), second.stderr.String(); code != 79 || second.stdout.String() != "" || !strings.Contains(said, `the slot "2026-11-22"`) || !strings.Contains(said, "has run, ") {
		t.Errorf("the second: %d, %q, %q", code, second.stdout.String(), said)
	}
	for _, c := range []struct {
		flags string
		code  int
		says  string // on standard output, or else on standard error
	}{
		{"--once 2026-11-22", 79, "has run"},
		{"--once 2026-11-22 -q -E 0", 0, ""},
		{"--once 2026-11-21 -q -E 7", 7, `the slot "2026-11-22", which is above it`},
		{"--once 2026-11-23", 0, "ran 2026-11-23\n"},
		{"--every 24h --zone Asia/Tokyo", 0, "ran 2"},
		{"--every 24h --zone Asia/Tokyo", 79, "has run"},
	} {
		code, out, said := finish(t, url, []string{"ZKLOCK_SLOT=outer"}, append(append([]string{"run"}, strings.Fields(c.flags)...), name, "--", "sh", "-c", "echo ran $ZKLOCK_SLOT")...)
		if code != c.code || out+said == "" != (c.says == "") || !strings.Contains(out+said, c.says) || (code == 0) != (said == "") {
			t.Errorf("%s: %d, %q, %q; want %d and %q", c.flags, code, out, said, c.code, c.says)
		}
	}
	if code, out, _ := finish(t, url, []string{"ZKLOCK_SLOT=outer"}, "run", name, "--", "sh", "-c", "echo $ZKLOCK_SLOT."); code != 0 || out != ".\n" {
		t.Errorf("without a slot: %d, %q", code, out)
	}
	if code, out, _ := finish(t, url, nil, "ls", name); code != 0 || !strings.Contains(out, "LAST SLOT") || !strings.Contains(out, "s ago") {
		t.Errorf("ls: %d, %q", code, out)
	}
}

// TestRunOnceAfterAFailure: the slot of a command that fails, of one that was killed together with zklock and of one
// that a signal has ended stays open, and the run that waits runs it. A run that does not get the lock says so, with -q too.
func TestRunOnceAfterAFailure(t *testing.T) {
	t.Parallel()
	e := servers(t)
	url, watch := urlOf(e.Hosts()), observer(t, e)
	for what, c := range map[string]struct {
		end  func(p *process)
		code int
	}{
		"the command fails":             {func(p *process) { p.signal(t, syscall.SIGUSR1) }, 3},
		"zklock gets TERM":              {func(p *process) { p.signal(t, syscall.SIGTERM) }, 128 + 15},
		"zklock and command are killed": {func(p *process) { p.signal(t, syscall.SIGKILL) }, -1},
	} {
		t.Run(what, func(t *testing.T) {
			name := newName(t)
			run := []string{"run", "--once", "7", name, "--"}
			first := start(t, url, nil, append(run, "sh", "-c", `trap "exit 3" USR1; echo ready; while :; do sleep 0.01; done`)...)
			first.prints(t, "ready\n")
			if code, _, said := finish(t, url, nil, "run", "--once", "7", "--try", "-q", "-E", "0", name, "--", "true"); code != 75 || !strings.Contains(said, "holds") {
				t.Errorf("while it runs: %d, %q, want 75 and the holder", code, said)
			}
			second := start(t, url, nil, append(run, "echo", "taken over")...)
			awaitQueue(t, watch, name, 2)
			c.end(first)
			if code := first.code(t); code != c.code {
				t.Errorf("the first: %d, want %d", code, c.code)
			}
			if code := second.code(t); code != 0 || second.stdout.String() != "taken over\n" {
				t.Errorf("the second: %d, %q", code, second.stdout.String())
			}
		})
	}
}

// TestRunOnceIsOnceDo: the command and the library share slots.
func TestRunOnceIsOnceDo(t *testing.T) {
	t.Parallel()
	e := servers(t)
	url, client, name := urlOf(e.Hosts()), observer(t, e), newName(t)
	if code, _, said := finish(t, url, nil, "run", "--once", "2", name, "--", "true"); code != 0 {
		t.Fatalf("%d, %q", code, said)
	}
	for slot, want := range map[string]bool{"2": false, "3": true} {
		ran, err := once.Do(t.Context(), client, name, slot, func(context.Context) error { return nil })
		if ran != want || err != nil {
			t.Errorf("slot %s: %v, %v, want %v", slot, ran, err, want)
		}
	}
	if code, _, said := finish(t, url, nil, "run", "--once", "3", name, "--", "true"); code != 79 {
		t.Errorf("%d, %q, want 79", code, said)
	}
}

// TestRunOnceThatCannotRecord: a command that has ended with 0 while its lock was deleted is not recorded, and the exit
// code says so.
func TestRunOnceThatCannotRecord(t *testing.T) {
	t.Parallel()
	e := servers(t)
	url, watch, name := urlOf(e.Hosts()), observer(t, e), newName(t)
	p := start(t, url, nil, "run", "--once", "1", "--grace", "0s", name, "--", "sh", "-c", `trap "exit 0" USR1; echo ready; while :; do sleep 0.01; done`)
	p.prints(t, "ready\n")
	queue := awaitQueue(t, watch, name, 1)
	if err := watch.Break(t.Context(), name, queue[0].Node); err != nil {
		t.Fatal(err)
	}
	if code := p.code(t); code != 76 {
		t.Errorf("%d, %q, want 76", code, p.stderr.String())
	}
	if code, _, said := finish(t, url, nil, "run", "--once", "1", name, "--", "true"); code != 0 {
		t.Errorf("the slot does not run again: %d, %q", code, said)
	}
}
