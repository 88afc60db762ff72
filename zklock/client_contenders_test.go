package zklock_test

import (
	"context"
	"errors"
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

func TestForeignChildrenAndDataAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		s := plain(t, e)
		c := connect(t, e.Connector(), nil)
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Create(t.Context(), "/zklock/x", []byte("foreign data"), driver.Persistent, driver.OpenACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
		for _, child := range []string{"notes", "_c_", "_c_x", "x-0000000001"} {
			if _, err := s.Create(t.Context(), "/zklock/x/"+child, nil, driver.Ephemeral, driver.OpenACL(driver.PermAll)); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			l := mustLock(t)(c.Mutex("x").Acquire(t.Context(), zklock.WithWait(time.Second)))
			if l.Token().IsZero() {
				t.Error("the token is zero")
			}
			mustRelease(t, l)
		}
		if n, err := s.Get(t.Context(), "/zklock/x"); err != nil || string(n.Data) != "foreign data" {
			t.Errorf("the data of the lock's znode is %q after the locks, %v", n.Data, err)
		}
		names, _, _ := s.Children(t.Context(), "/zklock/x")
		if len(names) != 4 {
			t.Errorf("children: %v, want the 4 foreign ones", names)
		}
		if _, err := s.Create(t.Context(), "/zklock/x/_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-lock-0000000003", nil, driver.Ephemeral, driver.OpenACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Mutex("x").Acquire(t.Context()); !errors.Is(err, zklock.ErrConflict) {
			t.Errorf("Acquire with a node of another recipe in the queue: %v, want ErrConflict", err)
		}
		synctest.Wait()
		names, _, _ = s.Children(t.Context(), "/zklock/x")
		if len(names) != 5 {
			t.Errorf("children: %v, want the 5 foreign ones", names)
		}
	})
}

// "orders" and "orders/42" are two different locks. So are any other two names that
// differ in a byte.
func TestNameThatIsAPrefixOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New().Connector(), nil)
		for _, name := range []string{"orders", "orders/42", "orders/4", "a", "a/b", "a/b/c", "a%2Fb", "ab", "A", "a.b", "_c_x-__WRIT__0000000000", "a/_c_x-__WRIT__0000000000"} {
			defer mustRelease(t, mustLock(t)(c.Mutex(name).Acquire(t.Context(), zklock.WithWait(time.Second))))
		}
	})
}

// TestNodeDataBound: the data of a queue node has at most 1 KiB.
func TestNodeDataBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		hooks := zklock.Hooks{Inject: func(context.Context) string { return strings.Repeat("<", 256) }}
		c := connect(t, e.Connector(), nil, zklock.WithHooks(hooks), zklock.WithIdentity(zklock.Identity{Host: strings.Repeat("<", 255)}))
		m := c.Mutex("a")
		l, err := m.Acquire(t.Context(), zklock.WithLabel(strings.Repeat("<", 256)))
		must(t, l, err)
		ds, err := e.Connector().Connect(t.Context(), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		names, _, err := ds.Children(t.Context(), m.Path())
		if err != nil {
			t.Fatal(err)
		}
		n, err := ds.Get(t.Context(), m.Path()+"/"+names[0])
		if err != nil {
			t.Fatal(err)
		}
		if len(n.Data) > 1024 {
			t.Errorf("the node has %d bytes of data, want at most 1024", len(n.Data))
		}
		cs, err := c.Contenders(t.Context(), "a")
		if err != nil || cs[0].Foreign || cs[0].Label == "" {
			t.Errorf("%+v %v", cs, err)
		}
		// Another client sees the downgrade in the data.
		d := connect(t, e.Connector(), nil)
		if err := l.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		r, err := d.RWMutex("a").Reader().Acquire(t.Context(), zklock.WithWait(time.Second))
		if err != nil {
			t.Errorf("a reader while a downgraded lock is held: %v", err)
		} else {
			r.Release(t.Context())
		}
		l.Release(t.Context())
		ds.Close(t.Context())
	})
}

