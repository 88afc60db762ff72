package session

import (
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// A session may end before the pool has put it into its slot, or be asked for between
// its end and the moment at which it leaves the slot: it is given out in neither case.
func TestSessionThatIsOverIsNeverGivenOut(t *testing.T) {
	set := &Settings{}
	set.Jitter = func(d time.Duration) time.Duration { return d }
	p := &Pool{Settings: set, slots: make([]slot, 1)}
	over := &Session{Over: errs.ErrSessionExpired}
	if err := p.fill(0, over); err == nil || p.slots[0].session != nil {
		t.Errorf("filled with a session that is over: %v", err)
	}
	alive := &Session{}
	if err := p.fill(0, alive); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := p.look(0); got != alive {
		t.Errorf("got %p, want the session that lives", got)
	}
	alive.Over = errs.ErrSessionExpired
	opening := &opening{done: make(chan struct{})}
	p.slots[0].opening = opening
	if got, o, err := p.look(0); got != nil || o != opening || err != nil {
		t.Errorf("got %p, %v, %v, want the opening of another one", got, o, err)
	}
}

// Each session that is lost soon after it was opened has the next one opened later; one
// that has lived for a timeout counts as the first again.
func TestSlotBacksOff(t *testing.T) {
	whole := func(d time.Duration) time.Duration { return d }
	sl := slot{since: time.Now()}
	var got []time.Duration
	for range 5 {
		sl.backOff(10*time.Second, time.Minute, whole)
		got = append(got, sl.backoff)
	}
	for i, want := range []time.Duration{500 * time.Millisecond, time.Second, 1250 * time.Millisecond, 1250 * time.Millisecond, 1250 * time.Millisecond} {
		if got[i] != want {
			t.Errorf("loss %d in a row: the slot stays empty for up to %v, want %v", i+1, got[i], want)
		}
	}
	sl.since = time.Now().Add(-10 * time.Second)
	if sl.backOff(10*time.Second, time.Minute, whole); sl.backoff != 500*time.Millisecond {
		t.Errorf("after a long life: %v", sl.backoff)
	}
	sl = slot{since: time.Now()}
	for range 5 {
		if sl.backOff(40*time.Second, 250*time.Millisecond, whole); sl.backoff > 250*time.Millisecond {
			t.Errorf("the slot stays empty for %v, a quarter of a connect_timeout of 1s is the most", sl.backoff)
		}
	}
}

// What notices wait for a hook: all losses and the end, and of the states the newest.
func TestNoticesAreBounded(t *testing.T) {
	var n notices
	n.init(func(State) {})
	for range 10 * maxNotices {
		n.session(State{State: driver.Suspended})
		n.session(State{State: driver.Connected})
		n.session(State{State: driver.Connected, Lease: time.Second})
		n.Lost(func() {})
	}
	states, losses := 0, 0
	var last State
	for _, x := range n.queue {
		if x.state == nil {
			losses++
			continue
		}
		states, last = states+1, *x.state
	}
	if states != maxNotices || losses != 10*maxNotices || last.Lease != time.Second {
		t.Errorf("%d states, the last %+v, and %d losses wait", states, last, losses)
	}
}
