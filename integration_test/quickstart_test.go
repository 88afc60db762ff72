package integration_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestQuickstart runs what a new user runs, on a server of its own.
func TestQuickstart(t *testing.T) {
	e := sharedEnsemble(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	// The server's ticks are shorter than the defaults, so its session timeouts
	// are too.
	url := "zk://" + e.Hosts() + "/quickstart?session_timeout=4s&tick_time=1s"
	out, err := exec.CommandContext(ctx, "go", "run", "../examples/quickstart", "-url", url).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if ok := strings.Count(string(out), "\n  ok "); ok != 3 {
		t.Errorf("%d lines of the summary are ok, want 3:\n%s", ok, out)
	}
}
