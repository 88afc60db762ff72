package zklock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Somebody removes an idle lock's znode and puts one with data of his own in its
// place: that is neither removed when the name has been idle, nor written when it
// is used again, by a client that had made the znode and by one that had met it.
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
			t.Errorf("the znode: %q, version %d, %v", n.Data, n.Stat.Version, err)
		}
	})
}

// A name in steady use is looked at once. One that has been idle here is looked at
// again, by one read, unless a queue node of ours has kept its znode there.
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
				t.Fatalf("a name in use cost %+v", d)
			}
		}
		time.Sleep(11 * time.Second)
		d := cost(e, func() { mustRelease(t, mustLock(t)(m.Acquire(t.Context()))) })
		if d.Gets != 1 || d.Creates != 0 {
			t.Errorf("a name that was idle cost %+v, want one read more", d)
		}
		first := mustLock(t)(m.Acquire(t.Context()))
		next := acquiring(t, m, t.Context())
		time.Sleep(11 * time.Second)
		d = cost(e, func() { mustRelease(t, first); mustRelease(t, <-next) })
		if d.Gets != 0 || d.Creates != 0 {
			t.Errorf("to give up a node and queue again cost %+v", d)
		}
	})
}

// A znode that zklock made is zklock's: what another program writes into it later is
// written over by the next acquisition, and does not get in the way of any. One
// that another program made is never written, however often it is used.
func TestZnodeIsOfWhoMadeIt(t *testing.T) {
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
			before func(path string) error // the first acquisition
			after  func(path string) error
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
