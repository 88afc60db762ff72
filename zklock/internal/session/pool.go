package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// Pool holds the sessions of a Client. They are shared, not checked out: a
// session carries any number of locks, and one expiry loses them all. A name
// maps to one slot by hash, and so to one session while that lives.
//
// Invariants:
//   - A session that is over is never given out. Callers that ask for its slot wait
//     until its handles have ended and it has left the slot; then another one is
//     opened. A session that ends before it gets into its slot never gets there.
//   - At most one session a slot takes new queue nodes. One that is replaced because
//     of its age keeps its nodes and is closed when the last is gone.
//   - wg counts every session until it has been shut down and its last notice was
//     delivered, so that close misses none, whatever ends them.
//
// mu comes before a session's mu, where both are taken.
type Pool struct {
	Settings  *Settings
	connector driver.Connector
	Prepare   func(context.Context, driver.Session) error // makes sure of the root, before a session is used
	Attend    func(*Session) any                          // is called with each session when it begins; see Session.User
	Ctx       context.Context                             // ends with the pool
	stop      context.CancelFunc
	wg        sync.WaitGroup

	Opened, Lost, Reconnects atomic.Uint64 // sessions, and connections after their first

	mu      sync.Mutex
	slots   []slot                // guarded by mu
	retired map[*Session]struct{} // guarded by mu; draining
	closed  bool                  // guarded by mu
}

// opening is an attempt to open a session, shared by all who wait for it.
type opening struct {
	done chan struct{}
	err  error                 // set before done is closed
	last atomic.Pointer[error] // why the newest try failed, for those who give up before
}

// refusal is the error of an attempt that is not worth repeating.
func (o *opening) refusal() error {
	if errors.Is(o.err, errs.ErrNoAuth) || errors.Is(o.err, errs.ErrRootMissing) {
		return o.err // the session was to be had
	}
	if errors.Is(o.err, driver.ErrAuthFailed) {
		return fmt.Errorf("%w: %w", errs.ErrNoAuth, o.err) // it was not, but not for want of servers
	}
	return fmt.Errorf("%w: %w", errs.ErrUnavailable, o.err)
}

// unavailable is the error of who has waited for a session for connect_timeout.
func (o *opening) unavailable(d time.Duration) error {
	switch last := o.last.Load(); {
	case last == nil:
		return fmt.Errorf("%w for %v", errs.ErrUnavailable, d)
	case errors.Is(*last, context.DeadlineExceeded), errors.Is(*last, context.Canceled):
		// Of this package's making: it must not pass for the caller's deadline.
		return fmt.Errorf("%w for %v: %v", errs.ErrUnavailable, d, *last)
	default:
		return fmt.Errorf("%w for %v: %w", errs.ErrUnavailable, d, *last)
	}
}

// Patient derives the context of a stretch without a usable session, which began
// at since: it ends, with cause errs.ErrNoSession, when that has lasted for
// connect_timeout.
func (p *Pool) Patient(ctx context.Context, since time.Time) (context.Context, context.CancelFunc) {
	return context.WithDeadlineCause(ctx, since.Add(p.Settings.ConnectTimeout), errs.ErrNoSession)
}

// NewPool returns a pool that opens no session before one is asked for. Prepare and Attend
// have to be set before that.
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

// Session returns the session for a path. It opens one if there is none, and
// waits for that until ctx ends; see Patient for what bounds that.
func (p *Pool) Session(ctx context.Context, path string) (*Session, error) {
	n := p.slot(path)
	s, o, err := p.look(n)
	if s != nil || err != nil {
		return s, err
	}
	for {
		select {
		case <-o.done:
			if o.err != nil && Permanent(o.err) {
				return nil, o.refusal()
			}
		case <-ctx.Done():
			if cause := context.Cause(ctx); cause == errs.ErrNoSession || cause == errs.ErrCut {
				return nil, o.unavailable(p.Settings.ConnectTimeout)
			}
			err := errs.WaitEnded(ctx, errs.ErrUnavailable)
			if why := p.diagnose(o); why != nil {
				err = fmt.Errorf("%w (%v)", err, why) // as text: what ended the wait is ctx
			}
			return nil, err
		}
		failed := o
		if s, o, err = p.look(n); s != nil || err != nil {
			return s, err
		}
		if o.last.Load() == nil {
			o.last.Store(failed.last.Load()) // until it knows better
		}
	}
}

// diagnose says why an attempt has not succeeded so far; nil if that is not known.
func (p *Pool) diagnose(o *opening) error {
	if err := p.connector.Diagnose(); err != nil {
		return err
	}
	if last := o.last.Load(); last != nil {
		return *last
	}
	return nil
}

// look returns slot n's session, or else the attempt to open one, which it
// starts if need be.
func (p *Pool) look(n int) (*Session, *opening, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, errs.ErrClosed
	}
	sl := &p.slots[n]
	over := sl.session != nil && sl.session.IsOver() // and about to leave the slot
	if life := p.Settings.PoolMaxLifetime; sl.session != nil && !over && life > 0 && time.Since(sl.since) >= life {
		old := sl.session
		sl.session = nil
		p.retired[old] = struct{}{}
		p.wg.Go(func() { p.Retire(old) }) // closes it at once if it is idle
	}
	if sl.session != nil && !over {
		return sl.session, nil, nil
	}
	if sl.opening == nil {
		o, before := &opening{done: make(chan struct{})}, sl.session
		sl.opening = o
		if time.Since(sl.wanted) > cutMemory {
			sl.cut = time.Now()
		}
		p.wg.Go(func() { p.open(n, o, before) })
	}
	return nil, sl.opening, nil
}

