package tracing

import (
	"context"
	"slices"
	"sync"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// sessions remembers what was told about sessions: a connection is told of at
// every heartbeat, and an end more than once.
type sessions struct {
	mu        sync.Mutex
	suspended map[int64]bool // guarded by mu; those that are
	ended     []int64        // guarded by mu; the last to end, in a ring
	next      int            // guarded by mu; where the ring goes on
}

// remembered is how many ended sessions are. What is told twice about an end is
// told within moments of it.
const remembered = 64

// reconnected takes note of a state that is not an end. true: the session was
// suspended and has come back.
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

// end takes note of a session's end. true: it was not known before.
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
