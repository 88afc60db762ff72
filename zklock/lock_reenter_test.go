package zklock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/internal/lease"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestReentry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		other := connect(t, e.Connector(), nil)
		w := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		ctx, cancel := w.Context(t.Context())
		defer cancel()
		for _, a := range []zklock.Acquirer{c.Mutex("x"), c.RWMutex("x").Reader(), c.RWMutex("x").Writer(), zklock.All(c.Mutex("x"), c.Mutex("y")), c.Semaphore("x", 2)} {
			if _, err := a.Acquire(ctx); !errors.Is(err, zklock.ErrDeadlock) {
				t.Errorf("%T: %v", a, err)
			}
			if _, err := a.TryAcquire(ctx); !errors.Is(err, zklock.ErrDeadlock) {
				t.Errorf("%T: %v", a, err)
			}
		}
		if _, err := zklock.All(c.Mutex("x"), c.Mutex("y")).Acquire(ctx, zklock.Reenter()); !errors.Is(err, zklock.ErrDeadlock) {
			t.Errorf("All of more names than are held: %v", err)
		}
		if _, err := c.Semaphore("x", 2).Acquire(ctx, zklock.Reenter()); !errors.Is(err, zklock.ErrDeadlock) {
			t.Errorf("a permit under a mutex: %v", err)
		}
		if _, err := c.Mutex("x").Acquire(zklock.Detach(ctx), zklock.WithWait(time.Second)); !errors.Is(err, zklock.ErrNotAcquired) {
			t.Errorf("with a detached context: %v, want ErrNotAcquired", err)
		}
		if _, err := other.Mutex("x").Acquire(ctx, zklock.WithWait(time.Second)); !errors.Is(err, zklock.ErrNotAcquired) {
			t.Errorf("by another client: %v, want ErrNotAcquired", err)
		}
		r := mustLock(t)(c.RWMutex("x").Reader().Acquire(ctx, zklock.Reenter()))
		j := mustLock(t)(c.Mutex("x").Acquire(ctx, zklock.Reenter()))
		if r.Token() != w.Token() || j.Token() != w.Token() {
			t.Error("the handles that joined have another token")
		}
		if err := w.Downgrade(t.Context()); !errors.Is(err, zklock.ErrConflict) {
			t.Errorf("downgrade of a joined lock: %v", err)
		}
		waiting := acquiring(t, other.Mutex("x"), t.Context())
		mustRelease(t, w)
		if err := w.Release(t.Context()); !errors.Is(err, zklock.ErrReleased) {
			t.Errorf("second Release: %v, want ErrReleased", err)
		}
		if err := context.Cause(ctx); !errors.Is(err, zklock.ErrReleased) {
			t.Errorf("the context's cause: %v, want ErrReleased", err)
		}
		if got := zklock.HeldIn(ctx); len(got) != 0 {
			t.Errorf("HeldIn after the release: %v, want none", got)
		}
		mustRelease(t, r)
		none(t, "another client, while a handle that joined holds,", waiting)
		if !j.Valid() {
			t.Error("a handle that joined ended with the other handles")
		}
		mustRelease(t, j)
		mustRelease(t, <-waiting)

		rd := mustLock(t)(c.RWMutex("x").Reader().Acquire(t.Context()))
		ctx2, cancel2 := rd.Context(t.Context())
		defer cancel2()
		if _, err := c.Mutex("x").Acquire(ctx2, zklock.Reenter()); !errors.Is(err, zklock.ErrDeadlock) {
			t.Errorf("a reader that wants to write: %v", err)
		}
		mustRelease(t, mustLock(t)(c.RWMutex("x").Reader().Acquire(ctx2, zklock.Reenter())))
		if inner, ok := zklock.FromContext(ctx2); !ok || inner != rd {
			t.Errorf("FromContext: %v, %v; want the lock that the context carries", inner, ok)
		}
		mustRelease(t, rd)
		if _, ok := zklock.FromContext(ctx2); ok {
			t.Error("FromContext returned a released lock")
		}

		all := mustLock(t)(zklock.All(c.Mutex("x"), c.Mutex("y"), c.RWMutex("z").Reader()).Acquire(t.Context()))
		ctx3, cancel3 := all.Context(t.Context())
		defer cancel3()
		mustRelease(t, mustLock(t)(zklock.All(c.RWMutex("y").Reader(), c.Mutex("x")).Acquire(ctx3, zklock.Reenter())))
		mustRelease(t, mustLock(t)(c.Mutex("y").Acquire(ctx3, zklock.Reenter())))
		if _, err := c.Mutex("z").Acquire(ctx3, zklock.Reenter()); !errors.Is(err, zklock.ErrDeadlock) {
			t.Errorf("a reader by All that wants to write: %v", err)
		}
		if err := all.Downgrade(t.Context()); !errors.Is(err, zklock.ErrConflict) {
			t.Errorf("downgrade of All: %v", err)
		}
		mustRelease(t, all)
	})
}

