package zklock_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

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
		// interrupted the loop between it and the next create.
		if d.Multis > turns*11/10 || d.MultiOps != 3*turns || d.Children > 0 {
			t.Errorf("%d turns cost %+v, want little more than as many transactions, with three operations for each turn", turns, d)
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
		var log bytes.Buffer
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
