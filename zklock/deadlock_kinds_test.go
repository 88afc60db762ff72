package zklock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// party is a member of a circle: it holds one lock and wants another.
type party struct {
	c     *zklock.Client
	holds zklock.Acquirer
	wants zklock.Acquirer
	opts  []zklock.AcquireOption // for both
}

// circle has parties acquire what they hold, then between, and then what they want, one after the other.
// It returns the errors of those that were ended because of a deadlock.
func circle(t *testing.T, e *memdriver.Ensemble, between func(held []*zklock.Lock), parties ...party) []*zklock.DeadlockError {
	t.Helper()
	var held []*zklock.Lock
	var ended []<-chan outcome
	for _, p := range parties {
		held = append(held, mustLock(t)(p.holds.Acquire(t.Context(), p.opts...)))
	}
	if between != nil {
		between(held)
	}
	for i, p := range parties {
		ended = append(ended, nested(t, held[i], p.wants, p.opts...))
		time.Sleep(10 * time.Millisecond)
	}
	return settle(t, e, held, ended)
}

func wantVictims(t *testing.T, got []*zklock.DeadlockError, want int) {
	t.Helper()
	if len(got) != want {
		t.Errorf("%d acquisitions were ended because of a deadlock, want %d: %v", len(got), want, got)
	}
}

