package zklock

import (
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// A writer that was downgraded may be released before its turnstile hears of it:
// a writer that waits there must not get the node, beside readers elsewhere.
func TestDowngradedPlaceIsPassedOnToReadersOnly(t *testing.T) {
	s := &desk{Session: &session.Session{}}
	p := &place{s: s, nodes: []*contender{{kind: queue.Kind{Mode: queue.Exclusive}}}, granted: time.Now()}
	mayPass := func(m queue.Mode) bool { return p.mayPass(m, 10, time.Hour) }
	if !mayPass(queue.Exclusive) || !mayPass(queue.Shared) {
		t.Error("a writer's place is for both")
	}
	p.lowerLocked()
	if mayPass(queue.Exclusive) || !mayPass(queue.Shared) {
		t.Error("a reader's place is for readers")
	}
}
