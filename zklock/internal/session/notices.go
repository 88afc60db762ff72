package session

import (
	"slices"
	"sync"

	"github.com/zklock/go-zklock/zklock/internal/mutex"
)

// notices calls the Session and Lost hooks of one session. The goroutine that notices a change,
// for example the overseer, must not wait for a hook. So a goroutine of its own calls them. It runs
// only while there is something to report.
//
// Invariants:
//   - Hooks are called one at a time, in the order of the events that they report.
//   - Each lost handle and the end of the session are always reported. Of the states in
//     between, at most maxNotices wait: if there are more, the oldest is dropped.
//   - No state is reported after the end of the session, and every loss on it is reported before.
//     All of them are in the queue before the session leaves the pool, which waits for run.
type notices struct {
	changed func(Snapshot)            // may be nil
	wg      *sync.WaitGroup           // the pool's
	mu      *mutex.Mutex[mutex.Inner] // the session's: a step of the session and its notice are one

	queue   []notice // guarded by mu
	states  int      // guarded by mu; how many of the queue are states
	running bool     // guarded by mu; run looks at the queue again
	over    bool     // guarded by mu; the end of the session is, or was, in the queue
}

// notice is one event; one of its fields is set.
type notice struct {
	state *Snapshot
	call  func()
}

// maxNotices is how many states of a session wait at most for a slow hook.
const maxNotices = 64

// session queues a state. If the state only repeats the one queued before it, as after each
// heartbeat, it replaces that one.
func (n *notices) session(e Snapshot) {
	if n.changed == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over {
		return
	}
	if last := len(n.queue) - 1; n.states > 0 && n.queue[last].state != nil && n.queue[last].state.State == e.State {
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

// expectLocked queues a function that the caller sends, once: it reports a loss that is under way, or
// writes a line to the log. What is queued later waits for it. last means that it reports
// the end of the session. mu is held.
func (n *notices) expectLocked(last bool) (report chan<- func()) {
	n.over = n.over || last
	sent := make(chan func(), 1)
	n.addLocked(notice{call: func() { (<-sent)() }})
	return sent
}

func (n *notices) addLocked(x notice) {
	if n.queue = append(n.queue, x); !n.running {
		n.running = true
		n.wg.Go(n.run)
	}
}

// run calls the hooks, until the queue is empty.
func (n *notices) run() {
	for running := true; running; {
		n.mu.Lock()
		queue := n.queue
		running = len(queue) > 0
		n.queue, n.states, n.running = nil, 0, running
		n.mu.Unlock()
		for _, x := range queue {
			if x.state != nil {
				n.changed(*x.state)
			} else {
				x.call()
			}
		}
	}
}