// TestDeadlocksOfAllKinds: each case has a circle, or nearly one.
func TestDeadlocksOfAllKinds(t *testing.T) {
	cases := map[string]struct {
		victims int
		run     func(t *testing.T, e *memdriver.Ensemble, a, b *zklock.Client) []*zklock.DeadlockError
	}{
		"two readers that want to write what the other reads": {1, func(t *testing.T, e *memdriver.Ensemble, a, b *zklock.Client) []*zklock.DeadlockError {
			return circle(t, e, nil, party{a, a.RWMutex("x").Reader(), b.RWMutex("y").Writer(), nil}, party{b, b.RWMutex("y").Reader(), b.RWMutex("x").Writer(), nil})
		}},
		"two readers that want to read what the other reads": {0, func(t *testing.T, e *memdriver.Ensemble, a, b *zklock.Client) []*zklock.DeadlockError {
			return circle(t, e, nil, party{a, a.RWMutex("x").Reader(), a.RWMutex("y").Reader(), nil}, party{b, b.RWMutex("y").Reader(), b.RWMutex("x").Reader(), nil})
		}},
		"a reader behind a writer that holds nothing, behind a reader": {1, func(t *testing.T, e *memdriver.Ensemble, a, b *zklock.Client) []*zklock.DeadlockError {
			c := connect(t, e.Connector(), nil)
			between := func([]*zklock.Lock) { passing(t, c.RWMutex("x").Writer()) }
			return circle(t, e, between, party{a, a.RWMutex("x").Reader(), a.Mutex("y"), nil}, party{b, b.Mutex("y"), b.RWMutex("x").Reader(), nil})
		}},
		"an All that wants": {1, func(t *testing.T, e *memdriver.Ensemble, a, b *zklock.Client) []*zklock.DeadlockError {
			return circle(t, e, nil, party{a, a.Mutex("x"), zklock.All(a.Mutex("y"), a.Mutex("z"), a.Mutex("w")), nil}, party{b, b.Mutex("z"), b.Mutex("x"), nil})
		}},
		"an All that holds": {1, func(t *testing.T, e *memdriver.Ensemble, a, b *zklock.Client) []*zklock.DeadlockError {
			return circle(t, e, nil, party{a, zklock.All(a.Mutex("x"), a.Mutex("y")), a.Mutex("z"), nil}, party{b, b.Mutex("z"), b.Mutex("y"), nil})
		}},
		"an All of one client behind a goroutine of that client": {1, func(t *testing.T, e *memdriver.Ensemble, a, b *zklock.Client) []*zklock.DeadlockError {
			return circle(t, e, nil, party{a, a.Mutex("x"), zklock.All(a.Mutex("y"), a.Mutex("z")), nil}, party{a, a.Mutex("y"), a.Mutex("x"), nil})
		}},
		"behind goroutines of its own process, on both sides": {1, func(t *testing.T, e *memdriver.Ensemble, a, b *zklock.Client) []*zklock.DeadlockError {
			between := func([]*zklock.Lock) {
				for range 3 {
					passing(t, a.Mutex("y"))
					passing(t, b.Mutex("x"))
				}
			}
			return circle(t, e, between, party{a, a.Mutex("x"), a.Mutex("y"), nil}, party{b, b.Mutex("y"), b.Mutex("x"), nil})
		}},
		"a reader behind a writer of its own process, behind a reader elsewhere": {1, func(t *testing.T, e *memdriver.Ensemble, a, b *zklock.Client) []*zklock.DeadlockError {
			between := func([]*zklock.Lock) { passing(t, b.RWMutex("x").Writer()) }
			return circle(t, e, between, party{a, a.RWMutex("x").Reader(), a.Mutex("y"), nil}, party{b, b.Mutex("y"), b.RWMutex("x").Reader(), nil})
		}},
		"a writer behind readers of its own process": {1, func(t *testing.T, e *memdriver.Ensemble, a, b *zklock.Client) []*zklock.DeadlockError {
			return circle(t, e, nil, party{a, a.RWMutex("x").Reader(), a.Mutex("y"), nil}, party{a, a.Mutex("y"), a.RWMutex("x").Writer(), nil})
		}},
		"without hand-over": {1, func(t *testing.T, e *memdriver.Ensemble, a, b *zklock.Client) []*zklock.DeadlockError {
			alone := []zklock.AcquireOption{zklock.WithoutHandover()}
			return circle(t, e, nil, party{a, a.Mutex("x"), a.Mutex("y"), alone}, party{a, a.Mutex("y"), a.Mutex("x"), alone})
		}},
		"a reader at the gate, behind a writer of its client that waits for a reader": {1, func(t *testing.T, e *memdriver.Ensemble, a, b *zklock.Client) []*zklock.DeadlockError {
			alone := []zklock.AcquireOption{zklock.WithoutHandover()}
			between := func([]*zklock.Lock) { passing(t, b.RWMutex("x").Writer(), alone...) }
			return circle(t, e, between, party{a, a.RWMutex("x").Reader(), a.Mutex("y"), alone}, party{b, b.Mutex("y"), b.RWMutex("x").Reader(), alone})
		}},
		"a reader at the gate, behind readers of its client that wait for a writer": {1, func(t *testing.T, e *memdriver.Ensemble, a, b *zklock.Client) []*zklock.DeadlockError {
			alone := []zklock.AcquireOption{zklock.WithoutHandover()}
			between := func([]*zklock.Lock) {
				leaveWriter := waiterWith(t, b.RWMutex("x").Writer(), alone...)
				leaveReader := waiterWith(t, b.RWMutex("x").Reader(), alone...)
				leaveReader() // so callers give up: only some readers are under way at a time
				leaveWriter()
				for range 6 {
					passing(t, b.RWMutex("x").Reader(), alone...)
				}
			}
			return circle(t, e, between, party{a, a.RWMutex("x").Writer(), a.Mutex("y"), alone}, party{b, b.Mutex("y"), b.RWMutex("x").Reader(), alone})
		}},
		"candidates of elections": {1, func(t *testing.T, e *memdriver.Ensemble, a, b *zklock.Client) []*zklock.DeadlockError {
			leads := []zklock.AcquireOption{zklock.WithCandidacy()}
			return circle(t, e, nil, party{a, a.Mutex("x"), a.Mutex("y"), leads}, party{b, b.Mutex("y"), b.Mutex("x"), leads})
		}},
		"a downgraded writer, and a reader": {0, func(t *testing.T, e *memdriver.Ensemble, a, b *zklock.Client) []*zklock.DeadlockError {
			return circle(t, e, func(held []*zklock.Lock) {
				if err := held[0].Downgrade(t.Context()); err != nil {
					t.Error(err)
				}
			}, party{a, a.RWMutex("x").Writer(), a.Mutex("y"), nil}, party{b, b.Mutex("y"), b.RWMutex("x").Reader(), nil})
		}},
		"a downgraded writer, and a writer": {1, func(t *testing.T, e *memdriver.Ensemble, a, b *zklock.Client) []*zklock.DeadlockError {
			return circle(t, e, func(held []*zklock.Lock) {
				if err := held[0].Downgrade(t.Context()); err != nil {
					t.Error(err)
				}
			}, party{a, a.RWMutex("x").Writer(), a.Mutex("y"), nil}, party{b, b.Mutex("y"), b.RWMutex("x").Writer(), nil})
		}},
		"a revoked holder": {1, func(t *testing.T, e *memdriver.Ensemble, a, b *zklock.Client) []*zklock.DeadlockError {
			return circle(t, e, func([]*zklock.Lock) {
				all, err := b.Contenders(t.Context(), "x")
				if err != nil || len(all) != 1 {
					t.Fatal(all, err)
				}
				if err := b.Revoke(t.Context(), "x", all[0].Node, "maintenance"); err != nil {
					t.Error(err)
				}
			}, party{a, a.Mutex("x"), a.Mutex("y"), nil}, party{b, b.Mutex("y"), b.Mutex("x"), nil})
		}},
		"permits": {0, func(t *testing.T, e *memdriver.Ensemble, a, b *zklock.Client) []*zklock.DeadlockError {
			x, y := mustLock(t)(a.Semaphore("x", 1).Acquire(t.Context())), mustLock(t)(b.Semaphore("y", 1).Acquire(t.Context()))
			first, second := nested(t, x, a.Semaphore("y", 1), zklock.WithWait(20*time.Second)), nested(t, y, b.Semaphore("x", 1), zklock.WithWait(20*time.Second))
			time.Sleep(10 * time.Second)
			if n := registered(e); n != 0 {
				t.Errorf("%d waits for permits are registered", n)
			}
			for _, w := range []<-chan outcome{first, second} {
				if o := <-w; !errors.Is(o.err, zklock.ErrNotAcquired) || errors.Is(o.err, zklock.ErrDeadlock) {
					t.Error(o.err)
				}
			}
			return nil
		}},
		"a context that was detached": {0, func(t *testing.T, e *memdriver.Ensemble, a, b *zklock.Client) []*zklock.DeadlockError {
			x := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
			ctx, cancel := x.Context(t.Context())
			defer cancel()
			y := mustLock(t)(b.Mutex("y").Acquire(t.Context()))
			done := make(chan error, 1)
			go func() {
				_, err := a.Mutex("y").Acquire(zklock.Detach(ctx), zklock.WithWait(10*time.Second))
				done <- err
			}()
			w := nested(t, y, b.Mutex("x"))
			if err := <-done; err == nil {
				t.Error("acquired")
			}
			mustRelease(t, x)
			return settle(t, e, []*zklock.Lock{y}, []<-chan outcome{w})
		}},
		"a holder of another library": {0, func(t *testing.T, e *memdriver.Ensemble, a, b *zklock.Client) []*zklock.DeadlockError {
			x, y := apart(t, a, b)
			s := plain(t, e)
			node, err := s.Create(t.Context(), "/zklock/y/_c_11111111-1111-4111-8111-111111111111-__WRIT__", nil, driver.EphemeralSequential, a.ACL())
			if err != nil {
				t.Fatal(err)
			}
			first, second := nested(t, x, a.Mutex("y")), nested(t, y, b.Mutex("x"))
			time.AfterFunc(20*time.Second, func() { _ = s.Delete(context.Background(), node, driver.AnyVersion) })
			victims := settle(t, e, []*zklock.Lock{x, y}, []<-chan outcome{first, second})
			wantVictims(t, victims, 1)
			return nil
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
				wantVictims(t, c.run(t, e, a, b), c.victims)
			})
		})
	}
}

