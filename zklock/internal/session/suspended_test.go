package session

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// reconnecting is a driver.Session whose state and connection a test sets.
type reconnecting struct {
	driver.Session
	mu        sync.Mutex
	state     driver.State
	gen       uint64
	handshake time.Time
	changed   chan struct{}
}

func (r *reconnecting) set(state driver.State, gen uint64, handshake time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state, r.gen, r.handshake = state, gen, handshake
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *reconnecting) State() (driver.State, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state, r.changed
}

func (r *reconnecting) Conn() (uint64, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gen, r.handshake
}

func (r *reconnecting) Timeout() time.Duration { return 10 * time.Second }
func (r *reconnecting) Server() string         { return "" }
func (r *reconnecting) ID() int64              { return 1 }

// A machine is suspended between a reconnect's handshake and its reply. The new lease must not
// begin after the suspension, even if the session's overseer ran in between.
func TestSuspensionDuringAReconnectShortensTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ds := &reconnecting{state: driver.Connected, gen: 1, handshake: time.Now(), changed: make(chan struct{})}
		s := busySession(ds, 5*time.Second)
		s.counting = false // as on a session whose places are gone, and which gets one again
		var wg sync.WaitGroup
		wg.Go(func() { overseer{life: &s.life}.oversee(lease.Suspended()) })
		defer wg.Wait()
		defer close(s.gone)
		synctest.Wait()

		ds.set(driver.Suspended, 1, ds.handshake)
		synctest.Wait()
		sent, before := time.Now(), lease.Suspended()
		lease.AddSuspended(3 * time.Second)
		Poke(s.look)
		synctest.Wait()
		ds.set(driver.Connected, 2, sent)
		synctest.Wait()
		exchange(s, true)

		s.mu.Lock()
		defer s.mu.Unlock()
		if latest := sent.Add(before + s.timeout); s.lease.Until.IsZero() || s.lease.Until.After(latest) {
			t.Errorf("the lease ends %v after a session timeout from the handshake", s.lease.Until.Sub(latest))
		}
	})
}

// The time without a connection begins with the server's silence before the driver gave the
// connection up. It does not include a time when the process or its machine was stopped, since
// nothing was tried then.
func TestCutBeginsWithTheSilenceOfTheServer(t *testing.T) {
	for _, c := range []struct {
		name             string
		silence, stopped time.Duration
		want             time.Duration // from the cut to the end of the connection
	}{
		{"the server is silent", 20 * time.Second / 3, 0, 20 * time.Second / 3},
		{"the server closes the connection", time.Second, 0, 0},
		{"the process was stopped", 0, 20 * time.Second, 0},
		{"the server is silent, some time after the last exchange", 11 * time.Second, 0, 20 * time.Second / 3},
		{"the server is silent, and the process was stopped", 4 * time.Second, 9 * time.Second, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ds := &reconnecting{state: driver.Connected, gen: 1, handshake: time.Now(), changed: make(chan struct{})}
				s := busySession(ds, 5*time.Second)
				s.lease.Until = lease.Now().Add(time.Hour) // it does not end in this test
				s.heard = lease.Now()
				var wg sync.WaitGroup
				wg.Go(func() { overseer{life: &s.life}.oversee(lease.Suspended()) })
				defer wg.Wait()
				defer close(s.gone)

				time.Sleep(c.silence)
				lease.AddSuspended(c.stopped)
				time.Sleep(20 * time.Millisecond) // lease.Now asks for the suspended time every ten milliseconds
				ds.set(driver.Suspended, 1, ds.handshake)
				synctest.Wait()
				if got := time.Since(s.CutSince()); got < c.want || got > c.want+20*time.Millisecond {
					t.Errorf("the cut began %v before the connection ended, want %v", got, c.want)
				}
			})
		})
	}
}
