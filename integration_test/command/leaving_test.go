//go:build linux

package command_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/proxy"
)

// TestRunLeavesAnOutage: the command ends while no server answers. zklock soon ends with the command's exit code, and says
// in one line that the end of the session is not confirmed. So it does after a TERM if the command has succeeded for a slot,
// which cannot be recorded. Another process of its ends the session once the servers answer again, long before the session expires.
func TestRunLeavesAnOutage(t *testing.T) {
	t.Parallel()
	e := servers(t)
	leader, err := e.Leader()
	if err != nil {
		t.Fatal(err)
	}
	const script = `trap "exit $0" USR1 TERM; echo ready; while :; do sleep 0.01; done`
	for what, c := range map[string]struct {
		args []string
		ends string // the command's exit code
		code int
		says string
	}{
		"run":                  {[]string{"run"}, "3", 3, "is not confirmed"},
		"a slot":               {[]string{"run", "--once", "1"}, "3", 3, "is not confirmed"},
		"a slot that succeeds": {[]string{"run", "--once", "1"}, "0", 76, "it may run again: the servers do not answer"},
		"elect":                {[]string{"elect"}, "3", 3, "is not confirmed"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			link, err := proxy.New(leader.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer link.Close()
			name := newName(t)
			p := start(t, urlOf(link.Addr()), []string{"XDG_RUNTIME_DIR=" + t.TempDir()}, append(c.args, name, "--", "sh", "-c", script, c.ends)...)
			p.prints(t, "ready\n")
			link.Blackhole(proxy.Both)
			cut := time.Now()
			p.signal(t, syscall.SIGTERM)
			if code, said := p.code(t), p.stderr.String(); code != c.code || strings.Count(said, "\n") != 1 || !strings.Contains(said, c.says) {
				t.Errorf("%d, %q; want %d and one line with %q", code, said, c.code, c.says)
			}
			if took := time.Since(cut); took > longTimeout/3 {
				t.Errorf("it stayed for %v", took)
			}
			link.Heal()
			next := start(t, urlOf(e.Hosts()), []string{"XDG_RUNTIME_DIR=" + t.TempDir()}, "run", name, "--", "true")
			if code := next.code(t); code != 0 {
				t.Errorf("the next: %d", code)
			}
			if took := time.Since(cut); took > longTimeout*2/3 {
				t.Errorf("the next command ran %v after the end", took)
			}
		})
	}
}
