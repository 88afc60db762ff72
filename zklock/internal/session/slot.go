package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// slot is one position of a pool, for one session at a time.
type slot[M Member] struct {
	session *Session
	member  M        // the session's, if there is one
	opening *opening // the attempt that is under way; nil if there is none

	// After losses, the next session is opened no earlier than notBefore: see backOff.
	notBefore time.Time
	pause     time.Duration // from the last loss until notBefore; 0 if there was none
	backoff   time.Duration // grows while sessions are lost one after the other

	// cut is since when the slot has had no connection. wanted is when the slot last lost
	// its session or failed to open one; zero while it has one. See Pool.CutSince.
	// failure is why there is no session: the last one was lost, or could not be opened; nil if that
	// is not known.
	cut, wanted time.Time
	failure     *error

	// barred is set when a session could not be opened, until one was. Callers that are about to make znodes then use
	// another slot's session that works: a server may have room for some of a client's connections only.
	barred bool
}

// opening is an attempt to open a session. All callers that wait for the session share it.
type opening struct {
	done   chan struct{}
	failed chan struct{}         // closed when a first try has failed
	told   bool                  // guarded by the pool's mu; failed is closed
	err    error                 // set before done is closed
	made   time.Time             // guarded by the pool's mu; when the ensemble last made a session, which has to be prepared yet
	last   atomic.Pointer[error] // why the newest try failed, for callers that give up before done
}

// refusal returns the error for the caller, after an attempt that is not worth repeating.
func (o *opening) refusal() error {
	if errors.Is(o.err, errs.ErrNoAuth) || errors.Is(o.err, errs.ErrBadEnsemble) || errors.Is(o.err, errs.ErrConflict) {
		return o.err // a session was opened, but locks cannot work with it
	}
	if errors.Is(o.err, driver.ErrAuthFailed) {
		return fmt.Errorf("%w: %w", errs.ErrNoAuth, o.err) // servers are available, but refuse the credentials
	}
	return fmt.Errorf("%w: %w", errs.ErrUnavailable, o.err)
}

// unavailable returns the error of a caller that has waited for a session for
// connect_timeout, which is d. why is what the driver says about a try that is under way; nil: nothing.
func (o *opening) unavailable(d time.Duration, why error) error {
	switch last := o.last.Load(); {
	case last == nil && why != nil:
		return fmt.Errorf("%w for %v: %v", errs.ErrUnavailable, d, why)
	case last == nil:
		return fmt.Errorf("%w for %v", errs.ErrUnavailable, d)
	case errors.Is(*last, context.DeadlineExceeded), errors.Is(*last, context.Canceled):
		// As text only, so that the caller does not take it for its own deadline.
		return fmt.Errorf("%w for %v: %v", errs.ErrUnavailable, d, *last)
	default:
		return fmt.Errorf("%w for %v: %w", errs.ErrUnavailable, d, *last)
	}
}

// empty takes the session out of the slot.
func (sl *slot[M]) empty() {
	var none M
	sl.session, sl.member = nil, none
}

// cutMemory is how long after wanted a slot's cut still counts, if no caller has asked for a
// session since.
const cutMemory = time.Second

// CutSince returns since when there has been no connection for what Session would return: because its
// session has none, or because no session could be opened. It returns the zero time if there is a
// connection, or if no session has been wanted lately.
func (p *Pool[M]) CutSince(path string, bytes int) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, _ := p.choose(path, bytes)
	return p.slots[n].cutSince()
}

// cutSince is Pool.CutSince for a slot. The pool's mu is held.
func (sl *slot[M]) cutSince() time.Time {
	switch {
	case sl.session != nil: // it may be over, and about to leave the slot: see discard
		return sl.session.CutSince()
	case sl.opening != nil || time.Since(sl.wanted) <= cutMemory:
		return sl.cut
	}
	return time.Time{}
}

// slot returns the number of the slot of a path.
func (p *Pool[M]) slot(path string) int { return slotOf(path, len(p.slots)) }

// choose returns the number of the slot for a path and for ephemeral znodes with so many bytes: that of the
// path, or the next one whose session may have room. If no session can be opened in the slot of the path, or its session
// has had no connection for long, it is the next one that has a session which is connected. ok is false, and n is the slot of
// the path, if none has.
// The pool's mu is held.
func (p *Pool[M]) choose(path string, bytes int) (n int, ok bool) {
	home := p.slot(path)
	if bytes > ephemerals(p.bounds.hoped(p.Settings)) {
		return home, false
	}
	away := p.slots[home].barred || p.cutForLong(&p.slots[home])
	for i := range p.slots {
		n = (home + i) % len(p.slots)
		s := p.slots[n].session
		if away && s != nil && s.mayHaveRoom(bytes) && !s.IsOver() && !s.PastLifetime() && s.CutSince().IsZero() {
			return n, true
		}
	}
	for i := range p.slots {
		n = (home + i) % len(p.slots)
		if s := p.slots[n].session; s == nil || s.mayHaveRoom(bytes) || s.IsOver() || s.PastLifetime() {
			return n, true
		}
	}
	return home, false
}

