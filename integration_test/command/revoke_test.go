//go:build linux

package command_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/zklock/go-zklock/zklock"
)

// nodeOf returns a contender's node in the form that revoke takes.
func nodeOf(c zklock.Contender) string { return fmt.Sprintf("%s@%#x", c.Node, c.Zxid) }

// TestRevokeSendsTERMOnce: the command of a run gets one TERM, and decides. The exit code is its
// own.
func TestRevokeSendsTERMOnce(t *testing.T) {
	t.Parallel()
	e := servers(t)
	url, watch, name := urlOf(e.Hosts()), observer(t, e), newName(t)
	p := start(t, url, nil, "run", "--grace", "0s", name, "--", "bash", "-c", traps)
	p.prints(t, "ready\n")
	holder := awaitQueue(t, watch, name, 1)[0]
	for _, args := range [][]string{{name, nodeOf(holder), "--reason", "web-3 goes\ndown"}, {name, nodeOf(holder)}} {
		if code, out, stderr := finish(t, url, nil, append([]string{"revoke"}, args...)...); code != 0 || out+stderr != "" {
			t.Errorf("revoke: %d, %q, %q", code, out, stderr)
		}
		p.prints(t, "ready\nTERM\n")
	}
	if queue := awaitQueue(t, watch, name, 1); !queue[0].Held || queue[0].Node != holder.Node || queue[0].Revoked == "" {
		t.Errorf("the holder that goes on is %+v", queue[0])
	}
	p.signal(t, syscall.SIGUSR1)
	if code := p.code(t); code != 0 || p.stdout.String() != "ready\nTERM\nUSR1\n" {
		t.Errorf("%d, %q, want the command's own 0, and one TERM", code, p.stdout.String())
	}
	if text := p.stderr.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `web-3 goes\ndown`) {
		t.Errorf("reported %q, want one line with the reason", text)
	}
	for _, args := range [][]string{{name, nodeOf(holder)}, {name, "no-such-node@0x1"}} {
		if code, _, stderr := finish(t, url, nil, append([]string{"revoke"}, args...)...); code != 1 || strings.Count(stderr, "\n") != 1 {
			t.Errorf("revoke of a node that is gone: %d, %q, want 1", code, stderr)
		}
	}
	if code, _, stderr := finish(t, url, nil, "revoke", name); code != 64 {
		t.Errorf("revoke without a node: %d, %q, want 64", code, stderr)
	}
}

// TestRevokeDeposesALeader: the command of the leader ends, the next candidate leads, and the
// former leader stands again.
func TestRevokeDeposesALeader(t *testing.T) {
	t.Parallel()
	e := servers(t)
	url, watch, name := urlOf(e.Hosts()), observer(t, e), newName(t)
	first := start(t, url, nil, "elect", name, "--", "bash", "-c", reign)
	one := first.terms(t, 1)[0]
	second := start(t, url, nil, "elect", name, "--", "bash", "-c", reign)
	holder := awaitQueue(t, watch, name, 2)[0]
	if code, _, stderr := finish(t, url, nil, "revoke", name, nodeOf(holder), "--reason", "maintenance"); code != 0 {
		t.Errorf("revoke: %d, %q", code, stderr)
	}
	if two := second.terms(t, 1)[0]; two.token.Compare(one.token) <= 0 {
		t.Errorf("token %v after %v", two.token, one.token)
	}
	queue := awaitQueue(t, watch, name, 2)
	if queue[0].PID != second.cmd.Process.Pid || queue[1].PID != first.cmd.Process.Pid {
		t.Errorf("the queue is %+v, want the second candidate and then the first", queue)
	}
	if text := first.stderr.String(); !strings.Contains(text, "maintenance") || !strings.Contains(text, "ended with 3") {
		t.Errorf("reported %q", text)
	}
}
