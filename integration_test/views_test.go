package integration_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// TestWatchFollowsAQueue: the first look, an arrival, the holder's new label, a downgrade and the
// end of a session are reported, one after the other.
func TestWatchFollowsAQueue(t *testing.T) {
	t.Parallel()
	e := sharedEnsemble(t)
	hooks, waiting := waits()
	op, a, b := dial(t, e.Hosts(), quick()), dial(t, e.Hosts(), quick()), dial(t, e.Hosts(), quick(), zklock.WithHooks(hooks))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	states := make(chan []zklock.Contender, 100)
	ended := make(chan error, 1)
	go func() {
		for queue, err := range op.Watch(ctx, "x") {
			if err != nil {
				ended <- err
				continue
			}
			states <- queue
		}
	}()
	until := func(what string, is func(q []zklock.Contender) bool) {
		t.Helper()
		for q := receive(t, what, states); !is(q); q = receive(t, what, states) {
		}
	}
	until("an empty queue", func(q []zklock.Contender) bool { return len(q) == 0 })
	first := acquire(t, a.Mutex("x"))
	until("a holder", func(q []zklock.Contender) bool { return len(q) == 1 && q[0].Held && q[0].Zxid == first.Token().Zxid })
	next := try(t, within(t), b.RWMutex("x").Reader())
	receive(t, "the wait", waiting)
	until("a waiter", func(q []zklock.Contender) bool { return len(q) == 2 && !q[1].Held && q[1].Mode == zklock.Shared })
	if err := first.SetLabel(within(t), "row 1200 of 9000"); err != nil {
		t.Fatal(err)
	}
	until("the holder's label", func(q []zklock.Contender) bool {
		return len(q) == 2 && q[0].Label == "row 1200 of 9000" && q[0].Host != ""
	})
	if err := first.Downgrade(within(t)); err != nil {
		t.Fatal(err)
	}
	until("two readers", func(q []zklock.Contender) bool { return len(q) == 2 && q[0].Mode == zklock.Shared && q[1].Held })
	next.must(t)
	if err := b.Close(); err != nil { // loses its lock
		t.Fatal(err)
	}
	until("one reader", func(q []zklock.Contender) bool { return len(q) == 1 && q[0].Held })
	release(t, first)
	until("an empty queue again", func(q []zklock.Contender) bool { return len(q) == 0 })
	cancel()
	if err := receive(t, "the end", ended); !errors.Is(err, context.Canceled) {
		t.Errorf("the watch ended with %v", err)
	}
}

// TestLocksOfManyNames lists thousands of names, one of them with a queue of half as many, and
// prints how long that takes.
func TestLocksOfManyNames(t *testing.T) {
	long.Parallel(t)
	names := long.Count(t, "ZKLOCK_NAMES", 2_000, 10_000)
	longest := names / 2
	e := sharedEnsemble(t)
	c := dial(t, e.Hosts(), quick())
	if err := c.Ping(within(t)); err != nil {
		t.Fatal(err)
	}
	connector, err := zkdriver.Driver{}.OpenConnector(driver.URL{Scheme: "zk", Hosts: []string{e.Server(0).Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connector.Close() })
	s, err := connector.Connect(within(t), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(within(t)) })
	var ops []driver.Op
	flush := func(at int) {
		t.Helper()
		if len(ops) < at {
			return
		}
		if _, err := s.Multi(within(t), ops); err != nil {
			t.Fatal(err)
		}
		ops = ops[:0]
	}
	path := func(i int) string { return c.Mutex(fmt.Sprintf("orders/%05d", i)).Path() }
	open := driver.OpenACL(driver.PermAll)
	for i := range names {
		ops = append(ops, driver.CreateOp(path(i), []byte("zklock"), driver.Persistent, open))
		contenders := 1
		if i == names/2 {
			contenders = longest
		}
		for n := range contenders {
			flush(500)
			ops = append(ops, driver.CreateOp(fmt.Sprintf("%s/_c_1b9d6bcd-bbfd-4b2d-9b5d-%012x-__WRIT__", path(i), n),
				[]byte(`{"host":"web-1","pid":1,"mode":"exclusive","since":1}`), driver.EphemeralSequential, open))
		}
	}
	flush(1)
	t.Cleanup(func() { // the contenders go with their session
		_ = s.Close(context.Background())
		cleaner, err := connector.Connect(context.Background(), 10*time.Second)
		if err != nil {
			return
		}
		defer func() { _ = cleaner.Close(context.Background()) }()
		var ops []driver.Op
		for i := range names {
			if ops = append(ops, driver.DeleteOp(path(i), driver.AnyVersion)); len(ops) == 500 {
				_, _ = cleaner.Multi(context.Background(), ops)
				ops = ops[:0]
			}
		}
	})
	began := time.Now()
	n, contenders, last := 0, 0, ""
	for l, err := range c.Locks(within(t), "orders/") {
		if err != nil {
			t.Fatal(err)
		}
		if l.Name <= last {
			t.Fatalf("%q comes after %q", l.Name, last)
		}
		last = l.Name
		n++
		contenders += len(l.Contenders)
	}
	t.Logf("%d names with %d contenders in %v", n, contenders, time.Since(began).Round(time.Millisecond))
	if n != names || contenders != names-1+longest {
		t.Errorf("%d names with %d contenders, want %d with %d", n, contenders, names, names-1+longest)
	}
	began = time.Now()
	queue, err := c.Contenders(within(t), fmt.Sprintf("orders/%05d", names/2))
	t.Logf("%d contenders of one name in %v", len(queue), time.Since(began).Round(time.Millisecond))
	if err != nil || len(queue) != longest {
		t.Errorf("%d contenders, want %d: %v", len(queue), longest, err)
	}
}
