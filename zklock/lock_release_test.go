package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A release that the session's end cuts short is not confirmed, however far it had come:
// the node stays until the ensemble ends the session. Do does not fail because of it.
func TestReleaseCutShortByTheSessionsEndIsPending(t *testing.T) {
	multis, deletes := faultdriver.Multi, faultdriver.Delete
	for _, of := range []struct {
		what   string
		faults faultdriver.Injector
		all    bool
		close  bool
		want   error // in the text
	}{
		{"the request is lost", faultdriver.On(multis, faultdriver.Hang()), false, false, zklock.ErrSessionExpired},
		{"the reply is lost", faultdriver.On(multis, faultdriver.HangReply()), false, false, zklock.ErrSessionExpired},
		{"the second request is lost", faultdriver.Any(faultdriver.On(multis, faultdriver.Drop()), faultdriver.On(deletes, faultdriver.Hang())), false, false, zklock.ErrSessionExpired},
		{"two names", faultdriver.On(multis, faultdriver.Hang()), true, false, zklock.ErrSessionExpired},
		{"the second request of two names is lost", faultdriver.Any(faultdriver.On(multis, faultdriver.Drop()), faultdriver.On(deletes, faultdriver.Hang())), true, false, zklock.ErrSessionExpired},
		{"one of two names was lost, the request for the other is", faultdriver.Any(faultdriver.On(multis, faultdriver.Fail(driver.ErrNoNode)), faultdriver.On(deletes, faultdriver.Hang())), true, false,
			zklock.ErrSessionExpired},
		{"Close", faultdriver.On(multis, faultdriver.Hang()), false, true, zklock.ErrClosed},
		{"Close, the second request is lost", faultdriver.Any(faultdriver.On(multis, faultdriver.Drop()), faultdriver.On(deletes, faultdriver.Hang())), false, true, zklock.ErrClosed},
	} {
		t.Run(of.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				faults := faultdriver.NewToggle(about(of.faults))
				faults.Off()
				var hooked error
				hooks := zklock.Hooks{Release: func(ctx context.Context, _ zklock.ReleaseEvent) (context.Context, func(zklock.ReleaseResult)) {
					return ctx, func(r zklock.ReleaseResult) { hooked = r.Err }
				}}
				c := connect(t, faultdriver.Wrap(e.Connector(), faults), nil, zklock.WithHooks(hooks))
				var a zklock.Acquirer = c.Mutex("x")
				if of.all {
					a = zklock.All(c.Mutex("x"), c.Mutex("y"))
				}
				end := func() {
					synctest.Wait()
					if of.close {
						go func() { _ = c.Close() }()
					} else {
						e.ExpireAll()
					}
				}
				l := mustLock(t)(a.Acquire(t.Context()))
				faults.On()
				done := make(chan error, 1)
				go func() { done <- l.Release(t.Context()) }()
				end()
				err := <-done
				faults.Off()
				lost := strings.HasPrefix(of.what, "one of two names was lost")
				for _, err := range []error{err, hooked} {
					if errors.Is(err, zklock.ErrReleasePending) == lost || errors.Is(err, zklock.ErrNodeDeleted) != lost || errors.Is(err, of.want) {
						t.Errorf("Release or its hook: %v; want a loss: %t, and %v in the text only", err, lost, of.want)
					}
					if text := err.Error(); !strings.Contains(text, of.want.Error()) || !strings.Contains(text, zklock.ErrReleasePending.Error()) {
						t.Errorf("Release or its hook: %v; want a pending release and %v in the text", err, of.want)
					}
				}
				if l.Err() != zklock.ErrReleased {
					t.Errorf("Err: %v, want ErrReleased", l.Err())
				}
				if of.close {
					return
				}

				go func() {
					done <- zklock.Do(t.Context(), a, func(context.Context, *zklock.Lock) error { faults.On(); return nil })
				}()
				end()
				err = <-done
				if lost != errors.Is(err, zklock.ErrLost) || !lost && err != nil {
					t.Errorf("Do: %v; want ErrLost: %v", err, lost)
				}
				faults.Off()
			})
		})
	}
}

