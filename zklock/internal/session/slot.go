package session

import (
	"errors"
	"time"
)

// slot is a place for one session.
type slot struct {
	session *Session
	since   time.Time // when it was opened
	opening *opening

	// What many clients lose at one moment they must not all ask for again at one
	// moment: after a loss, the next session is opened no earlier than notBefore.
	notBefore time.Time
	backoff   time.Duration // grows while sessions are lost one after the other

	// cut is since when there has been no connection, though one was wanted all the
	// time until wanted: see Pool.CutSince.
	cut, wanted time.Time
}

// cutMemory is for how long a slot from which no caller wants a session remembers that there
// was none to be had.
const cutMemory = time.Second

// spread is the FNV-1a hash of a path. It has no seed, so that a name has the
// same slot in every run: what many names on one slot cost is shared fate, no
// long chain that somebody could want to provoke.
func spread(path string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range len(path) {
		h = (h ^ uint64(path[i])) * prime
	}
	return h
}

// CutSince returns since when the session for a path has had no connection, or there
// has been no session though one was being opened; the zero time if there is one with a
// connection, or nothing has been tried lately.
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

// slot is the number of the slot that a path maps to.
func (p *Pool) slot(path string) int {
	if len(p.slots) == 1 {
		return 0
	}
	return int(spread(path) % uint64(len(p.slots)))
}

// backOff keeps a slot empty for a while after the loss of a session: for up to a
// twentieth of the timeout, and for up to twice as long after each further session that
// was lost before it had lived for a timeout, but for no more than an eighth of one, and
// never for longer than most: callers that wait for a session wait for this as well.
func (sl *slot) backOff(timeout, most time.Duration, jitter func(time.Duration) time.Duration) {
	if time.Since(sl.since) >= timeout {
		sl.backoff = 0
	}
	sl.backoff = min(max(2*sl.backoff, timeout/20), timeout/8, most)
	sl.notBefore = time.Now().Add(2*jitter(sl.backoff) - sl.backoff)
}

// errPausing says why a session is not being opened at this moment.
var errPausing = errors.New("a session was lost, and the next one is opened after a short pause")
