package session

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

// Session is one ZooKeeper session and what this client does on it.
//
// Invariants:
//   - Over is set once and never cleared: a session that was given up never
//     comes back, whatever the ensemble says later. Every hold on it is lost at
//     that moment, exactly once, and no hold is added afterwards.
//   - Ctx ends after the last handle on the session has ended, and is the one sign
//     of the end that anything waits for: see endIf for the order.
//   - While counting, a moment at or after Lease.Until ends the session; who
//     notices first, be it a timer, a heartbeat's reply or Valid, ends it. So
//     nobody sees a lease that has run out move on again.
//   - Mu is held around memory only.
type Session struct {
	Pool     *Pool
	settings *Settings
	User     any // what Pool.Attend has returned
	DS       driver.Session
	Timeout  time.Duration // negotiated when it was created; it never grows
	born     time.Time     // an instant

	Ctx      context.Context // ends with the session
	stop     context.CancelFunc
	wg       sync.WaitGroup // keeper, heart, committer and clean-ups
	deadline deadline
	Commits  committer
	Watches  watches
	Notices  notices // joined by the pool, as it ends last

	Rouse chan struct{} // cap 1: the heart looks again
	look  chan struct{} // cap 1: the keeper looks again
	lone  chan struct{} // cap MaxLone: requests under way that are made by Once

	// proven is Lease.Until while the lease counts and the session is not over, as
	// nanoseconds since born; else 0. It changes with them, under Mu.
	proven atomic.Int64

	Mu       sync.Mutex
	Lease    lease.Lease         // guarded by Mu
	heard    time.Time           // guarded by Mu; an instant: when an exchange was last answered
	spared   time.Time           // guarded by Mu; an instant: until then lost locks' nodes stay
	gen      uint64              // guarded by Mu; connection the lease's chain belongs to
	moved    chan struct{}       // guarded by Mu; closed and replaced when gen grows
	renewed  chan struct{}       // guarded by Mu; closed and replaced when the lease moves
	Work     int                 // guarded by Mu; places, from before their creation until gone
	counting bool                // guarded by Mu; the lease counts
	urgent   bool                // guarded by Mu; a heartbeat is wanted before its time
	Tenants  map[Tenant]struct{} // guarded by Mu
	Over     error               // guarded by Mu
	cut      time.Time           // guarded by Mu; since when there has been no connection; zero: there is one
}

// newSession starts to look after ds. suspendedThen is what lease.Suspended returned
// before ds was made, so that a suspension since then shortens the lease.
func newSession(p *Pool, ds driver.Session, suspendedThen time.Duration) *Session {
	s := &Session{
		Pool:     p,
		settings: p.Settings,
		DS:       ds,
		Timeout:  ds.Timeout(),
		born:     lease.Now(),
		Rouse:    make(chan struct{}, 1),
		look:     make(chan struct{}, 1),
		lone:     make(chan struct{}, MaxLone),
		moved:    make(chan struct{}),
		renewed:  make(chan struct{}),
		Tenants:  make(map[Tenant]struct{}),
	}
	s.Ctx, s.stop = context.WithCancel(context.Background())
	s.Watches.s = s
	s.Commits = committer{multi: transactions{s}.multi, settle: transactions{s}.settle, ctx: s.Ctx, wg: &s.wg}
	s.Lease = lease.Lease{Timeout: s.settings.LeaseTimeout(s.Timeout), Tick: s.settings.TickTime}
	gen, handshake := ds.Conn()
	s.gen = gen
	// Only the first connection's handshake created the session. If it has been
	// replaced already, its proof is not to be had any more.
	s.Lease.Connected(handshake.Add(suspendedThen), lease.Now(), gen == 1)
	s.Notices.init(s.settings.Changed)
	s.tell(driver.Connected, nil)
	s.wg.Go(keeper{s}.keep)
	s.wg.Go(heart{s}.beat)
	return s
}

// Leave says that a place is gone, which was counted into Work.
func (s *Session) Leave() {
	s.Mu.Lock()
	idle := s.LeaveLocked()
	s.Mu.Unlock()
	if idle {
		s.Pool.Retire(s)
	}
}

