package local

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// patience is what a local queue knows of its callers while more of them come than the lock carries, so that
// some give up. In the order of their calls, the first in the queue would always be the next to give up: it
// would get the lock, and leave during its work. So the lock goes to the first caller that is likely to be
// there when its work is done.
//
// Invariants:
//   - While no caller gives up, the order is that of the calls, and nothing is measured.
//   - The queue passes a caller over only if the caller would leave before the end of its work and a quarter of that:
//     by its context's deadline, or by how long callers waited that left before a deadline or had none. So a caller is
//     passed over for a bounded time: until it leaves, or until it has waited twice as long as those that left.
//   - If all callers are likely to leave during their work, the first caller is next. While the queue does not know how
//     long work takes, it takes a caller that has waited for more than half of its time to be likely to leave.
//   - If no caller is likely to stay, and a caller that had just come would be, a place whose turn has come waits for
//     such a caller, but for no longer than the work that would be in vain.
type patience struct {
	tested atomic.Bool // a caller has given up; set under the queue's mu

	// Guarded by the queue's mu.
	leftAt time.Time     // when a caller gave up last
	waits  time.Duration // how long callers have waited that gave up before a deadline or without one, on average; 0: none has
	work   time.Duration // how long callers have the lock, on average; 0: not known
	lead   time.Duration // how long a caller that leads takes until it has the lock, on average; 0: not known
	joins  time.Duration // the same of readers at the gate, which do not wait for one another

	asked  bool          // a request with FailBusy has come
	turnAt time.Time     // when a caller that waited had its turn last
	turns  time.Duration // how long it takes from one turn to the next, on average; 0: not known
}

// pressedFor is for how long after a caller has given up others are expected to do so, too.
const pressedFor = time.Second

// pressedLocked reports whether callers give up at present.
func (p *patience) pressedLocked(now time.Time) bool { return now.Sub(p.leftAt) < pressedFor }

// leftLocked notes that the caller of a request that came at since has given up. deadline is that of its context, if it
// has one. A caller whose wait alone was bounded would have stayed for its work.
func (p *patience) leftLocked(r *Request, since, deadline time.Time) {
	p.leftAt = time.Now()
	p.tested.Store(true)
	if r.ctx != nil && context.Cause(r.ctx) == errs.ErrWaitOver { // TestEndOfWithWaitChangesNoOrder, TestCallerThatIsCancelledAtAnyLook
		return
	}
	if deadline.IsZero() || p.leftAt.Before(deadline) { // an HTTP client hangs up, a gRPC client cancels its call
		p.waits = average(p.waits, p.leftAt.Sub(since))
	}
}

// workedLocked notes since when a caller has had the lock that it gives back now.
func (p *patience) workedLocked(since time.Time) {
	if now := time.Now(); p.pressedLocked(now) {
		p.work = average(p.work, now.Sub(since))
	}
}

// suffices reports whether a caller that came at since, and has that deadline, is likely to be there when its work is
// done, if it has the lock after lead.
func (p *patience) suffices(since, deadline time.Time, lead time.Duration, now time.Time) bool {
	waited := now.Sub(since)
	needs := p.work + p.work/4 + lead
	if p.work == 0 {
		needs = waited + lead
	}
	if !deadline.IsZero() && deadline.Sub(now) < needs {
		return false
	}
	return p.waits == 0 || waited+needs < p.waits || waited > 2*p.waits
}

// standbyLocked returns for how long a place whose turn has come waits for a caller that is likely to stay. tk is the
// next one; nil: there is none.
func (p *patience) standbyLocked(tk *ticket, now time.Time) time.Duration {
	if !p.pressedLocked(now) {
		return 0
	}
	if tk == nil {
		return breath
	}
	deadline := tk.deadline
	if p.suffices(tk.since, deadline, 0, now) {
		return 0
	}
	if !deadline.IsZero() {
		deadline = deadline.Add(now.Sub(tk.since))
	}
	if !p.suffices(now, deadline, 0, now) {
		return 0 // nor would one that came now
	}
	return p.work
}

// turnLocked notes that a caller that has waited since since has its turn. If it came after the turn before, the time
// before it came does not count: the lock may have been free.
func (p *patience) turnLocked(since time.Time) {
	if !p.asked {
		return
	}
	now := time.Now()
	switch {
	case p.turnAt.IsZero():
	case p.turnAt.After(since):
		p.turns = average(p.turns, now.Sub(p.turnAt))
	default:
		p.turns = average(p.turns, now.Sub(since))
	}
	p.turnAt = now
}

// busyLocked returns the error of a caller that can wait until latest, at most, if it would not have its turn by then:
// before is how many turns come before its own, at least. If there are none, the caller waits, however long turns were:
// its own shows how long they are now.
func (p *patience) busyLocked(latest time.Time, before int) error {
	if latest.IsZero() {
		return nil
	}
	p.asked = true
	if wait := p.turns * time.Duration(before+1); before > 0 && time.Until(latest) < wait {
		return &errs.Busy{Wait: wait}
	}
	return nil
}

// ledLocked notes since when a caller that has the lock now has led.
func (p *patience) ledLocked(r *Request, since time.Time) {
	if now := time.Now(); p.pressedLocked(now) {
		lead := p.leadOf(r)
		*lead = average(*lead, now.Sub(since))
	}
}

// leadOf returns how long such callers lead.
func (p *patience) leadOf(r *Request) *time.Duration {
	if r.apart && !takes(r.Wants) {
		return &p.joins
	}
	return &p.lead
}

// average adds a value to a moving average.
func average(old, value time.Duration) time.Duration {
	if old == 0 {
		return value
	}
	return old + (value-old)/8
}

// now returns the time if callers have given up; else the zero time, which costs nothing.
func (p *patience) now() (now time.Time) {
	if p.tested.Load() {
		now = time.Now()
	}
	return now
}