// TestDeadlocksInAllDialects: two clients, in each dialect, and with names that are kept.
func TestDeadlocksInAllDialects(t *testing.T) {
	for _, params := range []map[string]string{
		{"dialect": "curator"}, {"dialect": "zk"}, {"dialect": "kazoo"}, {"dialect": "latch"}, {"keep": "1m"}, {"handover_limit": "0"}, {"pool_max_sessions": "3"},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			a, b := connect(t, e.Connector(), params), connect(t, e.Connector(), params)
			for range 8 { // so that names are kept
				for _, l := range []zklock.Acquirer{a.Mutex("x"), b.Mutex("y")} {
					mustRelease(t, mustLock(t)(l.Acquire(t.Context())))
				}
			}
			victims := circle(t, e, nil, party{a, a.Mutex("x"), a.Mutex("y"), nil}, party{b, b.Mutex("y"), b.Mutex("x"), nil})
			if wantVictims(t, victims, 1); t.Failed() {
				t.Log(params)
			}
		})
	}
}

// passing acquires in the background, with a context that carries no lock, and holds for a moment.
func passing(t *testing.T, a zklock.Acquirer, opts ...zklock.AcquireOption) {
	t.Helper()
	go func() {
		l, err := a.Acquire(t.Context(), append(opts, zklock.WithWait(time.Minute))...)
		if err != nil {
			t.Error(err)
			return
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	synctest.Wait()
}

// TestAllWaitsInACircle: an acquisition of two names waits for one of them, and its node for the other is in
// the way of a wait that holds the first.
func TestAllWaitsInACircle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		y := mustLock(t)(b.Mutex("y").Acquire(t.Context()))
		ended := nestedIn(t.Context(), zklock.All(a.Mutex("x"), a.Mutex("y")))
		time.Sleep(300 * time.Millisecond)
		o := <-nested(t, y, b.Mutex("x"))
		wantDeadlock(t, o, "y>x", "x>y")
		mustRelease(t, y)
		granted(t, <-ended)
	})
}

