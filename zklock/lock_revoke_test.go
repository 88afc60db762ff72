package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// holder returns the first contender of a name.
func holder(t *testing.T, c *zklock.Client, name string) zklock.Contender {
	t.Helper()
	found, err := c.Contenders(t.Context(), name)
	if err != nil || len(found) == 0 || !found[0].Held {
		t.Fatalf("contenders of %s: %+v, %v", name, found, err)
	}
	return found[0]
}

// revoke asks the first holder of a name to give it back, and waits until that is noticed.
func revoke(t *testing.T, c *zklock.Client, name, reason string) {
	t.Helper()
	h := holder(t, c, name)
	if err := c.Revoke(t.Context(), name, fmt.Sprintf("%s@%#x", h.Node, h.Zxid), reason); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	if got := holder(t, c, name); got.Node == h.Node && got.Revoked == "" {
		t.Errorf("%+v does not show the request", got)
	}
}

// revoked reports whether a lock's holder was asked to give it back.
func revoked(l *zklock.Lock) bool {
	synctest.Wait()
	select {
	case <-l.Revoked():
		return true
	default:
		return false
	}
}

// A holder that is asked has time to clean up. No other client has the lock during that time,
// and the next one gets it when the function has returned.
func TestRevokedHolderCleansUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		done := make(chan error)
		var cleaned bool
		go func() {
			done <- zklock.Do(t.Context(), a.Mutex("x"), func(ctx context.Context, _ *zklock.Lock) error {
				<-ctx.Done()
				l := zklock.HeldIn(ctx)[0]
				if err := l.Verify(context.WithoutCancel(ctx)); err != nil || !l.Valid() {
					t.Errorf("the lock while its holder cleans up: %v, valid: %v", err, l.Valid())
				}
				time.Sleep(time.Minute) // the clean-up
				cleaned = true
				return context.Cause(ctx)
			}, zklock.WithRevocable())
		}()
		synctest.Wait()
		next := acquiring(t, b.Mutex("x"), t.Context())
		revoke(t, b, "x", "node 3 is drained\n")
		none(t, "the other client", next)
		err := <-done
		if !errors.Is(err, zklock.ErrRevoked) || errors.Is(err, zklock.ErrLost) || !strings.HasSuffix(err.Error(), `: "node 3 is drained\n"`) {
			t.Errorf("the cause is %q", err)
		}
		if l := soon(t, "the other client", next); !cleaned {
			t.Error("the other client had the lock before the clean-up had ended")
		} else {
			mustRelease(t, l)
		}
	})
}

// The clean-up of a revoked holder can join the lock, for a context that ends only with the lock.
func TestCleanUpHasAContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		done := make(chan error)
		go func() {
			done <- zklock.Do(t.Context(), a.Mutex("x"), func(ctx context.Context, _ *zklock.Lock) error {
				<-ctx.Done()
				ctx = context.WithoutCancel(ctx)
				l, err := a.Mutex("x").Acquire(ctx, zklock.Reenter())
				if err != nil {
					return err
				}
				defer func() { _ = l.Release(ctx) }()
				ctx, cancel := l.Context(ctx)
				defer cancel()
				time.Sleep(time.Minute)
				if ctx.Err() != nil {
					t.Errorf("the context has ended: %v", context.Cause(ctx))
				}
				e.Break("/zklock/x")
				<-ctx.Done()
				return context.Cause(ctx)
			}, zklock.WithRevocable())
		}()
		synctest.Wait()
		revoke(t, b, "x", "r")
		if err := <-done; !errors.Is(err, zklock.ErrLost) || errors.Is(err, zklock.ErrRevoked) {
			t.Errorf("the cause is %v", err)
		}
	})
}

