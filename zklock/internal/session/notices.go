package session

import (
	"slices"
	"sync"
)

// notices calls the Session and Lost hooks of one session, on a goroutine of its own:
// what notices a change, a keeper of leases for example, must not wait for a hook.
//
// Invariants:
//   - Hooks are called one at a time, in the order of what they report.
//   - A lost handle is always reported, and so is the end of the session. States
//     in between are not when more than maxNotices wait: the oldest goes.
//   - run ends after end, when all has been reported.
type notices struct {
	changed func(State)   // may be nil
	wake    chan struct{} // cap 1: there is something in queue

	mu    sync.Mutex
	queue []notice // guarded by mu
	over  bool     // guarded by mu; end was called
	due   int      // guarded by mu; losses that are going to be reported, see Expect
}

// notice is a state of the session, or losses, or the last one of all.
type notice struct {
	state *State
	lost  func()
	end   func()
}

// maxNotices is how many states of a session wait for a hook that takes its time.
const maxNotices = 64

func (n *notices) init(changed func(State)) {
	n.changed, n.wake = changed, make(chan struct{}, 1)
}

// session reports a state. One that only repeats the state before, as after each
// heartbeat, takes the place of that if it still waits.
func (n *notices) session(e State) {
	if n.changed == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over {
		return
	}
	states := 0
	for i := range n.queue {
		if n.queue[i].state != nil {
			states++
		}
	}
	if last := len(n.queue) - 1; states > 0 && n.queue[last].state != nil && n.queue[last].state.State == e.State && e.Err == nil {
		n.queue[last].state = &e
		return
	}
	if states == maxNotices {
		oldest := slices.IndexFunc(n.queue, func(x notice) bool { return x.state != nil })
		n.queue = slices.Delete(n.queue, oldest, oldest+1)
	}
	n.addLocked(notice{state: &e})
}

// Lost reports losses, which tell does.
func (n *notices) Lost(tell func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addLocked(notice{lost: tell})
}

// Expect says that lost is going to be called for a place, and then expected, though the
// session may end meanwhile: its end is reported after that.
func (n *notices) Expect() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.due++
}

// Expected takes an Expect back: what was expected was handed to Lost.
func (n *notices) Expected() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.due--
	n.pokeLocked()
}

// end adds the last notice.
func (n *notices) end(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addLocked(notice{end: f})
	n.over = true
}

func (n *notices) addLocked(x notice) {
	n.queue = append(n.queue, x)
	n.pokeLocked()
}

func (n *notices) pokeLocked() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// run calls the hooks until the end.
func (n *notices) run() {
	var end func()
	for range n.wake {
		n.mu.Lock()
		queue, due := n.queue, n.due
		n.queue = nil
		n.mu.Unlock()
		for _, x := range queue {
			switch {
			case x.state != nil:
				n.changed(*x.state)
			case x.end != nil:
				end = x.end
			default:
				x.lost()
			}
		}
		if end != nil && due == 0 {
			end()
			return
		}
	}
}
