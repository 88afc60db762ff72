package zklock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

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
