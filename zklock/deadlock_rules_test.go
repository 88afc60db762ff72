package zklock_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestNothingIsRegisteredAfterAWait: an acquisition returns after its registration has been removed.
func TestNothingIsRegisteredAfterAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(5 * time.Millisecond))
		a, _, x, y := pair(t, e.Connector(), e.Connector())
		ctx, cancel := x.Context(t.Context())
		defer cancel()
		time.AfterFunc(1500*time.Millisecond, func() {
			if n := registered(e); n != 1 {
				t.Errorf("%d waits are registered, want 1", n)
			}
		})
		if _, err := a.Mutex("y").Acquire(ctx, zklock.WithWait(2*time.Second)); err == nil {
			t.Error("acquired")
		}
		if n := registered(e); n != 0 {
			t.Errorf("%d waits are registered after the acquisition has returned", n)
		}
		mustRelease(t, x)
		mustRelease(t, y)
	})
}

// TestNothingListsALockThatWasPassedOn: a lock that a wait holds is passed on to another goroutine after the
// wait's registration has been removed.
func TestNothingListsALockThatWasPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(5 * time.Millisecond))
		a, b := connect(t, e.Connector(), map[string]string{"handover_time": "1m"}), connect(t, e.Connector(), nil)
		x, y := apart(t, a, b)
		ctx, cancel := x.Context(t.Context())
		defer cancel()
		waits := nestedIn(context.WithoutCancel(ctx), a.Mutex("y"))
		next := make(chan *zklock.Lock, 1)
		go func() {
			l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
			if n := registered(e); n != 0 {
				t.Errorf("%d waits are registered that list a lock which another goroutine has", n)
			}
			next <- l
		}()
		time.Sleep(1500 * time.Millisecond)
		if n := registered(e); n != 1 {
			t.Errorf("%d waits are registered, want 1", n)
		}
		mustRelease(t, x)
		mustRelease(t, <-next)
		mustRelease(t, y)
		granted(t, <-waits)
	})
}

// TestWaitThatQueuesAgainIsRegisteredAgain: an operator deletes the queue node of a wait, which queues again,
// and is in a circle afterwards.
func TestWaitThatQueuesAgainIsRegisteredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, x, y := pair(t, e.Connector(), e.Connector())
		first := nested(t, x, a.Mutex("y"))
		time.Sleep(1500 * time.Millisecond)
		queue, err := b.Contenders(t.Context(), "y")
		if err != nil || len(queue) != 2 {
			t.Fatal(queue, err)
		}
		if err := memcontrol.Of(e).Delete("/zklock/y/" + queue[1].Node); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		wantDeadlock(t, <-nested(t, y, b.Mutex("x")), "y>x", "x>y")
		goesOn(t, y, first, x)
	})
}

// TestWaitLooksAgainIfItCouldNotLook: the victim of a circle cannot read the register for half a minute.
func TestWaitLooksAgainIfItCouldNotLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		var blind atomic.Bool
		blind.Store(true)
		inj := faultdriver.If("the register is read", func(op faultdriver.Op) bool {
			return blind.Load() && op.Kind == faultdriver.Children && op.Paths[0] == "/zklock/%waits"
		}, faultdriver.Random(1, 1, faultdriver.Fail(driver.ErrThrottled)))
		a, b, x, y := pair(t, e.Connector(), faultdriver.Wrap(e.Connector(), inj))
		first := nested(t, x, a.Mutex("y"))
		time.Sleep(300 * time.Millisecond)
		second := nested(t, y, b.Mutex("x"))
		time.Sleep(30 * time.Second)
		blind.Store(false)
		wantDeadlock(t, <-second, "y>x", "x>y")
		goesOn(t, y, first, x)
	})
}