// stopper is a context that, once armed, stops the first goroutine that calls Done. That
// is the goroutine that ends a context derived from it.
type stopper struct {
	context.Context
	armed   atomic.Bool
	reached chan struct{}
	goOn    chan struct{}
}

func (h *stopper) Done() <-chan struct{} {
	if h.armed.CompareAndSwap(true, false) {
		close(h.reached)
		<-h.goOn
	}
	return h.Context.Done()
}

// A lock is lost when its handle is marked as released and no request was sent yet. The
// release returns what happened: the end of the session, or the deletion of the node.
func TestReleaseOvertakenByALoss(t *testing.T) {
	for _, of := range []struct {
		what string
		lose func(e *memdriver.Ensemble)
		want []error
	}{
		{"expired", func(e *memdriver.Ensemble) { e.ExpireAll() }, []error{zklock.ErrReleasePending}},
		{"deleted", func(e *memdriver.Ensemble) { e.Break("/zklock/x") }, []error{zklock.ErrLost, zklock.ErrNodeDeleted}},
	} {
		t.Run(of.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				c := connect(t, e.Connector(), nil)
				l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
				time.Sleep(5 * time.Second) // until its node is watched
				parent := &stopper{Context: t.Context(), reached: make(chan struct{}), goOn: make(chan struct{})}
				_, cancel := l.Context(parent)
				defer cancel()
				parent.armed.Store(true)
				done := make(chan error, 1)
				go func() { done <- l.Release(t.Context()) }()
				<-parent.reached
				of.lose(e)
				synctest.Wait()
				close(parent.goOn)
				err := <-done
				for _, want := range of.want {
					if !errors.Is(err, want) {
						t.Errorf("Release: %v, want %v", err, want)
					}
				}
				if l.Err() != zklock.ErrReleased || c.Stats().Lost != 0 {
					t.Errorf("Err: %v; %d handles were lost, want 0: the handle was released before the loss", l.Err(), c.Stats().Lost)
				}
			})
		})
	}
}

// A release after the end of the session returns the loss, also while
// the session's other locks are still being ended.
func TestReleaseAfterTheEndIsALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		const many = 20
		var locks []*zklock.Lock
		for i := range many {
			locks = append(locks, mustLock(t)(c.Mutex(fmt.Sprint(i)).Acquire(t.Context())))
		}
		parent := &stopper{Context: t.Context(), reached: make(chan struct{}), goOn: make(chan struct{})}
		for _, l := range locks {
			_, cancel := l.Context(parent)
			defer cancel()
		}
		parent.armed.Store(true) // the end of the first lock is stopped, and the others wait for it
		killAll(e)
		<-parent.reached
		released := make(chan error, many)
		for _, l := range locks {
			go func() { released <- l.Release(t.Context()) }()
		}
		synctest.Wait()
		close(parent.goOn)
		for range many {
			if err := <-released; !errors.Is(err, zklock.ErrLost) || errors.Is(err, zklock.ErrReleasePending) {
				t.Errorf("Release: %v, want ErrLost without ErrReleasePending", err)
			}
		}
	})
}

