package tracing

import (
	"context"
	"slices"
	"sync"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// sessions remembers the states of sessions, so that each change is counted once: the
// state Connected is reported at every heartbeat, and the end of a session more than
// once.
type sessions struct {
	mu        sync.Mutex
	suspended map[int64]bool // guarded by mu; the sessions that are suspended
	ended     []int64        // guarded by mu; the sessions that ended last, in a ring
	next      int            // guarded by mu; the next index of the ring
}

// remembered is how many ended sessions are remembered. All reports of one end come
// within a short time.
const remembered = 64

// reconnected records a state that is not an end. It returns true if the session was
// suspended and is connected again.
func (s *sessions) reconnected(id int64, state driver.State) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.suspended[id]
	switch {
	case state == driver.Connected:
		delete(s.suspended, id)
		return was
	case state == driver.Suspended && !slices.Contains(s.ended, id):
		if s.suspended == nil {
			s.suspended = make(map[int64]bool)
		}
		s.suspended[id] = true
	}
	return false
}

// end records a session's end. It returns false if the end was known already.
func (s *sessions) end(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.suspended, id)
	if slices.Contains(s.ended, id) {
		return false
	}
	if len(s.ended) < remembered {
		s.ended = append(s.ended, id)
		return true
	}
	s.ended[s.next] = id
	s.next = (s.next + 1) % remembered
	return true
}

// session is the Session hook.
func (o *observer) session(e zklock.SessionEvent) {
	ctx := context.Background()
	switch e.State {
	case driver.Connected, driver.Suspended:
		if o.sessions.reconnected(e.ID, e.State) {
			o.instruments.reconnects.Add(ctx, 1)
		}
		if e.Silent > 0 {
			o.instruments.silent.Add(ctx, 1)
		}
		if e.State == driver.Connected && e.Lease > 0 {
			o.instruments.lease.Record(ctx, e.Lease.Seconds())
		}
	case driver.Expired:
		if o.sessions.end(e.ID) {
			o.instruments.sessions.Add(ctx, 1)
		}
	case driver.Closed:
		o.sessions.end(e.ID)
	}
}