// TestVictimOfAServerThatLags: the server of the last wait of a circle lags behind. Another client reads the
// register before it, and the circle ends without a change of the register. The server does not know that yet.
// A wait of the circle goes on, for another name. If the transaction with which the last wait would end has no room for
// all nodes, that wait reads the others after it.
func TestVictimOfAServerThatLags(t *testing.T) {
	for _, how := range []struct {
		name           string
		lowered, large bool
	}{
		{"a lock is downgraded", true, false},
		{"a caller releases its lock", false, false},
		{"a lock with a long name is downgraded", true, true},
		{"a caller releases its lock with a long name", false, true},
	} {
		lowered := how.lowered
		t.Run(how.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New(memdriver.WithServers(3))
				follower := (e.Leader() + 1) % 3
				rarely := map[string]string{"deadlock_timeout": "3s"} // so that no registration changes between the two looks
				var limit map[string]string
				m, x, y := "m", "x", "y"
				if how.large {
					limit = map[string]string{"jute_maxbuffer": "4096"}
					long := strings.Repeat("ä", 180)
					m, x, y = m+long, x+long, y+long
				}
				open := func() *zklock.Client { return connect(t, e.Connector(e.Leader()), rarely) }
				a, c, d := open(), open(), open()
				listed := make(chan struct{})
				lists := 0
				slow := faultdriver.If("the first list of the register", func(op faultdriver.Op) bool {
					if op.Kind == faultdriver.Children && op.Paths[0] == "/zklock/%waits" {
						lists++
					}
					return op.Kind == faultdriver.Children && op.Paths[0] == "/zklock/%waits" && lists == 1
				}, signal{listed, faultdriver.DelayReply(100 * time.Millisecond)})
				b := connect(t, faultdriver.Wrap(e.Connector(follower), slow), limit)
				heldX, heldY := mustLock(t)(a.RWMutex(x).Writer().Acquire(t.Context())), mustLock(t)(b.Mutex(y).Acquire(t.Context()))
				heldM, heldZ := mustLock(t)(c.Mutex(m).Acquire(t.Context())), mustLock(t)(d.Mutex("z").Acquire(t.Context()))
				memcontrol.Of(e).Lag(follower, 400*time.Millisecond)
				ctx := zklock.ContextWithCallerLocks(t.Context(), zklock.CallerLock{Name: x, Mode: zklock.Exclusive, Token: heldX.Token()})
				if lowered {
					var cancel context.CancelFunc
					ctx, cancel = heldX.Context(t.Context())
					defer cancel()
				}
				first := nestedIn(ctx, a.Mutex(y))
				second := nested(t, heldM, zklock.All(c.RWMutex(x).Reader(), c.Mutex("z")))
				time.Sleep(time.Second)
				last := nested(t, heldY, b.Mutex(m))
				<-listed
				time.Sleep(50 * time.Millisecond)
				if lowered {
					if err := heldX.Downgrade(t.Context()); err != nil {
						t.Fatal(err)
					}
				} else {
					mustRelease(t, heldX)
				}
				time.Sleep(10 * time.Second)
				stillWaits(t, last, "the circle was over")
				mustRelease(t, heldZ)
				granted(t, <-second)
				mustRelease(t, heldM)
				granted(t, <-last)
				mustRelease(t, heldY)
				granted(t, <-first)
				if lowered {
					mustRelease(t, heldX)
				}
			})
		})
	}
}

// signal is a fault, and closes a channel when it strikes.
type signal struct {
	struck chan struct{}
	faultdriver.Fault
}

// Inject implements faultdriver.Injector.
func (s signal) Inject(faultdriver.Op) faultdriver.Fault {
	close(s.struck)
	return s.Fault
}

// TestListAfterTheRemoval: the server of the last wait of a circle lags behind. Another wait of the circle
// gives up before the last one ends, and the server does not know that yet.
func TestListAfterTheRemoval(t *testing.T) {
	for gaveUp := 1400 * time.Millisecond; gaveUp < 1900*time.Millisecond; gaveUp += 50 * time.Millisecond {
		t.Run(fmt.Sprint(gaveUp), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New(memdriver.WithServers(3))
				follower := (e.Leader() + 1) % 3
				a, b := connect(t, e.Connector(e.Leader()), nil), connect(t, e.Connector(follower), nil)
				x, y := apart(t, a, b)
				memcontrol.Of(e).Lag(follower, 400*time.Millisecond)
				first := nested(t, x, a.Mutex("y"), zklock.WithWait(gaveUp))
				time.Sleep(10 * time.Millisecond)
				second := nested(t, y, b.Mutex("x"))
				if o := <-first; o.err == nil {
					t.Fatal("acquired")
				}
				over := time.Now()
				stillWaits(t, second, "the victim's error came before the other wait had ended")
				time.Sleep(5 * time.Second)
				select {
				case o := <-second:
					t.Fatalf("%v after the circle was over: %v", time.Since(over), o.err)
				default:
				}
				goesOn(t, x, second, y)
			})
		})
	}
}

// TestReleaseDuringTheSecondLook: the last wait of a circle has its second look under way when another
// goroutine releases the lock that it holds. That is passed on inside the process, so its node stays.
func TestReleaseDuringTheSecondLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		read := make(chan struct{})
		reads := 0
		slow := onRegister(faultdriver.If("the second read", func(op faultdriver.Op) bool {
			if op.Kind == faultdriver.Get {
				reads++
			}
			return op.Kind == faultdriver.Get && reads == 2
		}, signal{read, faultdriver.DelayReply(500 * time.Millisecond)}))
		a, b := connect(t, e.Connector(), nil), connect(t, faultdriver.Wrap(e.Connector(), slow), map[string]string{"handover_time": "1m"})
		x, y := apart(t, a, b)
		ctx, cancel := y.Context(t.Context())
		defer cancel()
		first := nested(t, x, a.Mutex("y"))
		next := acquiring(t, b.Mutex("y"), t.Context())
		time.Sleep(100 * time.Millisecond)
		last := nestedIn(context.WithoutCancel(ctx), b.Mutex("x"))
		<-read
		mustRelease(t, y)
		y = <-next
		if y.Token().Turn == 0 {
			t.Fatal("the lock was not passed on")
		}
		time.Sleep(5 * time.Second)
		stillWaits(t, last, "it holds nothing that the other waits for")
		goesOn(t, y, first, x)
		granted(t, <-last)
	})
}

