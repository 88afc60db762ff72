package zkdriver_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// fakeClock is a clock that moves only in the pauses, and in pass.
type fakeClock struct {
	mu     sync.Mutex
	time   time.Time       // guarded by mu
	pauses []time.Duration // guarded by mu
}

func (c *fakeClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.time
}

func (c *fakeClock) sleep(ctx context.Context, d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.time = c.time.Add(d)
	c.pauses = append(c.pauses, d)
	return ctx.Err() == nil
}

// pass advances the clock without a pause.
func (c *fakeClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.time = c.time.Add(d)
}

// longest returns the longest pause, 0 if there were none, and forgets all pauses.
func (c *fakeClock) longest() (d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pauses {
		d = max(d, p)
	}
	c.pauses = nil
	return d
}

// withClock makes a connector with a fakeClock.
func withClock(t *testing.T, u driver.URL) (driver.Connector, *fakeClock) {
	clock := &fakeClock{time: time.Unix(0, 0)}
	c := open(t, u)
	zkdriver.UseClock(c, clock.now, clock.sleep)
	return c, clock
}

// TestElectionIsNotStormed: servers that elect a leader accept connections and close
// them. Connect fails after a second of that, and package zklock calls it again. The
// new call has to continue with the pauses of the last one.
func TestElectionIsNotStormed(t *testing.T) {
	const election = 2 * time.Minute
	p := newPeer(t, func(*link) {})
	c, clock := withClock(t, p.url())
	began, calls := clock.now(), 0
	for clock.now().Sub(began) < election {
		if _, err := c.Connect(within(t, 10*time.Second), 10*time.Second); !errors.Is(err, zkdriver.ErrNotZooKeeper) {
			t.Fatal(err)
		}
		calls++
	}
	// The pause grows within a few attempts, and is then half a second to a second.
	if n, most := p.accepted(), int(election/(time.Second/2))+10; n > most || n < 60 {
		t.Errorf("%d connections in %v and %d calls of Connect, want 60 to %d", n, election, calls, most)
	}
}

// A connector that reaches its servers again starts with short pauses again.
func TestBackoffEndsWithAHandshake(t *testing.T) {
	var mu sync.Mutex
	electing := true
	p := newPeer(t, func(l *link) {
		mu.Lock()
		now := electing
		mu.Unlock()
		if !now {
			l.work()
		}
	})
	c, clock := withClock(t, p.url())
	for range 5 {
		if _, err := c.Connect(within(t, 10*time.Second), 10*time.Second); err == nil {
			t.Fatal("Connect succeeded with a server that only closes connections")
		}
	}
	if d := clock.longest(); d < 500*time.Millisecond || d > time.Second {
		t.Errorf("in five calls that failed the longest pause is %v, want half a second to a second", d)
	}
	mu.Lock()
	electing = false
	mu.Unlock()
	for range 2 {
		s, err := c.Connect(within(t, 10*time.Second), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer shut(s)
		if d := clock.longest(); d > time.Second {
			t.Errorf("a pause of %v, want a second at most", d)
		}
	}
	dials := p.accepted()
	s, err := c.Connect(within(t, 10*time.Second), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer shut(s)
	if d := clock.longest(); d != 0 || p.accepted() != dials+1 {
		t.Errorf("after a success, Connect paused for %v and dialled %d times, want no pause and 1", d, p.accepted()-dials)
	}
	// A failure of long ago causes no pause.
	clock.pass(time.Hour)
	p.drop()
}

// TestFirstReconnectIsJittered: when a server stops, its clients must dial another
// one soon, but not all at the same instant.
func TestFirstReconnectIsJittered(t *testing.T) {
	const timeout = 4 * time.Second
	p := newPeer(t, func(l *link) {
		l.timeout = timeout
		l.work()
	})
	c, clock := withClock(t, p.url())
	s, err := c.Connect(within(t, 10*time.Second), timeout)
	if err != nil {
		t.Fatal(err)
	}
	defer shut(s)
	seen := make(map[time.Duration]bool)
	for n := uint64(2); n < 12; n++ {
		clock.pass(time.Minute) // the connection lasted long enough to be good
		p.drop()
		generation(t, s, n)
		d := clock.longest()
		if d > timeout/40 {
			t.Errorf("the first reconnect comes after %v, want at most %v", d, timeout/40)
		}
		seen[d] = true
	}
	if len(seen) < 5 {
		t.Errorf("ten first reconnects have %d different pauses, want at least 5", len(seen))
	}
}

// TestReconnectsFitIntoALease: with a short session timeout the pauses are short,
// too.
func TestReconnectsFitIntoALease(t *testing.T) {
	const timeout = 800 * time.Millisecond
	p := newPeer(t, func(l *link) {
		switch {
		case l.n == 1:
			l.timeout = timeout
		case l.n < 30:
			return
		} // the last one has longer, so that no other follows it
		l.work()
	})
	c, clock := withClock(t, p.url())
	s, err := c.Connect(within(t, 10*time.Second), timeout)
	if err != nil {
		t.Fatal(err)
	}
	defer shut(s)
	clock.pass(time.Minute)
	p.drop()
	generation(t, s, 2)
	clock.mu.Lock()
	defer clock.mu.Unlock()
	for i, d := range clock.pauses {
		if d > timeout/8 {
			t.Errorf("pause %d is %v, want at most an eighth of %v", i+1, d, timeout)
		}
	}
	if n, attempts := len(clock.pauses), p.accepted()-1; n != attempts || n < 29 {
		t.Errorf("%d pauses for %d attempts, want as many, and 29 or more", n, attempts)
	}
}