// A lock is released once, with the last of its handles, in whatever order these are
// released. A join that is too late waits for a lock of its own.
func TestJoinsReleasedConcurrently(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			c, other := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
			rng := rand.New(rand.NewPCG(seed, 0))
			w := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
			ctx, cancel := w.Context(t.Context())
			defer cancel()
			next := make(chan *zklock.Lock, 1)
			go func() {
				l, err := other.Mutex("x").Acquire(t.Context(), zklock.WithWait(time.Hour))
				if err != nil || w.Valid() {
					t.Errorf("the next holder: error %v; the first handle is valid: %v, want false", err, w.Valid())
				}
				next <- l
			}()
			synctest.Wait()
			var wg sync.WaitGroup
			for range 20 {
				pause, stay := time.Duration(rng.IntN(10)), time.Duration(rng.IntN(10))
				wg.Go(func() {
					time.Sleep(pause)
					l, err := c.RWMutex("x").Reader().Acquire(ctx, zklock.Reenter(), zklock.WithWait(time.Millisecond))
					if err != nil {
						if !errors.Is(err, zklock.ErrNotAcquired) {
							t.Errorf("a late join: %v", err)
						}
						return
					}
					time.Sleep(stay)
					if !l.Valid() || len(next) > 0 {
						t.Errorf("a handle that joined ended early: %v; the next got in while it was held: %v", l.Err(), len(next) > 0)
					}
					mustRelease(t, l)
				})
			}
			wg.Go(func() {
				time.Sleep(time.Duration(rng.IntN(10)))
				mustRelease(t, w)
			})
			wg.Wait()
			if l := <-next; l != nil {
				mustRelease(t, l)
			}
			if st := c.Stats(); st.Held != 0 || nodes(e) != 0 {
				t.Errorf("%d held, left behind:\n%s", st.Held, e.Dump())
			}
		})
	}
}

// A call looks for a lock in its context while the lock is being released. That does not
// cost the client its session, nor the other locks of that session.
func TestReentryAtTheMomentOfARelease(t *testing.T) {
	c := connect(t, memdriver.New().Connector(), nil)
	bystander := mustLock(t)(c.Mutex("bystander").Acquire(t.Context()))
	for range long.Count(t, "ZKLOCK_REENTRIES", 300, 5000) {
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		ctx, cancel := l.Context(t.Context())
		looking := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for first := true; ; first = false {
				_, err := c.Mutex("x").TryAcquire(ctx)
				if first {
					close(looking)
				}
				if !errors.Is(err, zklock.ErrDeadlock) {
					if errors.Is(err, zklock.ErrLost) {
						t.Error(err)
					}
					return
				}
			}
		})
		<-looking
		_ = l.Release(t.Context())
		wg.Wait()
		cancel()
		if n := c.Stats().SessionsLost; n != 0 || !bystander.Valid() {
			t.Fatalf("%d sessions were lost, and with them another lock: %v", n, bystander.Err())
		}
	}
	mustRelease(t, bystander)
}