// cutForLong reports whether a slot has had no connection for as long as a try waits for one. Then callers that have no
// znodes there yet do not wait for it, if another session is connected. A move to another server takes less. The pool's mu
// is held.
func (p *Pool[M]) cutForLong(sl *slot[M]) bool {
	cut := sl.cutSince()
	return !cut.IsZero() && time.Since(cut) > p.Settings.TryTimeout()
}

// slotOf chooses one of many slots for a path, by its FNV-1a hash. That needs no random seed
// against names that were chosen to collide: names in one slot share a session and its losses, and
// nothing gets slow.
func slotOf(path string, many int) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(path)) // never fails
	return int(h.Sum64() % uint64(many))
}

// backOff keeps a slot empty for a while after the loss of a session that has lived for lived, but not
// after one that has lived for a timeout: tries to reach an ensemble that was away are spread already.
// The pause is random, up to a twentieth of the timeout; that limit doubles with each further loss, up
// to an eighth, and to most: callers that wait for a session wait for the pause, too.
func (sl *slot[M]) backOff(lived, timeout, most time.Duration, jitter func(time.Duration) time.Duration) {
	if lived >= timeout {
		sl.backoff, sl.pause, sl.notBefore = 0, 0, time.Time{}
		return
	}
	sl.backoff = min(max(2*sl.backoff, timeout/20), timeout/8, most)
	sl.pause = 2*jitter(sl.backoff) - sl.backoff
	sl.notBefore = time.Now().Add(sl.pause)
}

// errPausing is why no session is being opened at this moment.
var errPausing = errors.New("a session was lost, and the next one is opened after a short pause")

// diagnose returns why an attempt has not succeeded so far; nil if that is not known.
func (p *Pool[M]) diagnose(o *opening) error {
	if err := p.connector.Diagnose(); err != nil {
		return err
	}
	if last := o.last.Load(); last != nil {
		return *last
	}
	return nil
}

// Healthy returns nil if the ensemble has answered on one of the pool's sessions within that
// session's timeout, and since the last Fail, and no lease that counts there has run out. That may be a
// session that was replaced because of its age, while the next one is being opened. It makes no request.
// Without a session it starts to open one, and does not wait for it.
func (p *Pool[M]) Healthy() error {
	if known, err := p.judge(); known {
		return err
	}
	found, _, o, err := p.look("", 0)
	p.mu.Lock()
	proven := p.proven
	p.mu.Unlock()
	failed := p.failed.Load()
	answered := lease.Now().Before(proven) && (failed == nil || proven.Add(-p.Settings.SessionTimeout).After(*failed))
	if found || err != nil || answered { // what was found has just been opened
		return err
	}
	text := "%w: none has been opened yet"
	if p.Lost.Load() > 0 {
		text += " after a loss"
	}
	if why := p.diagnose(o); why != nil {
		return fmt.Errorf(text+": %w", errs.ErrUnavailable, why)
	}
	return fmt.Errorf(text, errs.ErrUnavailable)
}

// Problem returns why callers get no session now, as far as that is known, and nil otherwise. In contrast to
// Healthy it opens none.
func (p *Pool[M]) Problem() error {
	if err := p.Regressed(); err != nil {
		return err
	}
	if known, err := p.judge(); known {
		return err
	}
	p.mu.Lock()
	var o *opening
	for i := range p.slots {
		o = cmp.Or(o, p.slots[i].opening)
	}
	p.mu.Unlock()
	if o == nil {
		return nil
	}
	if why := p.diagnose(o); why != nil {
		return fmt.Errorf("%w: %w", errs.ErrUnavailable, why)
	}
	return nil
}

// judge returns what the living sessions show of the ensemble; known is false if there is none.
func (p *Pool[M]) judge() (known bool, _ error) {
	var silent error
	for _, m := range p.All() {
		s := m.Underlying()
		failed := p.failed.Load()
		switch proven := isProven(s); {
		case proven && (failed == nil || answered(s).After(*failed)):
			if failed != nil {
				p.failed.CompareAndSwap(failed, nil)
			}
			return true, nil
		case proven:
			silent = fmt.Errorf("%w: the ensemble has not answered since an acquisition failed or locks were lost because of that", errs.ErrUnavailable)
		case silent == nil && !s.IsOver(): // asked last: a session that is being replaced may end meanwhile
			silent = fmt.Errorf("%w: the ensemble has not answered for a session timeout", errs.ErrUnavailable)
		}
	}
	return silent != nil, silent
}

// Fail notes that a caller has waited for some time in vain, or that locks were lost after a silence of that time. If no session has had an
// answer in that time, Healthy fails until one has: what callers meet is failure, although the sessions may live.
func (p *Pool[M]) Fail(d time.Duration) {
	now := lease.Now()
	for _, m := range p.All() {
		if s := m.Underlying(); !s.IsOver() && answered(s).After(now.Add(-d)) {
			return
		}
	}
	p.failed.Store(&now)
}

// answered returns the instant at which an exchange was last answered; the opening of the session counts as one.
func answered(s *Session) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := lease.Now()
	return now.Add(-s.quietLocked(now))
}

// isProven reports whether a session has had an answer within its timeout, and its lease has
// not run out while it counts. A session that was opened just now has had answers.
func isProven(s *Session) bool { return lease.Now().Before(s.provenUntil()) }
