package zklock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/memdriver"
)

func TestMutexIsHeldByOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, "mem://")
		var wg sync.WaitGroup
		counter, last := 0, zklock.Token{}
		for range 50 {
			wg.Go(func() {
				err := zklock.Do(t.Context(), c.Mutex("orders/42"), func(ctx context.Context, _ *zklock.Lock) error {
					lock, ok := zklock.FromContext(ctx)
					if !ok || !lock.Valid() {
						t.Error("the context carries no valid lock")
					}
					if lock.Token().Compare(last) <= 0 {
						t.Errorf("token %v after %v, want a later one", lock.Token(), last)
					}
					last = lock.Token()
					n := counter
					time.Sleep(time.Millisecond)
					counter = n + 1
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if counter != 50 {
			t.Fatalf("counter = %d, want 50", counter)
		}
	})
}

func TestTryAcquireDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, "mem://")
		m := c.Mutex("a")
		l, err := m.TryAcquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
			t.Fatalf("TryAcquire of a held lock: %v, want ErrNotAcquired", err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); !errors.Is(err, zklock.ErrReleased) {
			t.Fatalf("second Release: %v, want ErrReleased", err)
		}
		l, err = m.TryAcquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Release(t.Context())
	})
}
