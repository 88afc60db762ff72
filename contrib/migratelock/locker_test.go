package migratelock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pressly/goose/v3/lock"

	"github.com/zklock/go-zklock/contrib/migratelock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

var (
	_ lock.Locker        = (*migratelock.Locker)(nil)
	_ lock.SessionLocker = (*migratelock.Locker)(nil)
)

// migrations is the lock that the tests acquire.
const migrations = "migrations/shop"

// client returns another client of an ensemble.
func client(t *testing.T, e *memdriver.Ensemble) *zklock.Client {
	t.Helper()
	c, err := zklock.OpenConnector(e.Connector())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// held reports whether a client holds the lock.
func held(t *testing.T, c *zklock.Client) bool {
	t.Helper()
	found, err := c.Contenders(t.Context(), migrations)
	if err != nil {
		t.Fatal(err)
	}
	return len(found) > 0
}

// Lock waits for another process, whichever of the two pairs of methods each uses.
func TestLockerExcludes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, e := zklocktest.New(t)
		first, second := migratelock.New(c.Mutex(migrations)), migratelock.New(client(t, e).Mutex(migrations), migratelock.WithLabel("v7"))
		if err := first.SessionLock(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		locked := make(chan error, 1)
		go func() { locked <- second.Lock(t.Context(), nil) }()
		synctest.Wait()
		if len(locked) != 0 {
			t.Fatal("the second Lock did not wait")
		}
		if found, err := c.Contenders(t.Context(), migrations); err != nil || len(found) != 2 || found[0].Label != "migrations" || found[1].Label != "v7" {
			t.Errorf("contenders %+v, %v, want the labels migrations and v7", found, err)
		}
		if err := first.SessionUnlock(t.Context(), nil); err != nil {
			t.Error(err)
		}
		if err := <-locked; err != nil {
			t.Fatal(err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := second.Unlock(ended, nil); err != nil {
			t.Errorf("Unlock with a context that has ended: %v", err)
		}
		if held(t, c) {
			t.Error("the lock was not given back")
		}
	})
}

// A Lock that fails holds nothing, and says why.
func TestLockerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, e := zklocktest.New(t)
		other, err := client(t, e).Mutex(migrations).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := migratelock.New(c.Mutex(migrations)).Lock(t.Context(), nil); !errors.Is(err, zklock.ErrNotAcquired) || time.Since(began) != 5*time.Minute {
			t.Errorf("Lock after %v: %v, want ErrNotAcquired after 5m", time.Since(began), err)
		}
		began = time.Now()
		if err := migratelock.New(c.Mutex(migrations), migratelock.WithWait(0)).Lock(t.Context(), nil); !errors.Is(err, zklock.ErrNotAcquired) || time.Since(began) != 0 {
			t.Errorf("Lock without a wait, after %v: %v, want ErrNotAcquired at once", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		l := migratelock.New(c.Mutex(migrations))
		if err := l.Lock(ctx, nil); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, zklock.ErrNotAcquired) {
			t.Errorf("Lock with a deadline: %v, want one that matches it and ErrNotAcquired", err)
		}
		if err := l.Unlock(t.Context(), nil); err == nil {
			t.Error("Unlock without Lock succeeded")
		}
		if err := other.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // what gave up leaves the queue
		if held(t, c) {
			t.Error("a Lock that failed holds something")
		}
		if err := l.Lock(t.Context(), nil); err != nil { // the locker is usable again
			t.Fatal(err)
		}
		if err := l.Unlock(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	})
}

// Two users of one Locker take turns, also if the first has lost its lock.
func TestLockerInOneProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, e := zklocktest.New(t)
		l := migratelock.New(c.Mutex(migrations), migratelock.WithWait(time.Minute))
		if err := l.Lock(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		e.ExpireAll()
		began := time.Now()
		if err := l.Lock(t.Context(), nil); !errors.Is(err, zklock.ErrNotAcquired) || time.Since(began) != time.Minute {
			t.Errorf("Lock before Unlock: %v after %v, want ErrNotAcquired after 1m", err, time.Since(began))
		}
		locked := make(chan error, 1)
		go func() { locked <- l.Lock(t.Context(), nil) }()
		synctest.Wait()
		if err := l.Unlock(t.Context(), nil); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("Unlock after the loss: %v, want ErrLost", err)
		}
		if err := <-locked; err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { locked <- l.Lock(ctx, nil) }()
		synctest.Wait()
		cancel()
		if err := <-locked; !errors.Is(err, context.Canceled) || !errors.Is(err, zklock.ErrNotAcquired) {
			t.Errorf("Lock that was cancelled: %v", err)
		}
		if err := l.Unlock(t.Context(), nil); err != nil {
			t.Error(err)
		}
		if held(t, c) {
			t.Error("the lock was not given back")
		}
	})
}

// A context of WithLoss ends with the loss, and not with Unlock.
func TestWithLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, e := zklocktest.New(t)
		l := migratelock.New(c.Mutex(migrations))
		ctx, stop := migratelock.WithLoss(t.Context())
		for range 2 {
			if err := l.Lock(ctx, nil); err != nil {
				t.Fatal(err)
			}
			if err := l.Unlock(ctx, nil); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if ctx.Err() != nil {
				t.Fatalf("the context ended with Unlock: %v", context.Cause(ctx))
			}
		}
		if err := l.Lock(ctx, nil); err != nil {
			t.Fatal(err)
		}
		e.ExpireAll()
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), zklock.ErrLost) {
			t.Errorf("the context ended with %v, want the loss", context.Cause(ctx))
		}
		if err := l.Unlock(ctx, nil); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("Unlock after the loss: %v, want ErrLost", err)
		}
		stop()
		other, stopOther := migratelock.WithLoss(t.Context())
		stopOther()
		if other.Err() == nil {
			t.Error("the context did not end with its function")
		}
	})
}

// While the ensemble cannot be reached, Unlock waits no longer than a session timeout.
func TestLockerUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, e := zklocktest.New(t)
		l := migratelock.New(c.Mutex(migrations))
		if err := l.Lock(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		e.Partition(memdriver.AroundClients(0))
		began := time.Now()
		err := l.Unlock(t.Context(), nil)
		if waited := time.Since(began); waited > 30*time.Second {
			t.Errorf("Unlock took %v, want a session timeout of 30s at most", waited)
		}
		if err != nil && !errors.Is(err, zklock.ErrLost) {
			t.Errorf("Unlock: %v, want nil or the loss", err)
		}
		e.Heal(memdriver.AroundClients(0))
	})
}

func TestMistakesPanic(t *testing.T) {
	for what, f := range map[string]func(){
		"New":  func() { migratelock.New(nil) },
		"Wrap": func() { migratelock.Wrap(nil, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s without its arguments did not panic", what)
				}
			}()
			f()
		}()
	}
}
