package zklock_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestTriesOfIdleKeptNamesFarAway: a try waits for a recall for as long as that takes on the
// present network, whichever servers it and the client that keeps the name are connected to. A try
// of a name that is in use still fails, after two seconds at the latest.
func TestTriesOfIdleKeptNamesFarAway(t *testing.T) {
	const tries, servers = 80, 5
	for _, latency := range []time.Duration{time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond} {
		for _, together := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, together: %v", latency, together), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := memdriver.New(memdriver.WithServers(servers), memdriver.WithLatency(latency))
					var keepers, others []*zklock.Client // one at each server
					for range servers {
						keepers = append(keepers, keeping(t, e, "keep", "1h"))
					}
					for range servers {
						others = append(others, connect(t, e.Connector(), nil))
					}
					for i, name := range names(tries) {
						for nodes(e) == i {
							use(t, keepers[i%servers].Mutex(name))
						}
					}
					var failed atomic.Int32
					var all sync.WaitGroup
					for i, name := range names(tries) {
						try := func() {
							l, err := others[i/servers%servers].Mutex(name).TryAcquire(t.Context())
							if err != nil {
								failed.Add(1)
								return
							}
							mustRelease(t, l)
						}
						if all.Go(try); !together {
							all.Wait()
						}
					}
					all.Wait()
					if n := failed.Load(); n > 0 {
						t.Errorf("%d of %d tries of names that nothing uses have failed", n, tries)
					}

					synctest.Wait()
					time.Sleep(time.Second)
					for nodes(e) == 0 {
						use(t, keepers[0].Mutex("x"))
					}
					held := mustLock(t)(keepers[0].Mutex("x").Acquire(t.Context()))
					queued := make(chan time.Time, 1)
					go func() {
						for nodes(e) == 1 {
							time.Sleep(time.Millisecond)
						}
						queued <- time.Now()
					}()
					_, err := others[0].Mutex("x").TryAcquire(t.Context())
					least, most := 200*time.Millisecond, 2*time.Second+3*latency // until its client knows that it is queued
					if took := time.Since(<-queued); !errors.Is(err, zklock.ErrNotAcquired) || took < least || took > most {
						t.Errorf("a try of a lock in use: %v after it was queued: %v; want a failure after %v to %v", took, err, least, most)
					}
					mustRelease(t, held)
				})
			})
		}
	}
}

// TestKeptNamesAndMaxContenders: a node that its client may keep does not count for
// max_contenders. All others do, also those that wait behind it.
func TestKeptNamesAndMaxContenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a := keeping(t, e, "keep", "1h")
		limited := func(n int) *zklock.Client {
			return connect(t, e.Connector(), map[string]string{"max_contenders": fmt.Sprint(n)})
		}
		for name, other := range map[string]func(*zklock.Client) zklock.Acquirer{
			"a writer": func(c *zklock.Client) zklock.Acquirer { return c.Mutex("x") },
			"a reader": func(c *zklock.Client) zklock.Acquirer { return c.RWMutex("x").Reader() },
			"All":      func(c *zklock.Client) zklock.Acquirer { return allOf(c, "w", "x") },
		} {
			for _, try := range []bool{false, true} {
				b, acquire := other(limited(1)), zklock.Acquirer.Acquire
				if try {
					acquire = zklock.Acquirer.TryAcquire
				}
				for i := range 3 {
					keep(t, e, a.Mutex("x"))
					l, err := acquire(b, t.Context())
					if err != nil {
						t.Errorf("%s, try: %v, acquisition %d of a name that another client keeps: %v", name, try, i, err)
						continue
					}
					mustRelease(t, l)
					synctest.Wait()
				}
			}
		}

		// A queue behind a kept node that is in use has max_contenders waiters.
		keep(t, e, a.Mutex("x"))
		held := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		first := connect(t, e.Connector(), nil)
		waiting := []chan *zklock.Lock{acquiring(t, first.Mutex("x"), t.Context())}
		for range 2 {
			c := limited(3)
			mustRelease(t, mustLock(t)(c.Mutex("free").Acquire(t.Context()))) // the session's first heartbeats are over
			waiting = append(waiting, acquiring(t, c.Mutex("x"), t.Context()))
		}
		refused := func(what string, from zklock.Acquirer, lists int) {
			t.Helper()
			before := memcontrol.Of(e).Ops().Children
			if _, err := from.Acquire(t.Context()); !errors.Is(err, zklock.ErrTooManyWaiters) {
				t.Errorf("%s: %v, want ErrTooManyWaiters", what, err)
			}
			if n := memcontrol.Of(e).Ops().Children - before; n != lists {
				t.Errorf("%s cost %d lists, want %d", what, n, lists)
			}
			synctest.Wait()
			if n := nodes(e); n != 4 {
				t.Errorf("%s: %d contenders, want the holder and three waiters", what, n)
			}
		}
		began := time.Now()
		refused("one too many", limited(3).Mutex("x"), 0)
		refused("one too many by another limit", limited(2).Mutex("x"), 0)
		refused("All, one too many", allOf(limited(3), "w", "x"), 0)
		mustRelease(t, held)
		for _, w := range waiting {
			mustRelease(t, soon(t, "a waiter", w))
		}

		// Without a kept node the limit counts all of them.
		held = mustLock(t)(first.Mutex("x").Acquire(t.Context()))
		other := mustLock(t)(first.Mutex("w").Acquire(t.Context()))
		waiting = []chan *zklock.Lock{acquiring(t, limited(3).Mutex("x"), t.Context()), acquiring(t, limited(3).Mutex("x"), t.Context())}
		refused("one too many, and none is kept", limited(3).Mutex("x"), 1)
		refused("All, and the first name is taken", allOf(limited(3), "w", "x"), 2)
		if took := time.Since(began); took > 0 {
			t.Errorf("the refusals took %v, want none to wait", took)
		}
		mustRelease(t, other)
		mustRelease(t, held)
		for _, w := range waiting {
			mustRelease(t, soon(t, "a waiter", w))
		}
	})
}
