package session

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/hook"
	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// keep watches over the session's state and the end of its lease.
func (s *Session) keep() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	suspendedThen := lease.Suspended()
	told := driver.Connected
	for {
		state, changed := s.DS.State()
		switch state {
		case driver.Expired:
			s.End(driver.Expired, errs.ErrSessionExpired)
			return
		case driver.Closed:
			s.End(driver.Closed, errs.ErrSessionEnded)
			return
		}
		suspendedThen = s.noticeConnection(suspendedThen)
		if state != told {
			told = state
			s.Mu.Lock()
			if s.cut = (time.Time{}); state != driver.Connected {
				s.cut = time.Now()
				if quiet := lease.Now().Sub(s.heard); !s.heard.IsZero() && quiet > s.Timeout/2 {
					s.cut = s.cut.Add(-quiet) // it fell silent long before it was given up
				}
			}
			s.Mu.Unlock()
			s.tell(state, nil)
		}

		s.Mu.Lock()
		counting, until := s.counting, s.Lease.Until
		s.Mu.Unlock()
		if counting {
			left := until.Sub(lease.Now())
			if left <= 0 {
				s.End(driver.Expired, errs.ErrLeaseOver)
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
		case <-s.Ctx.Done():
			return
		}
	}
}

// noticeConnection takes note of a new connection, if there is one. It returns
// what suspended was before the look, which is no later than any handshake that
// a later look will find.
func (s *Session) noticeConnection(suspendedThen time.Duration) time.Duration {
	suspendedNow := lease.Suspended()
	gen, handshake := s.DS.Conn()
	s.Mu.Lock()
	if gen == s.gen {
		s.Mu.Unlock()
		return suspendedNow
	}
	if s.DS.Timeout() < s.Timeout {
		s.Mu.Unlock()
		s.End(driver.Expired, errs.ErrShrunk)
		return suspendedNow
	}
	s.gen = gen
	if !s.cut.IsZero() {
		s.cut = time.Now() // there was a connection in between
	}
	s.Lease.Connected(handshake.Add(suspendedThen), lease.Now(), false)
	close(s.moved)
	s.moved = make(chan struct{})
	s.urgent = true
	s.Mu.Unlock()
	s.Pool.Reconnects.Add(1)
	s.Poke(s.Rouse)
	return suspendedNow
}

// tell has the Session hook called, by and by.
func (s *Session) tell(state driver.State, err error) {
	left, _ := s.Left()
	s.Notices.session(State{ID: s.DS.ID(), Server: s.server(), State: state, Lease: left, Err: err})
}

// beat keeps the lease proven: while there is a queue node, a write that a
// quorum has to commit, every tenth of the timeout; else a Sync now and then,
// so that the first write finds a history to prove something by. Any other
// committed write that became a link of the chain counts as a heartbeat.
func (s *Session) beat() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var attempt time.Time // instant of the last one
	var looked time.Time  // for handles that may have been dropped
	early := s.settings.early()
	// The context is looked at each time: a hook may take longer than a period.
	for s.Ctx.Err() == nil {
		s.Mu.Lock()
		urgent, busy, every := s.urgent, s.Work > 0, s.Lease.SyncEvery()
		if busy {
			every = s.Lease.HeartbeatEvery()
		}
		last := s.Lease.LastSent()
		s.Mu.Unlock()
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
			s.Mu.Lock()
			s.urgent = false
			s.Mu.Unlock()
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
		case <-s.Rouse:
		case <-s.Ctx.Done():
			return
		}
	}
}

// prove makes one exchange for the lease's sake. Whatever goes wrong shows in
// the lease running out, or in the session's state.
func (s *Session) prove(busy bool) {
	kind := "sync"
	if busy {
		kind = "heartbeat"
	}
	root := s.settings.Root
	_, end := hook.Start(s.settings.Operation, s.Ctx, Operation{Kind: kind, Group: 1, Server: s.server(), Session: s.DS.ID()})
	ctx, cancel := context.WithTimeout(s.Ctx, s.requestTimeout())
	defer cancel()
	gen, sent := s.BeforeExchange()
	var err error
	if busy {
		_, err = s.DS.Multi(ctx, []driver.Op{driver.CheckOp(root, driver.AnyVersion)})
	} else {
		err = s.DS.Sync(ctx, root)
	}
	if err == nil {
		s.Exchanged(gen, sent, busy)
	}
	end.Call(err)
	if err == nil && busy {
		s.tell(driver.Connected, nil)
	}
}
