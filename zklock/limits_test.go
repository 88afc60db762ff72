package zklock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Who comes at the same time is let in as far as there is room, whether the first
// of them gets the lock or has to wait for another process, which nobody knows
// until the ensemble has answered.
func TestMaxWaitersIsExactWhenAllComeAtOnce(t *testing.T) {
	const limit, callers = 2, 10
	for _, c := range []struct {
		what   string
		taken  bool // by another client
		opts   []zklock.AcquireOption
		held   int // by the callers
		queued int // contenders when all is settled
	}{
		{"free", false, nil, 1, 1},
		{"taken", true, nil, 0, 2},
		{"free, each with a node of its own", false, []zklock.AcquireOption{zklock.WithoutHandover()}, 1, 1 + limit},
		{"taken, each with a node of its own", true, []zklock.AcquireOption{zklock.WithoutHandover()}, 0, 1 + limit},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New(memdriver.WithLatency(10 * time.Millisecond))
			other := connect(t, e.Connector(), nil)
			client := connect(t, e.Connector(), map[string]string{"max_waiters": "2"})
			var theirs *zklock.Lock
			if c.taken {
				theirs = mustLock(t)(other.Mutex("x").Acquire(t.Context()))
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			locks, errs := make(chan *zklock.Lock, callers), make(chan error, callers)
			for range callers {
				go func() {
					l, err := client.Mutex("x").Acquire(ctx, c.opts...)
					if err != nil {
						errs <- err
						return
					}
					locks <- l
				}()
			}
			time.Sleep(time.Second)
			if n, want := len(errs), callers-limit-c.held; n != want || len(locks) != c.held || client.Stats().Waiting != limit {
				t.Fatalf("%s: %d refused, %d hold, %d wait; want %d, %d and %d", c.what, n, len(locks), client.Stats().Waiting, want, c.held, limit)
			}
			for len(errs) > 0 {
				if err := <-errs; !errors.Is(err, zklock.ErrTooManyWaiters) || errors.Is(err, zklock.ErrNotAcquired) || errors.Is(err, zklock.ErrUnavailable) {
					t.Errorf("%s: %v", c.what, err)
				}
			}
			if n := nodes(e); n != c.queued {
				t.Errorf("%s: %d contenders, want %d:\n%s", c.what, n, c.queued, e.Dump())
			}
			// Those who were let in get their turn.
			if theirs != nil {
				mustRelease(t, theirs)
			}
			for range limit + c.held {
				select {
				case l := <-locks:
					mustRelease(t, l)
				case err := <-errs:
					t.Fatalf("%s: %v", c.what, err)
				}
			}
		})
	}
}

// Who was let in while the first was asking stays, if there is room for all of
// them when it is known that the first has to wait.
func TestMaxWaitersLetsNobodyGoForWhomThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(10 * time.Millisecond))
		other, client := connect(t, e.Connector(), nil), connect(t, e.Connector(), map[string]string{"max_waiters": "1"})
		theirs := mustLock(t)(other.Mutex("x").Acquire(t.Context()))
		gone, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() { _, err := client.Mutex("x").Acquire(gone); first <- err }()
		time.Sleep(time.Millisecond) // it is asking
		second := acquiring(t, client.Mutex("x"), t.Context())
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if _, err := client.Mutex("x").Acquire(t.Context()); !errors.Is(err, zklock.ErrTooManyWaiters) {
			t.Errorf("beside one that waits: %v", err)
		}
		mustRelease(t, theirs)
		mustRelease(t, <-second)
	})
}

// While the first asks, the others count as what they are.
func TestMaxWaitersCountsOnlyThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(10 * time.Millisecond))
		client := connect(t, e.Connector(), nil)
		mustRelease(t, mustLock(t)(client.Mutex("y").Acquire(t.Context()))) // there is a session
		var all []chan *zklock.Lock
		for range 3 { // the first asks, two wait for it
			all = append(all, acquiring(t, client.Mutex("x"), t.Context()))
		}
		if _, err := client.Mutex("x").Acquire(t.Context(), zklock.WithMaxWaiters(2)); !errors.Is(err, zklock.ErrTooManyWaiters) {
			t.Errorf("two wait: %v", err)
		}
		l, err := client.Mutex("x").Acquire(t.Context(), zklock.WithMaxWaiters(3), zklock.WithWait(time.Millisecond))
		if !errors.Is(err, zklock.ErrNotAcquired) {
			t.Errorf("a third one: %v, %v", l, err)
		}
		for _, l := range all {
			mustRelease(t, <-l)
		}
	})
}
