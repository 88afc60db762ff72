package zklock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
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
	h = r.NewHold(&place.Place{Zxid: 5, Desk: &place.Desk{Session: session.Inert(t.Context(), timed{timeout: time.Second})}}).(*hold)
	h.first.acquired = time.Now().Add(-time.Minute) // the process did not run for a while
	h.Review()                                      // a session looks for locks that were dropped
	if !h.Begin(7) || r.lock.Token() != (Token{Zxid: 5, Turn: 7}) || name.uses != 2 || !h.MarkLost() {
		t.Errorf("a hold that was not lost: the request has the lock %v, and its name is used %d times, want 2", r.lock, name.uses)
	}
}

// heldUp returns a client's turnstile for one name, and a function that makes requests for it.
func heldUp(t *testing.T) (*turnstile, func(queue.Mode) *request) {
	ts := &turnstiles{byPath: make(map[string]*turnstile)}
	ts.closing, ts.close = context.WithCancelCause(t.Context())
	name := &turnstile{turnstiles: ts, path: "/x"}
	name.granted.L = &name.mu
	ts.byPath["/x"] = name
	return name, func(mode queue.Mode) *request {
		r := &request{turnstiles: ts, turnstile: name, name: "x", Request: place.Request{Ctx: t.Context(), Mode: mode,
			Wants: []place.Want{{Name: "x", Path: "/x", Kind: queue.Kind{Mode: mode}}}}}
		ts.useLocked(name)
		r.context()
		return r
	}
}

// A hold that is lost while it is granted gives its waiter back: the waiter counts as waiting, even if
// the goroutine that granted it comes between the waiter's count and its hook.
func TestWaiterOfALostGrantIsCounted(t *testing.T) {
	name, request := heldUp(t)
	r := request(queue.Exclusive)
	name.turnstiles.hooks.Wait = func(ctx context.Context, _ WaitEvent) (context.Context, func(WaitResult)) {
		var granting sync.WaitGroup
		granting.Go(func() { // with the race detector: it reads nothing that is the waiter's own
			h := r.NewHold(&place.Place{}).(*hold)
			h.MarkLost()
			h.Begin(1)
		})
		granting.Wait()
		return ctx, nil
	}
	r.reportWait(1, Contender{})
	if name.waiting != 1 {
		t.Errorf("%d waiters are counted, want 1", name.waiting)
	}
}

// A try may be refused between its entry into the queue and its wait. Then it is not the leader.
func TestTryRefusedBeforeItWaits(t *testing.T) {
	name, request := heldUp(t)
	r := request(queue.Exclusive)
	r.Try = true
	tk := newTicket(r)
	tk.refused = true
	tk.answer(nil, nil)
	if err := name.await(tk); err != errs.ErrTaken {
		t.Errorf("await returned %v, and the try acts as the leader; want ErrTaken", err)
	}
}

// A goroutine that comes while a place is passed on waits for the grant, and then finds its hold. It
// does not queue: readers join readers without a wait.
func TestNoneEntersDuringAGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		name, request := heldUp(t)
		name.grants = request(queue.Shared)
		second, entered := request(queue.Shared), make(chan struct{})
		go func() {
			defer close(entered)
			name.enter(second)
		}()
		synctest.Wait()
		select {
		case <-entered:
			t.Error("a reader has entered while another one is being granted the place")
		default:
		}
		name.mu.Lock()
		name.grants = nil
		name.granted.Broadcast()
		name.mu.Unlock()
		<-entered
	})
}

// A Downgrade that does nothing takes no turn: there are 2^32 of them, and tokens must not fall.
func TestDowngradeOfAReaderTakesNoTurn(t *testing.T) {
	p := &place.Place{Desk: &place.Desk{Session: &session.Session{}}}
	h := &hold{turnstiles: &turnstiles{}, place: p, mode: queue.Shared, live: true}
	l := h.join(&request{Request: place.Request{Ctx: t.Context()}})
	if lowered, err := l.lower(); lowered || err != nil {
		t.Errorf("a reader's hold was lowered: %t, %v", lowered, err)
	}
	if turn, ok := p.Advance(h); ok {
		t.Errorf("a hold that does not have the place has taken turn %d", turn)
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
	p := &place.Place{Desk: &place.Desk{Session: session.Inert(t.Context(), timed{timeout: time.Second})}}
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
