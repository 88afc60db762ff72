package zklock

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// session is one ZooKeeper session and what this client does on it.
//
// Invariants:
//   - over is set once and never cleared: a session that was given up never
//     comes back, whatever the ensemble says later. Every hold on it is lost at
//     that moment, exactly once, and no hold is added afterwards.
//   - ctx ends after the last handle on the session has ended, and is the one sign
//     of the end that anything waits for: see endIf for the order.
//   - While counting, a moment at or after lease.Until ends the session; who
//     notices first, be it a timer, a heartbeat's reply or Valid, ends it. So
//     nobody sees a lease that has run out move on again.
//   - mu is held around memory only.
type session struct {
	pool     *pool
	settings *settings
	user     any // what the pool's attend has returned
	ds       driver.Session
	timeout  time.Duration // negotiated when it was created; it never grows
	born     time.Time     // an instant

	ctx     context.Context // ends with the session
	stop    context.CancelFunc
	wg      sync.WaitGroup // keeper, heart, committer and clean-ups
	commits committer
	watches watches
	notices notices // joined by the pool, as it ends last

	rouse chan struct{} // cap 1: beat looks again
	look  chan struct{} // cap 1: keep looks again
	lone  chan struct{} // cap maxLone: requests under way that are made by once

	// proven is lease.Until while the lease counts and the session is not over, as
	// nanoseconds since born; else 0. It changes with them, under mu.
	proven atomic.Int64

	mu       sync.Mutex
	lease    lease.Lease         // guarded by mu
	heard    time.Time           // guarded by mu; an instant: when an exchange was last answered
	spared   time.Time           // guarded by mu; an instant: until then lost locks' nodes stay
	gen      uint64              // guarded by mu; connection the lease's chain belongs to
	moved    chan struct{}       // guarded by mu; closed and replaced when gen grows
	renewed  chan struct{}       // guarded by mu; closed and replaced when the lease moves
	work     int                 // guarded by mu; places, from before their creation until gone
	counting bool                // guarded by mu; the lease counts
	urgent   bool                // guarded by mu; a heartbeat is wanted before its time
	tenants  map[tenant]struct{} // guarded by mu
	over     error               // guarded by mu
	cut      time.Time           // guarded by mu; since when there has been no connection; zero: there is one
}

// newSession starts to look after ds. suspendedThen is what suspended returned
// before ds was made, so that a suspension since then shortens the lease.
func newSession(p *pool, ds driver.Session, suspendedThen time.Duration) *session {
	s := &session{
		pool:    p,
		settings: p.settings,
		ds:      ds,
		timeout: ds.Timeout(),
		born:    lease.Now(),
		rouse:   make(chan struct{}, 1),
		look:    make(chan struct{}, 1),
		lone:    make(chan struct{}, maxLone),
		moved:   make(chan struct{}),
		renewed: make(chan struct{}),
		tenants: make(map[tenant]struct{}),
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.commits = committer{multi: s.multi, settle: s.settle, ctx: s.ctx, wg: &s.wg}
	s.lease = lease.Lease{Timeout: s.settings.leaseTimeout(s.timeout), Tick: s.settings.tickTime}
	gen, handshake := ds.Conn()
	s.gen = gen
	// Only the first connection's handshake created the session. If it has been
	// replaced already, its proof is not to be had any more.
	s.lease.Connected(handshake.Add(suspendedThen), lease.Now(), gen == 1)
	s.notices.init(s.settings.changed)
	s.tell(driver.Connected, nil)
	s.wg.Go(s.keep)
	s.wg.Go(s.beat)
	return s
}

// server is where the session is connected, for hooks.
func (s *session) server() string { return s.ds.Server() }

// leave says that a place is gone. Each register is matched by one leave.
func (s *session) leave() {
	s.mu.Lock()
	idle := s.leaveLocked()
	s.mu.Unlock()
	if idle {
		s.pool.retire(s)
	}
}

// leaveLocked is leave; if it returns true, pool.retire is to be called without
// mu. With the last place the lease stops counting: there is nothing to lose.
func (s *session) leaveLocked() (idle bool) {
	s.work--
	if s.work > 0 {
		return false
	}
	s.counting = false
	s.lease.Until = time.Time{}
	s.publishLocked()
	return true
}

// publishLocked makes what the lease has come to known to alive.
func (s *session) publishLocked() {
	proven := int64(0)
	if s.over == nil && s.counting {
		proven = int64(s.lease.Until.Sub(s.born))
	}
	s.proven.Store(proven)
}

// alive reports whether the lease counts and has not run out. As long as it has
// not, that takes no lock. Only under mu may it be found to have run out, in turn
// with what makes it longer: so that who has seen its end never sees it move on.
func (s *session) alive() bool {
	if proven := s.proven.Load(); proven > 0 && lease.Now().Sub(s.born) < time.Duration(proven) {
		return true
	}
	left, _ := s.left()
	return left > 0
}

// isOver reports whether the session has ended. It may be some time before ctx
// does.
func (s *session) isOver() bool { return s.cause() != nil }

// cutSince is since when the session has had no connection, as far as its keeper has
// seen; the zero time if it has one.
func (s *session) cutSince() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cut
}

