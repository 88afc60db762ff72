package zkdriver

import (
	"context"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/zklock/driver"
)

// maxCalls bounds the requests of a session that are on their way, abandoned
// ones included. It is about what a server takes in by default before it stops
// reading (globalOutstandingLimit).
const maxCalls = 1000

// call describes a request.
type call struct {
	op   string // what it does, for errors
	path string // to which znode; "" for several or none
	size int    // of its frame
	auth bool   // it presents credentials

	watch *arming // it sets a watch; nil if it does not
}

// send is a request that was handed to the client.
//
// The client has a queue of its own, from which nothing can be taken back, and
// does not tell when it takes something out. So only one request at a time is
// let into it: it holds the turn until its frame comes by in conn.Write. That
// tells which frame is whose, keeps the requests of one goroutine in order
// even when it abandons one, and leaves all others where they can be given up.
type send struct {
	auth  bool
	watch *arming       // see call
	alive atomic.Bool   // its frame was given to a connection not known to be broken
	phase atomic.Uint32 // queued, then written or done
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

// run performs one request, do being the call into the client, which blocks.
// When ctx ends first, do is left behind with a worker; the watchdog sees to
// it that it returns.
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
		return r.value, s.outcome(c, q, r.err)
	case <-ctx.Done():
	}
	select {
	case r := <-done: // both at once: what is known beats what is not
		return r.value, s.outcome(c, q, r.err)
	default:
	}
	s.land(q)
	// It may be in the client's queue still, or on its way, or applied.
	return zero, wrap(c, both(driver.ErrConnLoss, context.Cause(ctx), ctx.Err()))
}

// enter waits until a request may be handed to the client: for its turn, for a
// slot, for a connection. nil obliges to call leave.
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

// notSent is the error for a ctx that ended in time.
func (s *session) notSent(ctx context.Context) error {
	if err := s.finalErr(); err != nil {
		return err
	}
	return both(driver.ErrNotSent, context.Cause(ctx), ctx.Err())
}

// leave ends a call into the client, and its turn if its frame never came by.
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

// written takes in that the client writes a frame to c, before it is written:
// it has its place behind those before it, the next one may come. It returns what
// the frame arms, if it is a call of Watch.
func (s *session) written(c *conn, opcode int32) *arming {
	switch opcode {
	case opClose, opPing, opSetWatch:
		return nil
	case opSetAuth:
		// The client presents credentials on its own, too, and one of those
		// may be taken for ours, which is still in the client's queue then: so
		// it only ends the turn, early at worst. Nothing waits for the end of
		// its flight: the next dial would, for what only that dial can send.
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
		s.flight.Done() // abandoned before
	}
	<-s.turn
	return q.watch
}

// land notes that nobody waits for the outcome any more.
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
