package zklock_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A thousand callers of one client ask for one to four permits, in turns. No more of them have nodes than can hold, and each gets its permit.
func TestCallersForDifferentNumbersOfPermitsWaitAtTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers, most = 1000, 4
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		c := connect(t, e.Connector(), nil)
		in := &numbers{grants: map[int]int{}}
		began, widest := time.Now(), 0
		var wg sync.WaitGroup
		for i := range callers {
			number := 1 + i*7%10%most
			wg.Go(func() {
				l, err := c.Semaphore("s", number).Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				in.mu.Lock()
				widest = max(widest, nodes(e))
				in.mu.Unlock()
				if err := in.enter(number); err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Millisecond)
				in.leave(number)
				mustRelease(t, l)
			})
		}
		for range 100 {
			time.Sleep(time.Millisecond)
			in.mu.Lock()
			widest = max(widest, nodes(e))
			in.mu.Unlock()
		}
		wg.Wait()
		if took := time.Since(began); widest > most || took > callers*30*time.Millisecond {
			t.Errorf("%d nodes at the same time, and %v for all; want %d at most, and 30 ms for each caller", widest, took, most)
		}
	})
}

// One that asks for one permit waits at the gate behind three holders. Those that ask for three, and come later, have no permit before it;
// when its caller leaves, they need not wait for it.
func TestCallerForFewerPermitsIsNotPassedAtTheGate(t *testing.T) {
	for what, leaves := range map[string]bool{"it stays": false, "its caller leaves": true} {
		synctest.Test(t, func(t *testing.T) {
			c := connect(t, memdriver.New().Connector(), nil)
			var held []*zklock.Lock
			for range 3 {
				held = append(held, mustLock(t)(c.Semaphore("s", 3).Acquire(t.Context())))
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			one := make(chan *zklock.Lock, 1)
			go func() {
				if l, err := c.Semaphore("s", 1).Acquire(ctx); err == nil {
					one <- l
				}
			}()
			synctest.Wait()
			var later []chan *zklock.Lock
			for range 4 {
				later = append(later, acquiring(t, c.Semaphore("s", 3), t.Context()))
				synctest.Wait()
			}
			mustRelease(t, held[0])
			late := acquiring(t, c.Semaphore("s", 3), t.Context())
			synctest.Wait()
			none(t, what+": one that asks for three permits, behind one that asks for one,", later[0])
			none(t, what+": one that comes when a permit is free,", late)
			if leaves {
				cancel()
				mustRelease(t, soon(t, "one that asks for three, when the one ahead has left", later[0]))
			}
			mustRelease(t, held[1])
			mustRelease(t, held[2])
			if !leaves {
				mustRelease(t, soon(t, "one that asks for one permit", one))
				mustRelease(t, soon(t, "the first of those that ask for three", later[0]))
			}
			for _, got := range append(later[1:], late) {
				mustRelease(t, soon(t, what+": one that asks for three", got))
			}
		})
	}
}

// The callers of a process replace each other's permits while one asks for fewer. Another process, which waits for
// fewer, has its turn before them, although the count of children would grant them.
func TestReplacedPermitBesideAnotherNumberLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, d := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		first := mustLock(t)(c.Semaphore("s", 3).Acquire(t.Context()))
		beside := mustLock(t)(c.Semaphore("s", 2).Acquire(t.Context()))
		other := acquiring(t, d.Semaphore("s", 2), t.Context())
		synctest.Wait()
		next := acquiring(t, c.Semaphore("s", 3), t.Context())
		synctest.Wait()
		if n := nodes(e); n != 3 {
			t.Fatalf("%d nodes, want those of two holders and of the other process", n)
		}
		mustRelease(t, first)
		l := soon(t, "the other process", other)
		none(t, "one that came later", next)
		mustRelease(t, beside)
		mustRelease(t, l)
		mustRelease(t, soon(t, "the next", next))
	})
}

// While one that asks for two permits and one that asks for three hold, those of its client that ask for three wait at the gate.
// When it has left, three hold.
func TestGateWidensWhenFewerPermitsAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		held := []*zklock.Lock{mustLock(t)(c.Semaphore("s", 3).Acquire(t.Context()))}
		two := mustLock(t)(c.Semaphore("s", 2).Acquire(t.Context()))
		var three []chan *zklock.Lock
		for range 3 {
			three = append(three, acquiring(t, c.Semaphore("s", 3), t.Context()))
			synctest.Wait()
		}
		if n := nodes(e); n != 2 {
			t.Errorf("%d nodes while two hold, and one of them asks for two, want 2", n)
		}
		mustRelease(t, two)
		for _, got := range three[:2] {
			held = append(held, soon(t, "one that asks for three, when the one for two has left", got))
		}
		none(t, "a fourth of three permits", three[2])
		for _, l := range held {
			mustRelease(t, l)
		}
		mustRelease(t, soon(t, "the last", three[2]))
	})
}

// Callers for three permits leave while they wait in ZooKeeper's queue. The next at the gate asks for two: it does not go on with
// their places, whose nodes say three. As many behind it as there are places go on with them, and no more pass it.
func TestPlaceLeftGoesToNoOtherNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, d := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		ctx, cancel := context.WithCancel(t.Context())
		var held []*zklock.Lock
		for range 3 {
			held = append(held, mustLock(t)(d.Semaphore("s", 3).Acquire(t.Context())))
		}
		for range 3 {
			go func() { _, _ = c.Semaphore("s", 3).Acquire(ctx) }()
			synctest.Wait()
		}
		two := acquiring(t, c.Semaphore("s", 2), t.Context())
		synctest.Wait()
		var three []chan *zklock.Lock
		for range 4 {
			three = append(three, acquiring(t, c.Semaphore("s", 3), t.Context()))
			synctest.Wait()
		}
		cancel()
		time.Sleep(time.Second)
		for i, l := range held {
			mustRelease(t, l)
			held[i] = soon(t, "one that asks for three, with a place that was left", three[i])
		}
		mustRelease(t, held[0])
		none(t, "one that asks for two, while two hold,", two)
		mustRelease(t, held[1])
		l := soon(t, "one that asks for two, while one holds,", two)
		infos, err := d.Contenders(t.Context(), "s")
		if err != nil || len(infos) != 2 || !strings.Contains(infos[1].Node, "PERM2") || infos[1].Zxid != l.Token().Zxid {
			t.Errorf("%v, %v; want a node for three permits, and that of %v for two", infos, err, l.Token())
		}
		none(t, "the last that asks for three, while one that asks for two holds,", three[3])
		mustRelease(t, l)
		mustRelease(t, soon(t, "the last that asks for three", three[3]))
		mustRelease(t, held[2])
		synctest.Wait()
		if nodes(e) != 0 {
			t.Errorf("left behind:\n%s", e.Dump())
		}
	})
}
