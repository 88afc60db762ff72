package zklock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Two callers of an All leave behind another client's contender. So the client asks for one set of names at a time for a
// while: the next waits for a pause, and others behind that, also for names that are free. That ends by itself a second
// later, although the one that asks still waits.
func TestYieldingEndsAlthoughOneStillAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(5 * time.Millisecond))
		c, d := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		all := func(a, b string) zklock.Acquirer { return zklock.All(c.Mutex(a), c.Mutex(b)) }
		for _, name := range []string{"a", "b", "x", "y", "z"} {
			mustRelease(t, mustLock(t)(c.Mutex(name).Acquire(t.Context())))
		}
		time.Sleep(time.Second)
		held := mustLock(t)(d.Mutex("a").Acquire(t.Context()))
		for range 2 {
			if _, err := all("a", "b").Acquire(t.Context(), zklock.WithWait(100*time.Millisecond)); !errors.Is(err, zklock.ErrNotAcquired) {
				t.Fatalf("%v, want %v", err, zklock.ErrNotAcquired)
			}
		}
		left := time.Now()
		asks := acquiring(t, all("a", "b"), t.Context())
		time.Sleep(200 * time.Millisecond) // longer than the pause
		free := acquiring(t, all("x", "y"), t.Context())
		single := mustLock(t)(c.Mutex("z").Acquire(t.Context(), zklock.WithoutHandover()))
		if took := time.Since(left); took > 220*time.Millisecond {
			t.Errorf("a lock on one name has waited until %v after that", took)
		}
		mustRelease(t, single)
		time.Sleep(600 * time.Millisecond)
		none(t, "a set of names that are free", free)
		l := <-free
		if took := time.Since(left); took > 1100*time.Millisecond {
			t.Errorf("a set of names that are free took %v, want a second", took)
		}
		mustRelease(t, l)
		mustRelease(t, held)
		mustRelease(t, <-asks)
		time.Sleep(time.Second)
		if n := nodes(e); n != 0 {
			t.Errorf("%d nodes left", n)
		}
	})
}
