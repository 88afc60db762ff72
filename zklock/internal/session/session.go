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

// Session is one ZooKeeper session and what this client does on it.
//
// Invariants:
//   - over is set once and never cleared: a session that was given up stays so,
//     whatever the ensemble says later. Every hold that is on it at that moment is lost exactly
//     once, if its release does not begin before lose marks it, and no hold is added afterwards.
//   - Ctx ends after the last handle on the session has ended. Goroutines that wait for the
//     end of the session wait for Ctx and nothing else; see endLocked for the order.
//   - While the lease counts (see counting), the overseer ends the session when Lease.Until is
//     reached, as soon as its timer, a heartbeat's reply or a call of Lock.Valid shows that. A
//     lease that has run out while it counted is never extended again.
//   - While a tenant is on the session, the lease counts: a tenant's place does not rest.
//   - While the lease does not count, the overseer ends the session when no exchange has been answered
//     for a session timeout and an interval of the exchanges, whether a place waits or not.
//   - Code that holds mu only works on memory: it makes no request, calls no hook and does
//     not wait.
type Session struct {
	pool     *Pool
	settings *Settings
	User     any // the result of Pool.Attend for this session; set before a caller has it
	DS       driver.Session
	Timeout  time.Duration // negotiated when the session was created; later values do not change it
	born     time.Time     // an instant

	Ctx      context.Context // ends with the session
	stop     context.CancelFunc
	wg       sync.WaitGroup // overseer, heart, committer and clean-ups
	deadline deadline
	Commits  committer
	Watches  watches
	notices  notices // its goroutine may end last, so the pool waits for it

	rouse chan struct{} // cap 1: wakes the heart, which then checks whether an exchange is due
	look  chan struct{} // cap 1: wakes the overseer, which then checks the state and the lease
	lone  chan struct{} // cap MaxLone: one element for each request of Once, or write that is sent apart, that is under way

	// proven is Lease.Until in nanoseconds since born, while the lease counts and the
	// session is not over, and else 0. It changes together with them, under mu.
	proven atomic.Int64

	// unchecked is set in a session that follows a loss until a write was committed: it shows whether the
	// ensemble has lost transactions. See order.
	unchecked atomic.Bool

	mu       mutex.Mutex[mutex.Inner]
	lease    lease.Lease         // guarded by mu, but for its settings
	heard    time.Time           // guarded by mu; an instant: when an exchange was last answered
	replied  time.Time           // guarded by mu; an instant: when a request of Once was last answered without an error
	latency  time.Duration       // guarded by mu; how long the newest write took
	spared   time.Time           // guarded by mu; an instant: until then the nodes of lost locks stay
	gen      uint64              // guarded by mu; generation of the connection that the lease's chain belongs to
	renewed  chan struct{}       // guarded by mu; closed and replaced when the lease changes
	work     int                 // guarded by mu; number of places, each from before its creation until it is gone
	needing  int                 // guarded by mu; number of these that need the lease: all but those that rest, see Rest
	counting bool                // guarded by mu; the lease counts: a place needs it, and the session ends with the lease
	urgent   bool                // guarded by mu; the next heartbeat must not wait for its time
	tenants  map[Tenant]struct{} // guarded by mu
	over     error               // guarded by mu; why the session has ended; nil: it has not
	due      time.Time           // guarded by mu; an instant: the heart waits until then at most; zero: it does not wait
	frozen   time.Duration       // guarded by mu; lease.Suspended when the heart began to wait
	pause    string              // guarded by mu; the last pause of the process since the lease was renewed; "": none
	cut      time.Time           // guarded by mu; since when there has been no connection; zero: there is one; stays when the session is over
}

