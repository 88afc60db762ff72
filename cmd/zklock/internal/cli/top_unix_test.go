//go:build unix

package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// TestPauseOfTop: a change must show within a second. Two looks at the ensemble and the pause
// between them take at most 0.8 seconds of it. If one look takes longer than the whole second, the
// pause is at least as long as the look.
func TestPauseOfTop(t *testing.T) {
	for _, took := range []time.Duration{0, time.Millisecond, 200 * time.Millisecond, 260 * time.Millisecond} {
		if got := pause(time.Second, took); got+2*took > 800*time.Millisecond {
			t.Errorf("a look of %v and a pause of %v", took, got)
		}
	}
	if got := pause(time.Second, 3*time.Second); got < 3*time.Second {
		t.Errorf("after a look of 3s, a pause of %v: the servers get no rest", got)
	}
}

// TestTopSaysThatItConnects: top says so from its first screen on. In an outage it says so above
// what it knew before.
func TestTopSaysThatItConnects(t *testing.T) {
	var o overview
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if lines := o.connecting(now, 80); lines[0] != "03:04:05 UTC  connecting to the ensemble" || lines[len(lines)-1] != "q ends" {
		t.Errorf("%q", lines)
	}
	o = overview{limit: 5, at: now}
	o.add(zklock.LockInfo{Name: "orders/42", Contenders: []zklock.Contender{{Held: true, Host: "web-3"}}})
	lines := o.connecting(now.Add(time.Minute), 80)
	if lines[0] != "03:05:05 UTC  connecting to the ensemble, since 03:04:05 UTC without an answer" || !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "orders/42") }) {
		t.Errorf("%q", lines)
	}
}
