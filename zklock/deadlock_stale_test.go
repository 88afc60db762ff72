package zklock_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestCircleBehindManyThatAreOver: the last wait of a circle sees many shorter ones, all of which end before its
// second look. It finds its own circle in the same look.
func TestCircleBehindManyThatAreOver(t *testing.T) {
	const readers = 40
	gaveUp := zklock.WithWait(3 * time.Second) // during the reads of the second look
	for name, through := range map[string]bool{"one wait for many readers ends": true, "many readers' waits end": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				slow := onRegister(faultdriver.On(faultdriver.Get, faultdriver.Once(faultdriver.Delay(3*time.Second))))
				a, b, c := connect(t, faultdriver.Wrap(e.Connector(), slow), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
				l := mustLock(t)(a.Mutex("l").Acquire(t.Context()))
				var held []*zklock.Lock
				var waits, over []<-chan outcome
				for i := range 3 { // the others of the circle
					held = append(held, mustLock(t)(c.Mutex(fmt.Sprint("c", i)).Acquire(t.Context())))
				}
				for i := range held {
					waits = append(waits, nested(t, held[i], c.Mutex([]string{"c1", "c2", "l"}[i])))
				}
				for range readers {
					s := mustLock(t)(b.RWMutex("shared").Reader().Acquire(t.Context()))
					if through {
						held, waits = append(held, s), append(waits, nested(t, s, b.Mutex("l")))
					} else {
						defer mustRelease(t, s)
						over = append(over, nested(t, s, b.Mutex("l"), gaveUp))
					}
				}
				wanted := zklock.All(a.Mutex("c0"), a.RWMutex("shared").Writer())
				if through { // it waits for the readers by that wait only
					k := mustLock(t)(b.Mutex("k").Acquire(t.Context()))
					defer mustRelease(t, k)
					over = append(over, nested(t, k, b.RWMutex("shared").Writer(), gaveUp))
					wanted = zklock.All(a.Mutex("c0"), a.Mutex("k"))
				}
				time.Sleep(100 * time.Millisecond)
				wantDeadlock(t, <-nested(t, l, wanted), "l>c0", "c0>c1", "c1>c2", "c2>l")
				if n := a.Stats().DeadlocksUnknown; n != 0 {
					t.Errorf("%d waits are counted as unknown, want none", n)
				}
				for _, w := range over {
					if o := <-w; !errors.Is(o.err, zklock.ErrNotAcquired) || errors.Is(o.err, zklock.ErrDeadlock) {
						t.Error(o.err)
					}
				}
				mustRelease(t, l)
				wantVictims(t, settle(t, e, held, waits), 0)
			})
		})
	}
}
