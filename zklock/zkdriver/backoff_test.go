package zkdriver_test

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/wire"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// TestElectionIsNotStormed: servers that elect a leader accept connections and close
// them. Connect fails after a second of that, and package zklock calls it again. The
// new call has to continue with the pauses of the last one.
func TestElectionIsNotStormed(t *testing.T) {
	const election = 2 * time.Minute
	bubble(t, func(t *testing.T, _ *memdriver.Ensemble, n *wire.Network) {
		p := virtual(n, 0, func(*link) {})
		c := open(t, p.url())
		began, calls := time.Now(), 0
		for time.Since(began) < election {
			if _, err := c.Connect(within(t, 10*time.Second), 10*time.Second); !errors.Is(err, zkdriver.ErrNotZooKeeper) {
				t.Fatal(err)
			}
			calls++
		}
		// The pause grows within a few attempts, and is then half a second to a second.
		if n, most := p.accepted(), int(election/(time.Second/2))+10; n > most || n < 60 {
			t.Errorf("%d connections in %v and %d calls of Connect, want 60 to %d", n, election, calls, most)
		}
	})
}

// A connector that reaches its servers again starts with short pauses again.
func TestBackoffEndsWithAHandshake(t *testing.T) {
	bubble(t, func(t *testing.T, _ *memdriver.Ensemble, n *wire.Network) {
		var electing atomic.Bool
		p := virtual(n, 0, func(l *link) {
			if !electing.Load() {
				l.work()
			}
		})
		c := open(t, p.url())
		fails := func() {
			t.Helper()
			if _, err := c.Connect(within(t, 10*time.Second), 10*time.Second); err == nil {
				t.Fatal("Connect succeeded with a server that only closes connections")
			}
		}
		connects := func(most time.Duration) {
			t.Helper()
			began := time.Now()
			s, err := c.Connect(within(t, 10*time.Second), 10*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { shut(s) })
			if took := time.Since(began); took > most {
				t.Errorf("Connect took %v, want at most %v", took, most)
			}
		}
		electing.Store(true)
		for range 5 {
			fails()
		}
		if d := slices.Max(p.pauses()); d < 500*time.Millisecond || d > time.Second {
			t.Errorf("in five calls that failed the longest pause is %v, want half a second to a second", d)
		}
		electing.Store(false)
		connects(time.Second)
		dials := p.accepted()
		connects(0)
		if n := p.accepted() - dials; n != 1 {
			t.Errorf("after a success, Connect dialled %d times, want 1", n)
		}
		electing.Store(true)
		fails()
		electing.Store(false)
		pass(time.Hour)
		connects(0) // a failure of long ago causes no pause
	})
}

// TestFirstReconnectIsJittered: when a server stops, its clients must dial another
// one soon, but not all at the same instant.
func TestFirstReconnectIsJittered(t *testing.T) {
	const timeout = 4 * time.Second
	bubble(t, func(t *testing.T, _ *memdriver.Ensemble, n *wire.Network) {
		p := virtual(n, 0, func(l *link) {
			l.timeout = timeout
			l.work()
		})
		s, err := open(t, p.url()).Connect(within(t, 10*time.Second), timeout)
		if err != nil {
			t.Fatal(err)
		}
		defer shut(s)
		seen := make(map[time.Duration]bool)
		for n := uint64(2); n < 12; n++ {
			pass(time.Minute) // the connection lasted long enough to be good
			dropped := time.Now()
			p.drop()
			generation(t, s, n)
			d := time.Since(dropped)
			if d > timeout/40 {
				t.Errorf("the first reconnect comes after %v, want at most %v", d, timeout/40)
			}
			seen[d] = true
		}
		if len(seen) < 5 {
			t.Errorf("ten first reconnects have %d different pauses, want at least 5", len(seen))
		}
	})
}

// TestReconnectsFitIntoALease: with a short session timeout the pauses are short,
// too.
func TestReconnectsFitIntoALease(t *testing.T) {
	const timeout = 800 * time.Millisecond
	bubble(t, func(t *testing.T, _ *memdriver.Ensemble, n *wire.Network) {
		p := virtual(n, 0, func(l *link) {
			switch {
			case l.n == 1:
				l.timeout = timeout
			case l.n < 30:
				return
			} // the last one has longer, so that no other follows it
			l.work()
		})
		s, err := open(t, p.url()).Connect(within(t, 10*time.Second), timeout)
		if err != nil {
			t.Fatal(err)
		}
		defer shut(s)
		pass(time.Minute)
		p.pauses()
		p.drop()
		generation(t, s, 2)
		all := p.pauses()
		for i, d := range all {
			if d > timeout/8 {
				t.Errorf("pause %d is %v, want at most an eighth of %v", i+1, d, timeout)
			}
		}
		if len(all) < 28 {
			t.Errorf("%d pauses, want 28 or more", len(all))
		}
	})
}
