package place

import (
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// A writer that was downgraded may be released before its turnstile learns of the
// downgrade. A writer that waits in the turnstile must not get the node then: readers
// of other processes may hold the lock.
func TestDowngradedPlaceIsPassedOnToReadersOnly(t *testing.T) {
	desk := &Desk{Session: &session.Session{}}
	p := &Place{Desk: desk, nodes: []*contender{{kind: queue.Kind{Mode: queue.Exclusive}}}, Granted: time.Now()}
	mayPass := func(m queue.Mode) bool { return p.MayPass(m, 10, time.Hour) }
	if !mayPass(queue.Exclusive) || !mayPass(queue.Shared) {
		t.Error("a writer's place cannot be handed over to writers and readers")
	}
	p.LowerLocked()
	if mayPass(queue.Exclusive) || !mayPass(queue.Shared) {
		t.Error("a downgraded place can be handed over to writers, or cannot be to readers")
	}
}