// cause is why the session has ended; nil if it has not.
func (s *session) cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// spawn runs f in a goroutine that the session's end waits for. f has to return
// soon after s.ctx has ended. false: the session is over, f does not run.
func (s *session) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return false
	}
	s.wg.Go(f)
	return true
}

// beforeExchange reads what has to be known before a request is sent.
func (s *session) beforeExchange() (gen uint64, sent time.Time) {
	gen, _ = s.ds.Conn()
	return gen, lease.Now()
}

// exchanged records that a request sent at sent was answered without an error,
// and lets the lease follow. It counts only if it began and ended on the
// connection that the lease's chain is about.
func (s *session) exchanged(gen uint64, sent time.Time, committed bool) {
	after, _ := s.ds.Conn()
	if after != gen {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil || gen != s.gen {
		return
	}
	answered := lease.Now()
	s.heard = answered
	if s.counting && !answered.Before(s.lease.Until) {
		s.poke(s.look) // too late: the keeper ends the session
		return
	}
	before := s.lease.Until
	s.lease.Acknowledged(sent, answered, committed)
	began := committed && !s.counting && s.work > 0 && answered.Before(s.lease.Until)
	if began {
		s.counting = true // who waits for a lease has one, even if its end is no other
	}
	if began || s.counting && !s.lease.Until.Equal(before) {
		s.publishLocked()
		close(s.renewed)
		s.renewed = make(chan struct{})
		s.poke(s.look)
	}
}

// poke wakes a goroutine that looks when told; it never waits.
func (s *session) poke(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// left returns how much of the lease is left, and a channel that closes when
// that has grown; 0 if the lease does not count or the session is over.
func (s *session) left() (time.Duration, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leftLocked(), s.renewed
}

func (s *session) leftLocked() time.Duration {
	if s.over != nil || !s.counting {
		return 0
	}
	d := s.lease.Until.Sub(lease.Now())
	if d <= 0 {
		s.poke(s.look)
		return 0
	}
	return d
}

// awaitLease returns when enough of the lease is left to hand out a lock.
func (s *session) awaitLease(ctx context.Context) error {
	var limit <-chan time.Time
	began := lease.Now()
	for {
		left, renewed := s.left()
		if left >= s.lease.Least() {
			return nil
		}
		if limit == nil {
			t := time.NewTimer(s.settings.connectTimeout)
			defer t.Stop()
			limit = t.C
			s.mu.Lock()
			s.urgent = true
			s.mu.Unlock()
			s.poke(s.rouse)
		}
		select {
		case <-renewed:
		case <-s.ctx.Done():
			return errs.SessionOver
		case <-ctx.Done():
			return s.waitEnded(ctx, began)
		case <-limit:
			return errs.LeaseUnproven(s.settings.connectTimeout)
		}
	}
}

// connection returns the present connection's generation, as far as the keeper
// has seen it, and a channel that closes when there is a newer one.
func (s *session) connection() (uint64, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gen, s.moved
}

// end ends the session for this client, once and for ever: everything held on it
// is lost with cause, its connection is given up in the background, and the hooks
// see state. It waits for nothing, and does nothing if the session is over already.
func (s *session) end(state driver.State, cause error) {
	s.endIf(state, cause, func() bool { return true })
}

// endIf is end if a condition holds, in one step. s.mu is held when it is asked.
//
// The order of what follows is what callers are promised. A session may carry
// ten thousand locks and as many waiters:
//
//   - First every handle ends, and nothing but what the callers themselves do about
//     that runs meanwhile. No waiter of this client is woken before, and the pool
//     makes those that ask for a session wait: see pool.look.
//   - Then the session is closed at the ensemble, so that other clients may be
//     granted its locks, and leaves the pool; and then its waiters are woken.
//   - The notices come last, on a goroutine of their own: hooks and loggers may take
//     their time.
func (s *session) endIf(state driver.State, cause error, condition func() bool) {
	s.mu.Lock()
	if s.over != nil || !condition() {
		s.mu.Unlock()
		return
	}
	at := lease.Now()
	if s.counting && s.lease.Until.Before(at) {
		at = s.lease.Until // the lease ended then; only the news is late
	}
	s.over = cause
	s.publishLocked()
	tenants := slices.Collect(maps.Keys(s.tenants))
	s.tenants = nil
	for _, t := range tenants {
		t.leaveLocked()
	}
	busy := s.work > 0
	spared := len(tenants) > 0 && cause != errs.Closed
	if spared {
		s.spareLocked()
	}
	if isLoss(cause) {
		s.pool.lost.Add(1) // before anything shows it
	}
	s.mu.Unlock()

	lost := evict(tenants, cause, lease.Wall(at))
	if spared {
		s.spare() // from now, when Done is closed for all of them
	}
	s.pool.discard(s, isLoss(cause))
	s.stop()
	for _, t := range lost {
		t.vacate()
	}
	s.notices.lost(tellAll(lost))
	s.tell(state, cause)
	s.notices.end(func() { s.pool.discarded(s, cause, busy) })
}

// shutdown ends the session at the ensemble and waits for all its goroutines.
// end has been called.
//
// It goes on until there is an answer. A session whose servers have no leader does
// not expire, and the next leader gives it its full timeout anew: for as long its
// nodes would be in the way of everybody. Once the pool is closed, which waits for
// this, a session timeout has to do.
func (s *session) shutdown() {
	s.awaitSpared()
	s.commits.close()
	ctx, cancel := context.WithCancel(context.Background())
	s.wg.Go(func() {
		defer cancel()
		select {
		case <-s.pool.ctx.Done():
			sleep(ctx, s.timeout, nil)
		case <-ctx.Done():
		}
	})
	if err := s.ds.Close(ctx); err != nil {
		s.settings.logger.Warn("zklock: session could not be closed in order, its nodes go when it expires", "session", s.ds.ID(), "error", err)
	}
	cancel()
	s.wg.Wait()
}

// waitEnded is waitEnded for whatever goes on on a session, since began, but the
// wait for another holder. Was it the session's answer that was waited for, which is
// errUnanswered, or the session? One that is connected, and that has answered or
// was asked within a heartbeat's interval, was there.
func (s *session) waitEnded(ctx context.Context, began time.Time) error {
	state, _ := s.ds.State()
	quiet := lease.Now().Sub(began)
	s.mu.Lock()
	if heard := lease.Now().Sub(s.heard); heard < quiet {
		quiet = heard
	}
	there := state == driver.Connected && quiet < s.lease.HeartbeatEvery()
	s.mu.Unlock()
	if there {
		return errs.WaitEnded(ctx, errs.Unanswered)
	}
	return errs.WaitEnded(ctx, errs.Unavailable)
}
