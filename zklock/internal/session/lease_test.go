package session

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// While every place rests the lease does not count. It counts again at once if as much is left as a held lock has
// at least. With less, the session might end before a heartbeat could be answered: the
// lease counts again from the next committed write.
func TestRestedLeaseCountsAgain(t *testing.T) {
	for _, c := range []struct {
		left   time.Duration
		counts bool
	}{{5 * time.Second, true}, {3 * time.Second, false}, {-time.Minute, false}} {
		synctest.Test(t, func(t *testing.T) {
			s := busySession(&onConn{generation: 1}, c.left)
			s.counting = c.left > 0
			s.Enter(0, 0)
			s.Rest()
			if s.counting != (c.left > 0) {
				t.Errorf("a lease of %v counts: %v, although one of two places needs it", c.left, s.counting)
			}
			s.Rest()
			if s.counting || s.Alive() {
				t.Errorf("a lease of %v counts although both places rest", c.left)
			}
			s.Stir()
			if s.counting != c.counts || s.urgent == c.counts {
				t.Errorf("a lease of %v counts after the rest: %v, and the next heartbeat is urgent: %v", c.left, s.counting, s.urgent)
			}
			time.Sleep(4 * time.Second) // longer than what was left
			if c.counts {
				return
			}
			_, renewed := s.Left()
			exchange(s, false)
			if s.counting {
				t.Error("a lease counts from a Sync")
			}
			exchange(s, true)
			if !s.counting || s.leftLocked() <= 0 {
				t.Error("no lease counts from the next committed write")
			}
			select {
			case <-renewed:
			default:
				t.Error("goroutines that wait for a lease are not woken")
			}
		})
	}
}

// A goroutine that waits for a lease wakes when the lease begins to count, even if its end is
// the same as before.
func TestLeaseThatBeginsToCountIsNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := busySession(&onConn{generation: 1}, 10*time.Second)
		s.counting = false
		until, renewed := s.lease.Until, s.renewed
		exchange(s, true)
		select {
		case <-renewed:
		default:
			t.Error("no news of the lease")
		}
		if !s.counting || !s.lease.Until.Equal(until) {
			t.Errorf("the lease counts: %v, and its end has moved by %v", s.counting, s.lease.Until.Sub(until))
		}
	})
}

// A committed write of a session at rest proves a lease that does not count.
func TestWriteDuringARestDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := busySession(&onConn{generation: 1}, time.Second)
		s.Rest()
		exchange(s, true)
		if s.counting {
			t.Error("the lease of a session at rest counts")
		}
		s.Enter(0, 0)
		if !s.counting {
			t.Error("the lease does not count when a place needs it")
		}
		if s.Leave(0, false); s.work != 1 || s.counting {
			t.Error("the lease counts when the only place that needed it has left")
		}
		s.Stir()
		if s.Leave(0, false); s.work != 0 || !s.lease.Until.IsZero() {
			t.Error("the lease is kept after the last place has left")
		}
	})
}

// The session ends with its lease if that counts, and else a session timeout and an interval of
// exchanges after the last answer, whether there are places or not.
func TestSilentSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := busySession(&onConn{generation: 1}, time.Second)
		ends := func(when string, want time.Duration, why error) {
			t.Helper()
			if left, cause := s.endsLocked(); left != want || cause != why {
				t.Errorf("%s: the session ends after %v, with cause %v; want %v and %v", when, left, cause, want, why)
			}
			if silent := why == errs.ErrSilent && s.work > 0 && want <= s.timeout/2+s.lease.SyncEvery(); s.Silent() != silent {
				t.Errorf("%s: Silent is %v, want %v", when, !silent, silent)
			}
		}
		ends("with a lease", time.Second, errs.ErrLeaseOver)
		limit := s.timeout + s.lease.SyncEvery()
		s.Rest()
		ends("at the beginning of a rest", limit, errs.ErrSilent)
		time.Sleep(time.Second)
		ends("after a second", limit-time.Second, errs.ErrSilent)
		exchange(s, false)
		time.Sleep(s.timeout / 2)
		ends("half a session timeout after a Sync", limit-s.timeout/2, errs.ErrSilent)
		s.Stir()
		s.Leave(0, false)
		ends("without a place", limit-s.timeout/2, errs.ErrSilent)
		time.Sleep(s.timeout / 2)
		ends("without a place, a session timeout after a Sync", s.lease.SyncEvery(), errs.ErrSilent)
		s.Enter(0, 0)
		ends("with a new place", s.lease.SyncEvery(), errs.ErrSilent)
		if !errors.Is(errs.ErrSilent, errs.ErrLeaseOver) {
			t.Error("the cause does not match ErrLeaseOver")
		}
	})
}

// The overseer is woken if the session may end before it looks next, and otherwise not: each cycle
// without contention has a moment at which the last place goes, and one at which a lease counts again.
func TestOverseerIsWokenOnlyIfItWouldBeLate(t *testing.T) {
	for name, end := range map[string]func(*Session){"rests": (*Session).Rest, "goes": func(s *Session) { s.Leave(0, false) }} {
		synctest.Test(t, func(t *testing.T) {
			s := busySession(&onConn{generation: 1}, 10*time.Second) // a lease as long as any
			look := func() { left, _ := s.endsLocked(); s.looks = time.Now().Add(left) }
			look()
			time.Sleep(time.Second)
			exchange(s, true)
			end(s)
			if s.counting || len(s.look) > 0 {
				t.Errorf("the last place %s, and the lease counts: %v; the overseer is woken: %v", name, s.counting, len(s.look) > 0)
			}
			time.Sleep(time.Second)
			look() // without a lease: it looks again when the ensemble has been silent
			s.Enter(0, 0)
			exchange(s, true)
			if !s.counting || len(s.look) == 0 {
				t.Errorf("a lease of %v counts: %v, and the overseer, which looks after %v, is woken: %v", time.Until(s.lease.Until), s.counting, time.Until(s.looks), len(s.look) > 0)
			}
			<-s.look
			look()
			time.Sleep(time.Second)
			end(s)
			s.Enter(0, 0)
			exchange(s, true)
			if !s.counting || len(s.look) > 0 {
				t.Errorf("a later lease counts: %v, and the overseer is woken: %v", s.counting, len(s.look) > 0)
			}
		})
	}
}

// If a caller waits for a heartbeat, the session sends it when lease.MinPeriod has passed since the
// last heartbeat, however recent the last Sync is. A Sync keeps that interval from the last
// heartbeat and from the last Sync.
func TestUrgentHeartbeatWaitsForAWriteOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := busySession(&onConn{generation: 1}, time.Second)
		s.urgent = true
		now := lease.Now()
		last := lastTurn{at: now, wrote: now.Add(-lease.MinPeriod / 2)}
		never := func(time.Duration) time.Duration { return 0 }
		if next := (heart{&s.life, &s.requests}).plan(now, last, never); !next.write || !next.at.Equal(last.wrote.Add(lease.MinPeriod)) {
			t.Errorf("next %+v, want a heartbeat %v after the last one", next, lease.MinPeriod)
		}
		s.Rest()
		if next := (heart{&s.life, &s.requests}).plan(now, last, never); next.write || !next.at.Equal(now.Add(lease.MinPeriod)) {
			t.Errorf("at rest: next %+v, want a Sync %v after the last exchange", next, lease.MinPeriod)
		}
	})
}