// TestAsyncReleaseSharesATransaction: in a loop, the release of one turn and the acquire of
// the next go in one transaction: a delete, a create and a set of the parent.
func TestAsyncReleaseSharesATransaction(t *testing.T) {
	defer corekit.SingleProcessor()() // on several, a delete may be sent before the loop submits its next create
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(time.Millisecond))
		c := connect(t, e.Connector(), nil)
		var before zklock.Token
		turn := func() {
			err := zklock.Do(t.Context(), c.Mutex("a"), func(ctx context.Context, l *zklock.Lock) error {
				if l.Token().Compare(before) <= 0 {
					t.Errorf("token %v after %v", l.Token(), before)
				}
				before = l.Token()
				return nil
			}, zklock.WithAsyncRelease())
			if err != nil {
				t.Fatal(err)
			}
		}
		for range 10 {
			turn()
		}
		const turns = 100
		began := time.Now()
		d := cost(e, func() {
			for range turns {
				turn()
			}
		})
		// A transaction deletes the node of one turn and creates that of the next. The first create
		// and the last delete have transactions of their own. So has a delete if the scheduler has
		// interrupted the loop between it and the next create. Without sharing there are two for each turn.
		if d.Multis > turns*3/2 || d.MultiOps != 3*turns || d.Children > 0 {
			t.Errorf("%d turns cost %+v, want about as many transactions, with three operations for each turn", turns, d)
		}
		if took := time.Since(began); took > turns*8*time.Millisecond {
			t.Errorf("a turn took %v, want one round trip, of 6ms at most", took/turns)
		}
	})
}

// aDelete strikes transactions of one operation that is a delete: its path has a suffix.
func aDelete(fault faultdriver.Fault) faultdriver.Injector {
	return faultdriver.If("a delete", func(op faultdriver.Op) bool {
		return len(op.Paths) == 1 && op.Paths[0][len(op.Paths[0])-1] != '_'
	}, fault)
}

func TestTryAfterAnAsyncRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(time.Millisecond))
		c := connect(t, e.Connector(), nil)
		for range 20 {
			l, err := c.Mutex("a").TryAcquire(t.Context(), zklock.WithAsyncRelease())
			if err != nil {
				t.Fatal(err)
			}
			mustRelease(t, l)
		}
	})
}

// TestTryAfterSeveralAsyncReleases: two readers with nodes of their own leave, and the delete of
// the first arrives last. A try waits for both.
func TestTryAfterSeveralAsyncReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		slow := faultdriver.NewToggle(faultdriver.Once(about(faultdriver.On(faultdriver.Multi, aDelete(faultdriver.Delay(time.Second))))))
		c := connect(t, faultdriver.Wrap(e.Connector(), slow), nil)
		var readers []*zklock.Lock
		for range 2 {
			readers = append(readers, mustLock(t)(c.RWMutex("a").Reader().Acquire(t.Context(), zklock.WithoutHandover(), zklock.WithAsyncRelease())))
		}
		slow.On()
		for _, l := range readers {
			mustRelease(t, l)
			synctest.Wait()
		}
		mustRelease(t, mustLock(t)(c.RWMutex("a").Writer().TryAcquire(t.Context())))
	})
}

// TestAsyncReleaseIsRepeated: Release returns nil although the first delete is lost, and
// another client gets the lock.
func TestAsyncReleaseIsRepeated(t *testing.T) {
	for _, fault := range []faultdriver.Fault{faultdriver.Drop(), faultdriver.LoseReply(), faultdriver.LateAfter(time.Second), faultdriver.Delay(time.Second)} {
		t.Run(fault.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				strike := faultdriver.NewToggle(faultdriver.Once(about(faultdriver.On(faultdriver.Multi, aDelete(fault)))))
				c := connect(t, faultdriver.Wrap(e.Connector(), strike), nil)
				for _, a := range []zklock.Acquirer{c.Mutex("a"), zklock.All(c.Mutex("a"), c.Mutex("b"))} {
					l := mustLock(t)(a.Acquire(t.Context(), zklock.WithAsyncRelease()))
					strike.On()
					began := time.Now()
					mustRelease(t, l)
					if took := time.Since(began); took > 0 {
						t.Errorf("Release took %v", took)
					}
					if err := l.Release(t.Context()); !errors.Is(err, zklock.ErrReleased) {
						t.Errorf("a second Release returned %v, want ErrReleased", err)
					}
					mustRelease(t, soon(t, "another client", acquiring(t, connect(t, e.Connector(), nil).Mutex("a"), t.Context())))
				}
				time.Sleep(10 * time.Second)
				if n := nodes(e); n > 0 {
					t.Errorf("%d contenders are left", n)
				}
			})
		})
	}
}