// Contenders returns holders and waiters in the order of the queue, with the details
// that their clients wrote into the nodes. Contenders of other libraries are marked as
// foreign.
func TestContendersShowHoldersAndWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		client := func(host string, pid int) *zklock.Client {
			trace := zklock.Hooks{Inject: func(context.Context) string { return "00-" + host }}
			return connect(t, e.Connector(), nil, zklock.WithIdentity(zklock.Identity{Host: host, PID: pid}), zklock.WithHooks(trace))
		}
		a, b, c := client("a", 1), client("b", 2), client("c", 3)
		if found, err := a.Contenders(t.Context(), "x"); err != nil || found != nil {
			t.Errorf("Contenders of an unknown name: %v, %v", found, err)
		}
		began := time.Now()
		first := mustLock(t)(a.Mutex("x").Acquire(t.Context(), zklock.WithLabel("one")))
		if err := first.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		second := mustLock(t)(b.RWMutex("x").Reader().Acquire(t.Context(), zklock.WithLabel(strings.Repeat("é", 200))))
		time.Sleep(time.Minute)
		third := acquiring(t, c.Mutex("x"), t.Context())
		behind := acquiring(t, c.Mutex("x"), t.Context()) // waits in the process, without a queue node
		s := plain(t, e)
		const foreign = "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-lock-0000000003"
		for _, node := range []string{foreign, "notes"} {
			if _, err := s.Create(t.Context(), "/zklock/x/"+node, nil, driver.Ephemeral, driver.OpenACL(driver.PermAll)); err != nil {
				t.Fatal(err)
			}
		}
		found, err := b.Contenders(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		want := []zklock.Contender{
			{Host: "a", PID: 1, Label: "one", Trace: "00-a", Mode: zklock.Shared, Held: true, Since: began},
			{Host: "b", PID: 2, Label: strings.Repeat("é", 128), Trace: "00-b", Mode: zklock.Shared, Held: true, Since: began},
			{Host: "c", PID: 3, Trace: "00-c", Mode: zklock.Exclusive, Since: began.Add(time.Minute)},
			{Node: foreign, Mode: zklock.Exclusive, Held: true, Foreign: true},
		}
		for i := range found {
			got := found[i]
			if !got.Foreign {
				got.Node = "" // its name is random; its position in the list is checked
			}
			if i >= len(want) || !got.Since.Equal(want[i].Since) {
				t.Errorf("contender %d: %+v", i, got)
				continue
			}
			if (got.Session == s.ID()) != got.Foreign || got.Zxid == 0 || i == 0 && got.Zxid != first.Token().Zxid || i > 0 && got.Zxid <= found[i-1].Zxid {
				t.Errorf("contender %d: session %#x and zxid %#x", i, got.Session, got.Zxid)
			}
			got.Session, got.Zxid = 0, 0
			if got.Since = want[i].Since; got != want[i] {
				t.Errorf("contender %d: %+v, want %+v", i, got, want[i])
			}
		}
		if len(found) != len(want) {
			t.Errorf("%d contenders, want %d", len(found), len(want))
		}
		if err := s.Delete(t.Context(), "/zklock/x/"+foreign, driver.AnyVersion); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, first)
		mustRelease(t, second)
		mustRelease(t, <-third)
		mustRelease(t, <-behind)
	})
}

// Contenders of other recipes are listed in the queue's order, with their mode. Which of
// them hold follows from their own recipe, which ignores the nodes of other recipes.
func TestContendersOfOtherRecipesAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, s := connect(t, e.Connector(), nil), plain(t, e)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		want := []zklock.Contender{{Mode: zklock.Exclusive, Held: true}}
		for _, other := range []struct {
			prefix string
			mode   zklock.Mode
			held   bool
		}{
			{"1b9d6bcdbbfd4b2d9b5dab8dfbbd4bed__rlock__", zklock.Shared, true},
			{"_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-lock-", zklock.Exclusive, true},
			{"2b9d6bcdbbfd4b2d9b5dab8dfbbd4bed__rlock__", zklock.Shared, true},
			{"3b9d6bcdbbfd4b2d9b5dab8dfbbd4bed__lock__", zklock.Exclusive, false},
			{"_c_1b9d6bcdbbfd4b2d9b5dab8dfbbd4bed-lock-", zklock.Exclusive, false},
			{"4b9d6bcdbbfd4b2d9b5dab8dfbbd4bed__rlock__", zklock.Shared, false},
			{"_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-__READ__", zklock.Shared, false},
		} {
			path, err := s.Create(t.Context(), "/zklock/x/"+other.prefix, nil, driver.EphemeralSequential, driver.OpenACL(driver.PermAll))
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, zklock.Contender{Node: strings.TrimPrefix(path, "/zklock/x/"), Mode: other.mode, Held: other.held, Foreign: true})
		}
		found, err := c.Contenders(t.Context(), "x")
		if err != nil || len(found) != len(want) {
			t.Fatalf("%+v, %v", found, err)
		}
		for i, got := range found {
			if got.Foreign != want[i].Foreign || got.Mode != want[i].Mode || got.Held != want[i].Held || got.Foreign && got.Node != want[i].Node {
				t.Errorf("contender %d: %+v, want %+v", i, got, want[i])
			}
		}
		mustRelease(t, l)
	})
}

// A hand-over writes nothing. So a node's data still describes the request that the node
// was created for.
func TestContendersShowTheRequestOfTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context(), zklock.WithLabel("first")))
		next := acquiring(t, c.Mutex("x"), t.Context(), zklock.WithLabel("second"))
		synctest.Wait()
		wantCost(t, "a hand-over", cost(e, func() { mustRelease(t, l); l = <-next }), memcontrol.Ops{})
		if found, err := c.Contenders(t.Context(), "x"); err != nil || len(found) != 1 || found[0].Label != "first" || l.Token().Turn != 1 {
			t.Errorf("%+v, %v; token %v", found, err, l.Token())
		}
		mustRelease(t, l)
	})
}

