package integration_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/zklock"
)

// limited opens a client with limits, whose requests are counted.
func limited(t *testing.T, hosts string, kv ...string) counted {
	t.Helper()
	p, err := proxy.NewCounting(hosts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	c := dial(t, p.Addr(), quick(append(kv, "session_timeout", calmTimeout.String(), "pool_max_sessions", "1")...))
	release(t, acquire(t, c.Mutex("x"))) // from here on the client knows the name
	return counted{c, p}
}

// TestMaxContendersIsExactInOneRoundTrip: the transaction that creates the queue node also
// returns the number of contenders. A contender beyond the limit learns it from the reply. If
// it is the first beyond the limit, it lists the queue, since a kept node does not count. Then it
// sends the delete of its node. The others need no additional requests.
func TestMaxContendersIsExactInOneRoundTrip(t *testing.T) {
	t.Parallel()
	e := calm(t)
	const limit = 3
	conn := dialRaw(t, e.Hosts(), patience)
	holder := limited(t, e.Hosts(), "max_contenders", fmt.Sprint(limit))
	m := holder.Mutex("x")
	var held *zklock.Lock
	if got := holder.costOf(func() { held = acquire(t, m) }); !got.equal(cost{oneMulti, enqueuing, 0}) {
		t.Errorf("Acquire of the first contender: %v, want one transaction", got)
	}
	var waiting []*attempt
	for n := 2; n <= limit; n++ {
		c := limitedWaiter(t, e.Hosts(), limit)
		waiting = append(waiting, try(t, within(t), c.Mutex("x")))
		eventually(t, "the waiter is in the queue", func() bool { return len(contenders(t, conn, m)) == n })
	}
	for range 3 {
		c := limitedWaiter(t, e.Hosts(), limit)
		l, err := (*zklock.Lock)(nil), error(nil)
		before := c.proxy.Counts()
		l, err = c.Mutex("x").Acquire(within(t))
		if l != nil || !errors.Is(err, zklock.ErrTooManyWaiters) || !strings.Contains(err.Error(), "max_contenders=3") {
			t.Errorf("Acquire beyond the limit: %v, %v, want ErrTooManyWaiters", l, err)
		}
		eventually(t, "the node of the contender beyond the limit is gone", func() bool { return len(contenders(t, conn, m)) == limit })
		want := cost{map[string]int{"getData": 1, "multi": 2, "getChildren2": 1, "delete": 1}, refusedFirst, 0} // a znode that another client created is read once
		if got := c.since(before); !got.equal(want) {
			t.Errorf("Acquire beyond the limit: %v, want %v", got, want)
		}
	}
	release(t, held)
	for _, w := range waiting {
		release(t, w.must(t))
	}

	// Many contenders queue at once while the lock is held. The first ones are admitted, as
	// many as the limit allows: none of them leaves. All others are refused, whatever
	// nodes are in the queue for a moment.
	held = acquire(t, m)
	ctx, stop := context.WithCancel(within(t))
	defer stop()
	refused, locks := make(chan error, 4*limit), make(chan *zklock.Lock, 4*limit)
	for range 4 * limit {
		c := limitedWaiter(t, e.Hosts(), limit)
		go func() {
			l, err := c.Mutex("x").Acquire(ctx)
			if err != nil {
				refused <- err
				return
			}
			locks <- l
		}()
	}
	for range 4*limit - (limit - 1) {
		if err := receive(t, "the refusal of the contenders beyond the limit", refused); !errors.Is(err, zklock.ErrTooManyWaiters) {
			t.Error(err)
		}
	}
	eventually(t, "the nodes of the refused contenders are gone", func() bool { return len(contenders(t, conn, m)) == limit })
	release(t, held)
	for range limit - 1 {
		release(t, receive(t, "the grant of an admitted contender", locks))
	}
	if len(refused) > 0 {
		t.Errorf("one contender too many was refused: %v", <-refused)
	}
	eventually(t, "the queue is empty", func() bool { return len(contenders(t, conn, m)) == 0 })
}

func limitedWaiter(t *testing.T, hosts string, limit int) counted {
	t.Helper()
	p, err := proxy.NewCounting(hosts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	c := counted{dial(t, p.Addr(), quick("session_timeout", calmTimeout.String(), "pool_max_sessions", "1", "max_contenders", fmt.Sprint(limit))), p}
	if err := c.Ping(within(t)); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestLocalLimitsAreExactAndCostNothing: max_waiters and max_names are checked in the
// process, without a request.
func TestLocalLimitsAreExactAndCostNothing(t *testing.T) {
	t.Parallel()
	e := calm(t)
	c := limited(t, e.Hosts(), "max_waiters", "2", "max_names", "2")
	held := acquire(t, c.Mutex("x"))
	first, second := try(t, within(t), c.Mutex("x")), try(t, within(t), c.Mutex("x"))
	eventually(t, "two wait", func() bool { return c.Stats().Waiting == 2 })
	another := acquire(t, c.Mutex("y"))
	for what, refuse := range map[string]func() error{
		"a third waiter": func() error { _, err := c.Mutex("x").Acquire(within(t)); return err },
		"a third waiter, alone": func() error {
			_, err := c.Mutex("x").Acquire(within(t), zklock.WithoutHandover())
			return err
		},
		"a reader": func() error { _, err := c.RWMutex("x").Reader().Acquire(within(t)); return err },
		"a second waiter by its own limit": func() error {
			_, err := c.Mutex("x").Acquire(within(t), zklock.WithMaxWaiters(1))
			return err
		},
		"a third name": func() error { _, err := c.Mutex("z").Acquire(within(t)); return err },
		"a third name with others": func() error {
			_, err := zklock.All(c.Mutex("y"), c.Mutex("z")).Acquire(within(t))
			return err
		},
	} {
		if got := c.costOf(func() {
			if err := refuse(); !errors.Is(err, zklock.ErrTooManyWaiters) {
				t.Errorf("%s: %v, want ErrTooManyWaiters", what, err)
			}
		}); !got.equal(nothing) {
			t.Errorf("%s: %v, want no request", what, got)
		}
	}
	if got := c.costOf(func() {
		if _, err := c.Mutex("x").TryAcquire(within(t)); !errors.Is(err, zklock.ErrNotAcquired) || errors.Is(err, zklock.ErrTooManyWaiters) {
			t.Errorf("TryAcquire: %v, want ErrNotAcquired", err)
		}
	}); !got.equal(nothing) {
		t.Errorf("TryAcquire: %v, want no request", got)
	}
	release(t, another)
	release(t, acquire(t, c.Mutex("z"))) // the limit allows another name again
	release(t, held)
	select { // the waiter that queued first
	case <-first.done:
	case <-second.done:
		first, second = second, first
	}
	release(t, first.must(t))
	release(t, second.must(t))

	// Many callers at once, for a free name, and for a name that another client holds. The
	// client learns of the other holder only when it asks the server.
	other := dial(t, e.Hosts(), quick("session_timeout", calmTimeout.String()))
	for what, holders := range map[string]int{"free": 1, "taken": 0} {
		var theirs *zklock.Lock
		if holders == 0 {
			theirs = acquire(t, other.Mutex("x"))
		}
		const callers, limit = 12, 2
		refused, locks := make(chan error, callers), make(chan *zklock.Lock, callers)
		ctx, stop := context.WithCancel(within(t))
		defer stop()
		for range callers {
			go func() {
				l, err := c.Mutex("x").Acquire(ctx)
				if err != nil {
					refused <- err
					return
				}
				locks <- l
			}()
		}
		for range callers - limit - holders {
			if err := receive(t, what+": the refusal of the callers beyond the limit", refused); !errors.Is(err, zklock.ErrTooManyWaiters) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if theirs != nil {
			eventually(t, "all admitted callers wait", func() bool { return c.Stats().Waiting == limit })
			release(t, theirs)
		}
		for range limit + holders {
			release(t, receive(t, what+": the grant of an admitted caller", locks))
		}
		if len(refused) > 0 {
			t.Errorf("%s: one caller too many was refused: %v", what, <-refused)
		}
	}
}

// TestNodeDataIsBounded: the data of a queue node are at most 1 KiB, however long the label
// and the host name are.
func TestNodeDataIsBounded(t *testing.T) {
	t.Parallel()
	e := sharedEnsemble(t)
	huge := strings.Repeat("\u2028\"\x01", 10000) // JSON writes each as six bytes
	c := dial(t, e.Hosts(), quick(), zklock.WithIdentity(zklock.Identity{Host: huge, PID: 1 << 30}))
	l, err := c.Mutex("x").Acquire(within(t), zklock.WithLabel(huge))
	if err != nil {
		t.Fatal(err)
	}
	conn := dialRaw(t, e.Hosts(), patience)
	names := contenders(t, conn, c.Mutex("x"))
	if len(names) != 1 {
		t.Fatalf("contenders: %v, want one", names)
	}
	data, _, err := conn.Get(c.Mutex("x").Path() + "/" + names[0])
	if err != nil || len(data) == 0 || len(data) > 1<<10 {
		t.Errorf("the node has %d bytes of data, %v, want at most 1 KiB", len(data), err)
	}
	if list, err := c.Contenders(within(t), "x"); err != nil || len(list) != 1 || list[0].Foreign || list[0].PID != 1<<30 {
		t.Errorf("%+v, %v", list, err)
	}
	release(t, l)
	if _, _, err := conn.Children(c.Mutex("x").Path()); err != nil && !errors.Is(err, zk.ErrNoNode) {
		t.Error(err)
	}
}