// Without WithRevocable, Lock.Revoked returns nil, and the client makes no request for it. With it,
// a lock that was granted at once costs one read, which arms the watch. Other locks get that watch
// when they are held for long.
func TestRevocableCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		use(t, c.Mutex("w"))
		of := func(name string, opts ...zklock.AcquireOption) (acquire, release memcontrol.Ops) {
			var l *zklock.Lock
			acquire = cost(e, func() { l = mustLock(t)(c.Mutex(name).Acquire(t.Context(), opts...)) })
			if (l.Revoked() == nil) != (opts == nil) || revoked(l) {
				t.Errorf("%s: Revoked returns %v", name, l.Revoked())
			}
			return acquire, cost(e, func() { mustRelease(t, l) })
		}
		acquire, release := of("x")
		wantCost(t, "an acquisition without WithRevocable", acquire, memcontrol.Ops{Multis: 1, MultiOps: 3})
		wantCost(t, "its release", release, memcontrol.Ops{Multis: 1, MultiOps: 1})
		acquire, release = of("y", zklock.WithRevocable())
		wantCost(t, "an acquisition with WithRevocable", acquire, memcontrol.Ops{Multis: 1, MultiOps: 3, Watches: 1})
		wantCost(t, "its release", release, memcontrol.Ops{Multis: 1, MultiOps: 1, Events: 1})
	})
}

// A holder with WithRevocable notices a request at once, also one that was written before its watch
// was armed, or before the lock was granted.
func TestRevocationIsNoticedAtOnce(t *testing.T) {
	for name, before := range map[string]func(t *testing.T, c, other *zklock.Client) (l *zklock.Lock){
		"granted at once": func(t *testing.T, c, other *zklock.Client) *zklock.Lock {
			l := mustLock(t)(c.Mutex("x").Acquire(t.Context(), zklock.WithRevocable()))
			if revoked(l) {
				t.Error("asked without a request")
			}
			revoke(t, other, "x", "r")
			return l
		},
		"granted after a wait": func(t *testing.T, c, other *zklock.Client) *zklock.Lock {
			first := mustLock(t)(other.Mutex("x").Acquire(t.Context()))
			next := acquiring(t, c.Mutex("x"), t.Context(), zklock.WithRevocable())
			time.Sleep(time.Minute)
			mustRelease(t, first)
			l := <-next
			if revoked(l) {
				t.Error("asked without a request")
			}
			revoke(t, other, "x", "r")
			return l
		},
		"as a waiter": func(t *testing.T, c, other *zklock.Client) *zklock.Lock {
			first := mustLock(t)(other.Mutex("x").Acquire(t.Context()))
			next := acquiring(t, c.Mutex("x"), t.Context(), zklock.WithRevocable())
			time.Sleep(time.Minute)
			queue, _ := other.Contenders(t.Context(), "x")
			if err := other.Revoke(t.Context(), "x", queue[1].Node, "r"); err != nil {
				t.Fatal(err)
			}
			none(t, "the waiter", next)
			mustRelease(t, first)
			return <-next
		},
		"as a waiter that has just come": func(t *testing.T, c, other *zklock.Client) *zklock.Lock {
			first := mustLock(t)(other.Mutex("x").Acquire(t.Context()))
			next := acquiring(t, c.Mutex("x"), t.Context(), zklock.WithRevocable())
			queue, _ := other.Contenders(t.Context(), "x")
			if err := other.Revoke(t.Context(), "x", queue[1].Node, "r"); err != nil {
				t.Fatal(err)
			}
			mustRelease(t, first)
			return <-next
		},
		"by the same client": func(t *testing.T, c, _ *zklock.Client) *zklock.Lock {
			l := mustLock(t)(c.Mutex("x").Acquire(t.Context(), zklock.WithRevocable()))
			revoke(t, c, "x", "r")
			return l
		},
		"with a handle that joins": func(t *testing.T, c, other *zklock.Client) *zklock.Lock {
			l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
			ctx, cancel := l.Context(t.Context())
			t.Cleanup(cancel)
			joined := mustLock(t)(c.Mutex("x").Acquire(ctx, zklock.Reenter(), zklock.WithRevocable()))
			revoke(t, other, "x", "r")
			if ctx.Err() != nil || l.Revoked() != nil {
				t.Error("a handle without WithRevocable was asked")
			}
			mustRelease(t, l)
			return joined
		},
		"before a handle joins": func(t *testing.T, c, other *zklock.Client) *zklock.Lock {
			l := mustLock(t)(c.Mutex("x").Acquire(t.Context(), zklock.WithRevocable()))
			ctx, cancel := l.Context(t.Context())
			t.Cleanup(cancel)
			revoke(t, other, "x", "r")
			joined := mustLock(t)(c.Mutex("x").Acquire(context.WithoutCancel(ctx), zklock.Reenter(), zklock.WithRevocable()))
			mustRelease(t, l)
			return joined
		},
		"one name of several": func(t *testing.T, c, other *zklock.Client) *zklock.Lock {
			l := mustLock(t)(allOf(c, "a", "x").Acquire(t.Context(), zklock.WithRevocable()))
			revoke(t, other, "x", "r")
			return l
		},
		"a permit": func(t *testing.T, c, other *zklock.Client) *zklock.Lock {
			l := mustLock(t)(c.Semaphore("x", 2).Acquire(t.Context(), zklock.WithRevocable()))
			revoke(t, other, "x", "r")
			return l
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				c, other := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
				l := before(t, c, other)
				if !revoked(l) {
					t.Error("the holder was not asked")
				}
				ctx, cancel := l.Context(t.Context())
				defer cancel()
				if !errors.Is(context.Cause(ctx), zklock.ErrRevoked) || l.Err() != nil || !l.Valid() {
					t.Errorf("a context made after the request ended with %v; the lock: %v", context.Cause(ctx), l.Err())
				}
				mustRelease(t, l)
			})
		})
	}
}

