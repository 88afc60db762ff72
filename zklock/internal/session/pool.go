package session

import (
	"context"
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

// Pool holds the sessions of a Client. Sessions are shared, not checked out: a session
// carries any number of locks, and all of them are lost when it expires. A hash maps each
// name to one slot, and so to one session for as long as that session lives.
//
// Invariants:
//   - A session that is over is never given to a caller. Callers that ask for its slot wait
//     until its handles have ended and it has left the slot; then another one is opened. A
//     session that ends before it is put into its slot is never put there.
//   - In each slot, at most one session takes new queue nodes. A session that is replaced
//     because of its age keeps its nodes, and is closed when the last of them is gone.
//   - wg counts every session until it has been shut down and its last notice was
//     delivered. So Close waits for all sessions, for whatever reason they end.
type Pool struct {
	Settings  *Settings
	connector driver.Connector
	Prepare   func(context.Context, driver.Session) error // checks or creates the root, before a session is used
	Attend    func(*Session) any                          // called with each new session; its result becomes Session.User
	Ctx       context.Context                             // ends with the pool
	stop      context.CancelFunc
	wg        sync.WaitGroup

	Opened, Lost atomic.Uint64 // sessions
	Reconnects   atomic.Uint64 // connections of sessions after their first
	order        order         // of the transactions of all sessions

	mu      mutex.Mutex[mutex.Outer]
	slots   []slot                // guarded by mu
	retired map[*Session]struct{} // guarded by mu; sessions that were replaced and still have places
	proven  time.Time             // guarded by mu; an instant: until then a session that was replaced because of its age stands for the next one in Healthy
	closed  bool                  // guarded by mu
}

// Patient derives the context of a caller that has had no usable session since that time.
// The context ends connect_timeout after since, with cause errs.ErrNoSession.
func (p *Pool) Patient(ctx context.Context, since time.Time) (context.Context, context.CancelFunc) {
	return context.WithDeadlineCause(ctx, since.Add(p.Settings.ConnectTimeout), errs.ErrNoSession)
}

// NewPool returns a pool that opens a session when one is asked for, and not before. The
// caller has to set Prepare and Attend before that.
func NewPool(set *Settings, connector driver.Connector) *Pool {
	p := &Pool{
		Settings:  set,
		connector: connector,
		slots:     make([]slot, set.PoolMaxSessions),
		retired:   make(map[*Session]struct{}),
	}
	p.Ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// Session returns the session for a path. If there is none, it opens one, and waits until ctx
// ends; see Patient for a context that ends after connect_timeout.
func (p *Pool) Session(ctx context.Context, path string) (*Session, error) {
	n := p.slot(path)
	for {
		s, o, err := p.look(n)
		if s != nil || err != nil {
			return s, err
		}
		select {
		case <-o.done:
			if o.err != nil && Permanent(o.err) {
				return nil, o.refusal()
			}
		case <-ctx.Done():
			if cause := context.Cause(ctx); cause == errs.ErrNoSession || cause == errs.ErrCut {
				return nil, o.unavailable(p.Settings.ConnectTimeout, p.connector.Diagnose())
			}
			err := errs.WaitEnded(ctx, errs.ErrUnavailable)
			if why := p.diagnose(o); why != nil {
				err = fmt.Errorf("%w (%v)", err, why) // why as text only: ctx has ended the wait
			}
			return nil, err
		}
	}
}

// look returns the session in slot n. If there is none that can be used, it returns the
// attempt to open one, and starts that attempt if none is under way.
func (p *Pool) look(n int) (*Session, *opening, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, errs.ErrClosed
	}
	sl := &p.slots[n]
	switch s := sl.session; {
	case s == nil || s.IsOver(): // if it is over, it is about to leave the slot
	case s.Worn():
		sl.session = nil
		if until := s.provenUntil(); until.After(p.proven) { // another slot's may be later
			p.proven = until
		}
		p.retired[s] = struct{}{}
		p.wg.Go(func() { p.retire(s) }) // closes it at once if it is idle
	default:
		return s, nil, nil
	}
	if sl.opening == nil {
		o, before := &opening{done: make(chan struct{})}, sl.session
		sl.opening = o
		if time.Since(sl.wanted) > cutMemory {
			sl.cut, sl.failure = time.Now(), nil
		}
		if before != nil { // discard is about to record that
			sl.failure = before.loss()
		}
		o.last.Store(sl.failure) // until the new attempt has a reason of its own
		p.wg.Go(func() { p.open(n, o, before) })
	}
	return nil, sl.opening, nil
}

// open tries to open a session for slot n. It gives up shortly before connect_timeout, so that
// callers that wait for that long learn why it failed. before, if not nil, is a session that is
// over and still in the slot: open waits until it has left, and then for the pause after a loss.
func (p *Pool) open(n int, o *opening, before *Session) {
	ctx, cancel := context.WithTimeout(p.Ctx, p.Settings.ConnectTimeout*19/20)
	defer cancel()
	if before != nil {
		select {
		case <-before.Ctx.Done():
		case <-ctx.Done():
		}
	}
	p.mu.Lock()
	wait := time.Until(p.slots[n].notBefore)
	p.mu.Unlock()
	if wait > 0 {
		lost := o.last.Swap(&errPausing)
		Sleep(ctx, wait, nil)
		o.last.Store(lost)
	}
	err := ctx.Err()
	if err == nil { // else before may still be in the slot
		err = p.connect(ctx, n)
	}
	for pause := 20 * time.Millisecond; err != nil; pause = min(2*pause, time.Second) {
		failure := err
		o.last.Store(&failure)
		if Permanent(err) || !Sleep(ctx, p.Settings.Jitter(pause), nil) {
			break
		}
		err = p.connect(ctx, n)
	}
	p.mu.Lock()
	o.err = err
	p.slots[n].opening = nil
	if err != nil && !Permanent(err) { // a permanent error does not mean that a connection is missing
		p.slots[n].wanted, p.slots[n].failure = time.Now(), o.last.Load()
	}
	p.mu.Unlock()
	close(o.done)
}

// fill puts a session into slot n. It returns an error instead if the session has ended
// since it was opened, or if the pool is closed.
func (p *Pool) fill(n int, s *Session) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		p.wg.Go(func() { s.End(driver.Closed, errs.ErrClosed) })
		return errs.ErrClosed
	}
	if cause := s.Cause(); cause != nil {
		return fmt.Errorf("a session ended as soon as it was opened: %v", cause)
	}
	sl := &p.slots[n]
	sl.session, sl.wanted, sl.failure, sl.pause = s, time.Time{}, nil, 0
	return nil
}

