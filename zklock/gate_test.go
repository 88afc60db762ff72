package zklock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Contenders of one client with separate places have nodes only while they may hold: one of a name, and as many as
// there are permits.
func TestOnlyWhatCanHoldHasNodes(t *testing.T) {
	for what, of := range map[string]struct {
		acquirer func(*zklock.Client) zklock.Acquirer
		nodes    int
	}{
		"a mutex":     {func(c *zklock.Client) zklock.Acquirer { return c.Mutex("m") }, 1},
		"two names":   {func(c *zklock.Client) zklock.Acquirer { return zklock.All(c.Mutex("a"), c.Mutex("b")) }, 2},
		"a semaphore": {func(c *zklock.Client) zklock.Acquirer { return c.Semaphore("s", 3) }, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			a := of.acquirer(connect(t, e.Connector(), nil))
			got := make(chan *zklock.Lock)
			const callers = 6
			for range callers {
				go func() {
					l, err := a.Acquire(t.Context(), zklock.WithoutHandover())
					if err != nil {
						t.Error(err)
					}
					got <- l
				}()
			}
			for range callers {
				synctest.Wait()
				if n := nodes(e); n > of.nodes {
					t.Errorf("%s: %d nodes, want %d at most", what, n, of.nodes)
				}
				mustRelease(t, <-got)
			}
		})
	}
}

// A lock with a separate place is lost, and the next caller of its client gets one.
func TestLostHoldLeavesTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		for _, a := range []zklock.Acquirer{c.Mutex("m"), zklock.All(c.Mutex("a"), c.RWMutex("b").Reader()), c.Semaphore("s", 1)} {
			lost := mustLock(t)(a.Acquire(t.Context(), zklock.WithoutHandover()))
			next := acquiring(t, a, t.Context(), zklock.WithoutHandover())
			synctest.Wait()
			e.ExpireAll()
			mustRelease(t, soon(t, "the caller after the one that has lost "+a.Name(), next))
			if err := lost.Release(t.Context()); !errors.Is(err, zklock.ErrLost) {
				t.Errorf("%s: release: %v, want ErrLost", a.Name(), err)
			}
		}
	})
}

// A caller leaves while its create is under way, and the next one gets that node.
func TestCreateOfACallerThatLeavesGoesToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(50 * time.Millisecond))
		c := connect(t, e.Connector(), nil)
		for _, a := range []zklock.Acquirer{c.Mutex("m"), zklock.All(c.Mutex("a"), c.Mutex("b")), c.Semaphore("s", 1)} {
			mustRelease(t, mustLock(t)(a.Acquire(t.Context())))
			before := memcontrol.Of(e).Ops().Writes()
			leave := waiter(t, a)
			next := acquiring(t, a, t.Context())
			synctest.Wait()
			leave()
			mustRelease(t, <-next)
			if n := memcontrol.Of(e).Ops().Writes() - before; n != 2 {
				t.Errorf("%s: %d transactions, want a create and a delete", a.Name(), n)
			}
		}
	})
}

// The node of a permit is deleted before its client lists the queue. The caller queues again, and is not granted a
// permit without a node.
func TestPermitIsNotGrantedWithoutItsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		held := mustLock(t)(connect(t, e.Connector(), nil).Semaphore("s", 2).Acquire(t.Context()))
		c := connect(t, faultdriver.Wrap(e.Connector(), faultdriver.On(faultdriver.Children, faultdriver.Once(faultdriver.Delay(time.Second)))), nil)
		got := acquiring(t, c.Semaphore("s", 2), t.Context())
		synctest.Wait()
		all, err := c.Contenders(context.Background(), "s")
		if err != nil || len(all) != 2 {
			t.Fatalf("%v, %v; want two contenders", all, err)
		}
		if err := memcontrol.Of(e).Delete("/zklock/s/" + all[1].Node); err != nil {
			t.Fatal(err)
		}
		l := <-got
		if l.Token().Zxid == all[1].Zxid || nodes(e) != 2 {
			t.Errorf("token %v, with %d nodes; want that of a second node", l.Token(), nodes(e))
		}
		mustRelease(t, l)
		mustRelease(t, held)
	})
}
