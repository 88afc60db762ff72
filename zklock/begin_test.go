package zklock

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// A turnstile does not count a hold that was lost after its grant but before the
// turnstile learned of it. Nothing would ever subtract such a hold, and all later
// requests would wait for it.
func TestHoldLostBeforeItBeginsIsNotCounted(t *testing.T) {
	names := &turnstile{}
	lost := &hold{over: true}
	names.beginLocked(lost)
	if names.holds != 0 || names.current != nil {
		t.Errorf("%d holds are counted, and the newest is %p, want none", names.holds, names.current)
	}
	names.beginLocked(&hold{})
	if names.holds != 1 || names.current == nil {
		t.Errorf("%d holds are counted after one that is not over, want 1", names.holds)
	}
}

// A hold may be lost between its grant's second step, which the session takes, and its fourth. Then it
// never becomes live, its loss is not reported, and it gives back the use of its names.
func TestHoldLostBeforeItIsLive(t *testing.T) {
	ts := &turnstiles{byPath: make(map[string]*turnstile)}
	r := &request{turnstiles: ts, Request: place.Request{Ctx: t.Context(), Wants: []place.Want{{Name: "x", Path: "/x"}}}}
	name := &turnstile{turnstiles: ts, path: "/x", uses: 1} // the acquisition's own
	ts.byPath["/x"] = name
	h := r.NewHold(&place.Place{}).(*hold)
	if h.MarkLost() {
		t.Error("the loss of a hold that was never live is reported")
	}
	if h.Begin(7) || r.lock != nil || r.served || name.uses != 1 {
		t.Errorf("a lost hold became live: the request has the lock %v, counts as served: %t, and its name is used %d times, want 1", r.lock, r.served, name.uses)
	}
	h = r.NewHold(&place.Place{Zxid: 5, Desk: &place.Desk{Session: &session.Session{Timeout: time.Second}}}).(*hold)
	h.first.acquired = time.Now().Add(-time.Minute) // the process did not run for a while
	h.Review()                                      // a session looks for locks that were dropped
	if !h.Begin(7) || r.lock.Token() != (Token{Zxid: 5, Turn: 7}) || name.uses != 2 || !h.MarkLost() {
		t.Errorf("a hold that was not lost: the request has the lock %v, and its name is used %d times, want 2", r.lock, name.uses)
	}
}

// A session that ends marks all its holds as lost before it ends the first handle. A
// Downgrade between the two fails with the loss, and does not block the session.
func TestDowngradeOfAHoldThatIsBeingLost(t *testing.T) {
	p := &place.Place{Desk: &place.Desk{Session: &session.Session{}}}
	h := &hold{turnstiles: &turnstiles{}, place: p, mode: queue.Exclusive, live: true}
	l := h.join(&request{Request: place.Request{Ctx: t.Context()}})
	if !h.MarkLost() {
		t.Fatal("the hold was over before the test marked it as lost")
	}
	done := make(chan error, 1)
	go func() { done <- l.Downgrade(t.Context()) }()
	select {
	case err := <-done:
		if !errors.Is(err, ErrLost) {
			t.Errorf("Downgrade returned %v, want ErrLost", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Downgrade waits for a mutex that it holds itself")
	}
}

// The handles of a lost hold belong to the goroutine that reports the loss. Until it is done,
// code that looks at the session's handles, for Stats or for handles that the program dropped,
// finds none of them.
func TestHandlesThatAreBeingLostAreNotLookedAt(t *testing.T) {
	p := &place.Place{Desk: &place.Desk{Session: &session.Session{Timeout: time.Second}}}
	for range 1000 {
		h := &hold{turnstiles: &turnstiles{}, place: p, live: true}
		r := &request{Request: place.Request{Ctx: t.Context()}}
		released := h.join(r)
		h.join(r)
		released.end(byRelease) // it is about to leave the hold
		h.MarkLost()
		var look sync.WaitGroup
		look.Go(func() {
			for range 10 {
				h.Review()
				h.Since()
			}
		})
		h.Finish(ErrLeaseOver, time.Now())
		look.Wait()
		if len(h.handles) != 1 {
			t.Fatalf("the loss of %d handles is reported, want 1", len(h.handles))
		}
	}
}
