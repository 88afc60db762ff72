package contention_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// shelf is where a program puts locks and forgets them.
type shelf []*zklock.Lock

func (s *shelf) put(t *testing.T, a zklock.Acquirer, opts ...zklock.AcquireOption) *zklock.Lock {
	t.Helper()
	lock, err := a.Acquire(t.Context(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	*s = append(*s, lock)
	return lock
}

// The profile of held locks has the line that acquired each, and for how long it has been held. The
// text has the oldest first. Released and lost locks are not in it.
func TestHeld(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		web := join(t, e, "web-1")
		var kept shelf
		first := kept.put(t, web.Mutex("orders/1"))
		time.Sleep(time.Hour)
		kept.put(t, web.RWMutex("orders/2").Reader())
		kept.put(t, web.RWMutex("orders/2").Reader()) // shares the queue node, and so the token
		go pay(web.Client, "users/7", time.Hour)
		synctest.Wait()
		time.Sleep(time.Minute)
		const hour, minute = int64(time.Hour), int64(time.Minute)
		want(t, parse(t, web.HeldHandler(), ""),
			row{"lock orders/*; (*shelf).put", [2]int64{3, hour + 3*minute}},
			row{"lock users/*; pay", [2]int64{1, minute}})
		page := text(t, web.HeldHandler(), "?debug=1")
		if !strings.HasPrefix(page, "4 locks held, the oldest for 1h1m0s\n\n1 lock held, the oldest for 1h1m0s: lock orders/*\n\tgithub.com/") ||
			!strings.Contains(page, "held_test.go:") || strings.Contains(page, "zklock.(*Mutex).Acquire") {
			t.Errorf("the page is\n%s", page)
		}

		if err := kept[2].Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := kept[2].Release(t.Context()); err == nil {
			t.Fatal("a second Release succeeded")
		}
		lock, err := web.Mutex("orders/3").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := lock.Context(t.Context())
		defer cancel()
		joined, err := web.Mutex("orders/3").Acquire(ctx, zklock.Reenter())
		if err != nil {
			t.Fatal(err)
		}
		want(t, parse(t, web.HeldHandler(), ""),
			row{"lock orders/*", [2]int64{2, 0}},
			row{"lock orders/*; (*shelf).put", [2]int64{2, hour + 2*minute}},
			row{"lock users/*; pay", [2]int64{1, minute}})
		_ = joined.Release(t.Context())
		_ = lock.Release(t.Context())

		e.Break(web.Mutex("orders/1").Path())
		<-first.Done()
		synctest.Wait()
		want(t, parse(t, web.HeldHandler(), ""),
			row{"lock orders/*; (*shelf).put", [2]int64{1, minute}},
			row{"lock users/*; pay", [2]int64{1, minute}})
		_ = first.Release(t.Context())
		e.ExpireAll()
		<-kept[1].Done()
		synctest.Wait()
		want(t, parse(t, web.HeldHandler(), ""))
	})
}

// A lock that the program has dropped without a Release stays in the profile until its session
// ends, and the profile does not keep the client from noticing the drop.
func TestHeldLockIsDropped(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		web := join(t, e, "web-1")
		func() { new(shelf).put(t, web.Mutex("orders/1")) }()
		for seconds := 0; web.Stats().Forgotten == 0; seconds++ {
			if seconds == 100 {
				t.Fatal("the client has not noticed the drop for 100 s")
			}
			time.Sleep(time.Second) // until the session's heart has let go of it
			runtime.GC()
			synctest.Wait()
		}
		if got := rows(parse(t, web.HeldHandler(), "")); len(got) != 1 || got[0].values[0] != 1 {
			t.Errorf("the profile has %v, want the lock that was dropped", got)
		}
		e.ExpireAll()
		for web.Stats().Lost == 0 {
			time.Sleep(time.Second)
		}
		synctest.Wait()
		want(t, parse(t, web.HeldHandler(), ""))
	})
}

// A lock may be lost, and its loss reported, before Acquire returns.
func TestHeldIsLostBeforeItIsAcquired(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		web := join(t, e, "web-1")
		lock := new(shelf).put(t, web.Mutex("orders/1"))
		e.ExpireAll()
		<-lock.Done()
		synctest.Wait()
		_, end := web.Hooks().Acquire(t.Context(), zklock.AcquireEvent{Name: "orders/1"})
		end(zklock.AcquireResult{Lock: lock})
		want(t, parse(t, web.HeldHandler(), ""))
	})
}

// Clients of two ensembles may hold locks with the same name and the same token. Each release
// removes its own, also one that is repeated after a loss.
func TestHeldWithEqualTokens(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		web := join(t, e, "web-1")
		other := memdriver.New()
		t.Cleanup(func() { _ = other.Close() })
		c, err := zklock.OpenConnector(other.Connector(), zklock.WithHooks(web.Hooks()), zklock.WithLogger(nil))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		var mine, others shelf
		a, b := mine.put(t, web.Mutex("orders/1")), others.put(t, c.Mutex("orders/1"))
		if a.Token() != b.Token() {
			t.Fatalf("the tokens differ: %v and %v", a.Token(), b.Token())
		}
		e.ExpireAll()
		<-a.Done()
		synctest.Wait()
		_ = a.Release(t.Context())
		if got := rows(parse(t, web.HeldHandler(), "")); len(got) != 1 || got[0].values[0] != 1 {
			t.Errorf("the profile has %v, want the lock that is held", got)
		}
		_ = b.Release(context.Background())
		want(t, parse(t, web.HeldHandler(), ""))
	})
}
