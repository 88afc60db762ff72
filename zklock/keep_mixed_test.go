package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/internal/lease"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestKeptNamesUnderLoad: goroutines acquire and release as fast as they can, names are kept
// for moments only, and Stats and limits look at the same figures. Nothing may get stuck.
func TestKeptNamesUnderLoad(t *testing.T) {
	e := memdriver.New()
	c := connect(t, e.Connector(), map[string]string{"keep": "20us", "keep_max": "8", "max_names": "100000"})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	rounds := corekit.Crowd(400)
	var all sync.WaitGroup
	for g := range 24 {
		all.Go(func() {
			for i := range rounds {
				m := c.Mutex(fmt.Sprint(g))
				if g >= 12 {
					m = c.Mutex(fmt.Sprint(g, "-", i%20))
				}
				l, err := m.Acquire(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				mustRelease(t, l)
				if c.Stats(); g < 12 {
					runtime.Gosched()
				}
			}
		})
	}
	all.Wait()
}

// TestSeparatePlaceDuringAnOutage: a request needs a separate place, so its client must first
// delete the place that it keeps for the name. If the ensemble does not answer, the request waits
// for that no longer than connect_timeout.
func TestSeparatePlaceDuringAnOutage(t *testing.T) {
	for what, acquire := range map[string]func(context.Context, *zklock.Client) error{
		"All": func(ctx context.Context, c *zklock.Client) error {
			_, err := allOf(c, "x", "y").Acquire(ctx)
			return err
		},
		"a try of All": func(ctx context.Context, c *zklock.Client) error {
			_, err := allOf(c, "x", "y").TryAcquire(ctx)
			return err
		},
		"without hand-over": func(ctx context.Context, c *zklock.Client) error {
			_, err := c.Mutex("x").Acquire(ctx, zklock.WithoutHandover())
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			c := keeping(t, e, "keep", "1h", "connect_timeout", "2s", "session_timeout", "30s")
			use(t, allOf(c, "x", "y"))
			keep(t, e, c.Mutex("x"))
			e.Partition(memdriver.AroundSession(e.Sessions()[0]))
			began := time.Now()
			err := acquire(t.Context(), c)
			if took := time.Since(began); !errors.Is(err, zklock.ErrUnavailable) || took > 3*time.Second {
				t.Errorf("%s: after %v: %v, want ErrUnavailable after 2s", what, took, err)
			}
		})
	}
}

// TestInjectMayPanic: a hook that panics leaves a kept name usable.
func TestInjectMayPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := false
		e := memdriver.New()
		c := connect(t, e.Connector(), map[string]string{"keep": "1h"}, zklock.WithHooks(zklock.Hooks{Inject: func(context.Context) string {
			if broken {
				broken = false
				panic("broken hook")
			}
			return ""
		}}))
		keep(t, e, c.Mutex("x"))
		broken = true
		func() {
			defer func() { _ = recover() }()
			_, _ = c.Mutex("x").Acquire(t.Context())
		}()
		if broken {
			t.Fatal("the hook was not called")
		}
		mustRelease(t, soon(t, "the next goroutine", acquiring(t, c.Mutex("x"), t.Context())))
	})
}

// TestMaxNamesAndKeptNames: max_names does not limit the names that a client keeps, but it limits
// those of them that are in use at the same time.
func TestMaxNamesAndKeptNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := keeping(t, e, "keep", "1h", "max_names", "2")
		for _, name := range names(5) {
			keepQuickly(t, c.Mutex(name))
		}
		if n := c.Stats().Kept; n != 5 {
			t.Fatalf("%d names are kept, want 5", n)
		}
		var held []*zklock.Lock
		for _, name := range names(5) {
			l, err := c.Mutex(name).Acquire(t.Context())
			if err != nil && !errors.Is(err, zklock.ErrTooManyWaiters) {
				t.Error(err)
			}
			if err == nil {
				held = append(held, l)
			}
		}
		if len(held) != 2 {
			t.Errorf("%d locks are held, want max_names=2", len(held))
		}
		for _, l := range held {
			mustRelease(t, l)
		}
		use(t, c.Mutex("name-4"))
	})
}

// TestOwnContendersAreNoStrangers: a name that only one process uses, by readers and writers,
// is kept again soon.
func TestOwnContendersAreNoStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := keeping(t, e, "keep", "1h")
		rw := c.RWMutex("x")
		for range 7 {
			for uses := 1; c.Stats().Kept == 0; uses++ {
				if use(t, rw.Reader()); uses > 2 {
					t.Fatalf("the name is not kept after %d uses in a row", uses)
				}
			}
			l := mustLock(t)(rw.Reader().Acquire(t.Context()))
			writer := acquiring(t, rw.Writer(), t.Context())
			time.Sleep(20 * time.Millisecond)
			mustRelease(t, l)
			mustRelease(t, <-writer)
			time.Sleep(20 * time.Millisecond)
		}
	})
}

// TestLossDelayIsForHeldLocks: a session that has only kept names is closed at once when it is
// given up.
func TestLossDelayIsForHeldLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithServers(3))
		a := keeping(t, e, "keep", "1h", "loss_delay", "5s", "session_timeout", "20s")
		keep(t, e, a.Mutex("x"))
		b := connect(t, e.Connector(), nil)
		use(t, b.Mutex("other"))
		lease.AddSuspended(13 * time.Second) // the lease is over, and the ensemble keeps the session
		began := time.Now()
		l := soon(t, "another client", acquiring(t, b.Mutex("x"), t.Context()))
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("it took %v, want the nodes of no lock to stay for loss_delay", took)
		}
		mustRelease(t, l)
	})
}

