package zklock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// An acquisition whose wait ends returns ErrNotAcquired if its session has a connection,
// whatever request was under way: it has waited for the lock. If there was no session it
// has waited for one, and returns ErrUnavailable.
func TestShortWaitOnAHealthySessionIsNotAcquired(t *testing.T) {
	const latency = 10 * time.Millisecond
	for _, of := range []struct {
		what    string
		acquire func(c *zklock.Client, d time.Duration) (*zklock.Lock, error)
		cause   error
	}{
		{"a deadline", func(c *zklock.Client, d time.Duration) (*zklock.Lock, error) {
			ctx, cancel := context.WithTimeout(context.Background(), d)
			defer cancel()
			return c.Mutex("x").Acquire(ctx)
		}, context.DeadlineExceeded},
		{"WithWait", func(c *zklock.Client, d time.Duration) (*zklock.Lock, error) {
			return c.Mutex("x").Acquire(context.Background(), zklock.WithWait(d))
		}, nil},
		{"a try", func(c *zklock.Client, d time.Duration) (*zklock.Lock, error) {
			ctx, cancel := context.WithTimeout(context.Background(), d)
			defer cancel()
			return c.Mutex("x").TryAcquire(ctx)
		}, context.DeadlineExceeded},
		{"several names", func(c *zklock.Client, d time.Duration) (*zklock.Lock, error) {
			ctx, cancel := context.WithTimeout(context.Background(), d)
			defer cancel()
			return zklock.All(c.Mutex("x"), c.Mutex("new"+d.String())).Acquire(ctx)
		}, context.DeadlineExceeded},
	} {
		for _, lock := range []string{"free", "held"} {
			t.Run(of.what+" for a lock that is "+lock, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(latency))
					c, other := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
					if err := c.Ping(t.Context()); err != nil {
						t.Fatal(err)
					}
					if lock == "held" {
						defer mustRelease(t, mustLock(t)(other.Mutex("x").Acquire(t.Context())))
					}
					for d := latency / 4; d < 40*latency; d += latency {
						l, err := of.acquire(c, d)
						if err == nil {
							mustRelease(t, l)
							continue
						}
						if !errors.Is(err, zklock.ErrNotAcquired) || errors.Is(err, zklock.ErrUnavailable) {
							t.Errorf("after %v: %v, want ErrNotAcquired without ErrUnavailable", d, err)
						}
						if of.cause != nil && d < 2*latency && !errors.Is(err, of.cause) {
							t.Errorf("after %v: %v, want %v", d, err, of.cause)
						}
						synctest.Wait()
					}
				})
			})
		}
	}
}

// The same wait while the session has no connection is a wait for a session.
func TestShortWaitWithoutAConnectionIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithServers(3))
		c := connect(t, e.Connector(), nil)
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
		e.Partition(memdriver.AroundSession(e.Sessions()[0]).Reset())
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Mutex("x").Acquire(ctx); !errors.Is(err, zklock.ErrUnavailable) || errors.Is(err, zklock.ErrNotAcquired) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Acquire: %v, want ErrUnavailable and DeadlineExceeded without ErrNotAcquired", err)
		}
	})
}

// A later WithWait overrides an earlier one, in both directions.
func TestLaterWaitOverridesEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, "mem://")
		if _, err := c.Mutex("x").Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		for want, opts := range map[time.Duration][]zklock.AcquireOption{
			2 * time.Second: {zklock.WithWait(0), zklock.WithWait(2 * time.Second)},
			0:               {zklock.WithWait(time.Minute), zklock.WithWait(0)},
		} {
			start := time.Now()
			if _, err := c.Mutex("x").Acquire(t.Context(), opts...); !errors.Is(err, zklock.ErrNotAcquired) || time.Since(start) != want {
				t.Errorf("%v after %v, want ErrNotAcquired after %v", err, time.Since(start), want)
			}
		}
	})
}

// Acquire and TryAcquire never return a nil lock with a nil error.
func TestAcquireWithAnEndedContextIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, a := range []zklock.Acquirer{c.Mutex("x"), c.RWMutex("x").Reader(), c.Semaphore("s", 2), zklock.All(c.Mutex("x"), c.Mutex("y"))} {
			for _, acquire := range []func(context.Context, ...zklock.AcquireOption) (*zklock.Lock, error){a.Acquire, a.TryAcquire} {
				l, err := acquire(ctx)
				if l != nil || !errors.Is(err, context.Canceled) || !errors.Is(err, zklock.ErrNotAcquired) {
					t.Errorf("%s: lock %v, error %v; want context.Canceled and ErrNotAcquired", a.Name(), l, err)
				}
			}
		}
		if n := nodes(e); n != 0 {
			t.Errorf("left behind:\n%s", e.Dump())
		}
	})
}

// Thousands of candidates, which have places of their own, come at once to a server whose answers are
// slow: the creates below one znode take a transaction each, which takes longer than
// connect_timeout for all of them. Some learn first that the znode is there: those repeat their creates. None fails while
// the session works.
func TestBurstOfSeparateWaitersOutlastsConnectTimeout(t *testing.T) {
	waiters := corekit.Crowd(1500)
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(50 * time.Millisecond))
		held := mustLock(t)(connect(t, e.Connector(), nil).Semaphore("x", 1).Acquire(t.Context()))
		c := connect(t, e.Connector(), map[string]string{"connect_timeout": "3s"})
		ctx, leave := context.WithCancel(t.Context())
		var left sync.WaitGroup
		for range waiters {
			left.Go(func() {
				if _, err := c.Semaphore("x", 1).Acquire(ctx, zklock.WithCandidacy()); !errors.Is(err, context.Canceled) {
					t.Errorf("a waiter: %v", err)
				}
			})
		}
		time.Sleep(3500 * time.Millisecond)
		if n := nodes(e); n > waiters && !corekit.Race { // it has fewer waiters
			t.Error("all were queued soon after connect_timeout: this shows nothing")
		}
		time.Sleep(2 * time.Minute)
		if s := c.Stats(); s.Backlog != 0 {
			t.Errorf("a backlog of %d writes when all are queued", s.Backlog)
		}
		if n := nodes(e); n != waiters+1 {
			t.Errorf("%d nodes, want one of each of %d waiters and of the holder", n, waiters)
		}
		leave()
		left.Wait()
		mustRelease(t, held)
	})
}