// newSession makes a Session of ds and starts its goroutines. suspendedThen is what
// lease.Suspended returned before ds was opened, so that a suspension since then shortens
// the lease.
func newSession(p *Pool, ds driver.Session, suspendedThen time.Duration) *Session {
	s := &Session{
		pool:     p,
		settings: p.Settings,
		DS:       ds,
		Timeout:  ds.Timeout(),
		born:     lease.Now(),
		rouse:    make(chan struct{}, 1),
		look:     make(chan struct{}, 1),
		lone:     make(chan struct{}, MaxLone),
		renewed:  make(chan struct{}),
		tenants:  make(map[Tenant]struct{}),
	}
	s.Ctx, s.stop = context.WithCancel(context.Background())
	s.Watches.s, s.Watches.byKey = s, make(map[watchKey]*Watched)
	s.Commits = committer{multi: s.multi, ctx: s.Ctx, wg: &s.wg, lone: s.lone}
	s.lease = s.settings.lease(s.Timeout)
	s.unchecked.Store(p.mayFollowALoss())
	gen, handshake := ds.Conn()
	s.gen = gen
	// Only the handshake of the first connection created the session. After a reconnect the
	// time of that handshake is not known, and proves nothing.
	s.lease.Connected(handshake.Add(suspendedThen), lease.Now(), gen == 1)
	s.notices.changed, s.notices.wg, s.notices.mu = s.settings.Changed, &p.wg, &s.mu
	s.report(driver.Connected)
	s.wg.Go(func() { s.oversee(suspendedThen) })
	s.wg.Go(heart{s}.beat)
	return s
}

// IsOver reports whether the session has ended. Ctx may end some time later.
func (s *Session) IsOver() bool { return s.Cause() != nil }

// CutSince returns since when the session has had no connection; the zero time if it has one. A
// session that is over has none.
func (s *Session) CutSince() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cut
}

// Cause returns why the session has ended; nil if it has not.
func (s *Session) Cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// Spawn runs f in a goroutine that shutdown waits for. f has to return soon after s.Ctx has
// ended. Spawn returns false, and does not run f, if the session is over.
func (s *Session) Spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return false
	}
	s.wg.Go(f)
	return true
}

// prove runs a request. If it is answered without an error, prove extends the lease by what that
// proves; committed says that the request is a write. The exchange counts only if it began and
// ended on the connection of the lease's chain.
func (s *Session) prove(committed bool, request func() error) error {
	gen, _ := s.DS.Conn()
	sent := lease.Now()
	err := request()
	if after, _ := s.DS.Conn(); err != nil || after != gen {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil || gen != s.gen {
		return nil
	}
	answered := lease.Now()
	if s.heard = answered; committed {
		s.latency = answered.Sub(sent)
	}
	if s.counting && !answered.Before(s.lease.Until) {
		Poke(s.look) // the reply came too late: the overseer ends the session
		return nil
	}
	if committed || !s.counting {
		s.pause = ""
	}
	before := s.lease.Until
	s.lease.Acknowledged(sent, answered, committed)
	// A lease that is too short does not begin to count: the session might end with it
	// although all heartbeats are answered.
	switch {
	case s.counting && !s.lease.Until.Equal(before):
		s.renewedLocked()
	case committed && !s.counting && s.needing > 0 && s.lease.Lasts(answered):
		s.countLocked() // wake AwaitLease, even if the end of the lease is the same
	}
	return nil
}

// report queues the session's state for the Session hook, and does not wait for the hook.
func (s *Session) report(state driver.State) {
	left, _ := s.Left()
	s.notices.session(State{ID: s.DS.ID(), Server: s.DS.Server(), State: state, Lease: left})
}

// Latency returns how long the newest write took.
func (s *Session) Latency() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latency
}

// End ends the session for this client, for ever: everything that is held on it is lost with
// cause, it is closed at the ensemble in the background, and the hooks get state. End waits
// for none of that. It does nothing if the session is over already.
func (s *Session) End(state driver.State, cause error) {
	s.mu.Lock()
	after := s.endLocked(state, cause)
	s.mu.Unlock()
	after()
}

