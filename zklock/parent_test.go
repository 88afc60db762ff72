package zklock_test

import (
	"testing"
	"testing/synctest"
	"time"

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
