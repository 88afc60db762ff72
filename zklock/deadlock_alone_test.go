package zklock_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// calledBy returns a lock as the service knows it that its holder has called.
func calledBy(name string, l *zklock.Lock) zklock.CallerLock {
	return zklock.CallerLock{Name: name, Mode: l.Mode(), Token: l.Token()}
}

// TestReaderBehindAWriterThatWaitsForItsCaller: a service wants to read what its caller reads, and a writer stands
// between the two. Each wait of the service is a circle by itself. Without the writer the service reads.
func TestReaderBehindAWriterThatWaitsForItsCaller(t *testing.T) {
	for name, callees := range map[string]int{"one call": 1, "many calls": 20} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				a, b, c := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
				s := mustLock(t)(a.RWMutex("s").Reader().Acquire(t.Context()))
				ctx := zklock.ContextWithCallerLocks(t.Context(), calledBy("s", s))
				granted(t, <-nestedIn(ctx, b.RWMutex("s").Reader()))
				writer := acquiring(t, c.RWMutex("s").Writer(), t.Context())
				var waits []<-chan outcome
				for range callees {
					waits = append(waits, nestedIn(ctx, b.RWMutex("s").Reader()))
				}
				for _, w := range waits {
					o := <-w
					if d := wantDeadlock(t, o, "s>s"); d.Cycle[0].Node != "" || o.took > 3*time.Second {
						t.Errorf("after %v: %+v", o.took, d.Cycle)
					}
				}
				mustRelease(t, s)
				mustRelease(t, <-writer)
			})
		})
	}
}

// TestReaderBehindAWriterThatWaitsForAnother: the writer between a service and its caller waits for another reader,
// too. The service's wait is still a circle, and it is none if the caller holds another name.
func TestReaderBehindAWriterThatWaitsForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, c := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		s := mustLock(t)(a.RWMutex("s").Reader().Acquire(t.Context()))
		other, k := mustLock(t)(c.RWMutex("s").Reader().Acquire(t.Context())), mustLock(t)(a.Mutex("k").Acquire(t.Context()))
		writer := acquiring(t, c.RWMutex("s").Writer(), t.Context())
		waits := nestedIn(zklock.ContextWithCallerLocks(t.Context(), calledBy("k", k)), b.RWMutex("s").Reader())
		wantDeadlock(t, <-nestedIn(zklock.ContextWithCallerLocks(t.Context(), calledBy("k", k), calledBy("s", s)), b.RWMutex("s").Reader()), "s>s")
		time.Sleep(20 * time.Second)
		stillWaits(t, waits, "its caller holds another name")
		mustRelease(t, s)
		mustRelease(t, other)
		mustRelease(t, <-writer)
		granted(t, <-waits)
		mustRelease(t, k)
	})
}

// TestOwnLockOverAnotherClient: a context carries a lock of one client, and another client of the process wants the
// same name with it.
func TestOwnLockOverAnotherClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		x := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		if o := <-nested(t, x, b.Mutex("x")); wantDeadlock(t, o, "x>x").Cycle[0].Node == "" || o.took > 3*time.Second {
			t.Errorf("after %v: %v", o.took, o.err)
		}
		mustRelease(t, x)
		if s := b.Stats(); s.Deadlocks != 1 || s.DeadlocksUnknown != 0 {
			t.Error(s.Deadlocks, s.DeadlocksUnknown)
		}
	})
}

// TestWaitThatIsACircleIsInALongerOne: a reader stands behind an acquisition of two names, which waits for the
// reader's caller. That is one deadlock, whichever of the two is registered last: one of them ends.
func TestWaitThatIsACircleIsInALongerOne(t *testing.T) {
	for name, reader := range map[string]faultdriver.Injector{
		"the reader is the last": faultdriver.None(),
		"the other is the last":  faultdriver.On(faultdriver.Get, faultdriver.Once(faultdriver.Delay(3*time.Second))),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				a, b, c := connect(t, e.Connector(), nil), connect(t, faultdriver.Wrap(e.Connector(), onRegister(reader)), nil), connect(t, e.Connector(), map[string]string{"deadlock_timeout": "2s"})
				s, k := mustLock(t)(a.RWMutex("s").Reader().Acquire(t.Context())), mustLock(t)(c.Mutex("k").Acquire(t.Context()))
				both := nested(t, k, zklock.All(c.RWMutex("s").Writer(), c.Mutex("free")))
				if name == "the reader is the last" {
					time.Sleep(1500 * time.Millisecond)
				}
				wantDeadlock(t, <-nestedIn(zklock.ContextWithCallerLocks(t.Context(), calledBy("s", s)), b.RWMutex("s").Reader()), "s>s")
				stillWaits(t, both, "the other wait of the circle has ended")
				goesOn(t, s, both, k)
			})
		})
	}
}

// TestCallersNodeFarBackInItsQueue: a caller's lock is the node of one of many readers, and the victim of a circle does
// not know which. It finds the node with few reads, though another one goes before it is read.
func TestCallersNodeFarBackInItsQueue(t *testing.T) {
	const readers = 60
	for _, at := range []int{0, 15, 40, readers - 1} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				alone := map[string]string{"session_timeout": "1h"}
				gone := faultdriver.If("the second read of a node of the queue, after that of the writer's own", func(op faultdriver.Op) bool {
					return op.Kind == faultdriver.Get && strings.HasPrefix(op.Paths[0], "/zklock/s/")
				}, faultdriver.Nth(2, faultdriver.Fail(driver.ErrNoNode)))
				b, c := connect(t, e.Connector(), alone), connect(t, faultdriver.Wrap(e.Connector(), gone), alone)
				y := mustLock(t)(c.Mutex("y").Acquire(t.Context()))
				var held []*zklock.Lock
				for range readers {
					held = append(held, mustLock(t)(connect(t, e.Connector(), alone).RWMutex("s").Reader().Acquire(t.Context())))
				}
				call := nestedIn(zklock.ContextWithCallerLocks(t.Context(), calledBy("s", held[at])), b.Mutex("y"))
				time.Sleep(100 * time.Millisecond)
				var last outcome
				ops := cost(e, func() { last = <-nested(t, y, c.RWMutex("s").Writer()) })
				if wantDeadlock(t, last, "y>s", "s>y"); ops.Gets > 20 || last.took > 3*time.Second {
					t.Errorf("%d reads, want at most 20, in one look: after %v", ops.Gets, last.took)
				}
				mustRelease(t, y)
				granted(t, <-call)
				for _, l := range held {
					mustRelease(t, l)
				}
			})
		})
	}
}
