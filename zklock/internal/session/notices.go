package session

import (
	"slices"
	"sync"
)

// notices calls the Session and Lost hooks of one session, on a goroutine of its own. The
// goroutine that notices a change, for example the overseer, must not wait for a hook.
//
// Invariants:
//   - Hooks are called one at a time, in the order of the events that they report.
//   - Each lost handle and the end of the session are always reported. Of the states in
//     between, at most maxNotices wait: if there are more, the oldest is dropped.
//   - run returns after end was called, when everything has been reported.
type notices struct {
	changed func(State)   // may be nil
	wake    chan struct{} // cap 1: wakes run, which then looks at queue and due

	mu     sync.Mutex
	queue  []notice // guarded by mu
	states int      // guarded by mu; how many of the queue are states
	over   bool     // guarded by mu; end was called
	due    int      // guarded by mu; number of losses that lost has yet to be called for, see expect
}

// notice is one event; one of its fields is set.
type notice struct {
	state *State
	lost  func()
}

// maxNotices is how many states of a session wait at most for a slow hook.
const maxNotices = 64

func (n *notices) init(changed func(State)) {
	n.changed, n.wake = changed, make(chan struct{}, 1)
}

// session queues a state. If the state only repeats the one queued before it, as after each
// heartbeat, it replaces that one.
func (n *notices) session(e State) {
	if n.changed == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over {
		return
	}
	if last := len(n.queue) - 1; n.states > 0 && n.queue[last].state != nil && n.queue[last].state.State == e.State && e.Err == nil {
		n.queue[last].state = &e
		return
	}
	if n.states++; n.states > maxNotices {
		n.states--
		oldest := slices.IndexFunc(n.queue, func(x notice) bool { return x.state != nil })
		n.queue = slices.Delete(n.queue, oldest, oldest+1)
	}
	n.addLocked(notice{state: &e})
}

// lost queues report, which reports losses, or writes another line to the log.
func (n *notices) lost(report func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addLocked(notice{lost: report})
}

// expect announces a call of lost, and then of expected, for a place. The session may end
// in between: its end is reported only after that loss.
func (n *notices) expect() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.due++
}

// expected takes back an expect, after lost was called.
func (n *notices) expected() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.due--
	Poke(n.wake)
}

// end is called after the last notice that is not expected.
func (n *notices) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over = true
	Poke(n.wake)
}

func (n *notices) addLocked(x notice) {
	n.queue = append(n.queue, x)
	Poke(n.wake)
}

// run calls the hooks, until the last notice.
func (n *notices) run() {
	for range n.wake {
		n.mu.Lock()
		queue, ended := n.queue, n.over && n.due == 0
		n.queue, n.states = nil, 0
		n.mu.Unlock()
		for _, x := range queue {
			if x.state != nil {
				n.changed(*x.state)
			} else {
				x.lost()
			}
		}
		if ended {
			return
		}
	}
}
