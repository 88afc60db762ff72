package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/lease"
	"github.com/zklock/go-zklock/zklock/internal/mutex"
)

// Pool holds the sessions of a Client. Sessions are shared, not checked out: a session
// carries thousands of locks, and all of them are lost when it expires. A hash maps each
// name to one slot, and so to one session for as long as that session lives and has room.
//
// Invariants:
//   - A session that is over is never given to a caller. Callers that ask for its slot wait
//     until its handles have ended and it has left the slot; then another one is opened. A
//     session that ends before it is put into its slot is never put there.
//   - In each slot, at most one session takes new queue nodes. A session that is replaced
//     because of its age keeps its nodes, and is closed when the last of them is gone.
//   - A caller that is about to make znodes gets a session with room for them: see room.go.
//   - wg counts every session until it has been shut down and its last notice was
//     delivered. So Close waits for all sessions, for whatever reason they end.
type Pool[M Member] struct {
	common
	Prepare func(context.Context, driver.Session) error // checks or creates the root, before a session is used
	Attend  func(*Session) M                            // makes the member of each new session, before a caller has it
	Ctx     context.Context                             // ends with the pool
	stop    context.CancelFunc
	failed  atomic.Pointer[time.Time] // the instant of the last Fail that counts, until a session has an answer

	mu      mutex.Mutex[mutex.Outer]
	slots   []slot[M]      // guarded by mu
	retired map[*Session]M // guarded by mu; sessions that were replaced and still have places
	proven  time.Time      // guarded by mu; an instant: until then a session that was replaced because of its age stands for the next one in Healthy
	closed  bool           // guarded by mu
}

// Member is what another package keeps of a session. A pool makes a member of each session, and returns members to
// its callers.
type Member interface{ Underlying() *Session }

// NewPool returns a pool that opens a session when one is asked for, and not before. The
// caller has to set Prepare and Attend before that.
func NewPool[M Member](set *Settings, connector driver.Connector) *Pool[M] {
	p := &Pool[M]{slots: make([]slot[M], set.PoolMaxSessions), retired: make(map[*Session]M)}
	p.Settings, p.connector, p.order.regressed = set, connector, make(chan struct{})
	p.Ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// Session returns the session for a path, and for znodes with so many bytes. If there is none, it opens
// one, and waits until ctx ends; see Patient for a context that ends after connect_timeout. If all sessions
// are full, it fails with errs.ErrFull. With errs.ErrNoRoom the session works, and the servers are asked what they read for
// longer than the caller is patient: see Session.grow.
func (p *Pool[M]) Session(ctx context.Context, path string, bytes int) (M, error) {
	for {
		found, m, o, err := p.look(path, bytes)
		if found && !m.Underlying().hasRoom(bytes) {
			if err := m.Underlying().grow(ctx, bytes); err != nil {
				return m, err
			}
			continue
		}
		if found || err != nil {
			return m, err
		}
		select {
		case <-o.done:
		case <-ctx.Done():
		case <-o.failed:
			if m, ok := p.another(path, bytes); ok {
				return m, nil
			}
		}
		select {
		case <-o.done:
			if o.err != nil && Permanent(o.err) {
				return m, o.refusal()
			}
		case <-ctx.Done():
			if cause := context.Cause(ctx); cause == errs.ErrNoSession || cause == errs.ErrCut {
				return m, o.unavailable(p.Settings.ConnectTimeout, p.connector.Diagnose())
			}
			err = errs.WaitEnded(ctx, errs.ErrUnavailable)
			if why := p.diagnose(o); why != nil {
				err = fmt.Errorf("%w (%v)", err, why) // why as text only: ctx has ended the wait
			}
			return m, err
		}
	}
}

// another returns a session for a path whose own could not be opened at the first try, if there is one.
func (p *Pool[M]) another(path string, bytes int) (m M, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, _ := p.choose(path, bytes)
	sl := &p.slots[n]
	if s := sl.session; p.closed || s == nil || s.IsOver() || s.PastLifetime() || !s.hasRoom(bytes) {
		return m, false
	}
	return sl.member, true
}

// look returns the session in the slot that choose returns, if found. If there is none that can be used, it
// returns the attempt to open one, and starts that attempt if none is under way.
func (p *Pool[M]) look(path string, bytes int) (found bool, _ M, _ *opening, _ error) {
	var none M
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false, none, nil, errs.ErrClosed
	}
	n, ok := p.choose(path, bytes)
	if !ok {
		return false, none, nil, p.Settings.full(bytes, p.bounds.hoped(p.Settings))
	}
	if home := p.slot(path); n != home && p.slots[home].barred && time.Since(p.slots[home].wanted) > p.Settings.ConnectTimeout {
		p.openLocked(home) // until then the caller has the other one
	}
	sl := &p.slots[n]
	switch s := sl.session; {
	case s == nil || s.IsOver(): // if it is over, it is about to leave the slot
	case s.PastLifetime():
		if until := s.provenUntil(); until.After(p.proven) { // another slot's may be later
			p.proven = until
		}
		p.retired[s] = sl.member
		sl.empty()
		s.retire() // ends it at once if it is idle: it has no holds then
	default:
		return true, sl.member, nil, nil
	}
	p.openLocked(n)
	return false, none, sl.opening, nil
}

