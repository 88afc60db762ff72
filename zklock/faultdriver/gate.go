package faultdriver

import (
	"slices"
	"sync"
)

// Gate holds back the operations that the fault [Late] has struck, until the test releases
// them. The zero Gate is empty and ready for use. A Gate is safe for concurrent use.
type Gate struct {
	mu      sync.Mutex
	waiting []lateOp // guarded by mu; in the order of arrival
}

// lateOp is an operation that waits to be applied.
type lateOp struct {
	session *session
	apply   func()
}

// Waiting returns how many operations are held back. It leaves out those of closed sessions:
// they are never applied.
func (g *Gate) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}

// Release applies the operations that are held back, one after the other, in the order of their
// arrival. It returns how many it has applied. Later operations wait for the next Release.
func (g *Gate) Release() int {
	g.mu.Lock()
	waiting := g.waiting
	g.waiting = nil
	g.mu.Unlock()
	applied := 0
	for _, l := range waiting {
		// A session that is being closed applies no more operations. If it is not, its
		// Close waits until this operation is done.
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

// forget drops the operations of a session that is being closed.
func (g *Gate) forget(s *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = slices.DeleteFunc(g.waiting, func(l lateOp) bool { return l.session == s })
}
