package session

import (
	"errors"
	"time"
)

// slot is one position of a pool, for one session at a time.
type slot struct {
	session *Session
	since   time.Time // when the session was opened
	opening *opening  // the attempt that is under way; nil if there is none

	// After a loss, the next session is opened no earlier than notBefore: many clients
	// may lose their sessions at the same moment, and must not all open new ones at once.
	notBefore time.Time
	backoff   time.Duration // grows while sessions are lost one after the other

	// cut is since when the slot has had no connection. wanted is when the slot last lost
	// its session or failed to open one; zero while it has one. See Pool.CutSince.
	cut, wanted time.Time
}

// cutMemory is how long after wanted a slot's cut still counts, if no caller has asked for a
// session since.
const cutMemory = time.Second

// spread is the FNV-1a hash of a path. It has no random seed, so that a name has the same
// slot in every run. A seed is not needed against names that were chosen to collide: names
// in one slot share a session and its losses, and nothing gets slow.
func spread(path string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range len(path) {
		h = (h ^ uint64(path[i])) * prime
	}
	return h
}

// CutSince returns since when there has been no connection for a path: because its session
// has none, or because no session could be opened. It returns the zero time if there is a
// connection, or if no session has been wanted lately.
func (p *Pool) CutSince(path string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	sl := &p.slots[p.slot(path)]
	switch {
	case sl.session != nil && !sl.session.IsOver():
		return sl.session.CutSince()
	case sl.opening != nil || time.Since(sl.wanted) <= cutMemory:
		return sl.cut
	}
	return time.Time{}
}

// slot returns the number of the slot of a path.
func (p *Pool) slot(path string) int {
	if len(p.slots) == 1 {
		return 0
	}
	return int(spread(path) % uint64(len(p.slots)))
}

// backOff keeps a slot empty for a while after the loss of a session. The pause is random:
// up to a twentieth of the timeout after the first loss. The limit doubles with each further
// session that is lost before it has lived for a timeout, up to an eighth of the timeout. It
// is never more than most, because callers that wait for a session wait for the pause, too.
func (sl *slot) backOff(timeout, most time.Duration, jitter func(time.Duration) time.Duration) {
	if time.Since(sl.since) >= timeout {
		sl.backoff = 0
	}
	sl.backoff = min(max(2*sl.backoff, timeout/20), timeout/8, most)
	sl.notBefore = time.Now().Add(2*jitter(sl.backoff) - sl.backoff)
}

// errPausing is why no session is being opened at this moment.
var errPausing = errors.New("a session was lost, and the next one is opened after a short pause")
