package local

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// A local queue does not count a hold that was lost after its grant but before the
// queue learned of it. Nothing would ever subtract such a hold, and all later
// requests would wait for it.
func TestHoldLostBeforeItBeginsIsNotCounted(t *testing.T) {
	names := &Queue{}
	lost := &Hold{over: true}
	names.beginLocked(lost)
	if names.holds != 0 || names.current != nil {
		t.Errorf("%d holds are counted, and the newest is %p, want none", names.holds, names.current)
	}
	names.beginLocked(&Hold{})
	if names.holds != 1 || names.current == nil {
		t.Errorf("%d holds are counted after one that is not over, want 1", names.holds)
	}
}

// A hold may be lost between its grant's second step, which the session takes, and its fourth. Then it
// never becomes live, its loss is not reported, and it gives back the use of its names.
func TestHoldLostBeforeItIsLive(t *testing.T) {
	qs := &Queues{byPath: make(map[string]*Queue)}
	r := requestOf(place.Claim{Ctx: t.Context(), Wants: []place.Want{{Name: "x", Path: "/x"}}}, nil)
	name := &Queue{queues: qs, path: "/x", uses: 1} // the acquisition's own
	qs.byPath["/x"], r.home = name, name
	h := (*claimant)(r).NewHold(&place.Place{}).(*Hold)
	if h.MarkLost() {
		t.Error("the loss of a hold that was never live is reported")
	}
	if h.begin(r, 7) || r.Granted() || r.served || name.uses != 1 {
		t.Errorf("a lost hold became live: the request is granted: %t, counts as served: %t, and its name is used %d times, want 1", r.Granted(), r.served, name.uses)
	}
	h = (*claimant)(r).NewHold(&place.Place{Zxid: 5, Desk: &place.Desk{Session: session.Inert(t.Context(), timed{timeout: time.Second})}}).(*Hold)
	first := h.handles[0].(*fakeHandle)
	first.acquired = time.Now().Add(-time.Minute) // the process did not run for a while
	h.Review()                                    // a session looks for locks that were dropped
	if !h.begin(r, 7) || r.got != h || first.token != (Token{Zxid: 5, Turn: 7}) || first.aged || name.uses != 2 || !h.MarkLost() {
		t.Errorf("a hold that was not lost: the request has %v, its handle the token %v, and its name is used %d times, want 2", r.got, first.token, name.uses)
	}
}

// A goroutine that comes after a loss does not meet the hold that was lost, even if the session has not
// vacated it yet. But until all handles of that hold have ended, their callers believe in it.
func TestLostHoldCountsUntilItsHandlesHaveEnded(t *testing.T) {
	name, request := heldUp(t)
	lost := &Hold{home: name, live: true, mode: queue.Exclusive, place: &place.Place{}, handles: []Handle{&fakeHandle{}}}
	name.beginLocked(lost)
	lost.MarkLost()
	if _, _, tk, _ := name.enter(request(queue.Exclusive), time.Time{}); tk == nil || name.holds != 1 || name.leader != nil {
		t.Errorf("before the handle has ended, %d holds are counted, and the leader is %p; want 1, and none", name.holds, name.leader)
	}
	lost.Finish(errs.ErrSessionExpired, time.Now())
	if name.enter(request(queue.Exclusive), time.Time{}); name.holds != 0 || name.leader == nil {
		t.Errorf("after that, %d holds are counted, and the leader is %p; want 0, and the first goroutine", name.holds, name.leader)
	}
}

// heldUp returns a client's local queue for one name, and a function that makes requests for it.
func heldUp(t *testing.T) (*Queue, func(queue.Mode) *Request) {
	qs := &Queues{byPath: make(map[string]*Queue)}
	qs.closing, qs.close = context.WithCancelCause(t.Context())
	name := &Queue{queues: qs, path: "/x"}
	name.granted.L = &name.mu
	qs.byPath["/x"] = name
	return name, func(mode queue.Mode) *Request {
		r := requestOf(place.Claim{Ctx: t.Context(), Mode: mode, Wants: []place.Want{{Name: "x", Path: "/x", Kind: queue.Kind{Mode: mode}}}}, nil)
		r.Name, r.home = "x", name
		qs.useLocked(name)
		qs.contextOf(r)
		return r
	}
}