// TestReleasedReaderKeepsNothing: a reader acquires a kept place with a context that carries
// another Lock. The reader is released while a second reader still holds the place, and the program
// drops the Lock in the context. The client notices the dropped Lock: the place does not keep it
// alive.
func TestReleasedReaderKeepsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := keeping(t, e, "keep", "1h")
		keep(t, e, c.RWMutex("a").Reader())
		var second *zklock.Lock
		func() {
			dropped := mustLock(t)(c.Mutex("b").Acquire(t.Context()))
			ctx, cancel := dropped.Context(t.Context())
			first := mustLock(t)(c.RWMutex("a").Reader().Acquire(ctx))
			second = mustLock(t)(c.RWMutex("a").Reader().Acquire(t.Context()))
			time.Sleep(5 * time.Second) // old enough for the client to detect that it is dropped
			mustRelease(t, first)
			cancel()
		}()
		for range 3 {
			runtime.GC()
			time.Sleep(time.Second)
		}
		if n := c.Stats().Forgotten; n != 1 {
			t.Errorf("%d forgotten locks were noticed, want 1", n)
		}
		mustRelease(t, second)
	})
}

// TestDowngradeOfAKeptPlace: a writer that was granted a kept place becomes a reader. Readers of
// other clients get in next to it, writers wait for all of them, and nothing is left in the end.
func TestDowngradeOfAKeptPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, readers, writers := keeping(t, e, "keep", "1h"), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		rw := c.RWMutex("x")
		keep(t, e, rw.Writer())
		var l *zklock.Lock
		wantCost(t, "a writer in a kept place", cost(e, func() { l = mustLock(t)(rw.Writer().Acquire(t.Context())) }), free)
		token := l.Token()
		if err := l.Downgrade(t.Context()); err != nil || l.Mode() != zklock.Shared || l.Token() != token || !l.Valid() {
			t.Fatalf("Downgrade: %v; mode %v, token %v after %v, valid %v", err, l.Mode(), l.Token(), token, l.Valid())
		}
		reader := soon(t, "a reader of another client", acquiring(t, readers.RWMutex("x").Reader(), t.Context()))
		writer := acquiring(t, writers.RWMutex("x").Writer(), t.Context())
		none(t, "a writer next to two readers", writer)
		mustRelease(t, l)
		none(t, "a writer next to a reader", writer)
		mustRelease(t, reader)
		last := soon(t, "the writer", writer)
		if last.Token().Compare(token) <= 0 {
			t.Errorf("the writer's token is %v after %v", last.Token(), token)
		}
		mustRelease(t, last)
		synctest.Wait()
		if n := nodes(e); n != 0 || c.Stats().Kept != 0 {
			t.Errorf("%d nodes are left, and Kept is %d", n, c.Stats().Kept)
		}
	})
}

// TestKeptPlaceAfterADowngrade: no other client wants the name while the downgraded lock is held.
// Whether its place is kept or not, the next writers exclude each other and all readers.
func TestKeptPlaceAfterADowngrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, other := keeping(t, e, "keep", "1h"), connect(t, e.Connector(), nil)
		rw := c.RWMutex("x")
		for round := range 10 {
			keep(t, e, rw.Writer())
			l := mustLock(t)(rw.Writer().Acquire(t.Context()))
			if err := l.Downgrade(t.Context()); err != nil {
				t.Fatal(err)
			}
			mustRelease(t, l)
			synctest.Wait()
			if round%2 == 0 {
				mine := mustLock(t)(rw.Writer().Acquire(t.Context()))
				if mine.Token().Compare(l.Token()) <= 0 {
					t.Errorf("round %d: token %v after %v", round, mine.Token(), l.Token())
				}
				theirs := acquiring(t, other.RWMutex("x").Reader(), t.Context())
				none(t, "a reader next to a writer", theirs)
				mustRelease(t, mine)
				mustRelease(t, soon(t, "the reader", theirs))
				continue
			}
			mustRelease(t, soon(t, "a writer of another client", acquiring(t, other.RWMutex("x").Writer(), t.Context())))
		}
	})
}

// TestKeepIsAsFair: clients that want one name all the time get it equally often, whether they
// may keep it or not.
func TestKeepIsAsFair(t *testing.T) {
	for _, params := range []map[string]string{nil, {"keep": "1s"}} {
		t.Run(fmt.Sprint(params), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const clients, goroutines, length = 4, 4, 10 * time.Second
				e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(time.Millisecond))
				grants := make([]int, clients)
				var all sync.WaitGroup
				end := time.Now().Add(length)
				for i := range grants {
					c := connect(t, e.Connector(), params)
					for range goroutines {
						all.Go(func() {
							for time.Now().Before(end) {
								l, err := c.Mutex("x").Acquire(t.Context())
								if err != nil {
									t.Error(err)
									return
								}
								grants[i]++ // the lock guards it
								time.Sleep(time.Millisecond)
								if err := l.Release(t.Context()); err != nil {
									t.Error(err)
								}
							}
						})
					}
				}
				all.Wait()
				t.Log(grants)
				if least, most := slices.Min(grants), slices.Max(grants); least < 1000 || 10*least < 9*most {
					t.Errorf("the clients' grants are %v, want at least 1000 each, and no client nine tenths of another", grants)
				}
			})
		})
	}
}