// A holder that ignores a request keeps its lock, with WithRevocable and without. With it, the
// Release hook is called with the time of the first request.
func TestIgnoredRevocation(t *testing.T) {
	for _, opts := range [][]zklock.AcquireOption{nil, {zklock.WithRevocable()}} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			var ignored []time.Duration
			hooks := zklock.Hooks{Release: func(ctx context.Context, e zklock.ReleaseEvent) (context.Context, func(zklock.ReleaseResult)) {
				if !e.Revoked.IsZero() {
					ignored = append(ignored, time.Since(e.Revoked))
				}
				return ctx, nil
			}}
			a, b := connect(t, e.Connector(), nil, zklock.WithHooks(hooks)), connect(t, e.Connector(), nil)
			l := mustLock(t)(a.Mutex("x").Acquire(t.Context(), opts...))
			next := acquiring(t, b.Mutex("x"), t.Context())
			revoke(t, b, "x", "")
			if got := holder(t, b, "x").Revoked; got != "no reason given" {
				t.Errorf("a request without a reason is shown as %q", got)
			}
			time.Sleep(10 * time.Minute)
			revoke(t, b, "x", "once more")
			none(t, "the other client", next)
			if err := l.Verify(t.Context()); err != nil {
				t.Error(err)
			}
			mustRelease(t, l)
			mustRelease(t, <-next)
			if want := []time.Duration{10 * time.Minute}[:len(opts)]; !slices.Equal(ignored, want) {
				t.Errorf("with %d options, the Release hook was called %v after the request, want %v", len(opts), ignored, want)
			}
		})
	}
}

