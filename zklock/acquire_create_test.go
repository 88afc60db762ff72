package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// If only the reply to a create is lost, the client finds the node by listing the queue
// after a Sync, which brings the list up to date. It creates nothing twice.
func TestLostCreateIsFoundAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		faults := faultdriver.Once(about(faultdriver.On(faultdriver.Multi, faultdriver.LoseReply())))
		c := connect(t, faultdriver.Wrap(e.Connector(), faults), nil)
		var l *zklock.Lock
		began := time.Now()
		d := cost(e, func() { l = mustLock(t)(c.Mutex("x").Acquire(t.Context())) })
		if took := time.Since(began); took > 500*time.Millisecond {
			t.Errorf("acquiring took %v, want at most 500ms: the first heartbeat renews the whole lease", took)
		}
		if d.MultiOps-d.Multis != 2 || d.Syncs != 1 { // heartbeats have one operation
			t.Errorf("the requests were %+v, want one transaction of three operations, and one Sync to find its node", d)
		}
		if !strings.Contains(e.Dump(), "__WRIT__0000000000") || nodes(e) != 1 {
			t.Errorf("want one node, the first of its queue:\n%s", e.Dump())
		}
		mustRelease(t, l)
	})
}

// If two nodes were created for one request, the first one counts, so that the request
// keeps its position in the queue.
func TestOfTwinsTheFirstCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		gate := &faultdriver.Gate{}
		known := false // a fresh name's znode would be created with the node, and not for a second time
		faults := faultdriver.If("about a known name", func(faultdriver.Op) bool { return known },
			about(faultdriver.On(faultdriver.Multi, faultdriver.Script(faultdriver.Late(gate), faultdriver.LoseReply()))))
		looked := 0
		hooks := zklock.Hooks{Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
			if ev.Kind == "recover" {
				if looked++; looked == 2 && gate.Release() != 1 {
					t.Error("the gate held no request back")
				}
			}
			return ctx, nil
		}}
		c := connect(t, faultdriver.Wrap(e.Connector(), faults), nil, zklock.WithHooks(hooks))
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
		known = true
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		synctest.Wait()
		if looked < 2 || nodes(e) != 1 || !strings.Contains(e.Dump(), "__WRIT__0000000001") {
			t.Errorf("looked for the node %d times; want 2 or more, and only the first of the two nodes in the queue:\n%s", looked, e.Dump())
		}
		mustRelease(t, l)
	})
}

// A list of the queue shows a node of the client's own session whose create has not been
// answered yet. The node belongs to a request that is under way, so it is not removed.
func TestOpenCreateIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		faults := faultdriver.Once(about(faultdriver.On(faultdriver.Multi, faultdriver.DelayReply(time.Second))))
		c := connect(t, faultdriver.Wrap(e.Connector(), faults), nil)
		got := acquiring(t, c.Mutex("x"), t.Context(), zklock.WithoutHandover())
		if n := nodes(e); n != 1 {
			t.Fatalf("%d nodes", n)
		}
		if _, err := c.Mutex("x").TryAcquire(t.Context(), zklock.WithoutHandover()); !errors.Is(err, zklock.ErrNotAcquired) {
			t.Errorf("a try while the create is under way: %v", err)
		}
		l := <-got
		if err := l.Verify(t.Context()); err != nil {
			t.Errorf("Verify: %v", err)
		}
		mustRelease(t, l)
	})
}

// A caller that gives up while its create is under way leaves nothing behind.
func TestCreateCancelledUnderWayLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		faults := faultdriver.Once(about(faultdriver.On(faultdriver.Multi, faultdriver.DelayReply(time.Second))))
		c := connect(t, faultdriver.Wrap(e.Connector(), faults), nil)
		began := time.Now()
		_, err := c.Mutex("x").Acquire(t.Context(), zklock.WithWait(100*time.Millisecond))
		if !errors.Is(err, zklock.ErrNotAcquired) || errors.Is(err, zklock.ErrUnavailable) || time.Since(began) != 100*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		time.Sleep(2 * time.Second)
		if n := nodes(e); n != 0 {
			t.Errorf("left behind:\n%s", e.Dump())
		}
	})
}

