package zklock_test

import (
	"context"
	"errors"
	"sync"
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

// Readers with separate places wait in the process while a writer of their client has the lock. A writer that comes
// later waits for them in ZooKeeper's queue, and those that come after it wait in the process for it.
func TestReadersAtTheGate(t *testing.T) {
	for what, of := range map[string]func(c *zklock.Client) (reader, writer zklock.Acquirer){
		"one name": func(c *zklock.Client) (reader, writer zklock.Acquirer) {
			return c.RWMutex("x").Reader(), c.RWMutex("x").Writer()
		},
		"two names": func(c *zklock.Client) (reader, writer zklock.Acquirer) {
			x, y := c.RWMutex("x"), c.RWMutex("y")
			return zklock.All(x.Reader(), y.Reader()), zklock.All(x.Writer(), y.Writer())
		},
		"the second name of two": func(c *zklock.Client) (reader, writer zklock.Acquirer) {
			y := c.RWMutex("y")
			return zklock.All(c.RWMutex("x").Reader(), y.Reader()), y.Writer()
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			c := connect(t, e.Connector(), nil)
			reader, writer := of(c)
			alone := zklock.WithoutHandover()
			first := mustLock(t)(writer.Acquire(t.Context(), alone))
			held := nodes(e)
			var readers []chan *zklock.Lock
			for range 3 {
				readers = append(readers, acquiring(t, reader, t.Context(), alone))
				synctest.Wait()
			}
			if n := nodes(e); n != held {
				t.Errorf("%s: %d nodes while a writer holds, want %d: the writer's", what, n, held)
			}
			mustRelease(t, first)
			var together []*zklock.Lock
			for _, got := range readers {
				together = append(together, soon(t, what+": a reader behind a writer", got))
			}
			second := acquiring(t, writer, t.Context(), alone)
			synctest.Wait()
			waits := nodes(e)
			late := acquiring(t, reader, t.Context(), alone)
			synctest.Wait()
			if n := nodes(e); n != waits {
				t.Errorf("%s: %d nodes when a reader has come after a writer that waits for readers, want %d", what, n, waits)
			}
			select {
			case <-second:
				t.Errorf("%s: a writer has the lock together with readers", what)
			case <-late:
				t.Errorf("%s: a reader has passed a writer", what)
			default:
			}
			for _, l := range together {
				mustRelease(t, l)
			}
			mustRelease(t, soon(t, what+": a writer behind readers", second))
			mustRelease(t, soon(t, what+": a reader behind two writers", late))
			if n := nodes(e); n != 0 {
				t.Errorf("%s: %d nodes are left", what, n)
			}
		})
	}
}

// A writer with a separate place becomes a reader. The readers of its client that wait at the gate hold with it, and a
// writer waits for all of them.
func TestDowngradeOpensTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := connect(t, memdriver.New().Connector(), nil).RWMutex("x")
		alone := zklock.WithoutHandover()
		lowered := mustLock(t)(x.Writer().Acquire(t.Context(), alone))
		reader := acquiring(t, x.Reader(), t.Context(), alone)
		synctest.Wait()
		if err := lowered.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		l := soon(t, "a reader, when a writer has become one", reader)
		writer := acquiring(t, x.Writer(), t.Context(), alone)
		mustRelease(t, lowered)
		synctest.Wait()
		select {
		case <-writer:
			t.Fatal("a writer and a reader have the lock together")
		default:
		}
		mustRelease(t, l)
		mustRelease(t, soon(t, "a writer behind readers", writer))
	})
}

// Readers with separate places give up and come again, and more of them wait at each moment than may be under way. A
// writer that waits has its turn.
func TestReadersThatGiveUpStarveNoWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := connect(t, memdriver.New(memdriver.WithLatency(5*time.Millisecond)).Connector(), nil).RWMutex("x")
		alone := zklock.WithoutHandover()
		first := mustLock(t)(x.Writer().Acquire(t.Context(), alone))
		end := make(chan struct{})
		var readers sync.WaitGroup
		for range 100 {
			readers.Go(func() {
				for {
					select {
					case <-end:
						return
					default:
					}
					ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
					if l, err := x.Reader().Acquire(ctx, alone); err == nil {
						time.Sleep(time.Millisecond)
						mustRelease(t, l)
					}
					cancel()
				}
			})
		}
		time.Sleep(time.Second)
		writer := acquiring(t, x.Writer(), t.Context(), alone)
		synctest.Wait()
		mustRelease(t, first)
		select {
		case l := <-writer:
			mustRelease(t, l)
		case <-time.After(10 * time.Second):
			t.Error("a writer that waits among readers that give up does not have the lock after 10s")
			defer func() { mustRelease(t, <-writer) }()
		}
		close(end)
		readers.Wait()
	})
}

// Readers with separate places give up behind a writer of another client, and come again. Few of them have nodes.
func TestFewReadersThatGiveUpHaveNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(5 * time.Millisecond))
		held := mustLock(t)(connect(t, e.Connector(), nil).RWMutex("x").Writer().Acquire(t.Context()))
		x := connect(t, e.Connector(), nil).RWMutex("x")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		var readers sync.WaitGroup
		for range 100 {
			readers.Go(func() {
				for ctx.Err() == nil {
					if _, err := x.Reader().Acquire(ctx, zklock.WithoutHandover(), zklock.WithWait(100*time.Millisecond)); err == nil {
						t.Error("a reader and a writer have the lock together")
					}
				}
			})
		}
		for range 10 {
			time.Sleep(100 * time.Millisecond)
		}
		if n := nodes(e) - 1; n > 4 {
			t.Errorf("%d readers have nodes, want 4 at most", n)
		}
		readers.Wait()
		mustRelease(t, held)
	})
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
