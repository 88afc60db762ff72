package local

import "time"

// yielding is how a client makes room for others while many clients want several names at once, each another set of them. A
// request for several names waits on each of them for the contenders ahead, while those for others of its names wait for
// it; and no agent can go on with its place when its caller leaves, unless another caller wants the same set. So if
// more of them are in ZooKeeper's queues than can be granted while their callers wait, hardly one is granted. No client
// knows of the callers of another. But each learns from its own: one that leaves behind another client's contender has
// asked too early. Then the client asks for one set at a time, after a pause, which doubles with each caller that leaves so,
// and halves with each that gets its lock. So about every second one gets it, however many clients there are.
//
// Invariants:
//   - The client yields for pressedFor at most after the last caller has left so. Then all that has room is let through,
//     whatever the one that asks waits for. So what waits for that is in no circle of waits that lasts.
//   - While no caller leaves so, or one in a second, nothing yields.
//   - The order of those that wait, and what they may be passed over for, is that of the gate.
type yielding struct {
	asking int           // guarded by the gate's mu; how many requests for several names are under way, with those of agents
	pause  time.Duration // guarded by the gate's mu; 0: the client does not yield
	until  time.Time     // guarded by the gate's mu; when the next may ask
	failed time.Time     // guarded by the gate's mu; when a caller has left behind another client's contender last
	due    *time.Timer   // guarded by the gate's mu; of resume; nil: the client has never yielded

	jitter func(time.Duration) time.Duration
	resume func() // lets those through that a pause has held up; it locks the gate's mu
}

// maxPause bounds a pause.
const maxPause = pressedFor / 2

// yieldsLocked reports whether no further request for several names may ask now.
func (y *yielding) yieldsLocked(now time.Time) bool {
	if y.pause > 0 && now.Sub(y.failed) >= pressedFor {
		y.pause = 0
	}
	return y.pause > 0 && (y.asking > 0 || now.Before(y.until))
}

// asksLocked counts a request for several names that was let through.
func (y *yielding) asksLocked(r *Request) {
	if len(r.Wants) > 1 && r.admitted {
		y.asking++
	}
}

// askedLocked ends that. behind says that it stood behind another client's contender. An agent's request ends when no caller
// is there: that says nothing of how long callers wait.
func (y *yielding) askedLocked(r *Request, got, behind bool) {
	if len(r.Wants) == 1 {
		return
	}
	now := time.Now()
	y.asking--
	yielded := y.pause > 0
	switch {
	case got:
		if y.pause /= 2; y.pause < breath {
			y.pause = 0
		}
	case behind && r.Caller != nil:
		if now.Sub(y.failed) < pressedFor {
			y.pause = min(max(2*y.pause, now.Sub(r.Origin.Since), breath), maxPause)
		}
		y.failed = now
	}
	switch {
	case y.pause > 0:
		pause := y.jitter(y.pause)
		y.until = now.Add(pause)
		y.resumeLocked(pause)
	case yielded:
		y.resumeLocked(0)
	}
}

// resumeLocked has resume called after a time.
func (y *yielding) resumeLocked(after time.Duration) {
	if y.due == nil {
		y.due = time.AfterFunc(after, y.resume)
	} else {
		y.due.Reset(after)
	}
}

// resumedLocked is called at the end of resume. If one still asks, the others wait until the client yields no more.
func (y *yielding) resumedLocked() {
	now := time.Now()
	if !y.yieldsLocked(now) {
		return
	}
	next := y.failed.Add(pressedFor)
	if now.Before(y.until) {
		next = earlier(next, y.until)
	}
	y.resumeLocked(next.Sub(now))
}

// earlier returns the earlier one of two times.
func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