// A name may come from a user's request and be very long. The error shows only the
// beginning of the name.
func TestErrorsShowTheBeginningOfALongName(t *testing.T) {
	c := open(t, "mem://")
	name := strings.Repeat("x", 1<<20)
	_, contenders := c.Contenders(t.Context(), name)
	_, acquire := c.Mutex(name).Acquire(t.Context())
	_, all := zklock.All(c.Mutex("a"), c.Mutex(name)).Acquire(t.Context())
	for what, err := range map[string]error{
		"Contenders": contenders, "Break": c.Break(t.Context(), name, "node"), "Acquire": acquire, "All": all,
	} {
		if !errors.Is(err, zklock.ErrInvalidName) {
			t.Errorf("%s: %v", what, err)
		} else if n := len(err.Error()); n > 1000 {
			t.Errorf("%s: the error has %d bytes, want at most 1000", what, n)
		}
	}
}

// Contenders reads a queue of any length, at most 32 nodes at a time, and does not keep
// other requests of the client waiting. It skips nodes that have left since the list was read,
// and stops when its context ends.
func TestContendersOfALongQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many, every = 6001, 60
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		s := plain(t, e)
		var under, most atomic.Int64
		left := faultdriver.If("reads of some nodes", func(op faultdriver.Op) bool {
			return op.Kind == faultdriver.Get && strings.HasSuffix(op.Paths[0], "00")
		}, faultdriver.Fail(driver.ErrNoNode))
		hooks := zklock.Hooks{Operation: func(ctx context.Context, e zklock.OperationEvent) (context.Context, func(error)) {
			if e.Kind == "list" {
				if n := under.Add(1); n > most.Load() {
					most.Store(n)
				}
			}
			return ctx, func(error) {
				if e.Kind == "list" {
					under.Add(-1)
				}
			}
		}}
		c := connect(t, faultdriver.Wrap(e.Connector(), left), nil, zklock.WithHooks(hooks))
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
		ops := make([]driver.Op, 0, every)
		for i := range many {
			path := fmt.Sprintf("/zklock/x/_c_1b9d6bcd-bbfd-4b2d-9b5d-%012x-__WRIT__%010d", i, i)
			ops = append(ops, driver.CreateOp(path, nil, driver.Ephemeral, driver.OpenACL(driver.PermAll)))
			if len(ops) == cap(ops) || i == many-1 {
				if _, err := s.Multi(t.Context(), ops); err != nil {
					t.Fatal(err)
				}
				ops = ops[:0]
			}
		}
		began := time.Now()
		other := make(chan *zklock.Lock, 1)
		go func() { other <- mustLock(t)(c.Mutex("y").Acquire(t.Context())) }()
		found, err := c.Contenders(t.Context(), "x")
		if err != nil || len(found) != many-61 || !found[0].Held {
			t.Fatalf("after %v: %d contenders, want %d: %v", time.Since(began), len(found), many-61, err)
		}
		for i, got := range found {
			if got.Held != (i == 0) || i > 0 && got.Node[len(got.Node)-10:] <= found[i-1].Node[len(found[i-1].Node)-10:] {
				t.Fatalf("contender %d: %+v", i, got)
			}
		}
		mustRelease(t, <-other)
		if n := most.Load(); n < 2 || n > 32 {
			t.Errorf("%d reads at a time, want 2 to 32", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := c.Contenders(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Contenders with a context that ends early: %v", err)
		}
		synctest.Wait()
		if n := under.Load(); n != 0 {
			t.Errorf("%d reads are still under way", n)
		}
	})
}

// connect_timeout bounds how long Contenders waits for a session, and not its requests
// on that session.
func TestContendersTakeAsLongAsTheyTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		slow := faultdriver.If("a read", func(op faultdriver.Op) bool {
			return op.Kind == faultdriver.Get && strings.Contains(op.Paths[0], "__WRIT__")
		}, faultdriver.Delay(500*time.Millisecond))
		c := connect(t, faultdriver.Wrap(e.Connector(), slow), map[string]string{"connect_timeout": "2s"})
		s := plain(t, e)
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
		const many = 200
		for i := range many {
			path := fmt.Sprintf("/zklock/x/_c_1b9d6bcd-bbfd-4b2d-9b5d-%012x-__WRIT__%010d", i, i)
			if _, err := s.Create(t.Context(), path, nil, driver.Ephemeral, driver.OpenACL(driver.PermAll)); err != nil {
				t.Fatal(err)
			}
		}
		if found, err := c.Contenders(t.Context(), "x"); err != nil || len(found) != many {
			t.Errorf("%d contenders, want %d: %v", len(found), many, err)
		}
		e.Partition(memdriver.AroundServer(0), memdriver.AroundClients(0))
		other := connect(t, e.Connector(), map[string]string{"connect_timeout": "2s"})
		if _, err := other.Contenders(t.Context(), "x"); !errors.Is(err, zklock.ErrUnavailable) {
			t.Errorf("Contenders without a session: %v, want ErrUnavailable", err)
		}
		e.Heal()
	})
}