// connect opens one session for slot n and prepares it: see Pool.Prepare.
func (p *Pool) connect(ctx context.Context, n int) error {
	suspendedThen := lease.Suspended()
	ds, err := p.connector.Connect(ctx, p.Settings.SessionTimeout)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.slots[n].opening.made = time.Now()
	p.mu.Unlock()
	err = p.Settings.checkTimeout(ds.Timeout())
	if err == nil {
		err = p.Prepare(ctx, ds)
	}
	if err != nil {
		closeCtx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = ds.Close(closeCtx) // it has no ephemeral nodes; if this fails, it expires
		return err
	}
	p.Settings.reportTimeout(ds.ID(), ds.Timeout())
	p.Opened.Add(1)
	s := newSession(p, ds, suspendedThen)
	s.User = p.Attend(s)
	return p.fill(n, s)
}

// retire ends a session that was replaced because of its age, if it has no places.
func (p *Pool) retire(s *Session) {
	p.mu.Lock()
	_, draining := p.retired[s]
	p.mu.Unlock()
	if !draining {
		return
	}
	after := func() {}
	s.mu.Lock()
	if s.work == 0 {
		after = s.endLocked(driver.Closed, errs.ErrSessionEnded)
	}
	s.mu.Unlock()
	after()
}

// discard takes a session that is over out of the pool, and starts its shutdown in the
// background. The session calls it exactly once, after its handles have ended.
func (p *Pool) discard(s *Session, lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.slots {
		if sl := &p.slots[i]; sl.session == s {
			sl.session = nil
			if sl.wanted = time.Now(); lost {
				sl.backOff(lease.Now().Sub(s.born), s.Timeout, p.Settings.ConnectTimeout/4, p.Settings.Jitter)
				sl.failure, p.proven = s.loss(), time.Time{}
			}
			sl.cut = s.CutSince()
		}
	}
	delete(p.retired, s)
	p.wg.Go(s.shutdown)
}

// loss returns why there is no session after one that is over, for callers that wait for the next. It
// has the cause as text only: such a caller has lost no lock.
func (s *Session) loss() *error {
	err := fmt.Errorf("the last session was lost: %v", s.Cause())
	return &err
}

// isLoss reports whether a session with this cause is lost. The others are that
// the client was closed, and that the session was ended on purpose.
func isLoss(cause error) bool { return cause != errs.ErrClosed && cause != errs.ErrSessionEnded }

// All returns every session of the pool.
func (p *Pool) All() []*Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*Session
	for _, sl := range p.slots {
		if sl.session != nil {
			all = append(all, sl.session)
		}
	}
	return slices.AppendSeq(all, maps.Keys(p.retired))
}

// Spawn runs f in a goroutine that Close waits for. f has to return soon after p.Ctx has
// ended. Spawn returns false, and does not run f, if the pool is closed.
func (p *Pool) Spawn(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.wg.Go(f)
	return true
}

// Worn reports whether a session is as old as pool_max_lifetime allows. The pool has replaced
// it, or replaces it when a caller next asks for its slot.
func (s *Session) Worn() bool {
	life := s.settings.PoolMaxLifetime
	return life > 0 && lease.Now().Sub(s.born) >= life
}

// Draining returns how many sessions were replaced and still have places.
func (p *Pool) Draining() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.retired)
}

// Close ends every session, even if locks are held on it, and waits until all of them are
// closed. Callers that wait for a session get ErrClosed.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop()
	for _, s := range p.All() {
		s.End(driver.Closed, errs.ErrClosed)
	}
	p.wg.Wait()
}

// Regressed returns an error that matches errs.ErrTokenRegression if a session of the pool has found
// that the ensemble's transaction ids went back; else nil.
func (p *Pool) Regressed() error { return p.order.err() }

// giveUp logs that the ensemble has lost transactions, and ends all sessions. Such an ensemble may have
// forgotten a queue node of theirs that still holds, or have one again that was deleted.
func (p *Pool) giveUp(seen, zxid int64) {
	p.Settings.Log().Error("zklock: the ensemble has lost transactions, and tokens would go back: this client acquires no more locks",
		"transaction", HexID(zxid), "seen", HexID(seen),
		"advice", "restart this process when no holder from before is at work; docs/runbook.md has an entry about it")
	p.Spawn(func() {
		for _, s := range p.All() {
			s.End(driver.Expired, errs.ErrTransactionsLost)
		}
	})
}

// mayFollowALoss reports whether the ensemble may have lost transactions that this client knows, since
// its earlier sessions saw it last. A session survives no such loss, or its next write finds it.
func (p *Pool) mayFollowALoss() bool {
	return p.Lost.Load() > 0 && p.order.newest.Load() != 0 && p.Regressed() == nil
}