// TestCircleThroughAnAgentEnds: a caller that waited for two names has left, and an agent goes on with its place, which
// has one of them. The wait of an agent is in no register, so the agent gives the place up after a while.
func TestCircleThroughAnAgentEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		y := mustLock(t)(b.Mutex("y").Acquire(t.Context()))
		both := zklock.All(a.Mutex("x"), a.Mutex("y"))
		leave := waiter(t, both)
		next := nestedIn(t.Context(), both)
		leave()
		x := nested(t, y, b.Mutex("x"))
		select {
		case o := <-x: // the place that the agent has given up was in its way
			granted(t, o)
		case <-time.After(20 * time.Second):
			t.Error("a circle through the place of an agent stands")
		}
		mustRelease(t, y)
		granted(t, <-next)
	})
}

// TestAllOfMixedKindsWaitsInACircle: each name of an acquisition has its own kind, and it waits for the second
// as a writer, behind a reader.
func TestAllOfMixedKindsWaitsInACircle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		held := mustLock(t)(a.Mutex("held").Acquire(t.Context()))
		y := mustLock(t)(b.RWMutex("y").Reader().Acquire(t.Context()))
		all := nested(t, held, zklock.All(a.RWMutex("x").Reader(), a.Mutex("y")))
		time.Sleep(300 * time.Millisecond)
		wantDeadlock(t, <-nested(t, y, b.Mutex("held")), "y>held", "held>y")
		mustRelease(t, y)
		granted(t, <-all)
		mustRelease(t, held)
	})
}

// TestAllOfMixedModesIsNoPhantom: an All that wants one name as a writer and another as a reader does not
// wait for the readers of the second.
func TestAllOfMixedModesIsNoPhantom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, c := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		m := mustLock(t)(c.Mutex("m").Acquire(t.Context())) // will be released
		x := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		r := mustLock(t)(b.RWMutex("r").Reader().Acquire(t.Context()))
		first := nested(t, x, zklock.All(a.Mutex("m"), a.RWMutex("r").Reader()))
		time.Sleep(100 * time.Millisecond)
		second := nested(t, r, b.Mutex("x"))
		time.AfterFunc(20*time.Second, func() { _ = m.Release(context.Background()) })
		wantVictims(t, settle(t, e, []*zklock.Lock{x, r}, []<-chan outcome{first, second}), 0)
	})
}

// TestCallerLockWithoutMode: a caller's lock whose mode was left out, or which a later version knows, counts as
// exclusive. The waits of such a context are registered once, and their registrations go.
func TestCallerLockWithoutMode(t *testing.T) {
	for _, mode := range []zklock.Mode{0, 99} {
		t.Run(mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				a, b, x, y := pair(t, e.Connector(), e.Connector())
				locks := []zklock.CallerLock{{Name: "x", Mode: mode, Token: x.Token()}}
				ctx := zklock.ContextWithCallerLocks(t.Context(), locks...)
				if locks[0].Mode != mode {
					t.Errorf("the caller's slice has the mode %v", locks[0].Mode)
				}
				for _, wanted := range []zklock.Acquirer{b.Mutex("x"), b.RWMutex("x").Reader()} {
					if _, err := wanted.Acquire(ctx, zklock.WithWait(time.Second)); !errors.Is(err, zklock.ErrDeadlock) {
						t.Error(err)
					}
				}
				ended := nestedIn(ctx, a.Mutex("y"), zklock.WithWait(10*time.Second))
				for range 9 {
					time.Sleep(1010 * time.Millisecond)
					if n := registered(e); n != 1 {
						t.Errorf("%d waits are registered, want 1", n)
					}
				}
				if o := <-ended; !errors.Is(o.err, zklock.ErrNotAcquired) {
					t.Error(o.err)
				}
				if n := registered(e); n != 0 {
					t.Errorf("%d waits are registered after the acquisition has returned", n)
				}
				mustRelease(t, x)
				mustRelease(t, y)
			})
		})
	}
}

// Readers of a process have got the node of its writer. A reader of another process waits for them until handover_time has
// passed, also if that is longer than deadlock_timeout: its wait is in no circle, although one of those readers waits for it.
func TestReaderBehindReadersInAWritersNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		params := map[string]string{"handover_time": "5s"}
		a, b := connect(t, e.Connector(), params), connect(t, e.Connector(), params)
		w := mustLock(t)(a.RWMutex("m").Writer().Acquire(t.Context()))
		next := acquiring(t, a.RWMutex("m").Reader(), t.Context())
		x := mustLock(t)(b.Mutex("x").Acquire(t.Context()))
		behind := nested(t, x, b.RWMutex("m").Reader())
		mustRelease(t, w)
		r := <-next
		if r.Token().Turn == 0 {
			t.Fatal("the place was not passed on")
		}
		ahead := nested(t, r, a.Mutex("x"))
		granted(t, <-behind)
		mustRelease(t, x)
		granted(t, <-ahead)
		mustRelease(t, r)
	})
}
