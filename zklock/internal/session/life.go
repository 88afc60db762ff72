package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/lease"
	"github.com/zklock/go-zklock/zklock/internal/mutex"
)

// life is what a session knows of itself, without I/O: whether it is over, its lease, the counts of its
// places, and its holds. All parts of a session change it, and it knows none of them.
//
// Invariants:
//   - over is set once and never cleared: a session that was given up stays so,
//     whatever the ensemble says later. Every hold that is on it at that moment is lost exactly
//     once, if its release does not begin before lose marks it, and no hold is added afterwards.
//   - While the lease counts (see counting), the overseer ends the session when Lease.Until is
//     reached, as soon as its timer, a heartbeat's reply or a call of Lock.Valid shows that. A
//     lease that has run out while it counted is never extended again.
//   - While a hold is on the session, the lease counts: a place that has a hold does not rest.
//   - While the lease does not count, the overseer ends the session when no exchange has been answered
//     for a session timeout and an interval of the exchanges, whether a place waits or not.
//   - Code that holds mu only works on memory: it makes no request, calls no hook and does
//     not wait.
type life struct {
	common   *common
	settings *Settings // those of common
	ds       driver.Session
	timeout  time.Duration // negotiated when the session was created; later values do not change it
	born     time.Time     // an instant

	ctx  context.Context // ends after gone is closed and the session has left the pool
	wg   sync.WaitGroup  // heart, committer and clean-ups
	gone chan struct{}   // closed when the session is over and all handles on it have ended

	rouse chan struct{} // cap 1: wakes the heart, which then checks whether an exchange is due
	look  chan struct{} // cap 1: wakes the overseer, which then checks the state and the lease

	// proven is Lease.Until in nanoseconds since born, while the lease counts and the
	// session is not over, and else 0. It changes together with them, under mu.
	proven atomic.Int64
	bytes  atomic.Int64 // changed under mu; what the session's ephemeral znodes take in the transaction that ends it: see room.go

	mu       mutex.Mutex[mutex.Inner]
	notices  notices       // shares mu: a step of the session and its notice are one
	lease    lease.Lease   // guarded by mu, but for its settings
	heard    time.Time     // guarded by mu; an instant: when an exchange was last answered
	replied  time.Time     // guarded by mu; an instant: when a request that proves nothing was last answered
	refused  error         // guarded by mu; the answer to the newest heartbeat, if the ensemble has refused it
	latency  time.Duration // guarded by mu; how long the newest write took
	gen      uint64        // guarded by mu; generation of the connection that the lease's chain belongs to
	renewed  chan struct{} // guarded by mu; closed and replaced when the lease changes
	work     int           // guarded by mu; number of places, each from before its creation until it is gone
	needing  int           // guarded by mu; number of these that need the lease: all but those that rest, see Rest
	counting bool          // guarded by mu; the lease counts: a place needs it, and the session ends with the lease
	urgent   bool          // guarded by mu; the next heartbeat must not wait for its time
	due      time.Time     // guarded by mu; an instant: the heart waits until then at most; zero: it does not wait
	frozen   time.Duration // guarded by mu; lease.Suspended when the heart began to wait
	pause    string        // guarded by mu; the last pause of the process since the lease was renewed; "": none
	looks    time.Time     // guarded by mu; when the overseer looks next, at the latest; zero: it has not looked yet
	cut      time.Time     // guarded by mu; since when there has been no connection; zero: there is one; stays when the session is over

	foreign       map[string]int         // guarded by mu; the bytes of the program's ephemeral znodes, by path; "": of all
	holds         map[Dependent]struct{} // guarded by mu
	lossDelayEnds time.Time              // guarded by mu; an instant: until then the nodes of lost locks stay
	retiring      bool                   // guarded by mu; the pool has replaced it: it ends when its last place is gone
	over          error                  // guarded by mu; why the session has ended; nil: it has not
	last          ending                 // set before gone is closed; announceEnd, which is called once, clears it
}

// ending is what is left to do when all handles of a session that is over have ended.
type ending struct {
	state  Snapshot
	lost   []Dependent   // those that the end of the session has ended
	report chan<- func() // takes the report of the end
}

// init makes the life of a session with no connection yet.
func (s *life) init(ctx context.Context, c *common, ds driver.Session) {
	s.common, s.settings, s.ds, s.ctx = c, c.Settings, ds, ctx
	s.timeout, s.born = ds.Timeout(), lease.Now()
	s.gone, s.renewed = make(chan struct{}), make(chan struct{})
	s.rouse, s.look = make(chan struct{}, 1), make(chan struct{}, 1)
	s.holds = make(map[Dependent]struct{})
	s.lease = s.settings.lease(s.timeout)
	s.notices.changed, s.notices.wg, s.notices.mu = s.settings.Changed, &c.wg, &s.mu
}

