package zklock

import (
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// A hold that was lost between its grant and the moment its turnstile hears of it
// is not counted: nobody would ever count it out, and all who come would wait.
func TestHoldLostBeforeItBeginsIsNotCounted(t *testing.T) {
	names := &turnstile{}
	lost := &hold{over: true}
	names.beginLocked(lost)
	if names.holds != 0 || names.current != nil {
		t.Errorf("%d holds, the newest of them %p", names.holds, names.current)
	}
	names.beginLocked(&hold{})
	if names.holds != 1 || names.current == nil {
		t.Errorf("%d holds after one that goes on", names.holds)
	}
}

// A writer that was downgraded may be released before its turnstile hears of it:
// a writer that waits there must not get the node, beside readers elsewhere.
func TestDowngradedPlaceIsPassedOnToReadersOnly(t *testing.T) {
	s := &desk{Session: &session.Session{}}
	p := &place{s: s, nodes: []*contender{{kind: queue.Kind{Mode: queue.Exclusive}}}, granted: time.Now()}
	names := &turnstile{all: &turnstiles{common: &common{cfg: config{handoverTime: time.Hour, handoverLimit: 10}}}}
	if !names.mayPass(p, queue.Exclusive) || !names.mayPass(p, queue.Shared) {
		t.Error("a writer's place is for both")
	}
	p.nodes[0].kind.Mode = queue.Shared
	if names.mayPass(p, queue.Exclusive) || !names.mayPass(p, queue.Shared) {
		t.Error("a reader's place is for readers")
	}
}
