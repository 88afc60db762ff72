package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestAllThatFailsLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("y").Acquire(t.Context()))
		all := zklock.All(b.Mutex("z"), b.Mutex("y"), b.Mutex("x"))
		if _, err := all.Acquire(t.Context(), zklock.WithWait(time.Second)); !errors.Is(err, zklock.ErrNotAcquired) {
			t.Error(err)
		}
		if _, err := all.TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
			t.Error(err)
		}
		synctest.Wait()
		if n := nodes(e); n != 1 {
			t.Errorf("%d nodes:\n%s", n, e.Dump())
		}
		// When another client deletes the node on one name, the request gives up its
		// nodes on all names and queues again on all of them.
		got := acquiring(t, all, t.Context())
		if n := e.Break("/zklock/x"); n != 1 {
			t.Errorf("broke %d", n)
		}
		mustRelease(t, l)
		l = <-got
		if n := nodes(e); n != 3 {
			t.Errorf("%d nodes:\n%s", n, e.Dump())
		}
		if l.Name() != "x,y,z" || l.Mode() != zklock.Exclusive {
			t.Errorf("%q %v", l.Name(), l.Mode())
		}
		mustRelease(t, l)
	})
}

// The reply to a create of three nodes is lost. Before the client has looked for them, another one deletes the second.
// The client deletes the other two at once, whether its caller is still there or not, and asks for nothing that has no path.
func TestAllOfWhichOneNodeGoesWithALostReply(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		t.Run(fmt.Sprint("its caller leaves: ", leaves), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				e := memdriver.New()
				armed, broken := false, 0
				faults := faultdriver.If("", func(op faultdriver.Op) bool {
					if slices.Contains(op.Paths, "") {
						t.Errorf("%v of %q", op.Kind, op.Paths)
					}
					switch {
					case op.Kind == faultdriver.Multi && armed:
						if armed = false; leaves {
							cancel()
						}
						return true
					case op.Kind == faultdriver.Sync && op.Paths[0] == "/zklock/x" && nodes(e) == 3:
						broken += e.Break("/zklock/y")
					}
					return false
				}, faultdriver.LoseReply())
				c := connect(t, faultdriver.Wrap(e.Connector(), faults), nil)
				all := zklock.All(c.Mutex("x"), c.Mutex("y"), c.Mutex("z"))
				mustRelease(t, mustLock(t)(all.Acquire(t.Context())))
				armed = true
				l, err := all.Acquire(ctx)
				if (err != nil) != leaves {
					t.Fatal(err)
				}
				synctest.Wait()
				if broken != 1 {
					t.Errorf("%d nodes were deleted before the client had looked for them, want 1", broken)
				}
				if n := nodes(e); n > 3 || leaves && n > 0 { // a lookout would find others later
					t.Errorf("%d nodes are left:\n%s", n, e.Dump())
				}
				if l != nil {
					mustRelease(t, l)
				}
			})
		})
	}
}

// TestTwinOfAllOnItsSecondName: A gets no reply to its create and sends it again. The first
// create is applied late, B queues behind its nodes, and A's second nodes are behind B's.
// If A overlooks its first nodes, the twins, A waits for B on x, and B for A's twin on y.
func TestTwinOfAllOnItsSecondName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		gate := &faultdriver.Gate{}
		known := false // fresh names' znodes would be created with the nodes, and not for a second time
		faults := faultdriver.If("about known names", func(faultdriver.Op) bool { return known },
			about(faultdriver.On(faultdriver.Multi, faultdriver.Script(faultdriver.Late(gate), faultdriver.Delay(100*time.Millisecond)))))
		a, b := connect(t, faultdriver.Wrap(e.Connector(), faults), nil), connect(t, e.Connector(), nil)
		all := func(c *zklock.Client) zklock.Acquirer { return zklock.All(c.Mutex("x"), c.Mutex("y")) }
		mustRelease(t, mustLock(t)(all(a).Acquire(t.Context())))
		known = true
		gotA := acquiring(t, all(a), t.Context())
		time.Sleep(50 * time.Millisecond)
		if gate.Release() != 1 {
			t.Fatal("the gate held no request back")
		}
		gotB := acquiring(t, all(b), t.Context())
		time.Sleep(time.Second) // a lookout for late creates would find the twin much later
		select {
		case l := <-gotB:
			mustRelease(t, l)
			mustRelease(t, <-gotA)
		default:
			t.Errorf("client B has not acquired the locks within a second:\n%s", e.Dump())
		}
	})
}