// A call asks to join a lock while the holder releases it. If the lock is released by
// then it does not count, and the call gets a lock of its own: it never fails.
func TestReenterAtTheMomentOfARelease(t *testing.T) {
	c := connect(t, memdriver.New().Connector(), nil)
	var mu sync.Mutex
	failed := make(map[string]int)
	rounds := long.Count(t, "ZKLOCK_REENTRIES", 200, 4000)
	for range rounds {
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		ctx, cancel := l.Context(t.Context())
		joining := make(chan struct{}, 1)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					joined, err := c.Mutex("x").Acquire(context.WithoutCancel(ctx), zklock.Reenter())
					select {
					case joining <- struct{}{}:
					default:
					}
					if err != nil {
						mu.Lock()
						failed[err.Error()]++
						mu.Unlock()
						return
					}
					over := joined.Token() != l.Token() // a lock of its own
					_ = joined.Release(t.Context())
					if over {
						return
					}
				}
			})
		}
		<-joining
		_ = l.Release(t.Context())
		wg.Wait()
		cancel()
	}
	for err, n := range failed {
		t.Errorf("%d of %d goroutines failed: %s", n, 4*rounds, err)
	}
}

// An error advises only what helps. It does not advise Reenter where the call had it
// already, nor where it could not help.
func TestDeadlockSaysWhatToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New().Connector(), nil)
		r := mustLock(t)(c.RWMutex("x").Reader().Acquire(t.Context()))
		reads, cancel := r.Context(t.Context())
		defer cancel()
		w := mustLock(t)(c.Mutex("w").Acquire(t.Context()))
		writes, cancel := w.Context(t.Context())
		defer cancel()
		for _, of := range []struct {
			what    string
			ctx     context.Context
			a       zklock.Acquirer
			opts    []zklock.AcquireOption
			want    string
			reenter bool // the error advises Reenter
		}{
			{"a writer", writes, c.Mutex("w"), nil, "already holds this lock", true},
			{"a reader", reads, c.RWMutex("x").Reader(), nil, "already holds this lock", true},
			{"a reader that wants to write", reads, c.Mutex("x"), nil, "for reading", false},
			{"a reader that wants to write, with Reenter", reads, c.Mutex("x"), []zklock.AcquireOption{zklock.Reenter()}, "for reading", false},
			{"a reader of one name of several", reads, zklock.All(c.Mutex("x"), c.Mutex("y")), []zklock.AcquireOption{zklock.Reenter()}, "for reading", false},
			{"more names", writes, zklock.All(c.Mutex("w"), c.Mutex("y")), []zklock.AcquireOption{zklock.Reenter()}, "not all", false},
			{"another kind", writes, c.Semaphore("w", 2), []zklock.AcquireOption{zklock.Reenter()}, "another kind", false},
		} {
			_, err := of.a.Acquire(of.ctx, of.opts...)
			if !errors.Is(err, zklock.ErrDeadlock) || !strings.Contains(err.Error(), of.want) || strings.Contains(err.Error(), "join it with Reenter") != of.reenter {
				t.Errorf("%s: %v; want ErrDeadlock, %q, and the advice to use Reenter: %v", of.what, err, of.want, of.reenter)
			}
		}
		mustRelease(t, r)
		mustRelease(t, w)
	})
}

// Re-entry checks whether the lock is still held, not a counter.
func TestReentryAfterALossIsALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		reenter := func(ctx context.Context, how string) {
			t.Helper()
			for _, opts := range [][]zklock.AcquireOption{nil, {zklock.Reenter()}} {
				if l, err := c.Mutex("x").Acquire(ctx, opts...); !errors.Is(err, zklock.ErrLost) || l != nil {
					t.Errorf("re-entry after %s: %v, want ErrLost", how, err)
				}
			}
		}
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		ctx, cancel := l.Context(t.Context())
		defer cancel()
		e.Break("/zklock/x")
		if err := l.Verify(t.Context()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("Verify: %v", err)
		}
		reenter(ctx, "a deletion")

		l = mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		ctx, cancel = l.Context(t.Context())
		defer cancel()
		lease.AddSuspended(corekit.SessionTimeout)
		reenter(ctx, "the end of a lease that no goroutine has noticed")
	})
}
