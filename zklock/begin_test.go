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

// A session that ends marks all its holds before it ends the first handle. A
// caller that downgrades a lock in between gets its loss, and does not hold up the session.
func TestDowngradeOfAHoldThatIsBeingLost(t *testing.T) {
	p := &place.Place{Desk: &place.Desk{Session: &session.Session{}}}
	h := &hold{all: &turnstiles{}, place: p, mode: queue.Exclusive}
	l := h.join(t.Context())
	if !h.MarkLost() {
		t.Fatal("it was over before")
	}
	done := make(chan error, 1)
	go func() { done <- l.downgrade(t.Context()) }()
	select {
	case err := <-done:
		if !errors.Is(err, ErrLost) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for the mutex that it holds")
	}
}

// What is lost belongs to those who report the loss: a look at the session's handles
// meanwhile, for figures or for those that were dropped, finds none.
func TestHandlesThatAreBeingLostAreNotLookedAt(t *testing.T) {
	p := &place.Place{Desk: &place.Desk{Session: &session.Session{Timeout: time.Second}}}
	for range 1000 {
		h := &hold{all: &turnstiles{common: &common{}}, place: p}
		released := h.join(t.Context())
		h.join(t.Context())
		released.end(ErrReleased) // and is about to leave the hold
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
		if len(h.lost) != 1 {
			t.Fatalf("the loss of %d handles is told, want 1", len(h.lost))
		}
	}
}