// Writes are sent on the session's context and not on the caller's. A cancelled caller is
// a usual reason for a write, so its context must not stop the write.
func TestWritesOutliveTheirCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		c := connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		d := cost(e, func() {
			if err := l.Release(ctx); !errors.Is(err, zklock.ErrReleasePending) {
				t.Errorf("Release: %v", err)
			}
			time.Sleep(100 * time.Millisecond)
		})
		if d.Multis != 1 || d.MultiOps != 1 {
			t.Errorf("a release with a context that has ended cost %+v, want one transaction", d)
		}
		if n := nodes(e); n != 0 {
			t.Errorf("left behind:\n%s", e.Dump())
		}
	})
}

// Another program changes a name between two acquisitions of a client. The second acquisition
// still waits for a contender that is ahead, and gets the lock when that is gone.
func TestKnownNameWaitsForOthers(t *testing.T) {
	const path = "/zklock/a"
	acl := driver.OpenACL(driver.PermAll)
	type world struct {
		*testing.T
		e         *memdriver.Ensemble
		client    int64 // its session
		s         driver.Session
		contender string // of the other program, which is still there
	}
	enter := func(w *world) {
		var err error
		if w.contender, err = w.s.Create(w.Context(), path+"/_c_00000000000000000000000000000001-__WRIT__", nil, driver.EphemeralSequential, acl); err != nil {
			w.Fatal(err)
		}
	}
	remake := func(w *world) {
		err := w.s.Delete(w.Context(), path, driver.AnyVersion)
		if err == nil {
			_, err = w.s.Create(w.Context(), path, []byte("zklock"), driver.Container, acl)
		}
		if err != nil {
			w.Fatal(err)
		}
		enter(w)
	}
	for what, do := range map[string]func(w *world){
		"a contender came": enter,
		"two contenders came, and the first has left": func(w *world) {
			enter(w)
			first := w.contender
			enter(w)
			if err := w.s.Delete(w.Context(), first, driver.AnyVersion); err != nil {
				w.Fatal(err)
			}
		},
		"the znode was made again": remake,
		"the znode was made again while the client had no connection": func(w *world) {
			cut := memdriver.AroundSession(w.client).Reset()
			w.e.Partition(cut)
			synctest.Wait()
			remake(w)
			w.e.Heal(cut)
		},
		"a contender came, and the connection is lost while the client asks": func(w *world) {
			enter(w)
			release := memcontrol.Of(w.e).HoldRequests(w.client)
			time.AfterFunc(300*time.Millisecond, func() { w.e.KillConnection(w.client); release() })
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(time.Millisecond))
				memcontrol.Of(e).Lag(1, 20*time.Millisecond)
				c := connect(t, e.Connector(), nil)
				for range 4 {
					mustRelease(t, mustLock(t)(c.Mutex("a").Acquire(t.Context())))
				}
				w := &world{T: t, e: e, client: e.Sessions()[0], s: plain(t, e)}
				do(w)
				got := acquiring(t, c.Mutex("a"), t.Context())
				time.Sleep(2 * time.Second)
				none(t, "a contender of a name in use", got)
				if err := w.s.Delete(t.Context(), w.contender, driver.AnyVersion); err != nil {
					t.Fatal(err)
				}
				mustRelease(t, soon(t, "the contender", got))
			})
		})
	}
}

func TestLostReplyAndAFailingListLeaveNoOrphan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		faults := faultdriver.Any(
			faultdriver.Once(about(faultdriver.On(faultdriver.Multi, faultdriver.LoseReply()))),
			faultdriver.First(20, faultdriver.On(faultdriver.Children, faultdriver.Drop())))
		a, b := connect(t, faultdriver.Wrap(e.Connector(), faults), map[string]string{"connect_timeout": "2s"}), connect(t, e.Connector(), nil)
		if _, err := a.Mutex("x").Acquire(t.Context()); !errors.Is(err, zklock.ErrUnavailable) {
			t.Errorf("acquire: %v, want ErrUnavailable", err)
		}
		mustRelease(t, mustLock(t)(b.Mutex("x").Acquire(t.Context(), zklock.WithWait(time.Minute))))
		if n := nodes(e); n != 0 {
			t.Errorf("left behind:\n%s", e.Dump())
		}
	})
}