// Hand-over lets a local request for one name overtake earlier requests for several
// names. A request for several names must not overtake in this way: it would hold a name
// that another one waits for, and wait for a name that the other one holds.
func TestAllTogetherWithHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), map[string]string{"handover_time": "1h"}), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("k1").Acquire(t.Context()))
		remote := acquiring(t, zklock.All(b.Mutex("k1"), b.Mutex("k2")), t.Context()) // is first in the queue of k2
		local := acquiring(t, zklock.All(a.Mutex("k1"), a.Mutex("k2")), t.Context())
		single := acquiring(t, a.Mutex("k1"), t.Context())
		mustRelease(t, l)
		s := <-single
		if n := a.Stats().Handovers; n != 1 || s.Token().Zxid != l.Token().Zxid {
			t.Errorf("%d hand-overs, token %v after %v: want one hand-over", n, s.Token(), l.Token())
		}
		none(t, "the remote All", remote)
		none(t, "the local All", local)
		mustRelease(t, s)
		r := <-remote
		none(t, "the local All, while the remote one holds,", local)
		mustRelease(t, r)
		last := <-local
		for _, earlier := range []*zklock.Lock{s, r} {
			if last.Token().Compare(earlier.Token()) <= 0 {
				t.Errorf("token %v after %v, want a greater one", last.Token(), earlier.Token())
			}
		}
		mustRelease(t, last)
		if n := a.Stats().Handovers; n != 1 {
			t.Errorf("%d hand-overs, want no more than the first", n)
		}
	})
}

// Requests for several names never deadlock, whatever names they share and in whatever
// order the caller gives them, also while other requests want one of the names alone.
func TestAllNeverDeadlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		names := []string{"a", "b", "c", "d"}
		rooms := map[string]*corekit.Section{}
		for _, name := range names {
			rooms[name] = &corekit.Section{Room: 1}
		}
		var wg sync.WaitGroup
		for i := range 12 {
			c := connect(t, e.Connector(), nil)
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(1, uint64(i)))
				mine := slices.Clone(names)
				for range 30 {
					rng.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
					some := mine[:1+rng.IntN(len(mine))]
					var want []zklock.Acquirer
					for _, name := range some {
						want = append(want, c.Mutex(name))
					}
					l, err := zklock.All(want...).Acquire(t.Context(), zklock.WithWait(time.Hour))
					if err != nil {
						t.Error(err)
						return
					}
					for _, name := range some {
						rooms[name].Enter()
					}
					time.Sleep(time.Millisecond)
					for _, name := range some {
						rooms[name].Leave()
					}
					mustRelease(t, l)
					rooms[mine[0]].Work(c.Mutex(mine[0]), 1, time.Millisecond)
				}
			})
		}
		wg.Wait()
		for name, in := range rooms {
			for _, f := range in.Faults {
				t.Errorf("%s: %s", name, f)
			}
		}
	})
}

// All has one token, one context and one deadline for all its names.
func TestAllIsOneLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		all := zklock.All(a.RWMutex("z").Reader(), a.RWMutex("x").Reader(), a.RWMutex("y").Reader(), a.Mutex("x"), a.RWMutex("x").Reader())
		err := zklock.Do(t.Context(), all, func(ctx context.Context, l *zklock.Lock) error {
			if names := l.Names(); !slices.Equal(names, []string{"x", "y", "z"}) || l.Mode() != zklock.Exclusive ||
				!slices.Equal(l.Modes(), []zklock.Mode{zklock.Exclusive, zklock.Shared, zklock.Shared}) || len(zklock.HeldIn(ctx)) != 1 {
				t.Errorf("%v %v %v", names, l.Modes(), l.Mode())
			}
			var zxids []int64
			s := plain(t, e)
			for _, name := range l.Names() {
				nodes, _, err := s.Children(t.Context(), "/zklock/"+name)
				if err != nil || len(nodes) != 1 {
					t.Fatalf("%s: %v, %v", name, nodes, err)
				}
				n, err := s.Get(t.Context(), "/zklock/"+name+"/"+nodes[0])
				if err != nil {
					t.Fatal(err)
				}
				zxids = append(zxids, n.Stat.Czxid)
			}
			if zxids = slices.Compact(zxids); len(zxids) != 1 || l.Token() != (zklock.Token{Zxid: zxids[0]}) {
				t.Errorf("the nodes' Czxids are %v and the token is %v, want one zxid for all", zxids, l.Token())
			}
			// A name that was given in two modes is held in the stronger one. The other
			// names stay shared.
			for name, want := range map[string]error{"x": zklock.ErrNotAcquired, "y": nil, "z": nil} {
				r, err := b.RWMutex(name).Reader().TryAcquire(t.Context())
				if !errors.Is(err, want) {
					t.Errorf("a reader of %s: %v", name, err)
				}
				if err == nil {
					mustRelease(t, r)
				}
			}
			began := time.Now()
			if _, err := zklock.All(b.Mutex("x"), b.Mutex("y"), b.Mutex("z")).Acquire(t.Context(), zklock.WithWait(3*time.Second)); !errors.Is(err, zklock.ErrNotAcquired) || time.Since(began) != 3*time.Second {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
			e.Break("/zklock/y")
			time.Sleep(3 * time.Second) // until the event of the node's watch has arrived
			if !errors.Is(context.Cause(ctx), zklock.ErrLost) {
				t.Errorf("one node was deleted, and the context's cause is %v, want ErrLost", context.Cause(ctx))
			}
			return nil
		})
		if !errors.Is(err, zklock.ErrLost) {
			t.Errorf("Do: %v", err)
		}
		synctest.Wait()
		if n := nodes(e); n != 0 {
			t.Errorf("left behind:\n%s", e.Dump())
		}
	})
}

func TestAllRefusesWhatItCannotTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		var many []zklock.Acquirer
		for i := range 129 {
			many = append(many, a.Mutex(fmt.Sprint("n", i)))
		}
		for _, c := range []struct {
			all  zklock.Acquirer
			says string
		}{
			{zklock.All(many...), "129 names, at most 128"},
			{zklock.All(a.Mutex("x"), b.Mutex("y")), "one Client"},
			{zklock.All(a.Mutex("x"), a.Semaphore("y", 1)), "Semaphore"},
			{zklock.All(zklock.All(a.Mutex("x"))), "mutexes, readers and writers"},
			{zklock.All(a.Mutex("x"), struct{ zklock.Acquirer }{a.Mutex("y")}), "mutexes, readers and writers"},
		} {
			wantCost(t, c.says, cost(e, func() {
				if _, err := c.all.Acquire(t.Context()); !errors.Is(err, zklock.ErrConflict) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%[2]v, want an ErrConflict that says %[1]q", c.says, err)
				}
			}), memcontrol.Ops{})
		}
		l := mustLock(t)(zklock.All(append(many[1:], many[1])...).Acquire(t.Context()))
		if n := len(l.Names()); n != 128 {
			t.Errorf("%d names, want 128", n)
		}
		mustRelease(t, l)
		most := zklock.All(many[1:]...)
		wantCost(t, "128 known names", cost(e, func() { l = mustLock(t)(most.Acquire(t.Context())) }), memcontrol.Ops{Multis: 1, MultiOps: 256})
		mustRelease(t, l)
	})
}

// All of a single name is the same lock as that name alone: it can be handed over and
// downgraded.
func TestAllOfOneNameIsThatLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New().Connector(), nil)
		one := zklock.All(c.Mutex("x"), c.RWMutex("x").Reader())
		first := mustLock(t)(one.Acquire(t.Context()))
		next := acquiring(t, one, t.Context())
		mustRelease(t, first)
		second := <-next
		if a, b := first.Token(), second.Token(); b.Zxid != a.Zxid || b.Turn != a.Turn+1 {
			t.Errorf("tokens %v and %v: the lock was not handed over", a, b)
		}
		if err := second.Downgrade(t.Context()); err != nil || second.Mode() != zklock.Shared {
			t.Errorf("Downgrade: %v, and the lock is held as %v", err, second.Mode())
		}
		mustRelease(t, second)
	})
}

// A Group has the names and the paths of its locks, sorted by name. One that All did not make is
// refused, and so is a Group in an All.
func TestGroup(t *testing.T) {
	c := open(t, "mem:///r")
	g := zklock.All(c.Mutex("b/2"), c.RWMutex("a").Reader(), c.Mutex("b/2"))
	if g.Name() != "a,b/2" || g.Path() != "/r/a,/r/b%2F2" {
		t.Errorf("name %s, path %s", g.Name(), g.Path())
	}
	for what, g := range map[string]*zklock.Group{"nil": nil, "zero": {}} {
		if _, err := g.Acquire(t.Context()); !errors.Is(err, zklock.ErrMisuse) || g.Name() != "" || g.Path() != "" {
			t.Errorf("%s Group: %v; name %q, path %q", what, err, g.Name(), g.Path())
		}
	}
	if _, err := zklock.All(c.Mutex("x"), g).TryAcquire(t.Context()); !errors.Is(err, zklock.ErrConflict) {
		t.Errorf("All of a Group: %v", err)
	}
	seal, ok := reflect.TypeFor[zklock.Acquirer]().MethodByName("lock")
	if !ok || seal.IsExported() {
		t.Error("an Acquirer has no method that other packages cannot implement")
	}
}
