package session

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/mutex"
)

// The pool gives no caller a session that is over. The session may end before the pool has put
// it into its slot, or a caller may ask for it after its end, while it is still in the slot.
func TestSessionThatIsOverIsNeverGivenOut(t *testing.T) {
	set := &Settings{}
	set.Jitter = func(d time.Duration) time.Duration { return d }
	p := &Pool[*Session]{slots: make([]slot[*Session], 1)}
	p.Settings = set
	over := assemble(t.Context(), &p.common, &onConn{})
	over.over = errs.ErrSessionExpired
	if err := p.fill(0, over); err == nil || p.slots[0].session != nil {
		t.Errorf("fill with a session that is over: error %v, and the slot has %p; want an error and no session", err, p.slots[0].session)
	}
	alive := assemble(t.Context(), &p.common, &onConn{})
	if err := p.fill(0, alive); err != nil {
		t.Fatal(err)
	}
	if _, got, _, _ := p.look("", 0); got != alive {
		t.Errorf("look returned %p, want the session that lives", got)
	}
	alive.over = errs.ErrSessionExpired
	opening := &opening{done: make(chan struct{})}
	p.slots[0].opening = opening
	if _, got, o, err := p.look("", 0); got != nil || o != opening || err != nil {
		t.Errorf("look returned %p, %v, %v, want the attempt to open another session", got, o, err)
	}
}

// Each session that is lost soon after it was opened makes the pause before the next one
// longer. After a session that has lived for a timeout there is none.
func TestSlotBacksOff(t *testing.T) {
	whole := func(d time.Duration) time.Duration { return d }
	var sl slot[*Session]
	var got []time.Duration
	for range 5 {
		sl.backOff(time.Second, 10*time.Second, time.Minute, whole)
		got = append(got, sl.backoff)
	}
	for i, want := range []time.Duration{500 * time.Millisecond, time.Second, 1250 * time.Millisecond, 1250 * time.Millisecond, 1250 * time.Millisecond} {
		if got[i] != want {
			t.Errorf("loss %d in a row: the slot stays empty for up to %v, want %v", i+1, got[i], want)
		}
	}
	if sl.backOff(10*time.Second, 10*time.Second, time.Minute, whole); time.Now().Before(sl.notBefore) {
		t.Errorf("after a session that lived for a timeout, the slot stays empty until %v, want no pause", sl.notBefore)
	}
	if sl.backOff(time.Second, 10*time.Second, time.Minute, whole); sl.backoff != 500*time.Millisecond {
		t.Errorf("after a further loss, the slot stays empty for up to %v, want 500ms", sl.backoff)
	}
	sl = slot[*Session]{}
	for range 5 {
		if sl.backOff(time.Second, 40*time.Second, 250*time.Millisecond, whole); sl.backoff > 250*time.Millisecond {
			t.Errorf("the slot stays empty for up to %v, want at most 250ms, a quarter of a connect_timeout of 1s", sl.backoff)
		}
	}
}

// While a hook is slow, all losses wait for it, and of the states only the newest.
func TestNoticesAreBounded(t *testing.T) {
	n := notices{changed: func(Snapshot) {}, mu: &mutex.Mutex[mutex.Inner]{}, running: true} // run is held up by a hook
	for range 10 * maxNotices {
		n.session(Snapshot{State: driver.Suspended})
		n.session(Snapshot{State: driver.Connected})
		n.session(Snapshot{State: driver.Connected, Lease: time.Second})
		n.expectLocked(false)
	}
	states, losses := 0, 0
	var last Snapshot
	for _, x := range n.queue {
		if x.state == nil {
			losses++
			continue
		}
		states, last = states+1, *x.state
	}
	if states != maxNotices || losses != 10*maxNotices || last.Lease != time.Second {
		t.Errorf("%d states, the last %+v, and %d losses wait; want %d states and %d losses", states, last, losses, maxNotices, 10*maxNotices)
	}
}

// Notices keep the order in which they were queued: one that is not known yet holds up those behind
// it, and the pool waits for all of them. The end of the session is the last one.
func TestEndOfASessionIsItsLastNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		var got []string
		report := func(what string) func() { return func() { got = append(got, what) } }
		n := notices{changed: func(e Snapshot) { report(e.State.String())() }, wg: &wg, mu: &mutex.Mutex[mutex.Inner]{}}
		expect := func(last bool) chan<- func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.expectLocked(last)
		}
		n.session(Snapshot{State: driver.Connected})
		loss := expect(false)
		n.session(Snapshot{State: driver.Suspended})
		end := expect(true)
		n.session(Snapshot{State: driver.Connected})
		end <- report("end")
		synctest.Wait()
		loss <- report("loss")
		wg.Wait()
		if want := []string{driver.Connected.String(), "loss", driver.Suspended.String(), "end"}; !slices.Equal(got, want) {
			t.Errorf("reported %q, want %q", got, want)
		}
	})
}