// TestWaitLooksAgain: a program fills the register with copies of a registration, so that a search reaches its
// bound. The wait is counted once. When the copies have gone, its circle is found.
func TestWaitLooksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, c := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		x, y := apart(t, a, b)
		m := mustLock(t)(c.Mutex("m").Acquire(t.Context()))
		gone := nested(t, m, c.Mutex("y"), zklock.WithWait(2*time.Second))
		time.Sleep(1500 * time.Millisecond)
		s := plain(t, e)
		name := onlyRegistration(t, s)
		var copies []string
		for range 20 {
			node, err := s.Create(t.Context(), "/zklock/%waits/"+name[:len(name)-10], []byte("{}"), driver.EphemeralSequential, a.ACL())
			if err != nil {
				t.Fatal(err)
			}
			copies = append(copies, node)
		}
		if o := <-gone; o.err == nil {
			t.Fatal("acquired")
		}
		first, second := nested(t, x, a.Mutex("y")), nested(t, m, c.Mutex("x"))
		time.Sleep(100 * time.Millisecond)
		last := nested(t, y, b.Mutex("m"))
		time.Sleep(35 * time.Second)
		if n := b.Stats().DeadlocksUnknown; n != 1 {
			t.Errorf("%d waits are counted as unknown, want 1", n)
		}
		for _, node := range copies {
			if err := s.Delete(t.Context(), node, driver.AnyVersion); err != nil {
				t.Fatal(err)
			}
		}
		wantDeadlock(t, <-last, "y>m", "m>x", "x>y")
		goesOn(t, y, first, x)
		granted(t, <-second)
		mustRelease(t, m)
	})
}

// TestWaitThatIsTooLargeIsCountedOnce: a wait holds and waits for more names than a registration may list.
func TestWaitThatIsTooLargeIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		var held, wanted []zklock.Acquirer
		for i := range 32 {
			held, wanted = append(held, a.Mutex(fmt.Sprint("held", i))), append(wanted, a.Mutex(fmt.Sprint("wanted", i)))
		}
		taken, all := mustLock(t)(b.Mutex("wanted7").Acquire(t.Context())), mustLock(t)(zklock.All(held...).Acquire(t.Context()))
		w := nested(t, all, zklock.All(wanted...))
		time.Sleep(20 * time.Second)
		if n := a.Stats().DeadlocksUnknown; n != 1 || registered(e) != 0 {
			t.Errorf("%d waits are counted as unknown, want 1, and %d are registered", n, registered(e))
		}
		mustRelease(t, taken)
		granted(t, <-w)
		mustRelease(t, all)
	})
}

// TestOneLookServesAllWaits: the waits of a client began at different times. It lists the register no more often
// than for one of them.
func TestOneLookServesAllWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), map[string]string{"session_timeout": "1h"}), connect(t, e.Connector(), map[string]string{"session_timeout": "1h"})
		top := mustLock(t)(b.Mutex("top").Acquire(t.Context()))
		var held []*zklock.Lock
		var waits []<-chan outcome
		for i := range 10 {
			held = append(held, mustLock(t)(a.Mutex(fmt.Sprint("own", i)).Acquire(t.Context())))
			waits = append(waits, nested(t, held[i], a.Mutex("top")))
			time.Sleep(1300 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		ops := cost(e, func() { time.Sleep(20 * time.Second) })
		if ops.Children < 1 || ops.Children > 4 {
			t.Errorf("%d lists in 20 s, want one in 5 to 15 s", ops.Children)
		}
		mustRelease(t, top)
		for i, w := range waits {
			granted(t, <-w)
			mustRelease(t, held[i])
		}
	})
}

// TestRegistrationThatAnOperatorDeletes: the wait is registered again, and its circle is found.
func TestRegistrationThatAnOperatorDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, x, y := pair(t, e.Connector(), e.Connector())
		first := nested(t, x, a.Mutex("y"))
		time.Sleep(1500 * time.Millisecond)
		s := plain(t, e)
		name := onlyRegistration(t, s)
		if err := s.Delete(t.Context(), "/zklock/%waits/"+name, driver.AnyVersion); err != nil {
			t.Fatal(err)
		}
		last := nested(t, y, b.Mutex("x"))
		wantVictims(t, settle(t, e, []*zklock.Lock{x, y}, []<-chan outcome{first, last}), 1)
	})
}