// TestAsyncReleaseOfALostLock returns the loss, as any Release does.
func TestAsyncReleaseOfALostLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("a").Acquire(t.Context(), zklock.WithAsyncRelease()))
		e.ExpireAll()
		<-l.Done()
		if err := l.Release(t.Context()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("Release returned %v, want ErrLost", err)
		}
	})
}

// TestShutdownAfterAsyncReleases leaves no contender behind.
func TestShutdownAfterAsyncReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		c := connect(t, e.Connector(), nil)
		for _, name := range names(100) {
			mustRelease(t, mustLock(t)(c.Mutex(name).Acquire(t.Context(), zklock.WithAsyncRelease())))
		}
		if err := c.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := nodes(e); n > 0 {
			t.Errorf("%d contenders are left", n)
		}
	})
}

// TestContextOfAReleaseIsNotKept: after a release, nothing of the client refers to the context
// that it was called with, which may carry much.
func TestContextOfAReleaseIsNotKept(t *testing.T) {
	type value struct{ _ [1 << 16]byte }
	type key struct{}
	for _, async := range []bool{false, true} {
		e := memdriver.New()
		// A release that is not answered in time goes on in the background.
		slow := faultdriver.NewToggle(faultdriver.Once(about(faultdriver.On(faultdriver.Multi, faultdriver.Delay(200*time.Millisecond)))))
		c := connect(t, faultdriver.Wrap(e.Connector(), slow), nil)
		collected := make(chan struct{})
		var opts []zklock.AcquireOption
		if async {
			opts = append(opts, zklock.WithAsyncRelease())
		}
		var next *zklock.Lock
		func() {
			l := mustLock(t)(c.Mutex("a").Acquire(t.Context(), opts...))
			v := new(value)
			runtime.AddCleanup(v, func(int) { close(collected) }, 0)
			ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), key{}, v), 20*time.Millisecond)
			defer cancel()
			if slow.On(); async {
				slow.Off()
			}
			_ = l.Release(ctx)
			if slow.Off(); async {
				next = mustLock(t)(c.Mutex("a").Acquire(t.Context()))
			}
		}()
		deadline := time.After(time.Minute)
		for gone := false; !gone; {
			runtime.GC()
			select {
			case <-collected:
				gone = true
			case <-time.After(20 * time.Millisecond):
			case <-deadline:
				t.Fatalf("async %v: the context of the release is still referred to", async)
			}
		}
		if next != nil {
			mustRelease(t, next)
		}
		runtime.KeepAlive(c)
	}
}

// TestAsyncReleaseOfADeletedNode: Release returns nil, since it does not wait, and the next
// acquire works.
func TestAsyncReleaseOfADeletedNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		var log locked
		c := connect(t, e.Connector(), nil, zklock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		l := mustLock(t)(c.Mutex("a").Acquire(t.Context(), zklock.WithAsyncRelease()))
		e.Break("/zklock/a")
		mustRelease(t, l)
		synctest.Wait()
		if !strings.Contains(log.String(), "had deleted the queue node") {
			t.Errorf("the loss was not logged: %s", &log)
		}
		mustRelease(t, mustLock(t)(c.Mutex("a").Acquire(t.Context())))
	})
}

func TestReleaseOfADeletedNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		e.Break("/zklock/x")
		if err := l.Release(t.Context()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("Release: %v", err)
		}
		if err := l.Release(t.Context()); !errors.Is(err, zklock.ErrReleased) {
			t.Errorf("second Release: %v", err)
		}
		l = mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		e.Break("/zklock/x")
		time.Sleep(corekit.SessionTimeout * 3 / 10)
		synctest.Wait()
		if err := l.Err(); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("the loss is not known three tenths of a session timeout after the grant, when the lock's node is watched: %v", err)
		}
		if err := l.Release(t.Context()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("Release: %v", err)
		}
		l = mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		e.Break("/zklock/x")
		if err := l.Verify(t.Context()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("Verify: %v", err)
		}
		if l.Valid() {
			t.Error("the lock is valid after Verify has returned that it is lost")
		}
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
	})
}

func TestReleaseGoesOnInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		faults := about(faultdriver.First(5, faultdriver.After(1, faultdriver.Any(faultdriver.On(faultdriver.Multi, faultdriver.Drop()), faultdriver.On(faultdriver.Delete, faultdriver.Drop())))))
		c := connect(t, faultdriver.Wrap(e.Connector(), faults), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Release(ctx); !errors.Is(err, zklock.ErrReleasePending) || !errors.Is(err, context.Canceled) {
			t.Errorf("Release: %v", err)
		}
		time.Sleep(5 * time.Second)
		if n := nodes(e); n != 0 {
			t.Errorf("left behind:\n%s", e.Dump())
		}
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
	})
}

// A release is carried out although its caller does not wait for the outcome. It is one
// request, not two.
func TestReleaseThatIsNotWaitedForIsOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		writes := faultdriver.NewCounter(faultdriver.None())
		c := connect(t, faultdriver.Wrap(e.Connector(), about(faultdriver.Writes(writes))), nil)
		for _, a := range []zklock.Acquirer{c.Mutex("x"), zklock.All(c.Mutex("x"), c.Mutex("y"))} {
			l := mustLock(t)(a.Acquire(t.Context()))
			before := writes.Seen()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := l.Release(ctx); !errors.Is(err, zklock.ErrReleasePending) {
				t.Errorf("Release: %v", err)
			}
			time.Sleep(time.Second)
			if n := writes.Seen() - before; n != 1 {
				t.Errorf("%d requests to release %s, want 1", n, l.Name())
			}
			if n := nodes(e); n != 0 {
				t.Errorf("left behind:\n%s", e.Dump())
			}
		}
	})
}

// A release takes at most one session timeout, for everything that it waits for together.
func TestReleaseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		faults := faultdriver.Any(
			faultdriver.Path("/data", faultdriver.On(faultdriver.Multi, faultdriver.Delay(corekit.SessionTimeout*6/10))),
			faultdriver.If("release", func(op faultdriver.Op) bool {
				return (op.Kind == faultdriver.Delete || op.Kind == faultdriver.Multi && len(op.Paths) == 1) && len(op.Paths[0]) > len("/zklock/x/")
			}, faultdriver.Hang()))
		c := connect(t, faultdriver.Wrap(e.Connector(), faults), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		go func() {
			_, _ = l.Txn(t.Context(), driver.CreateOp("/data", nil, driver.Persistent, driver.OpenACL(driver.PermAll)))
		}()
		synctest.Wait()
		began := time.Now()
		err := l.Release(t.Context())
		if took := time.Since(began); took > corekit.SessionTimeout || !errors.Is(err, zklock.ErrReleasePending) {
			t.Errorf("Release returned after %v, with a session timeout of %v: %v", took, corekit.SessionTimeout, err)
		}
	})
}

// A holder that lost the lock and releases it late takes nothing from the next holder,
// and can acquire again.
func TestStaleReleaseLeavesTheNextHolderAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		old := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		e.Expire(e.Sessions()[0])
		l := mustLock(t)(b.Mutex("x").Acquire(t.Context()))
		time.Sleep(time.Second)
		if err := old.Release(t.Context()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("late Release: %v, want ErrLost", err)
		}
		if err := l.Verify(t.Context()); err != nil {
			t.Errorf("Verify of the next holder: %v", err)
		}
		again := acquiring(t, a.Mutex("x"), t.Context())
		none(t, "the old holder, while the next one holds,", again)
		mustRelease(t, l)
		mustRelease(t, <-again)
	})
}
