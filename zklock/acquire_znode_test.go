package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// An operator removes the znode of an idle lock and creates another one, with other
// data, at the same path. No client removes the operator's znode when the name is idle,
// and none writes to it when the name is used again: neither the client that had created
// the old znode, nor one that had only used it.
func TestZnodePutInALocksPlaceIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		maker, other, operator := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), plain(t, e)
		path := maker.Mutex("x").Path()
		mustRelease(t, mustLock(t)(maker.Mutex("x").Acquire(t.Context())))
		mustRelease(t, mustLock(t)(other.Mutex("x").Acquire(t.Context())))
		if err := operator.Delete(t.Context(), path, driver.AnyVersion); err != nil {
			t.Fatal(err)
		}
		if _, err := operator.Create(t.Context(), path, []byte("precious"), driver.Persistent, driver.OpenACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		mustRelease(t, mustLock(t)(maker.Mutex("x").Acquire(t.Context())))
		mustRelease(t, mustLock(t)(other.Mutex("x").Acquire(t.Context())))
		time.Sleep(time.Minute)
		n, err := operator.Get(t.Context(), path)
		if err != nil || string(n.Data) != "precious" || n.Stat.Version != 0 {
			t.Errorf("the operator's znode has %q, version %d, error %v; want it unchanged", n.Data, n.Stat.Version, err)
		}
	})
}

// A client looks once at the znode of a name in steady use. After the name was idle in this client,
// the client reads the znode once more, since the server may have removed it. If a queue node of
// this client has prevented the removal, the client does not read the znode again.
func TestIdleNameIsLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		maker, other := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		mustRelease(t, mustLock(t)(other.Mutex("x").Acquire(t.Context())))
		m := maker.Mutex("x")
		mustRelease(t, mustLock(t)(m.Acquire(t.Context())))
		for range 5 {
			time.Sleep(9 * time.Second)
			d := cost(e, func() { mustRelease(t, mustLock(t)(m.Acquire(t.Context()))) })
			if d.Gets != 0 || d.Creates != 0 {
				t.Fatalf("an acquisition of a name in use cost %+v, want no read and no create of the znode", d)
			}
		}
		time.Sleep(11 * time.Second)
		d := cost(e, func() { mustRelease(t, mustLock(t)(m.Acquire(t.Context()))) })
		if d.Gets != 1 || d.Creates != 0 {
			t.Errorf("an acquisition of a name that was idle cost %+v, want one read and no create of the znode", d)
		}
		first := mustLock(t)(m.Acquire(t.Context()))
		next := acquiring(t, m, t.Context())
		time.Sleep(11 * time.Second)
		d = cost(e, func() { mustRelease(t, first); mustRelease(t, <-next) })
		if d.Gets != 0 || d.Creates != 0 {
			t.Errorf("giving up a node and queueing again cost %+v, want no read and no create of the znode", d)
		}
	})
}

// A lock's znode that zklock created belongs to zklock. If another program writes into
// it, the next acquisition overwrites that, and no acquisition fails because of it.
// zklock never writes to a znode that another program created, however often the name is
// used.
func TestZnodeBelongsToItsCreator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, operator := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), plain(t, e)
		use := func(name string) {
			t.Helper()
			for range 3 {
				first := mustLock(t)(a.Mutex(name).Acquire(t.Context()))
				local, remote := acquiring(t, a.Mutex(name), t.Context()), acquiring(t, b.Mutex(name), t.Context())
				none(t, "a waiter", local)
				none(t, "a waiter", remote)
				mustRelease(t, first)
				for range 2 {
					select {
					case l := <-local:
						mustRelease(t, l)
					case l := <-remote:
						mustRelease(t, l)
					}
				}
				mustRelease(t, mustLock(t)(b.Semaphore(name+"/permits", 2).TryAcquire(t.Context())))
			}
		}
		for _, of := range []struct {
			name   string
			before func(path string) error // called before the first acquisition
			after  func(path string) error // called after it
			want   string
		}{
			{"ours", nil, func(path string) error {
				_, err := operator.Set(t.Context(), path, []byte("notes"), driver.AnyVersion)
				return err
			}, "zklock"},
			{"theirs", func(path string) error {
				_, err := operator.Create(t.Context(), path, []byte("notes"), driver.Persistent, driver.OpenACL(driver.PermAll))
				return err
			}, nil, "notes"},
			{"theirs, and empty", func(path string) error {
				_, err := operator.Create(t.Context(), path, nil, driver.Persistent, driver.OpenACL(driver.PermAll))
				return err
			}, nil, ""},
		} {
			path := a.Mutex(of.name).Path()
			if of.before != nil {
				mustRelease(t, mustLock(t)(a.Mutex("the root").Acquire(t.Context())))
				if err := of.before(path); err != nil {
					t.Fatal(err)
				}
			}
			use(of.name)
			if of.after != nil {
				if err := of.after(path); err != nil {
					t.Fatal(err)
				}
			}
			use(of.name)
			n, err := operator.Get(t.Context(), path)
			if err != nil || string(n.Data) != of.want || of.after == nil && n.Stat.Version != 0 {
				t.Errorf("%s: %q, version %d, %v; want %q", of.name, n.Data, n.Stat.Version, err, of.want)
			}
		}
	})
}