// endLocked ends the session, with mu held, and returns what the caller has to call right after it
// has unlocked mu. So a caller can end the session in one step with what it decides that by.
//
// Callers are promised the order of the steps:
//
//   - First every handle ends. A session may carry ten thousand. Until then no waiter of this
//     client is woken, and callers that ask the pool for a session wait (see Pool.look).
//   - Then the session leaves the pool, and the pool begins to close it at the ensemble, so
//     that other clients may be granted its locks. Its waiters are woken.
//   - Last, the losses and the end are reported, by the goroutine of the notices: hooks and
//     loggers may be slow.
func (s *Session) endLocked(state driver.State, cause error) (after func()) {
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
	s.over = cause
	if s.cut.IsZero() || !errors.Is(cause, errs.ErrLeaseOver) {
		s.cut = time.Now() // other ends are the ensemble's answer, so there was a connection
	}
	s.publishLocked()
	tenants := slices.Collect(maps.Keys(s.tenants))
	s.tenants = nil
	s.spareLocked(tenants, cause)
	if isLoss(cause) {
		s.pool.Lost.Add(1) // before any caller can notice the loss
	}
	report := s.notices.expectLocked(true)
	return func() {
		lost := s.lose(tenants, cause, lease.Wall(at), func() {
			s.pool.discard(s, isLoss(cause))
			s.stop()
		})
		ended := State{ID: s.DS.ID(), Server: s.DS.Server(), State: state, Err: cause}
		report <- func() {
			s.reportLoss(lost, cause)
			if s.settings.Changed != nil {
				s.settings.Changed(ended)
			}
		}
	}
}

// shutdown ends the session at the ensemble and waits for all goroutines of the session.
// End has been called before.
//
// It waits until the ensemble answers. If it gave up, the session's nodes could block all
// contenders for long: a session does not expire while the servers have no leader, and the next
// leader gives it its full timeout again. Once the pool is closed, which waits for shutdown,
// shutdown gives up after one more session timeout.
func (s *Session) shutdown() {
	s.awaitSpared()
	s.Commits.close()
	ctx, cancel := context.WithCancel(context.Background())
	s.wg.Go(func() {
		defer cancel()
		select {
		case <-s.pool.Ctx.Done():
			Sleep(ctx, s.Timeout, nil)
		case <-ctx.Done():
		}
	})
	if err := s.DS.Close(ctx); err != nil {
		s.settings.Log().Warn("zklock: session not closed, its nodes stay until it expires", "session", HexID(s.DS.ID()), "error", err)
	}
	cancel()
	s.wg.Wait()
}

// WaitEnded returns the error of an operation on the session that began at the instant began
// and that ctx or the end of the session ended. (The wait for another holder is not such an
// operation.) If only the session has ended, that is errs.ErrSessionOver. If the session works, the
// operation waited for an answer, and the error matches errs.ErrUnanswered. Else it waited for a
// session that works, and the error matches errs.ErrUnavailable.
//
// A session works if it is connected, and has answered within the last interval of its
// exchanges, or if the operation began within that interval.
func (s *Session) WaitEnded(ctx context.Context, began time.Time) error {
	if ctx.Err() == nil || ctx == s.Ctx {
		return errs.ErrSessionOver
	}
	state, _ := s.DS.State()
	quiet := lease.Now().Sub(began)
	s.mu.Lock()
	if heard := lease.Now().Sub(s.heard); heard < quiet {
		quiet = heard
	}
	there := state == driver.Connected && quiet < s.lease.ExchangeEvery()
	s.mu.Unlock()
	if there {
		return errs.WaitEnded(ctx, errs.ErrUnanswered)
	}
	return s.pool.Outage(ctx)
}

// Outage is Outage of the session's pool.
func (s *Session) Outage(ctx context.Context) error { return s.pool.Outage(ctx) }

// Answered returns when an exchange of the session was answered last.
func (s *Session) Answered() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(-s.quietLocked(lease.Now()))
}

// Patient derives the context of a caller whose request has waited for those of others since
// began, an instant. The context ends connect_timeout after the session has last answered. It
// has ended already if the session has not answered since began, or has no connection.
func (s *Session) Patient(ctx context.Context, began time.Time) (context.Context, context.CancelFunc) {
	s.mu.Lock()
	var last time.Time
	if s.cut.IsZero() && s.heard.After(began) {
		last = lease.Wall(s.heard)
	}
	s.mu.Unlock()
	return s.pool.Patient(ctx, last)
}