// A client gives a create up as lost and sends another one, which is granted. Then the
// first create is applied after all. Its node, the twin, has no owner, and every later
// contender would wait for it. A list of the queue by the same session finds the twin
// and deletes it, and does not delete the holder's node.
func TestLateTwinOfASettledCreate(t *testing.T) {
	corekit.Short(t)
	for _, when := range []string{"held", "held, seen by a waiter of its session", "released"} {
		t.Run(when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				gate := &faultdriver.Gate{}
				faults := faultdriver.NewToggle(about(faultdriver.Once(faultdriver.On(faultdriver.Multi, faultdriver.Late(gate)))))
				a, b := connect(t, faultdriver.Wrap(e.Connector(), faults), nil), connect(t, e.Connector(), nil)
				mustRelease(t, mustLock(t)(a.Mutex("x").Acquire(t.Context()))) // the znode exists from now on
				faults.On()
				l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
				apply := func() {
					if gate.Release() != 1 || nodes(e) == 0 {
						t.Errorf("the late create was not applied:\n%s", e.Dump())
					}
				}
				if when != "released" {
					apply()
				}
				var local chan *zklock.Lock
				if strings.Contains(when, "seen") {
					local = acquiring(t, a.Mutex("x"), t.Context(), zklock.WithoutHandover())
					if n := nodes(e); n != 2 {
						t.Errorf("%d nodes, want the holder's and the waiter's:\n%s", n, e.Dump())
					}
				}
				if !l.Valid() || l.Verify(t.Context()) != nil {
					t.Error("the holder's own node is gone")
				}
				mustRelease(t, l)
				if local != nil {
					mustRelease(t, <-local)
				}
				synctest.Wait()
				if when == "released" {
					apply()
				}
				// The client lists the queue right after the release, and again a session
				// timeout later.
				next := mustLock(t)(b.Mutex("x").Acquire(t.Context(), zklock.WithWait(11*time.Second)))
				if next.Token().Compare(l.Token()) <= 0 {
					t.Errorf("token %v after %v", next.Token(), l.Token())
				}
				mustRelease(t, next)
				time.Sleep(time.Minute)
				if n := nodes(e); n != 0 {
					t.Errorf("left behind:\n%s", e.Dump())
				}
			})
		})
	}
}

// Contenders that one transaction creates have the same zxid, and would have the same
// token. So a group of requests has no two contenders for one name.
func TestTwoContendersOfOneNameInOneGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(10 * time.Millisecond))
		var mu sync.Mutex
		groups := map[int]int{}
		hooks := zklock.Hooks{Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
			mu.Lock()
			groups[ev.Group]++
			mu.Unlock()
			return ctx, nil
		}}
		c := connect(t, e.Connector(), nil, zklock.WithHooks(hooks))
		kinds := map[string]func(name string) zklock.Acquirer{
			"readers": func(name string) zklock.Acquirer { return c.RWMutex(name).Reader() },
			"permits": func(name string) zklock.Acquirer { return c.Semaphore(name, 4) },
			"all": func(name string) zklock.Acquirer {
				return zklock.All(c.RWMutex(name).Reader(), c.RWMutex("other").Reader())
			},
		}
		for what, kind := range kinds {
			for _, name := range []string{what, "first", "second", "third"} { // whose znodes are known from then on
				mustRelease(t, mustLock(t)(c.Mutex(name).Acquire(t.Context())))
			}
			var wg sync.WaitGroup
			for _, name := range []string{"first", "second"} { // so that two transactions are under way, and later requests are grouped
				wg.Go(func() { mustRelease(t, mustLock(t)(c.Mutex(name).Acquire(t.Context()))) })
			}
			time.Sleep(time.Millisecond)
			locks := make([]*zklock.Lock, 4)
			for i := range locks {
				wg.Go(func() { locks[i] = mustLock(t)(kind(what).Acquire(t.Context(), zklock.WithoutHandover())) })
			}
			wg.Go(func() { mustRelease(t, mustLock(t)(c.Mutex("third").Acquire(t.Context()))) })
			wg.Wait()
			for i, l := range locks {
				for _, other := range locks[:i] {
					if l.Token().Zxid == other.Token().Zxid {
						t.Errorf("%s: two locks have the zxid of token %v", what, l.Token())
					}
				}
			}
			for _, l := range locks {
				mustRelease(t, l)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if groups[2] == 0 {
			t.Errorf("no requests were grouped; the number of requests by size of the group: %v", groups)
		}
	})
}

