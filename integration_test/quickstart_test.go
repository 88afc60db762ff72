package integration_test

import (
	"context"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestQuickstart runs what a new user runs, on a server: replicas are processes, one of
// them is killed and another one stopped.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	shown := quickstart(t)
	for _, want := range []string{
		`(?m)^   with a lock +10 sold$`,
		`(?m)^   replica 2 holds the lock +after `,
		`(?m)^   replica 2 goes on and writes +refused`,
		`(?m)^ok: `,
	} {
		if !regexp.MustCompile(want).MatchString(shown) {
			t.Errorf("no %q:\n%s", want, shown)
		}
	}
}

func TestQuickstartPlain(t *testing.T) {
	t.Parallel()
	shown := quickstart(t, "-plain")
	if ok := strings.Count(shown, "\n  ok "); ok != 3 {
		t.Errorf("%d lines of the summary are ok, want 3:\n%s", ok, shown)
	}
}

func quickstart(t *testing.T, args ...string) string {
	t.Helper()
	e := sharedEnsemble(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	// The server's ticks are shorter than the default. The session timeout is the default, because a
	// replica that a busy machine stops for a lease fails to sell, and the program fails then.
	url := "zk://" + e.Hosts() + "/quickstart?session_timeout=10s&tick_time=1s"
	out, err := exec.CommandContext(ctx, "go", append([]string{"run", "../examples/quickstart", "-url", url}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), "session=") {
		t.Errorf("a log line disturbs the screen:\n%s", out)
	}
	return string(out)
}
