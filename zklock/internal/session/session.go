package session

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// Session is one ZooKeeper session and what this client does on it. It puts the parts together; none
// of them knows it, and it knows no pool: calls go down only.
//
//   - life is the state: the end, the lease, the places and the holds. Every part uses it.
//   - requests sends requests, and notes in life what their answers prove.
//   - The committer and the watches share what many callers ask for.
//   - The heart keeps the lease proven, and the overseer ends the session. Each is a goroutine.
type Session struct {
	life
	requests
	stop    context.CancelFunc // ends the life's context
	commits committer
	watches watches
	remains atomic.Pointer[func() []*Write] // see Remains; nil: it has none
}

// newSession makes a Session of ds, and starts its heart. suspendedThen is what lease.Suspended returned
// before ds was opened, so that a suspension since then shortens the lease.
func newSession(c *common, ds driver.Session, suspendedThen time.Duration) *Session {
	s := assemble(context.Background(), c, ds)
	s.unchecked.Store(c.mayFollowALoss())
	gen, handshake := ds.Conn()
	s.gen = gen
	// Only the handshake of the first connection created the session. After a reconnect the
	// time of that handshake is not known, and proves nothing.
	s.lease.Connected(handshake.Add(suspendedThen), lease.Now(), gen == 1)
	c.bounds.renew()
	s.report(driver.Connected)
	s.wg.Go(heart{&s.life, &s.requests}.beat)
	return s
}

// Inert returns a session without goroutines, which has no connection yet: for tests of other packages.
// Its context ends with ctx.
func Inert(ctx context.Context, ds driver.Session) *Session {
	return assemble(ctx, &common{Settings: &Settings{}}, ds)
}

// assemble makes the parts of a session and connects them.
func assemble(ctx context.Context, c *common, ds driver.Session) *Session {
	s := new(Session)
	ctx, s.stop = context.WithCancel(ctx)
	s.life.init(ctx, c, ds)
	s.requests.life, s.lone = &s.life, make(chan struct{}, MaxLone)
	s.watches.r, s.watches.byKey = &s.requests, make(map[watchKey]*Watched)
	s.commits = committer{multi: s.multi, most: func() int { return c.bounds.most(c.Settings) }, ctx: ctx, wg: &s.wg, lone: s.lone}
	return s
}

// Underlying returns the session itself, which is the simplest Member.
func (s *Session) Underlying() *Session { return s }

// ID returns the session's id.
func (s *Session) ID() int64 { return s.ds.ID() }

// Timeout returns the session timeout that was negotiated when the session was created.
func (s *Session) Timeout() time.Duration { return s.timeout }

// Context returns a context that ends with the session, after the last handle on it has ended. Goroutines
// that wait for the end of the session wait for that and nothing else.
func (s *Session) Context() context.Context { return s.ctx }

// State returns the state of the session's connection, and a channel that is closed when it changes.
func (s *Session) State() (driver.State, <-chan struct{}) { return s.ds.State() }

// Generation returns the number of the session's present connection, or of its last one. What was read
// on one connection is not compared with what was read on another one.
func (s *Session) Generation() uint64 {
	gen, _ := s.ds.Conn()
	return gen
}

// Submit queues a write, which shares a transaction with those of other callers, and returns at once:
// see Write. If the session is over, the write fails with driver.ErrClosed.
func (s *Session) Submit(w *Write) { s.commits.Submit(w) }

// SubmitApart sends writes in transactions that no other caller's writes join. It returns when all of
// them are answered, soon after the end of the session at the latest.
func (s *Session) SubmitApart(writes []*Write) { s.commits.Apart(writes) }

// Watch reads path and arms a watch on it, or joins one: see watches.Watch.
func (s *Session) Watch(ctx context.Context, path string) (w *Watched, read bool, err error) {
	return s.watches.Watch(ctx, path)
}

// WatchChildren lists the children of path and arms a watch on them, or joins one: see
// watches.WatchChildren.
func (s *Session) WatchChildren(ctx context.Context, path string) (w *Watched, names []string, err error) {
	return s.watches.WatchChildren(ctx, path)
}

// WatchExists asks whether path exists and arms a watch on that, or joins one.
func (s *Session) WatchExists(ctx context.Context, path string) (w *Watched, err error) {
	return s.watches.WatchExists(ctx, path)
}

// DropWatch makes the next caller arm a watch of its own in place of w, which has fired.
func (s *Session) DropWatch(w *Watched) { s.watches.Drop(w) }

// announceEnd ends the context of a session that is over, lets waiters of its locks go on, and queues the
// reports of its losses and its end. The session has left its pool.
func (s *Session) announceEnd() {
	s.stop()
	lost, ended, report := s.last.lost, s.last.state, s.last.report
	s.last = ending{} // a Lock that the program keeps refers to the session, which must not keep all lost ones
	vacate(lost)
	report <- func() {
		s.reportLoss(lost, ended.Err)
		if s.settings.Changed != nil {
			s.settings.Changed(ended)
		}
	}
}

// shutdown closes a session that is over at the ensemble, and waits for all its goroutines. Before that it
// deletes what remains: see empty.
//
// It waits until the ensemble answers. If it gave up, the session's nodes could block all
// contenders for long: a session does not expire while the servers have no leader, and the next
// leader gives it its full timeout again. Once closed is closed, which means that the pool is, and waits
// for shutdown, shutdown gives up after one more session timeout.
func (s *Session) shutdown(remains []*Write, closed <-chan struct{}) {
	s.awaitLossDelay()
	s.commits.close()
	ctx, cancel := context.WithCancel(context.Background())
	s.wg.Go(func() {
		defer cancel()
		select {
		case <-closed:
			Sleep(ctx, s.timeout, nil)
		case <-ctx.Done():
		}
	})
	s.empty(ctx, remains)
	if err := s.ds.Close(ctx); err != nil {
		s.settings.Log().Warn("zklock: session not closed, its nodes stay until it expires", "session", HexID(s.ds.ID()), "error", err)
	}
	cancel()
	s.wg.Wait()
}

// Backlog returns how many writes wait until they are sent.
func (s *Session) Backlog() int { return s.commits.backlog() }

// Fit returns how many of a transaction's operations, the first ones and at least one, fit into a group.
func (s *Session) Fit(ops []driver.Op) int {
	for n := len(ops); n > 1; n-- {
		if sizeOf(ops[:n]) <= s.commits.bound() {
			return n
		}
	}
	return min(len(ops), 1)
}
