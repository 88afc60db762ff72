package zklock_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestSemaphoreGivesPermitsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		var cs []*zklock.Client
		for range 6 {
			cs = append(cs, connect(t, e.Connector(), nil))
		}
		a := mustLock(t)(cs[0].Semaphore("s", 2).Acquire(t.Context()))
		b := mustLock(t)(cs[1].Semaphore("s", 2).Acquire(t.Context()))
		var waiting []chan *zklock.Lock
		for _, c := range cs[2:] {
			waiting = append(waiting, acquiring(t, c.Semaphore("s", 2), t.Context()))
		}
		if _, err := cs[0].Semaphore("s", 2).TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
			t.Errorf("try: %v", err)
		}
		if a.Mode() != zklock.Permit || b.Token().Compare(a.Token()) <= 0 {
			t.Errorf("%v %v %v", a.Mode(), a.Token(), b.Token())
		}
		if err := a.Downgrade(t.Context()); !errors.Is(err, zklock.ErrConflict) {
			t.Errorf("Downgrade: %v", err)
		}
		held := []*zklock.Lock{b, a} // the newest one is released first, then the oldest, and so on
		last := b.Token()
		for i, w := range waiting {
			none(t, "a waiter without a permit", w)
			mustRelease(t, held[0])
			l := <-w
			if l.Token().Compare(last) <= 0 {
				t.Errorf("grant %d: token %v after %v", i, l.Token(), last)
			}
			last = l.Token()
			held = []*zklock.Lock{held[1], l}
		}
		for _, l := range held {
			mustRelease(t, l)
		}
		synctest.Wait()
		if nodes(e) != 0 {
			t.Errorf("left behind:\n%s", e.Dump())
		}
	})
}

func TestKindsOfOneNameConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, d := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		kinds := []func(c *zklock.Client) zklock.Acquirer{
			func(c *zklock.Client) zklock.Acquirer { return c.Mutex("s") },
			func(c *zklock.Client) zklock.Acquirer { return c.Semaphore("s", 1) },
			func(c *zklock.Client) zklock.Acquirer { return c.Semaphore("s", 2) },
		}
		for i := range kinds {
			l := mustLock(t)(kinds[i](c).Acquire(t.Context()))
			for j := range kinds {
				if i == j {
					continue
				}
				for _, by := range []*zklock.Client{c, d} {
					what := fmt.Sprint(j, " beside ", i)
					if _, err := kinds[j](by).Acquire(t.Context(), zklock.WithWait(time.Second)); !errors.Is(err, zklock.ErrConflict) {
						t.Errorf("%s: %v", what, err)
					}
					if _, err := kinds[j](by).TryAcquire(t.Context()); !errors.Is(err, zklock.ErrConflict) {
						t.Errorf("%s: %v", what, err)
					}
				}
			}
			mustRelease(t, l)
			synctest.Wait()
			if nodes(e) != 0 {
				t.Errorf("left behind:\n%s", e.Dump())
			}
		}
		for _, n := range []int{0, -1, 10_001} {
			if _, err := c.Semaphore("s", n).Acquire(t.Context()); !errors.Is(err, zklock.ErrConflict) {
				t.Errorf("%d permits: %v", n, err)
			}
		}
	})
}