// LeaveLocked is Leave; if it returns true, Pool.Retire is to be called without
// Mu. With the last place the lease stops counting: there is nothing to lose.
func (s *Session) LeaveLocked() (idle bool) {
	s.Work--
	if s.Work > 0 {
		return false
	}
	s.counting = false
	s.Lease.Until = time.Time{}
	s.publishLocked()
	return true
}

// publishLocked makes what the lease has come to known to Alive.
func (s *Session) publishLocked() {
	proven := int64(0)
	if s.Over == nil && s.counting {
		proven = int64(s.Lease.Until.Sub(s.born))
	}
	s.proven.Store(proven)
}

// Alive reports whether the lease counts and has not run out. As long as it has
// not, that takes no lock. Only under Mu may it be found to have run out, in turn
// with what makes it longer: so that who has seen its end never sees it move on.
func (s *Session) Alive() bool {
	if proven := s.proven.Load(); proven > 0 && lease.Now().Sub(s.born) < time.Duration(proven) {
		return true
	}
	left, _ := s.Left()
	return left > 0
}

// IsOver reports whether the session has ended. It may be some time before Ctx
// does.
func (s *Session) IsOver() bool { return s.Cause() != nil }

// CutSince is since when the session has had no connection, as far as its keeper has
// seen; the zero time if it has one.
func (s *Session) CutSince() time.Time {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.cut
}

// Cause is why the session has ended; nil if it has not.
func (s *Session) Cause() error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.Over
}

// Spawn runs f in a goroutine that the session's end waits for. f has to return
// soon after s.Ctx has ended. false: the session is over, f does not run.
func (s *Session) Spawn(f func()) bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.Over != nil {
		return false
	}
	s.wg.Go(f)
	return true
}

// BeforeExchange reads what has to be known before a request is sent.
func (s *Session) BeforeExchange() (gen uint64, sent time.Time) {
	gen, _ = s.DS.Conn()
	return gen, lease.Now()
}

// Exchanged records that a request sent at sent was answered without an error,
// and lets the lease follow. It counts only if it began and ended on the
// connection that the lease's chain is about.
func (s *Session) Exchanged(gen uint64, sent time.Time, committed bool) {
	after, _ := s.DS.Conn()
	if after != gen {
		return
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.Over != nil || gen != s.gen {
		return
	}
	answered := lease.Now()
	s.heard = answered
	if s.counting && !answered.Before(s.Lease.Until) {
		Poke(s.look) // too late: the keeper ends the session
		return
	}
	before := s.Lease.Until
	s.Lease.Acknowledged(sent, answered, committed)
	began := committed && !s.counting && s.Work > 0 && answered.Before(s.Lease.Until)
	if began {
		s.counting = true // who waits for a lease has one, even if its end is no other
	}
	if began || s.counting && !s.Lease.Until.Equal(before) {
		s.publishLocked()
		close(s.renewed)
		s.renewed = make(chan struct{})
		Poke(s.look)
	}
}

// tell has the Session hook called, by and by.
func (s *Session) tell(state driver.State, err error) {
	left, _ := s.Left()
	s.Notices.session(State{ID: s.DS.ID(), Server: s.DS.Server(), State: state, Lease: left, Err: err})
}

// Poke wakes a goroutine that looks when told; it never waits.
func Poke(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Left returns how much of the lease is left, and a channel that closes when
// that has grown; 0 if the lease does not count or the session is over.
func (s *Session) Left() (time.Duration, <-chan struct{}) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.LeftLocked(), s.renewed
}

// LeftLocked is Left without the channel; Mu is held.
func (s *Session) LeftLocked() time.Duration {
	if s.Over != nil || !s.counting {
		return 0
	}
	d := s.Lease.Until.Sub(lease.Now())
	if d <= 0 {
		Poke(s.look)
		return 0
	}
	return d
}

// AwaitLease returns when enough of the lease is left to hand out a lock.
func (s *Session) AwaitLease(ctx context.Context) error {
	var limit <-chan time.Time
	began := lease.Now()
	for {
		left, renewed := s.Left()
		if left >= s.Lease.Least() {
			return nil
		}
		if limit == nil {
			t := time.NewTimer(s.settings.ConnectTimeout)
			defer t.Stop()
			limit = t.C
			s.Mu.Lock()
			s.urgent = true
			s.Mu.Unlock()
			Poke(s.Rouse)
		}
		select {
		case <-renewed:
		case <-s.Ctx.Done():
			return errs.ErrSessionOver
		case <-ctx.Done():
			return s.WaitEnded(ctx, began)
		case <-limit:
			return errs.LeaseUnproven(s.settings.ConnectTimeout)
		}
	}
}

// Connection returns the present connection's generation, as far as the keeper
// has seen it, and a channel that closes when there is a newer one.
func (s *Session) Connection() (uint64, <-chan struct{}) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.gen, s.moved
}