// openLocked starts an attempt to open a session for slot n, unless one is under way. The pool's mu is held.
func (p *Pool[M]) openLocked(n int) {
	sl := &p.slots[n]
	if sl.opening != nil {
		return
	}
	o, before := &opening{done: make(chan struct{}), failed: make(chan struct{})}, sl.session
	sl.opening = o
	if time.Since(sl.wanted) > cutMemory {
		sl.cut, sl.failure = time.Now(), nil
	}
	if before != nil { // discard is about to record that
		sl.failure = lossOf(before)
	}
	o.last.Store(sl.failure) // until the new attempt has a reason of its own
	p.wg.Go(func() { p.open(n, o, before) })
}

// open tries to open a session for slot n. It gives up shortly before connect_timeout, so that
// callers that wait for that long learn why it failed. before, if not nil, is a session that is
// over and still in the slot: open waits until it has left, and then for the pause after a loss.
func (p *Pool[M]) open(n int, o *opening, before *Session) {
	ctx, cancel := context.WithTimeout(p.Ctx, p.Settings.ConnectTimeout*19/20)
	defer cancel()
	if before != nil {
		select {
		case <-before.ctx.Done():
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
	// A server that hangs holds up all of the first try.
	defer time.AfterFunc(p.Settings.TryTimeout(), func() { p.bar(n, o) }).Stop()
	if err == nil { // else before may still be in the slot
		err = p.connect(ctx, n)
	}
	for pause := 20 * time.Millisecond; err != nil; pause = min(2*pause, time.Second) {
		failure := err
		o.last.Store(&failure)
		if !Permanent(err) {
			p.bar(n, o)
		}
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

// bar records that a session could not be opened for slot n: see choose.
func (p *Pool[M]) bar(n int, o *opening) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slots[n].barred = true; !o.told {
		o.told = true
		close(o.failed)
	}
}

// fill puts a session into slot n. It returns an error instead if the session has ended
// since it was opened, or if the pool is closed.
func (p *Pool[M]) fill(n int, m M) error {
	s := m.Underlying()
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
	sl.session, sl.member, sl.wanted, sl.failure, sl.pause, sl.barred = s, m, time.Time{}, nil, 0, false
	return nil
}

// connect opens one session for slot n and prepares it: see Pool.Prepare.
func (p *Pool[M]) connect(ctx context.Context, n int) error {
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
	s := newSession(&p.common, ds, suspendedThen)
	o := overseer{life: &s.life}
	if p.Regressed() == nil {
		o.regressed = p.order.regressed
	}
	p.wg.Go(func() { p.run(s, o, suspendedThen) })
	return p.fill(n, p.Attend(s))
}

// run runs a session until it has been closed at the ensemble. Callers are promised the order of the
// steps:
//
//   - First every handle on the session ends: see life.End.
//   - Then the session leaves its slot, and its waiters are woken. Only after that it is closed at the
//     ensemble, so that other clients may be granted its locks.
//   - The losses and the end are reported by the goroutine of the notices: hooks and loggers may be
//     slow.
func (p *Pool[M]) run(s *Session, o overseer, suspendedThen time.Duration) {
	o.oversee(suspendedThen)
	<-s.gone
	remains := s.remaining()
	p.discard(s, isLoss(s.Cause()))
	s.announceEnd()
	s.shutdown(remains, p.Ctx.Done())
}

// discard takes a session that is over out of the pool. It is called exactly once for each session,
// after its handles have ended.
func (p *Pool[M]) discard(s *Session, lost bool) {
	if lost && errors.Is(s.Cause(), errs.ErrLeaseOver) {
		p.Fail(lease.Now().Sub(answered(s)) / 2) // the others were heard at other moments
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.slots {
		if sl := &p.slots[i]; sl.session == s {
			sl.empty()
			if sl.wanted = time.Now(); lost {
				sl.backOff(lease.Now().Sub(s.born), s.timeout, p.Settings.ConnectTimeout/4, p.Settings.Jitter)
				sl.failure, p.proven = lossOf(s), time.Time{}
			}
			sl.cut = s.CutSince()
		}
	}
	delete(p.retired, s)
}

// lossOf returns why there is no session after s, which is over, for callers that wait for the next. It
// has the cause as text only: such a caller has lost no lock.
func lossOf(s *Session) *error {
	err := fmt.Errorf("the last session was lost: %v", s.Cause())
	return &err
}

// All returns every session of the pool.
func (p *Pool[M]) All() []M {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []M
	for _, sl := range p.slots {
		if sl.session != nil {
			all = append(all, sl.member)
		}
	}
	return slices.AppendSeq(all, maps.Values(p.retired))
}

// Spawn runs f in a goroutine that Close waits for. f has to return soon after p.Ctx has
// ended. Spawn returns false, and does not run f, if the pool is closed.
func (p *Pool[M]) Spawn(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.wg.Go(f)
	return true
}

// Draining returns how many sessions were replaced and still have places.
func (p *Pool[M]) Draining() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.retired)
}

// Close ends every session, even if locks are held on it, and waits until all of them are
// closed. Callers that wait for a session get ErrClosed.
func (p *Pool[M]) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop()
	for _, m := range p.All() {
		m.Underlying().End(driver.Closed, errs.ErrClosed)
	}
	p.wg.Wait()
}
