package zklock

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/hook"
	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// keep watches over the session's state and the end of its lease.
func (s *session) keep() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	suspendedThen := lease.Suspended()
	told := driver.Connected
	for {
		state, changed := s.ds.State()
		switch state {
		case driver.Expired:
			s.end(driver.Expired, errs.SessionExpired)
			return
		case driver.Closed:
			s.end(driver.Closed, errs.SessionEnded)
			return
		}
		suspendedThen = s.noticeConnection(suspendedThen)
		if state != told {
			told = state
			s.mu.Lock()
			if s.cut = (time.Time{}); state != driver.Connected {
				s.cut = time.Now()
				if quiet := lease.Now().Sub(s.heard); !s.heard.IsZero() && quiet > s.timeout/2 {
					s.cut = s.cut.Add(-quiet) // it fell silent long before it was given up
				}
			}
			s.mu.Unlock()
			s.tell(state, nil)
		}

		s.mu.Lock()
		counting, until := s.counting, s.lease.Until
		s.mu.Unlock()
		if counting {
			left := until.Sub(lease.Now())
			if left <= 0 {
				s.end(driver.Expired, errs.LeaseOver)
				return
			}
			timer.Reset(left)
		} else {
			timer.Stop()
		}
		select {
		case <-changed:
		case <-s.look:
		case <-timer.C:
		case <-s.ctx.Done():
			return
		}
	}
}

// noticeConnection takes note of a new connection, if there is one. It returns
// what suspended was before the look, which is no later than any handshake that
// a later look will find.
func (s *session) noticeConnection(suspendedThen time.Duration) time.Duration {
	suspendedNow := lease.Suspended()
	gen, handshake := s.ds.Conn()
	s.mu.Lock()
	if gen == s.gen {
		s.mu.Unlock()
		return suspendedNow
	}
	if s.ds.Timeout() < s.timeout {
		s.mu.Unlock()
		s.end(driver.Expired, errs.Shrunk)
		return suspendedNow
	}
	s.gen = gen
	if !s.cut.IsZero() {
		s.cut = time.Now() // there was a connection in between
	}
	s.lease.Connected(handshake.Add(suspendedThen), lease.Now(), false)
	close(s.moved)
	s.moved = make(chan struct{})
	s.urgent = true
	s.mu.Unlock()
	s.pool.reconnects.Add(1)
	s.poke(s.rouse)
	return suspendedNow
}

// tell has the Session hook called, by and by.
func (s *session) tell(state driver.State, err error) {
	left, _ := s.left()
	s.notices.session(sessionState{ID: s.ds.ID(), Server: s.server(), State: state, Lease: left, Err: err})
}

// beat keeps the lease proven: while there is a queue node, a write that a
// quorum has to commit, every tenth of the timeout; else a Sync now and then,
// so that the first write finds a history to prove something by. Any other
// committed write that became a link of the chain counts as a heartbeat.
func (s *session) beat() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var attempt time.Time // instant of the last one
	var looked time.Time  // for handles that may have been dropped
	early := s.settings.early()
	// The context is looked at each time: a hook may take longer than a period.
	for s.ctx.Err() == nil {
		s.mu.Lock()
		urgent, busy, every := s.urgent, s.work > 0, s.lease.SyncEvery()
		if busy {
			every = s.lease.HeartbeatEvery()
		}
		last := s.lease.LastSent()
		s.mu.Unlock()
		if attempt.After(last) {
			last = attempt // a failed one is not repeated before its time
		}
		due := last.Add(max(every-early(every), lease.MinPeriod))
		if urgent {
			due = attempt.Add(lease.MinPeriod)
		}
		wait := due.Sub(lease.Now())
		if wait <= 0 {
			attempt = lease.Now()
			s.mu.Lock()
			s.urgent = false
			s.mu.Unlock()
			s.prove(busy)
			early = s.settings.early()
			continue
		}
		if looked.Add(every).Before(lease.Now()) {
			looked = lease.Now()
			s.review()
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-s.rouse:
		case <-s.ctx.Done():
			return
		}
	}
}

// prove makes one exchange for the lease's sake. Whatever goes wrong shows in
// the lease running out, or in the session's state.
func (s *session) prove(busy bool) {
	kind := "sync"
	if busy {
		kind = "heartbeat"
	}
	root := s.settings.root
	_, end := hook.Start(s.settings.operation, s.ctx, operation{Kind: kind, Group: 1, Server: s.server(), Session: s.ds.ID()})
	ctx, cancel := context.WithTimeout(s.ctx, s.requestTimeout())
	defer cancel()
	gen, sent := s.beforeExchange()
	var err error
	if busy {
		_, err = s.ds.Multi(ctx, []driver.Op{driver.CheckOp(root, driver.AnyVersion)})
	} else {
		err = s.ds.Sync(ctx, root)
	}
	if err == nil {
		s.exchanged(gen, sent, busy)
	}
	end.Call(err)
	if err == nil && busy {
		s.tell(driver.Connected, nil)
	}
}
