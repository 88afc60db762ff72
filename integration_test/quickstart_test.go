package integration_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestQuickstart runs the example that a new user runs first, on a test server.
func TestQuickstart(t *testing.T) {
	e := sharedEnsemble(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	// The server's tick is shorter than the default. So its longest session timeout is
	// shorter, too.
	url := "zk://" + e.Hosts() + "/quickstart?session_timeout=4s&tick_time=1s"
	out, err := exec.CommandContext(ctx, "go", "run", "../examples/quickstart", "-url", url).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if ok := strings.Count(string(out), "\n  ok "); ok != 3 {
		t.Errorf("%d lines of the summary are ok, want 3:\n%s", ok, out)
	}
}
