package zkdriver

import (
	"context"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/zklock/driver"
)

// maxCalls limits the requests of a session that are under way, including abandoned
// ones. It is about the number that a server accepts by default before it stops
// reading (globalOutstandingLimit).
const maxCalls = 1000

// call describes a request.
type call struct {
	op   string // the operation, for errors
	path string // the znode; "" for several or none
	size int    // the size of its frame
	auth bool   // it presents credentials

	watch *arming // the watch that it sets; nil if none
	zxid  *int64  // receives the zxid in the reply's header, if run succeeds; may be nil
}

// send is a request that was handed to the client.
//
// The client has its own queue. A request cannot be taken back from it, and the
// client does not report when it takes one out. So only one request at a time is let
// into the queue. It holds the turn until its frame arrives in conn.Write. This shows which
// request a frame belongs to. It keeps the requests of one goroutine in order even if the
// goroutine abandons one. And all other requests stay where they can still be given up.
type send struct {
	auth  bool
	watch *arming       // the same as in call
	alive atomic.Bool   // its frame was given to a connection that was not known to be broken
	phase atomic.Uint32 // queued, then written or done
	zxid  atomic.Int64  // in the reply's header; set before the client sees the reply. For a write it is the
	// write's own: a server puts the last transaction there that it has processed, and it
	// processes writes and their replies one at a time.

	oversized  atomic.Int64 // the length of its reply, if that is too long to be kept; 0 if not
	unanswered atomic.Bool  // this client gave its connection up, since the server answered nothing
}

const (
	phaseQueued uint32 = iota
	phaseWritten
	phaseDone
)

// result is what a call into the client returned.
type result[T any] struct {
	value T
	err   error
}

// run performs one request. do is the call into the client, which blocks. When ctx
// ends first, do is abandoned with its worker; the watchdog makes sure that it
// returns.
func run[T any](ctx context.Context, s *session, c call, do func(*zk.Conn) (T, error)) (T, error) {
	var zero T
	if c.size > maxRequest {
		return zero, s.tooLarge(c)
	}
	if err := s.enter(ctx); err != nil {
		return zero, wrap(c, err)
	}
	q := &send{auth: c.auth, watch: c.watch}
	s.current.Store(q)
	if ctx.Done() == nil {
		value, err := do(s.zk)
		s.leave(q)
		c.answer(q)
		return value, s.outcome(c, q, err)
	}
	done := make(chan result[T], 1)
	s.workers.do(func() {
		value, err := do(s.zk)
		s.leave(q)
		done <- result[T]{value, err}
	})
	select {
	case r := <-done:
		c.answer(q)
		return r.value, s.outcome(c, q, r.err)
	case <-ctx.Done():
	}
	select {
	case r := <-done: // both happened at once: prefer the known outcome
		c.answer(q)
		return r.value, s.outcome(c, q, r.err)
	default:
	}
	s.land(q)
	// The request may still be in the client's queue, or under way, or applied.
	return zero, wrap(c, both(driver.ErrConnLoss, context.Cause(ctx), ctx.Err()))
}

// answer passes on what the reply's header has, for a call that was not abandoned.
func (c call) answer(q *send) {
	if c.zxid != nil {
		*c.zxid = q.zxid.Load()
	}
}

// enter waits until a request may be handed to the client: for its turn, for a slot,
// and for a connection. After it has returned nil, the caller must call leave.
func (s *session) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return s.notSent(ctx)
	}
	select {
	case s.turn <- struct{}{}:
	case <-s.over:
		return s.finalErr()
	case <-ctx.Done():
		return s.notSent(ctx)
	}
	select {
	case s.slots <- struct{}{}:
	case <-s.over:
		<-s.turn
		return s.finalErr()
	case <-ctx.Done():
		<-s.turn
		return s.notSent(ctx)
	}
	for {
		s.mu.Lock()
		err, ready, moved := s.finalErrLocked(), s.up, s.moved
		if err == nil && ready {
			s.calls++
			s.mu.Unlock()
			return nil
		}
		s.mu.Unlock()
		if err == nil {
			select {
			case <-moved:
				continue
			case <-ctx.Done():
				err = s.notSent(ctx)
			}
		}
		<-s.slots
		<-s.turn
		return err
	}
}

// notSent returns the error for a ctx that ended before the request was sent.
func (s *session) notSent(ctx context.Context) error {
	if err := s.finalErr(); err != nil {
		return err
	}
	return both(driver.ErrNotSent, context.Cause(ctx), ctx.Err())
}

// leave ends a call into the client. It also ends the call's turn if its frame was
// never written.
func (s *session) leave(q *send) {
	if s.current.CompareAndSwap(q, nil) {
		<-s.turn
	}
	<-s.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls--
	if s.calls == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// written is called before the client writes a frame to c. The frame's position in
// the order is then fixed, so the next request may start. It returns the request that the frame
// belongs to; nil for a frame of the client itself.
func (s *session) written(c *conn, opcode int32) *send {
	switch opcode {
	case opClose, opPing, opSetWatch:
		return nil
	case opSetAuth:
		// The client also presents credentials on its own, and such a frame may be
		// mistaken for ours, which is then still in the client's queue. So the frame only ends
		// the turn, which at worst is early. The request is not in flight: otherwise the next
		// dial would wait for it, although only that dial would allow it to be sent.
		if q := s.current.Load(); q != nil && q.auth && s.current.CompareAndSwap(q, nil) {
			q.alive.Store(true)
			<-s.turn
		}
		return nil
	}
	q := s.current.Swap(nil)
	if q == nil {
		return nil
	}
	q.alive.Store(!c.killed.Load())
	s.flight.Add(1)
	if !q.phase.CompareAndSwap(phaseQueued, phaseWritten) {
		s.flight.Done() // abandoned before it was written
	}
	<-s.turn
	return q
}

// land records that no caller waits for the outcome.
func (s *session) land(q *send) {
	if q.phase.Swap(phaseDone) == phaseWritten {
		s.flight.Done()
	}
}

// idling returns a channel that is closed once no call is in the client.
func (s *session) idling() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	idle := s.idle
	if s.calls == 0 {
		close(idle)
		s.idle = nil
	}
	return idle
}
