package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// beats counts the requests of clients by kind.
type beats struct {
	mu sync.Mutex
	of map[string]int // guarded by mu; by client and kind
}

func (b *beats) hooks(client int) zklock.Option {
	return zklock.WithHooks(zklock.Hooks{Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.of[fmt.Sprint(client, " ", ev.Kind)]++
		return ctx, nil
	}})
}

func (b *beats) take() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := b.of
	b.of = make(map[string]int)
	return of
}

// TestFarWaitersSendNoHeartbeats: of a thousand sessions that want one name, only the
// holder's and that of the first in line send heartbeats. The others prove their leases when
// their turn comes.
func TestFarWaitersSendNoHeartbeats(t *testing.T) {
	for _, kind := range []struct {
		name    string
		permits int
	}{{"mutex", 1}, {"semaphore", 3}} {
		t.Run(kind.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const clients = 1000
				e := memdriver.New()
				b := &beats{of: make(map[string]int)}
				ctx, cancel := context.WithCancel(t.Context())
				var waiters sync.WaitGroup
				defer waiters.Wait()
				defer cancel()
				var locks []chan *zklock.Lock
				for i := range clients {
					c := connect(t, e.Connector(), nil, b.hooks(i))
					a := zklock.Acquirer(c.Mutex("x"))
					if kind.permits > 1 {
						a = c.Semaphore("x", kind.permits)
					}
					got := make(chan *zklock.Lock, 1)
					waiters.Go(func() {
						if l, err := a.Acquire(ctx); err == nil {
							got <- l
						}
					})
					synctest.Wait() // they queue in this order
					locks = append(locks, got)
				}
				time.Sleep(30 * time.Second)
				b.take()
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				seen := b.take()
				for i := range clients {
					beats := seen[fmt.Sprint(i, " heartbeat")]
					switch near := i <= kind.permits; {
					case near && (beats < 40 || beats > 66):
						t.Errorf("client %d, which holds or is the first in line, sent %d heartbeats in two minutes, want 40 to 66", i, beats)
					case !near && beats > 0:
						t.Fatalf("client %d sent %d heartbeats while it waited", i, beats)
					case !near && seen[fmt.Sprint(i, " sync")] < 60:
						t.Fatalf("client %d sent %d Syncs in two minutes while it waited, want more than 60", i, seen[fmt.Sprint(i, " sync")])
					}
				}
				// The next in line has slept for minutes. Its first heartbeat proves its lease.
				for i := range 20 {
					release := <-locks[i]
					b.take()
					mustRelease(t, release)
					next := soon(t, "the next in line", locks[i+kind.permits])
					if !next.Valid() {
						t.Errorf("client %d was granted a lock that is not valid", i+kind.permits)
					}
					locks[i+kind.permits] <- next
					if n := b.take()[fmt.Sprint(i+kind.permits, " heartbeat")]; n > 1 {
						t.Errorf("client %d sent %d heartbeats to be granted the lock, want at most one", i+kind.permits, n)
					}
				}
			})
		})
	}
}

// TestHeldLocksOfASessionThatWaitsFar: a session holds one lock and waits far from the front
// for another. The lock that it holds stays valid, and is lost in time when the session is
// cut off.
func TestHeldLocksOfASessionThatWaitsFar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		front := mustLock(t)(connect(t, e.Connector(), nil).Mutex("x").Acquire(t.Context()))
		second := acquiring(t, connect(t, e.Connector(), nil).Mutex("x"), t.Context())
		c := connect(t, e.Connector(), nil)
		held := mustLock(t)(c.Mutex("y").Acquire(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		waits := make(chan error, 1)
		go func() { _, err := c.Mutex("x").Acquire(ctx); waits <- err }()
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			if !held.Valid() || time.Until(held.Until()) < 3*time.Second {
				t.Fatalf("valid %v, until in %v", held.Valid(), time.Until(held.Until()))
			}
		}
		ids := e.Sessions()
		cut := memdriver.AroundSession(ids[len(ids)-1])
		e.Partition(cut)
		at := <-ended(held)
		next := mustLock(t)(connect(t, e.Connector(), nil).Mutex("y").Acquire(t.Context()))
		if now := time.Now(); !at.Before(now) {
			t.Errorf("the lock was lost at %v, and granted to another client at %v", at, now)
		}
		e.Heal(cut)
		cancel()
		<-waits
		mustRelease(t, next)
		mustRelease(t, front)
		mustRelease(t, soon(t, "the second", second))
	})
}

// TestSessionRestsAfterCancelledWaits: waits far from the front that are cancelled leave the
// session as it was: it sends heartbeats while it holds a lock, and none when it does not.
func TestSessionRestsAfterCancelledWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		front := mustLock(t)(connect(t, e.Connector(), nil).Mutex("x").Acquire(t.Context()))
		second := acquiring(t, connect(t, e.Connector(), nil).Mutex("x"), t.Context())
		b := &beats{of: make(map[string]int)}
		c := connect(t, e.Connector(), nil, b.hooks(0))
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := c.Mutex("x").Acquire(ctx); !errors.Is(err, zklock.ErrNotAcquired) {
				t.Fatal(err)
			}
			cancel()
		}
		time.Sleep(5 * time.Second)
		b.take()
		time.Sleep(time.Minute)
		if n := b.take()["0 heartbeat"]; n > 0 {
			t.Errorf("a session without places sent %d heartbeats in a minute", n)
		}
		held := mustLock(t)(c.Mutex("y").Acquire(t.Context()))
		time.Sleep(time.Minute)
		if n := b.take()["0 heartbeat"]; n < 20 || !held.Valid() {
			t.Errorf("a session that holds a lock sent %d heartbeats in a minute, and the lock's validity is %v", n, held.Valid())
		}
		mustRelease(t, held)
		mustRelease(t, front)
		mustRelease(t, soon(t, "the second", second))
	})
}
