package faultdriver

import (
	"slices"
	"sync"
)

// Gate holds back the operations that [Late] was injected into, until they are
// released. The zero Gate holds none yet and is ready for use; it may be used
// by several goroutines.
type Gate struct {
	mu      sync.Mutex
	waiting []lateOp // guarded by mu; in the order of arrival
}

// lateOp is an operation that waits to be applied.
type lateOp struct {
	session *session
	apply   func()
}

// Waiting is how many operations are held back. Those of sessions that were
// closed meanwhile do not count: they will never be applied.
func (g *Gate) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}

// Release applies what is held back, one after the other in the order in which
// they came, and returns how many there were. What comes later waits for the
// next Release.
func (g *Gate) Release() int {
	g.mu.Lock()
	waiting := g.waiting
	g.waiting = nil
	g.mu.Unlock()
	applied := 0
	for _, l := range waiting {
		// A session that is closing applies nothing any more; one that is not
		// waits in Close until its operation is done.
		if !l.session.begin() {
			continue
		}
		l.apply()
		l.session.background.Done()
		applied++
	}
	return applied
}

// add holds an operation back.
func (g *Gate) add(s *session, apply func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, lateOp{s, apply})
}

// forget drops what is held back for a session that is closing.
func (g *Gate) forget(s *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = slices.DeleteFunc(g.waiting, func(l lateOp) bool { return l.session == s })
}