// open tries to fill slot n until connect_timeout has passed; almost, so that
// callers that wait as long as that learn why it failed. before, if not nil, is a
// session that is over and still in the slot.
func (p *Pool) open(n int, o *opening, before *Session) {
	ctx, cancel := context.WithTimeout(p.Ctx, p.Settings.ConnectTimeout*19/20)
	defer cancel()
	var err error
	if p.awaitSlot(ctx, n, o, before) {
		for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
			var s *Session
			if s, err = p.connect(ctx); err == nil {
				err = p.fill(n, s)
			}
			if err == nil {
				break
			}
			failure := err
			o.last.Store(&failure)
			if Permanent(err) || !Sleep(ctx, p.Settings.Jitter(pause), nil) {
				break
			}
		}
	}
	p.mu.Lock()
	o.err = err
	p.slots[n].opening = nil
	if err != nil && !Permanent(err) { // else there is an ensemble
		p.slots[n].wanted = time.Now()
	}
	p.mu.Unlock()
	close(o.done)
}

// awaitSlot waits until the session that was in slot n before has left it, and for
// as long after a loss as the slot has to stay empty. false: ctx has ended.
func (p *Pool) awaitSlot(ctx context.Context, n int, o *opening, before *Session) bool {
	if before != nil {
		select {
		case <-before.Ctx.Done():
		case <-ctx.Done():
			return false
		}
	}
	p.mu.Lock()
	wait := time.Until(p.slots[n].notBefore)
	p.mu.Unlock()
	if wait <= 0 {
		return true
	}
	o.last.Store(&errPausing)
	if !Sleep(ctx, wait, nil) {
		return false
	}
	o.last.Store(nil)
	return true
}

// fill puts a session into slot n, unless that has ended since it was opened, or the
// pool is closed.
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
	p.slots[n].session, p.slots[n].since, p.slots[n].wanted = s, time.Now(), time.Time{}
	return nil
}

// connect opens one session and makes sure of the root.
func (p *Pool) connect(ctx context.Context) (*Session, error) {
	suspendedThen := lease.Suspended()
	ds, err := p.connector.Connect(ctx, p.Settings.SessionTimeout)
	if err != nil {
		return nil, err
	}
	err = p.Settings.checkTimeout(ds.Timeout())
	if err == nil {
		err = p.Prepare(ctx, ds)
	}
	if err != nil {
		closeCtx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = ds.Close(closeCtx) // nothing was made on it; it expires by itself at worst
		return nil, err
	}
	p.Settings.reportTimeout(ds.ID(), ds.Timeout())
	s := newSession(p, ds, suspendedThen)
	s.User = p.Attend(s)
	p.wg.Go(s.Notices.run)
	p.Opened.Add(1)
	return s, nil
}

// Retire closes a session that is to be replaced, if it is idle.
func (p *Pool) Retire(s *Session) {
	p.mu.Lock()
	_, draining := p.retired[s]
	p.mu.Unlock()
	if draining {
		s.endIf(driver.Closed, errs.ErrSessionEnded, func() bool { return s.Work == 0 })
	}
}

// discard takes a session that is over out of the pool and closes it in the
// background. The session calls it exactly once, after its handles have ended.
func (p *Pool) discard(s *Session, lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.slots {
		if sl := &p.slots[i]; sl.session == s {
			sl.session = nil
			if sl.wanted = time.Now(); lost {
				sl.backOff(s.Timeout, p.Settings.ConnectTimeout/4, p.Settings.Jitter)
			}
			sl.cut = sl.wanted
			if cut := s.CutSince(); s.Cause() == errs.ErrLeaseOver && !cut.IsZero() {
				sl.cut = cut // else the ensemble itself has said that the session is over
			}
		}
	}
	delete(p.retired, s)
	p.wg.Go(s.shutdown)
}

// discarded logs a session's end, after everything else was reported.
func (p *Pool) discarded(s *Session, cause error, busy bool) {
	if isLoss(cause) {
		p.Settings.Logger.Warn("zklock: session lost, another one takes its place", "session", s.DS.ID(), "cause", cause, "busy", busy)
	}
}

// isLoss reports whether a session that ended with cause is a lost one.
func isLoss(cause error) bool { return cause != errs.ErrClosed && cause != errs.ErrSessionEnded }

// All returns every session of the pool.
func (p *Pool) All() []*Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*Session
	for i := range p.slots {
		if s := p.slots[i].session; s != nil {
			all = append(all, s)
		}
	}
	for s := range p.retired {
		all = append(all, s)
	}
	return all
}

// Spawn runs f in a goroutine that close waits for; false: the pool is closed.
// f has to return soon after p.Ctx has ended.
func (p *Pool) Spawn(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.wg.Go(f)
	return true
}

// Draining returns how many sessions take no new queue nodes.
func (p *Pool) Draining() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.retired)
}

// Close ends every session, whatever is held on it, and waits until they are
// gone. Whoever waits for a session gets ErrClosed.
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

// Permanent reports whether trying again cannot help.
func Permanent(err error) bool {
	for _, e := range []error{
		errSessionTimeout, errTickTime, errs.ErrRootMissing, errs.ErrNoAuth, driver.ErrAuthFailed, driver.ErrInvalidACL,
		driver.ErrBadArguments, driver.ErrProtocol, driver.ErrTLS, driver.ErrClosed,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
