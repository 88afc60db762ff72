package place

import (
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// A writer that was downgraded may be released before its turnstile hears of it:
// a writer that waits there must not get the node, beside readers elsewhere.
func TestDowngradedPlaceIsPassedOnToReadersOnly(t *testing.T) {
	s := &Desk{Session: &session.Session{}}
	p := &Place{Desk: s, nodes: []*contender{{kind: queue.Kind{Mode: queue.Exclusive}}}, Granted: time.Now()}
	mayPass := func(m queue.Mode) bool { return p.MayPass(m, 10, time.Hour) }
	if !mayPass(queue.Exclusive) || !mayPass(queue.Shared) {
		t.Error("a writer's place is for both")
	}
	p.LowerLocked()
	if mayPass(queue.Exclusive) || !mayPass(queue.Shared) {
		t.Error("a reader's place is for readers")
	}
}
