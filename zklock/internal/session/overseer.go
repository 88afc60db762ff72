package session

import (
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// overseer ends a session when its lease has run out, when the ensemble does not answer while callers
// wait, when the driver reports the session's end, or when the ensemble has lost transactions.
type overseer struct {
	*life
	regressed <-chan struct{} // closed when the ensemble has lost transactions; nil if that was known when the session was opened
}

// oversee returns when the session is over. It is the session's goroutine in the pool: see Pool.run.
//
// suspendedThen is a reading of lease.Suspended from before the next reconnect began, at first
// from before the session was opened. Each turn of the loop reads lease.Suspended first and the
// session's state second. If the session is connected then, the next reconnect had not begun at
// the time of the reading, which replaces suspendedThen.
func (s overseer) oversee(suspendedThen time.Duration) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	reported := driver.Connected
	var from Departure // from the server of the last connection
	server := s.ds.Server()
	for {
		suspendedNow := lease.Suspended()
		state, changed := s.ds.State()
		switch state {
		case driver.Expired:
			s.End(driver.Expired, errs.ErrSessionExpired)
			return
		case driver.Closed:
			s.End(driver.Closed, errs.ErrSessionEnded)
			return
		}
		cut, back := s.CutSince(), state == driver.Connected && reported != state
		moved := s.noticeConnection(suspendedThen) && state == driver.Connected && state == reported // between two looks
		if moved || state == driver.Suspended && state != reported {
			from = Departure{From: server}
			from.Silent, from.Forgotten = silentOf(s.ds)
		}
		if state == driver.Connected {
			suspendedThen, server = suspendedNow, s.ds.Server()
		}
		if state != reported {
			reported = state
			s.mu.Lock()
			switch {
			case s.over != nil: // endLocked has set cut for good
			case state == driver.Connected:
				s.cut = time.Time{}
			default:
				s.cut = time.Now().Add(-s.silenceLocked())
			}
			s.mu.Unlock()
			s.report(state)
		}

		after := func() {}
		s.mu.Lock()
		left, cause := s.endsLocked()
		s.looks = time.Now().Add(left)
		if left <= 0 {
			after = s.endLocked(driver.Expired, cause)
		}
		s.mu.Unlock()
		if after(); s.IsOver() {
			return
		}
		d := time.Since(cut)
		if (back && d > s.lease.ExchangeEvery() || (back || moved) && from.Silent > 0) && !s.IsOver() {
			from.At, from.To = time.Now(), server
			s.common.departed(from)
			s.mu.Lock()
			report := s.notices.expectLocked(false)
			s.mu.Unlock()
			line := from
			report <- func() { line.log(s.settings, s.ds.ID(), d) }
		}
		timer.Reset(left)
		select {
		case <-changed:
		case <-s.look:
		case <-timer.C:
		case <-s.regressed:
			s.End(driver.Expired, errs.ErrTransactionsLost)
			return
		case <-s.gone:
			return
		}
	}
}

// silenceLocked returns for how long the server of a connection that has just ended was silent
// before, if that silence is why the driver gave the connection up; else 0.
//
// A driver that does not say it gives a connection up after two thirds of the session timeout without a message.
// Whether that was the reason is shown by the session's own exchanges, which are a third of the
// timeout apart at most: one of them is unanswered then. If even more of them should have been
// answered, the process or its machine did not run for a while, and has tried nothing.
func (s overseer) silenceLocked() time.Duration {
	if quiet, _ := silentOf(s.ds); quiet > 0 {
		return quiet
	}
	quiet := lease.Now().Sub(s.heard)
	if s.heard.IsZero() || quiet <= s.timeout/2 || quiet > s.timeout*5/4 {
		return 0
	}
	return min(quiet, s.timeout*2/3)
}

// noticeConnection reports whether there is a new connection. If so, it starts a new chain of
// the lease, or ends the session if the ensemble has shortened the session timeout.
//
// The driver dates a handshake by the monotonic clock. To make an instant of that time,
// noticeConnection adds for how long the machine was suspended before the handshake. With
// a suspension between the handshake and its reply the lease would be too long.
func (s overseer) noticeConnection(suspendedThen time.Duration) (moved bool) {
	gen, handshake := s.ds.Conn()
	s.mu.Lock()
	if gen == s.gen || s.over != nil {
		s.mu.Unlock()
		return false
	}
	if s.ds.Timeout() < s.timeout {
		s.mu.Unlock()
		s.End(driver.Expired, errs.ErrShrunk)
		return false
	}
	s.gen = gen
	if !s.cut.IsZero() {
		s.cut = time.Now() // there was a connection in between, if only for a moment
	}
	s.lease.Connected(handshake.Add(suspendedThen), lease.Now(), false)
	s.urgent = true
	s.mu.Unlock()
	s.common.Reconnects.Add(1)
	s.common.bounds.renew()
	Poke(s.rouse)
	return true
}