// A client removes the znodes of names that were used once, long before the server looks
// for them. Znodes that other programs created stay, and so do those of held locks. The
// removals go in groups, so that they keep up with the goroutines that use new names.
// ZKLOCK_NAMES sets the number of names, instead of 5,000.
func TestIdleContainersAreRemoved(t *testing.T) {
	count := long.Count(t, "ZKLOCK_NAMES", 5000, 5000)
	synctest.Test(t, func(t *testing.T) {
		ensemble := memdriver.New(memdriver.WithReapInterval(24 * time.Hour))
		defer ensemble.Close()
		var removals atomic.Int64
		c, err := zklock.OpenConnector(ensemble.Connector(), zklock.WithHooks(zklock.Hooks{
			Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
				if ev.Kind == "reap" {
					removals.Add(1)
				}
				return ctx, func(error) {}
			},
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		others, err := ensemble.Connector().Connect(t.Context(), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer others.Close(t.Context())
		kept, err := c.Mutex("kept").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := others.Create(t.Context(), "/zklock/theirs", []byte("zklock"), driver.Container, driver.OpenACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
		for _, name := range append(names(count), "theirs") {
			l, err := c.Mutex(name).Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		children := func() []string {
			list, _, err := others.Children(t.Context(), "/zklock")
			if err != nil {
				t.Fatal(err)
			}
			return list
		}
		if n := len(children()); n != count+2 {
			t.Fatalf("%d names right after use, want %d", n, count+2)
		}
		idle := time.NewTimer(20 * time.Second)
		<-idle.C
		if left := strings.Join(children(), " "); left != "kept theirs" && left != "theirs kept" {
			t.Fatalf("left after 20s: %.200s; want kept and theirs", left)
		}
		if n := removals.Load(); n > int64(count/20) {
			t.Errorf("%d requests removed %d names, want at most one request for 20 names", n, count)
		}
		time.Sleep(2 * time.Minute) // by then the client has forgotten the name of others
		if left := strings.Join(children(), " "); left != "kept theirs" && left != "theirs kept" {
			t.Fatalf("left after two minutes more: %.200s; want kept and theirs", left)
		}
		if !kept.Valid() {
			t.Fatal("the lock that was held meanwhile is not valid")
		}
		_ = kept.Release(t.Context())
		// A name whose znode was removed can be used again.
		l, err := c.Mutex("name-7").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Release(t.Context())
	})
}

// Another client holds some of the names that are to be removed. The server refuses
// those removals, and no other request fails with them. All removals together take no
// more requests than they would one by one.
func TestRefusedRemovalFailsNoOtherRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(5 * time.Millisecond)) // so that writes pile up and go in groups
		var reaped, refused atomic.Int64
		hooks := zklock.Hooks{Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
			return ctx, func(err error) {
				if ev.Kind == "reap" {
					reaped.Add(1)
				}
				if err == nil {
					return
				}
				if refused.Add(1); ev.Kind != "reap" || !errors.Is(err, driver.ErrBadVersion) && !errors.Is(err, driver.ErrNotEmpty) {
					t.Errorf("%s of %d failed: %v", ev.Kind, ev.Group, err)
				}
			}
		}}
		a, b := connect(t, e.Connector(), nil, zklock.WithHooks(hooks)), connect(t, e.Connector(), nil)
		for i, name := range names(300) {
			mustRelease(t, mustLock(t)(a.Mutex(name).Acquire(t.Context())))
			if i%3 == 0 {
				l := mustLock(t)(b.Mutex(name).Acquire(t.Context()))
				defer func() { _ = l.Release(context.Background()) }()
			}
		}
		busy := time.Now().Add(20 * time.Second)
		var users sync.WaitGroup
		for i := range 10 {
			users.Go(func() {
				m := a.Mutex(fmt.Sprint("busy-", i))
				for time.Now().Before(busy) {
					l, err := m.Acquire(t.Context())
					if err == nil {
						err = l.Release(t.Context())
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		users.Wait()
		if n := refused.Load(); n != 100 || reaped.Load() > 300 {
			t.Errorf("300 removals took %d requests, of which %d failed; want at most 300, of which 100 fail", reaped.Load(), n)
		}
		others, err := e.Connector().Connect(t.Context(), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer others.Close(t.Context())
		left, _, err := others.Children(t.Context(), "/zklock")
		if err != nil || len(left) != 110 {
			t.Errorf("%d names are left (error %v), want the 100 that another client holds, and the 10 in use", len(left), err)
		}
	})
}

// The server removes a container znode that has been empty for a while, and an operator
// may remove any znode. The next request creates it again.
func TestParentRemovedByTheServerIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		both := zklock.All(c.Mutex("x"), c.Mutex("y"))
		for _, a := range []zklock.Acquirer{c.Mutex("x"), both, c.Semaphore("x", 2)} {
			for range 2 {
				mustRelease(t, mustLock(t)(a.Acquire(t.Context())))
				if err := memcontrol.Of(e).Delete("/zklock/x"); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