// Replies to writes are lost again and again. In every dialect each client finds its own
// nodes by their GUIDs, and no node stays behind.
func TestOwnNodesAreRecoveredInEveryDialect(t *testing.T) {
	for _, dialect := range allDialects {
		synctest.Test(t, func(t *testing.T) {
			ensemble := memdriver.New(memdriver.WithLatency(time.Millisecond))
			defer ensemble.Close()
			faults := faultdriver.NewCounter(faultdriver.Random(7, 0.2, about(faultdriver.Writes(faultdriver.LoseReply()))))
			var wg sync.WaitGroup
			inside := 0
			for range 3 {
				c := inDialect(t, faultdriver.Wrap(ensemble.Connector(), faults), dialect)
				defer c.Close()
				for range 3 {
					wg.Go(func() {
						for range 10 {
							err := zklock.Do(t.Context(), c.Mutex("a/b"), func(context.Context, *zklock.Lock) error {
								if inside++; inside != 1 {
									t.Error("two goroutines hold the lock")
								}
								time.Sleep(time.Millisecond)
								inside--
								return nil
							}, zklock.WithoutHandover())
							if err != nil {
								t.Error(err)
							}
						}
					})
				}
			}
			wg.Wait()
			time.Sleep(30 * time.Second)
			if faults.Struck() == 0 {
				t.Error("no reply was lost")
			}
			for line := range strings.Lines(ensemble.Dump()) {
				if strings.Contains(line, "_c_") || strings.Contains(line, "__lock__") {
					t.Errorf("dialect %s: left behind: %s", dialect, line)
				}
			}
		})
	}
}

// TestSessionEndsBetweenTriesOfCreate: the session ends while a create is between two
// tries. The acquisition goes on with another session.
func TestSessionEndsBetweenTriesOfCreate(t *testing.T) {
	for _, fault := range []faultdriver.Fault{faultdriver.NotSent(), faultdriver.Fail(driver.ErrThrottled)} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			first := int64(0)
			inj := faultdriver.If("first session", func(op faultdriver.Op) bool {
				if first == 0 && op.Session != 0 {
					first = op.Session
				}
				return op.Session == first && len(op.Paths) > 1
			}, faultdriver.On(faultdriver.Multi, fault))
			c := connect(t, faultdriver.Wrap(e.Connector(), inj), nil)
			go func() {
				time.Sleep(3 * time.Second)
				killAll(e)
			}()
			l, err := c.Mutex("a").Acquire(t.Context())
			if err != nil {
				t.Fatalf("%v: the acquisition did not go on with another session: %v", fault, err)
			}
			l.Release(t.Context())
		})
	}
}

// TestPendingWritesWhenSessionEnds: writes wait for their group when the session ends.
// Their acquisitions go on with another session.
func TestPendingWritesWhenSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(20 * time.Millisecond))
		c := connect(t, e.Connector(), nil)
		// From then on the locks' znodes are known.
		for i := range 20 {
			l, err := c.Mutex(fmt.Sprint("n", i)).Acquire(t.Context())
			must(t, l, err)
			l.Release(t.Context())
		}
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				l, err := c.Mutex(fmt.Sprint("n", i)).Acquire(t.Context())
				if err != nil {
					t.Errorf("Acquire across a session's end: %v", err)
					return
				}
				l.Release(t.Context())
			})
		}
		wg.Go(func() { time.Sleep(30 * time.Millisecond); killAll(e) })
		wg.Wait()
	})
}

func TestPendingWritesWhenClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(20 * time.Millisecond))
		c := connect(t, e.Connector(), nil)
		for i := range 20 {
			l, err := c.Mutex(fmt.Sprint("n", i)).Acquire(t.Context())
			must(t, l, err)
			l.Release(t.Context())
		}
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				l, err := c.Mutex(fmt.Sprint("n", i)).Acquire(t.Context())
				if err == nil {
					l.Release(t.Context())
				} else if !errors.Is(err, zklock.ErrClosed) {
					t.Errorf("Acquire on a client that is being closed: %v", err)
				}
			})
		}
		wg.Go(func() { time.Sleep(30 * time.Millisecond); c.Close() })
		wg.Wait()
	})
}