// Revoke and Break change nothing if the queue does not have that very node.
func TestRevokeAndBreakOfAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		mustRelease(t, mustLock(t)(a.Mutex("x").Acquire(t.Context())))
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context(), zklock.WithRevocable()))
		h := holder(t, b, "x")
		tree := func() string {
			_, tree, _ := strings.Cut(e.Dump(), "\n/ ")
			return tree
		}
		before := tree()
		for what, op := range map[string]func(node string) error{
			"Revoke": func(node string) error { return b.Revoke(t.Context(), "x", node, "r") },
			"Break":  func(node string) error { return b.Break(t.Context(), "x", node) },
		} {
			for node, want := range map[string]error{
				strings.Replace(h.Node, "__0000000001", "__0000000000", 1):                            driver.ErrNoNode,
				strings.Replace(h.Node, "__0000000001", "__0000000000", 1) + "@" + fmt.Sprint(h.Zxid): driver.ErrNoNode,
				fmt.Sprintf("%s@%#x", h.Node, h.Zxid+1):                                               driver.ErrNoNode,
				h.Node + "@":                                                                          zklock.ErrConflict,
				h.Node + "@0":                                                                         zklock.ErrConflict,
				h.Node + "@zxid":                                                                      zklock.ErrConflict,
				h.Node + "@-1":                                                                        zklock.ErrConflict,
				"x/" + h.Node:                                                                         zklock.ErrConflict,
				"x/" + h.Node + "@1":                                                                  zklock.ErrConflict,
				"config":                                                                              zklock.ErrConflict,
				"@1":                                                                                  zklock.ErrConflict,
				"":                                                                                    zklock.ErrConflict,
			} {
				if err := op(node); !errors.Is(err, want) {
					t.Errorf("%s of %q: %v, want %v", what, node, err, want)
				}
			}
		}
		if after := tree(); after != before {
			t.Errorf("the tree has changed from\n%s\nto\n%s", before, after)
		}
		if revoked(l) || l.Err() != nil {
			t.Errorf("the holder was asked, or has lost the lock: %v", l.Err())
		}
		if err := b.Break(t.Context(), "x", fmt.Sprintf("%s@%x", h.Node, h.Zxid)); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if !errors.Is(l.Err(), zklock.ErrLost) {
			t.Errorf("after Break of its node: %v", l.Err())
		}
		if err := b.Revoke(t.Context(), "x", h.Node, "r"); !errors.Is(err, driver.ErrNoNode) || revoked(l) {
			t.Errorf("Revoke of a node that is gone: %v, asked: %v", err, revoked(l))
		}
	})
}

// All readers that share a place and want to be asked are asked, once each; a later reader
// takes another place.
func TestRevokedReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		read := func(opts ...zklock.AcquireOption) *zklock.Lock {
			return mustLock(t)(a.RWMutex("x").Reader().Acquire(t.Context(), opts...))
		}
		first, second, third := read(zklock.WithRevocable()), read(), read(zklock.WithRevocable())
		if nodes(e) != 1 {
			t.Fatalf("%d nodes, want that the readers share one", nodes(e))
		}
		revoke(t, b, "x", "r")
		revoke(t, b, "x", "again")
		if !revoked(first) || second.Revoked() != nil || !revoked(third) {
			t.Errorf("asked: %v, %v, %v; want the first and the third", revoked(first), revoked(second), revoked(third))
		}
		later := read(zklock.WithRevocable())
		if revoked(later) || nodes(e) != 2 {
			t.Errorf("a reader that came later was asked: %v; %d nodes, want 2", revoked(later), nodes(e))
		}
		for _, l := range []*zklock.Lock{first, second, third, later} {
			mustRelease(t, l)
		}
	})
}

// A request that is written while the client has no connection is noticed afterwards.
func TestRevocationDuringAReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), map[string]string{"session_timeout": "30s"}), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context(), zklock.WithRevocable()))
		h := holder(t, b, "x")
		e.Partition(memdriver.AroundSession(h.Session))
		if err := b.Revoke(t.Context(), "x", h.Node, "r"); err != nil {
			t.Fatal(err)
		}
		if revoked(l) {
			t.Fatal("asked without a connection")
		}
		e.Heal()
		time.Sleep(15 * time.Second)
		if !revoked(l) || l.Err() != nil {
			t.Errorf("asked: %v; the lock: %v", revoked(l), l.Err())
		}
		mustRelease(t, l)
	})
}
