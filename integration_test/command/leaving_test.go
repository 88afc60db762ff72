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
// in one line that the end of the session is not confirmed. Another process of its ends the session once the
// servers answer again, long before the session expires.
func TestRunLeavesAnOutage(t *testing.T) {
	t.Parallel()
	e := servers(t)
	leader, err := e.Leader()
	if err != nil {
		t.Fatal(err)
	}
	const script = `trap "exit 3" USR1 TERM; echo ready; while :; do sleep 0.01; done`
	for what, args := range map[string][]string{"run": {"run"}, "a slot": {"run", "--once", "1"}, "elect": {"elect"}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			link, err := proxy.New(leader.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer link.Close()
			name := newName(t)
			p := start(t, urlOf(link.Addr()), []string{"XDG_RUNTIME_DIR=" + t.TempDir()}, append(args, name, "--", "sh", "-c", script)...)
			p.prints(t, "ready\n")
			link.Blackhole(proxy.Both)
			cut := time.Now()
			p.signal(t, syscall.SIGTERM)
			if code, said := p.code(t), p.stderr.String(); code != 3 || strings.Count(said, "\n") != 1 || !strings.Contains(said, "is not confirmed") {
				t.Errorf("%d, %q; want 3 and one line", code, said)
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
