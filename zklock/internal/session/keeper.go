package session

import (
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// keeper is the goroutine of a session that ends it when its time has come.
type keeper struct{ *Session }

// keep watches over the session's state and the end of its lease.
func (s keeper) keep() {
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
// what lease.Suspended was before the look, which is no later than any handshake that
// a later look will find.
func (s keeper) noticeConnection(suspendedThen time.Duration) time.Duration {
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
	Poke(s.Rouse)
	return suspendedNow
}
