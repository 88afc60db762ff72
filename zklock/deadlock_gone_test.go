package zklock_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestCircleBehindCallsOfACallerThatIsGone: many waits list a caller's lock that the caller has released. The circle
// of its next holder is found.
func TestCircleBehindCallsOfACallerThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, c := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		w, l := mustLock(t)(b.Mutex("w").Acquire(t.Context())), mustLock(t)(a.Mutex("l").Acquire(t.Context()))
		ctx := zklock.ContextWithCallerLocks(t.Context(), calledBy("l", l))
		mustRelease(t, l)
		var held []*zklock.Lock
		var waits []<-chan outcome
		for range 20 {
			held, waits = append(held, l), append(waits, nestedIn(ctx, c.Mutex("w")))
		}
		l = mustLock(t)(a.Mutex("l").Acquire(t.Context()))
		held, waits = append(held, l), append(waits, nested(t, l, a.Mutex("w")))
		time.Sleep(100 * time.Millisecond)
		if o := <-nested(t, w, b.Mutex("l")); wantDeadlock(t, o, "w>l", "l>w") != nil && o.took > 3*time.Second {
			t.Errorf("found after %v", o.took)
		}
		if n := b.Stats().DeadlocksUnknown; n != 0 {
			t.Errorf("%d waits are counted as unknown, want none", n)
		}
		mustRelease(t, w)
		wantVictims(t, settle(t, e, held, waits), 0)
	})
}

// TestPointThatIsGone: readers stand behind a writer, which gives up while another process looks
// at their circles for the second time. Their own process is stopped, so their registrations stay.
func TestPointThatIsGone(t *testing.T) {
	for _, readers := range []int{1, 20} {
		t.Run(fmt.Sprint(readers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				slow := onRegister(faultdriver.On(faultdriver.Get, faultdriver.Once(faultdriver.Delay(700*time.Millisecond))))
				a, b, c := connect(t, faultdriver.Wrap(e.Connector(), slow), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
				x, y := mustLock(t)(a.RWMutex("x").Reader().Acquire(t.Context())), mustLock(t)(b.Mutex("y").Acquire(t.Context()))
				gaveUp := make(chan error, 1)
				go func() {
					_, err := c.RWMutex("x").Writer().Acquire(t.Context(), zklock.WithWait(1700*time.Millisecond))
					gaveUp <- err
				}()
				synctest.Wait()
				var waits []<-chan outcome
				for range readers {
					waits = append(waits, nested(t, y, b.RWMutex("x").Reader()))
				}
				time.Sleep(200 * time.Millisecond)
				last := nested(t, x, a.Mutex("y"))
				time.Sleep(1300 * time.Millisecond) // it has seen the circle, and reads its registrations
				thaw := e.Freeze(e.Sessions()[1])
				if err := <-gaveUp; err == nil {
					t.Fatal("acquired")
				}
				time.Sleep(time.Second)
				stillWaits(t, last, "the readers stand behind nothing")
				wantNoDeadlocks(t, a)
				if n := a.Stats().DeadlocksUnknown; n != 0 {
					t.Errorf("%d waits are counted as unknown, want none", n)
				}
				thaw()
				for _, w := range waits {
					granted(t, <-w)
				}
				goesOn(t, y, last, x)
			})
		})
	}
}

// wantNoDeadlocks checks that a client finds no circles among the registered waits.
func wantNoDeadlocks(t *testing.T, c *zklock.Client) {
	t.Helper()
	if circles, err := c.Deadlocks(t.Context()); err != nil || len(circles) != 0 {
		t.Errorf("deadlocks %v, %v, want none", circles, err)
	}
}

// TestCircleAtTheGateAfterAGrantThatFailed: the session of a request for two names ends in the moment of its grant, now and
// then between the last look and the grant. So the request takes other nodes, at the tails. A nested wait of
// its client waits at the gate for it, and it waits for what the context of that wait holds. The circle is found.
func TestCircleAtTheGateAfterAGrantThatFailed(t *testing.T) {
	corekit.Short(t)
	waited := 0
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			slow := faultdriver.NewToggle(faultdriver.On(faultdriver.Get, faultdriver.DelayReply(time.Second)))
			a, b, c := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, faultdriver.Wrap(e.Connector(), slow), nil)
			y := mustLock(t)(a.Mutex("y").Acquire(t.Context()))
			then := acquiring(t, b.Mutex("y"), t.Context())
			synctest.Wait()
			all := acquiring(t, zklock.All(c.Mutex("x"), c.Mutex("y")), t.Context())
			synctest.Wait()
			next := acquiring(t, a.Mutex("x"), t.Context())
			synctest.Wait()
			mustRelease(t, y)
			second := soon(t, "the second of three", then) // so the request lists once more, and reads its own nodes
			slow.On()
			mustRelease(t, second)
			synctest.Wait()
			slow.Off()
			time.Sleep(time.Second)
			e.Expire(slices.Max(e.Sessions()))
			x := soon(t, "the next", next)
			time.Sleep(time.Second)
			if len(all) > 0 {
				mustRelease(t, x)
				return // it was granted before the session ended
			}
			waited++
			wantDeadlock(t, <-nested(t, x, zklock.All(c.Mutex("y"), c.Mutex("z"))), "x>y", "y>x")
			mustRelease(t, x)
			mustRelease(t, soon(t, "the request for two names", all))
		})
	}
	if waited == 0 {
		t.Errorf("the session has ended before the grant in none of 200 runs")
	}
}
