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
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestSessionEndsBetweenTriesOfCreate: the session ends while a create is between two
// tries. The acquisition goes on with another session.
func TestSessionEndsBetweenTriesOfCreate(t *testing.T) {
	for _, fault := range []faultdriver.Fault{faultdriver.NotSent(), faultdriver.Fail(driver.ErrThrottled)} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			first := int64(0)
			inj := faultdriver.If("first session", func(op faultdriver.Op) bool {
				if first == 0 && op.Session != 0 {
					first = op.Session
				}
				return op.Session == first && len(op.Paths) > 1
			}, faultdriver.On(faultdriver.Multi, fault))
			c := connect(t, faultdriver.Wrap(e.Connector(), inj), nil)
			go func() {
				time.Sleep(3 * time.Second)
				killAll(e)
			}()
			l, err := c.Mutex("a").Acquire(t.Context())
			if err != nil {
				t.Fatalf("%v: the acquisition did not go on with another session: %v", fault, err)
			}
			l.Release(t.Context())
		})
	}
}

// TestPendingWritesWhenSessionEnds: writes wait for their group when the session ends.
// Their acquisitions go on with another session.
func TestPendingWritesWhenSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(20 * time.Millisecond))
		c := connect(t, e.Connector(), nil)
		// From then on the locks' znodes are known.
		for i := range 20 {
			l, err := c.Mutex(fmt.Sprint("n", i)).Acquire(t.Context())
			must(t, l, err)
			l.Release(t.Context())
		}
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				l, err := c.Mutex(fmt.Sprint("n", i)).Acquire(t.Context())
				if err != nil {
					t.Errorf("Acquire across a session's end: %v", err)
					return
				}
				l.Release(t.Context())
			})
		}
		wg.Go(func() { time.Sleep(30 * time.Millisecond); killAll(e) })
		wg.Wait()
	})
}

func TestPendingWritesWhenClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(20 * time.Millisecond))
		c := connect(t, e.Connector(), nil)
		for i := range 20 {
			l, err := c.Mutex(fmt.Sprint("n", i)).Acquire(t.Context())
			must(t, l, err)
			l.Release(t.Context())
		}
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				l, err := c.Mutex(fmt.Sprint("n", i)).Acquire(t.Context())
				if err == nil {
					l.Release(t.Context())
				} else if !errors.Is(err, zklock.ErrClosed) {
					t.Errorf("Acquire on a client that is being closed: %v", err)
				}
			})
		}
		wg.Go(func() { time.Sleep(30 * time.Millisecond); c.Close() })
		wg.Wait()
	})
}

// TestCancelBeforeARequestIsUnclassified: the context is cancelled right before a request
// of the wait. The error nevertheless matches ErrNotAcquired or ErrUnavailable.
func TestCancelBeforeARequestIsUnclassified(t *testing.T) {
	for _, kind := range []string{"parent", "enqueue", "list", "watch"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				holder := connect(t, e.Connector(), nil)
				l, err := holder.Mutex("a").Acquire(t.Context())
				must(t, l, err)
				ctx, cancel := context.WithCancel(t.Context())
				hooks := zklock.Hooks{Operation: func(c context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
					if ev.Kind == kind {
						cancel()
					}
					return c, nil
				}}
				c := connect(t, e.Connector(), nil, zklock.WithHooks(hooks))
				_, err = c.Mutex("a").Acquire(ctx)
				if !errors.Is(err, context.Canceled) || !errors.Is(err, zklock.ErrNotAcquired) && !errors.Is(err, zklock.ErrUnavailable) {
					t.Errorf("cancelled at %s: %v, want context.Canceled with ErrNotAcquired or ErrUnavailable", kind, err)
				}
				t.Log(err)
				l.Release(t.Context())
			})
		})
	}
}

// TestNoAuthOnRootIsClassified: a client without the right to create below the root gets
// ErrNoAuth.
func TestNoAuthOnRootIsClassified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		owner := e.As("owner", driver.NewSecret("s3cret"))
		oc := connect(t, owner, map[string]string{"acl": "creator"})
		l, err := oc.Mutex("x").Acquire(t.Context())
		must(t, l, err)
		l.Release(t.Context())
		for _, name := range []string{"x", "y"} {
			c := connect(t, e.Connector(), nil)
			_, err = c.Mutex(name).Acquire(t.Context())
			if !errors.Is(err, zklock.ErrNoAuth) {
				t.Errorf("lock %s: %v, want ErrNoAuth", name, err)
			}
		}
	})
}

