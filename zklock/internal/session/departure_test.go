package session

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// leaving is a session that leaves a silent server.
type leaving struct {
	reconnecting
	quiet time.Duration // guarded by mu
}

func (l *leaving) Silent() (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.quiet, false
}

// Server returns the server of the present connection.
func (l *leaving) Server() string {
	gen, _ := l.Conn()
	return string('a' + rune(gen) - 1)
}

// TestDeparturesBetweenTwoLooks: a session may be connected again before the overseer has seen that it was not.
// Its departure is reported as any other; and a connection that ended for another reason is none.
func TestDeparturesBetweenTwoLooks(t *testing.T) {
	for _, seen := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ds := &leaving{reconnecting: reconnecting{state: driver.Connected, gen: 1, handshake: time.Now(), changed: make(chan struct{})}}
			s := busySession(ds, 5*time.Second)
			s.lease.Until = lease.Now().Add(time.Hour) // it does not end in this test
			var wg sync.WaitGroup
			wg.Go(func() { overseer{life: &s.life}.oversee(lease.Suspended()) })
			defer wg.Wait()
			defer close(s.gone)
			leave := func(quiet time.Duration) {
				synctest.Wait()
				ds.mu.Lock()
				ds.quiet = quiet
				ds.mu.Unlock()
				gen, at := ds.Conn()
				if seen {
					ds.set(driver.Suspended, gen, at)
					synctest.Wait()
				}
				ds.set(driver.Connected, gen+1, time.Now())
				synctest.Wait()
			}
			leave(0)
			if d := s.common.Departure(); d != (Departure{}) {
				t.Errorf("seen %v: %v after a connection that the server closed", seen, d)
			}
			leave(2 * time.Second)
			if d := s.common.Departure(); d.String() != "left b, silent for 2s; no lock was lost" || d.To != "c" || s.common.Departures.Load() != 1 {
				t.Errorf("seen %v: %q, to %q", seen, d, d.To)
			}
		})
	}
}