// IsOver reports whether the session has ended. Its context may end some time later.
func (s *life) IsOver() bool { return s.Cause() != nil }

// CutSince returns since when the session has had no connection; the zero time if it has one. A
// session that is over has none.
func (s *life) CutSince() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cut
}

// Cause returns why the session has ended; nil if it has not.
func (s *life) Cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// Latency returns how long the newest write took.
func (s *life) Latency() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latency
}

// Spawn runs f in a goroutine that the end of the session waits for. f has to return soon after
// Context has ended. Spawn returns false, and does not run f, if the session is over.
func (s *life) Spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return false
	}
	s.wg.Go(f)
	return true
}

// PastLifetime reports whether a session is as old as pool_max_lifetime allows. The pool has replaced
// it, or replaces it when a caller next asks for its slot.
func (s *life) PastLifetime() bool {
	most := s.settings.PoolMaxLifetime
	return most > 0 && lease.Now().Sub(s.born) >= most
}

// retire makes the session end as soon as it has no places: at once, or with the last of them.
func (s *life) retire() {
	after := func() {}
	s.mu.Lock()
	if s.retiring = true; s.work == 0 {
		after = s.endLocked(driver.Closed, errs.ErrSessionEnded)
	}
	s.mu.Unlock()
	after()
}

// report queues the session's state for the Session hook, and does not wait for the hook.
func (s *life) report(state driver.State) {
	left, _ := s.Left()
	e := Snapshot{ID: s.ds.ID(), Server: s.ds.Server(), State: state, Lease: left}
	if state == driver.Suspended {
		e.Silent, e.Forgotten = silentOf(s.ds)
	}
	s.notices.session(e)
}

// Ended reports whether a definite error means that the session is over. If so, it ends the
// session for this client.
func (s *life) Ended(err error) bool {
	switch {
	case errors.Is(err, driver.ErrSessionExpired):
		s.End(driver.Expired, errs.ErrSessionExpired)
	case errors.Is(err, driver.ErrClosed):
		s.End(driver.Closed, errs.ErrSessionEnded)
	default:
		return false
	}
	return true
}

// End ends the session for this client, for ever: everything that is held on it is lost with
// cause. The goroutine that runs the session then takes it out of the pool, closes it at the ensemble,
// and gives state to the hooks; End waits for none of that. End does nothing if the session is over
// already.
func (s *life) End(state driver.State, cause error) {
	s.mu.Lock()
	after := s.endLocked(state, cause)
	s.mu.Unlock()
	after()
}

// endLocked ends the session, with mu held, and returns what the caller has to call right after it
// has unlocked mu. So a caller can end the session in one step with what it decides that by.
//
// Callers are promised the order of the steps. First every handle ends. A session may carry ten
// thousand. Until then no waiter of this client is woken, and callers that ask the pool for a session
// wait (see Pool.look). The further steps are those of Pool.run, which waits for gone.
func (s *life) endLocked(state driver.State, cause error) (after func()) {
	if s.over != nil {
		return func() {}
	}
	at := lease.Now()
	if s.counting && s.lease.Until.Before(at) {
		at = s.lease.Until // the lease ended then, and this client notices it only now
	}
	if pause := s.lastPauseLocked(); pause != "" && (errors.Is(cause, errs.ErrLeaseOver) || cause == errs.ErrSessionExpired) {
		cause = fmt.Errorf("%w, because %s", cause, pause)
	}
	if cause == errs.ErrLeaseOver && s.refused != nil {
		cause = fmt.Errorf("%w, because the ensemble refuses this client's heartbeats, which need READ on %s: %v", cause, s.settings.Root, s.refused)
	}
	s.over = cause
	if s.cut.IsZero() || !errors.Is(cause, errs.ErrLeaseOver) {
		s.cut = time.Now() // other ends are the ensemble's answer, so there was a connection
	}
	s.publishLocked()
	holds := slices.Collect(maps.Keys(s.holds))
	s.holds = nil
	s.delayLossLocked(holds, cause)
	if isLoss(cause) {
		s.common.Lost.Add(1) // before any caller can notice the loss
	}
	report := s.notices.expectLocked(true)
	return func() {
		lost := s.lose(holds, cause, lease.Wall(at))
		s.last = ending{Snapshot{ID: s.ds.ID(), Server: s.ds.Server(), State: state, Err: cause}, lost, report}
		close(s.gone)
	}
}

// lastPauseLocked returns the last pause since the lease was renewed; "" if there was none.
func (s *life) lastPauseLocked() string {
	if !s.due.IsZero() {
		if text := pauseText(lease.Now().Sub(s.due), lease.Suspended()-s.frozen, s.lease.Least()/2); text != "" {
			s.pause = text
		}
	}
	return s.pause
}