// End ends the session for this client, once and for ever: everything held on it
// is lost with cause, its connection is given up in the background, and the hooks
// see state. It waits for nothing, and does nothing if the session is over already.
func (s *Session) End(state driver.State, cause error) {
	s.endIf(state, cause, func() bool { return true })
}

// endIf is End if a condition holds, in one step. s.Mu is held when it is asked.
//
// The order of what follows is what callers are promised. A session may carry
// ten thousand locks and as many waiters:
//
//   - First every handle ends, and nothing but what the callers themselves do about
//     that runs meanwhile. No waiter of this client is woken before, and the pool
//     makes those that ask for a session wait: see Pool.look.
//   - Then the session leaves the pool, and begins to be closed at the ensemble, so
//     that other clients may be granted its locks; and its waiters are woken.
//   - The notices come last, on a goroutine of their own: hooks and loggers may take
//     their time.
func (s *Session) endIf(state driver.State, cause error, condition func() bool) {
	s.Mu.Lock()
	if s.Over != nil || !condition() {
		s.Mu.Unlock()
		return
	}
	at := lease.Now()
	if s.counting && s.Lease.Until.Before(at) {
		at = s.Lease.Until // the lease ended then; only the news is late
	}
	s.Over = cause
	s.publishLocked()
	tenants := slices.Collect(maps.Keys(s.Tenants))
	s.Tenants = nil
	for _, t := range tenants {
		t.LeaveLocked()
	}
	busy := s.Work > 0
	spared := len(tenants) > 0 && cause != errs.ErrClosed
	if spared {
		s.SpareLocked()
	}
	if isLoss(cause) {
		s.Pool.Lost.Add(1) // before anything shows it
	}
	s.Mu.Unlock()

	lost := Evict(tenants, cause, lease.Wall(at))
	if spared {
		s.Spare() // from now, when Done is closed for all of them
	}
	s.Pool.discard(s, isLoss(cause))
	s.stop()
	for _, t := range lost {
		t.Vacate()
	}
	s.Notices.Lost(TellAll(lost))
	s.tell(state, cause)
	s.Notices.end(func() { s.Pool.discarded(s, cause, busy) })
}

// shutdown ends the session at the ensemble and waits for all its goroutines.
// End has been called.
//
// It goes on until there is an answer. A session whose servers have no leader does
// not expire, and the next leader gives it its full timeout anew: for as long its
// nodes would be in the way of everybody. Once the pool is closed, which waits for
// this, a session timeout has to do.
func (s *Session) shutdown() {
	s.awaitSpared()
	s.Commits.close()
	ctx, cancel := context.WithCancel(context.Background())
	s.wg.Go(func() {
		defer cancel()
		select {
		case <-s.Pool.Ctx.Done():
			Sleep(ctx, s.Timeout, nil)
		case <-ctx.Done():
		}
	})
	if err := s.DS.Close(ctx); err != nil {
		s.settings.Logger.Warn("zklock: session could not be closed in order, its nodes go when it expires", "session", s.DS.ID(), "error", err)
	}
	cancel()
	s.wg.Wait()
}

// WaitEnded is errs.WaitEnded for whatever goes on on a session, since began, but the
// wait for another holder. Was it the session's answer that was waited for, which is
// errs.ErrUnanswered, or the session? One that is connected, and that has answered or
// was asked within a heartbeat's interval, was there.
func (s *Session) WaitEnded(ctx context.Context, began time.Time) error {
	state, _ := s.DS.State()
	quiet := lease.Now().Sub(began)
	s.Mu.Lock()
	if heard := lease.Now().Sub(s.heard); heard < quiet {
		quiet = heard
	}
	there := state == driver.Connected && quiet < s.Lease.HeartbeatEvery()
	s.Mu.Unlock()
	if there {
		return errs.WaitEnded(ctx, errs.ErrUnanswered)
	}
	return errs.WaitEnded(ctx, errs.ErrUnavailable)
}