// requestOf returns a request whose Caller calls waits, if that is not nil, when it begins to wait.
func requestOf(p place.Claim, waits func()) *Request {
	return &Request{Claim: p, Caller: &fakeCaller{waits: waits}}
}

// fakeCaller makes holds and handles that do nothing.
type fakeCaller struct {
	waits  func()
	handle *fakeHandle
}

func (c *fakeCaller) NewHold() (*Hold, Handle) { return &Hold{}, c.NewHandle(nil) }
func (c *fakeCaller) Handle() Handle           { return c.handle }
func (c *fakeCaller) Sees(Ahead)               {}
func (c *fakeCaller) HandedOver(string)        {}

func (c *fakeCaller) NewHandle(*Hold) Handle {
	c.handle = &fakeHandle{acquired: time.Now()}
	return c.handle
}

func (c *fakeCaller) Waits(Ahead, bool) {
	if c.waits != nil {
		c.waits()
	}
}

// fakeHandle is a handle that only ends.
type fakeHandle struct {
	acquired time.Time
	token    Token
	aged     bool
	ended    atomic.Bool
}

func (h *fakeHandle) Begin(t Token)       { h.token = t }
func (h *fakeHandle) Acquired() time.Time { return h.acquired }
func (h *fakeHandle) Held() bool          { return !h.ended.Load() }
func (h *fakeHandle) Release() bool       { return !h.ended.Swap(true) }
func (h *fakeHandle) Lose(*Loss) bool     { return !h.ended.Swap(true) }
func (h *fakeHandle) ReportLost()         {}
func (h *fakeHandle) Revoke(string)       {}
func (h *fakeHandle) Parted()             {}
func (h *fakeHandle) Age()                { h.aged = true }

// A hold that is lost while it is granted gives its waiter back: the waiter counts as waiting, even if
// the goroutine that granted it comes between the waiter's count and its hook.
func TestWaiterOfALostGrantIsCounted(t *testing.T) {
	name, request := heldUp(t)
	r := request(queue.Exclusive)
	r.Caller.(*fakeCaller).waits = func() {
		var granting sync.WaitGroup
		granting.Go(func() { // with the race detector: it reads nothing that is the waiter's own
			h := (*claimant)(r).NewHold(&place.Place{}).(*Hold)
			h.MarkLost()
			h.begin(r, 1)
		})
		granting.Wait()
	}
	r.meets(Ahead{Position: 1, Local: true})
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
	tk.answer(false, nil)
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
			name.enter(second, time.Time{})
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
	h := &Hold{home: &Queue{queues: &Queues{}}, place: p, mode: queue.Shared, live: true}
	if lowered, err := h.lower(); lowered || err != nil {
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
	h := &Hold{home: &Queue{queues: &Queues{}}, place: p, mode: queue.Exclusive, live: true}
	if !h.Join(requestOf(place.Claim{Ctx: t.Context()}, nil)) || !h.MarkLost() {
		t.Fatal("the hold was over before the test marked it as lost")
	}
	done := make(chan error, 1)
	go func() { done <- h.Downgrade(t.Context()) }()
	select {
	case err := <-done:
		if err != errs.ErrReleased { // which the handle makes its loss
			t.Errorf("Downgrade returned %v, want ErrReleased", err)
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
		h := &Hold{home: &Queue{queues: &Queues{}}, place: p, live: true}
		r := requestOf(place.Claim{Ctx: t.Context()}, nil)
		h.Join(r)
		r.Caller.Handle().Release() // it is about to leave the hold
		h.Join(r)
		h.MarkLost()
		var look sync.WaitGroup
		look.Go(func() {
			for range 10 {
				h.Review()
				h.Since()
			}
		})
		h.Finish(errs.ErrLeaseOver, time.Now())
		look.Wait()
		if len(h.handles) != 1 {
			t.Fatalf("the loss of %d handles is reported, want 1", len(h.handles))
		}
	}
}