func TestNoAuthCreateIsClassified(t *testing.T) {
	for _, on := range []faultdriver.Kind{faultdriver.Get, faultdriver.Children, faultdriver.Watch, faultdriver.Multi} {
		t.Run(on.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				h := connect(t, e.Connector(), nil)
				l, err := h.Mutex("a").Acquire(t.Context())
				must(t, l, err)
				inj := faultdriver.Path("/zklock/...", faultdriver.If("below", func(op faultdriver.Op) bool { return op.Paths[0] != "/zklock" }, faultdriver.On(on, faultdriver.Fail(driver.ErrNoAuth))))
				c := connect(t, faultdriver.Wrap(e.Connector(), inj), nil)
				_, err = c.Mutex("a").Acquire(t.Context(), zklock.WithWait(time.Second))
				if !errors.Is(err, zklock.ErrNoAuth) {
					t.Errorf("Acquire: %v, want ErrNoAuth", err)
				}
				l.Release(t.Context())
			})
		})
	}
}

// TestRootUnreadableIsUnavailable: the root cannot be read for connect_timeout.
func TestRootUnreadableIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		inj := faultdriver.On(faultdriver.Get, faultdriver.Drop())
		c := connect(t, faultdriver.Wrap(e.Connector(), inj), nil)
		_, err := c.Mutex("a").Acquire(t.Context())
		if !errors.Is(err, zklock.ErrUnavailable) {
			t.Errorf("Acquire: %v, want ErrUnavailable", err)
		}
		t.Log(err)
	})
}

// TestSessionHookReportsAnEndOnce: the Session hook is called once for the end of each
// session.
func TestSessionHookReportsAnEndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(10 * time.Millisecond))
		var mu sync.Mutex
		ends := map[int64]int{}
		opened := map[int64]bool{}
		hooks := zklock.Hooks{Session: func(ev zklock.SessionEvent) {
			mu.Lock()
			defer mu.Unlock()
			if ev.State == driver.Expired || ev.State == driver.Closed {
				ends[ev.ID]++
			} else {
				opened[ev.ID] = true
			}
		}}
		c := connect(t, e.Connector(), nil, zklock.WithHooks(hooks))
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				l, err := c.Mutex(fmt.Sprint("n", i)).Acquire(t.Context())
				if err != nil {
					t.Log(err)
					return
				}
				l.Release(t.Context())
			})
		}
		wg.Go(func() { time.Sleep(55 * time.Millisecond); killAll(e) })
		wg.Wait()
		c.Close()
		for id := range opened {
			if ends[id] != 1 {
				t.Errorf("session %x: the hook was called %d times for its end, want once", id, ends[id])
			}
		}
	})
}

// TestConnectTimeoutBoundsLocalWaitersToo: waiters of one process fail after
// connect_timeout together, not one after the other.
func TestConnectTimeoutBoundsLocalWaitersToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		inj := faultdriver.On(faultdriver.Connect, faultdriver.Hang())
		c := connect(t, faultdriver.Wrap(e.Connector(), inj), map[string]string{"connect_timeout": "2s"})
		var wg sync.WaitGroup
		began := time.Now()
		for range 5 {
			wg.Go(func() {
				_, err := c.Mutex("a").Acquire(t.Context())
				if !errors.Is(err, zklock.ErrUnavailable) {
					t.Errorf("Acquire: %v, want ErrUnavailable", err)
				}
				if errors.Is(err, context.DeadlineExceeded) {
					t.Logf("the error matches DeadlineExceeded, and the caller has set no deadline: %v", err)
				}
				if d := time.Since(began); d > 3*time.Second {
					t.Errorf("there was no session, and the waiter failed after %v, with connect_timeout=2s", d)
				}
			})
		}
		wg.Wait()
	})
}

// TestConnectTimeoutStartsWithTheCall: connect_timeout counts from the call, not from the
// first failed try.
func TestConnectTimeoutStartsWithTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		outage := faultdriver.NewToggle(faultdriver.On(faultdriver.Connect, faultdriver.Hang())) // no other session can be opened
		b := connect(t, faultdriver.Wrap(e.Connector(), outage), nil)
		if err := b.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		outage.On()
		e.Partition(memdriver.AroundSession(e.Sessions()[0]))
		began := time.Now()
		_, err := b.Mutex("x").Acquire(t.Context())
		if d := time.Since(began); !errors.Is(err, zklock.ErrUnavailable) || d > 11*time.Second {
			t.Errorf("Acquire returned after %v, with connect_timeout=10s: %v", d, err)
		}
		e.Heal()
	})
}
