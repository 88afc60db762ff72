package zklock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// However many requests come at the same time, exactly as many wait as max_waiters allows.
// That is so whether the first of them gets the lock or has to wait for another process,
// which is unknown until the ensemble has answered. A request that gets the lock at once is
// never refused.
func TestMaxWaitersIsExactWhenAllComeAtOnce(t *testing.T) {
	const limit, callers = 2, 10
	mutex := func(c *zklock.Client) zklock.Acquirer { return c.Mutex("x") }
	reader := func(c *zklock.Client) zklock.Acquirer { return c.RWMutex("x").Reader() }
	semaphore := func(c *zklock.Client) zklock.Acquirer { return c.Semaphore("x", 3) }
	all := func(c *zklock.Client) zklock.Acquirer { return zklock.All(c.Mutex("x"), c.RWMutex("y").Reader()) }
	readers := func(c *zklock.Client) zklock.Acquirer {
		return zklock.All(c.RWMutex("x").Reader(), c.RWMutex("y").Reader())
	}
	alone := []zklock.AcquireOption{zklock.WithoutHandover()}
	for _, c := range []struct {
		what   string
		kind   func(*zklock.Client) zklock.Acquirer
		taken  func(*zklock.Client) zklock.Acquirer // by another client
		opts   []zklock.AcquireOption
		held   int // by the callers
		waits  int
		queued int // contenders of x when all is settled
	}{
		{"mutex, free", mutex, nil, nil, 1, limit, 1},
		{"mutex, taken", mutex, mutex, nil, 0, limit, 2},
		{"mutex without hand-over, free", mutex, nil, alone, 1, limit, 1},
		{"mutex without hand-over, taken", mutex, mutex, alone, 0, limit, 2},
		{"reader, free", reader, nil, nil, callers, 0, 1},
		{"reader, taken by a reader", reader, reader, nil, callers, 0, 2},
		{"reader, taken", reader, mutex, nil, 0, limit, 2},
		{"reader without hand-over, free", reader, nil, alone, callers, 0, callers},
		{"reader without hand-over, taken", reader, mutex, alone, 0, limit, 1 + limit},
		{"semaphore, free", semaphore, nil, nil, 3, limit, 3},
		{"semaphore, taken once", semaphore, semaphore, nil, 2, limit, 4},
		{"all, free", all, nil, nil, 1, limit, 1},
		{"all, taken", all, mutex, nil, 0, limit, 2},
		{"all of readers, free", readers, nil, nil, callers, 0, callers},
	} {
		for _, own := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New(memdriver.WithLatency(10 * time.Millisecond))
				params, opts := map[string]string{"max_waiters": "2"}, c.opts
				if own {
					params, opts = nil, append(slices.Clip(opts), zklock.WithMaxWaiters(limit))
				}
				other, client := connect(t, e.Connector(), nil), connect(t, e.Connector(), params)
				var theirs *zklock.Lock
				if c.taken != nil {
					theirs = mustLock(t)(c.taken(other).Acquire(t.Context()))
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				locks, errs := make(chan *zklock.Lock, callers), make(chan error, callers)
				for range callers {
					go func() {
						l, err := c.kind(client).Acquire(ctx, opts...)
						if err != nil {
							errs <- err
							return
						}
						locks <- l
					}()
				}
				time.Sleep(time.Second)
				if n, want := len(errs), callers-c.waits-c.held; n != want || len(locks) != c.held || client.Stats().Waiting != c.waits {
					t.Fatalf("%s: %d refused, %d hold, %d wait; want %d, %d and %d", c.what, n, len(locks), client.Stats().Waiting, want, c.held, c.waits)
				}
				for len(errs) > 0 {
					if err := <-errs; !errors.Is(err, zklock.ErrTooManyWaiters) || errors.Is(err, zklock.ErrNotAcquired) || errors.Is(err, zklock.ErrUnavailable) {
						t.Errorf("%s: %v", c.what, err)
					}
				}
				queue, err := other.Contenders(t.Context(), "x")
				if err != nil || len(queue) != c.queued {
					t.Errorf("%s: %d contenders, want %d: %v\n%s", c.what, len(queue), c.queued, err, e.Dump())
				}
				// The requests that were not refused get the lock.
				if theirs != nil {
					mustRelease(t, theirs)
				}
				for range c.waits + c.held {
					select {
					case l := <-locks:
						mustRelease(t, l)
					case err := <-errs:
						t.Fatalf("%s: %v", c.what, err)
					}
				}
				// Afterwards a new request is accepted.
				mustRelease(t, mustLock(t)(c.kind(client).Acquire(ctx, opts...)))
			})
		}
	}
}

// A try never waits, so a limit on waiters neither refuses nor counts it.
func TestTryIsNotAWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(10 * time.Millisecond))
		other, client := connect(t, e.Connector(), nil), connect(t, e.Connector(), map[string]string{"max_waiters": "1"})
		for _, c := range []struct {
			what  string
			of    *zklock.Client // the holder
			tries int            // how many are under way
		}{{"held here", client, 0}, {"held elsewhere", other, 5}} {
			l := mustLock(t)(c.of.Mutex("x").Acquire(t.Context()))
			refused := make(chan error, 5)
			for range c.tries {
				go func() { _, err := client.Mutex("x").TryAcquire(t.Context(), zklock.WithoutHandover()); refused <- err }()
			}
			time.Sleep(time.Millisecond)
			next := acquiring(t, client.Mutex("x"), t.Context())
			time.Sleep(time.Second)
			for what, try := range map[string]func() (*zklock.Lock, error){
				"TryAcquire": func() (*zklock.Lock, error) { return client.Mutex("x").TryAcquire(t.Context()) },
				"without hand-over": func() (*zklock.Lock, error) {
					return client.Mutex("x").TryAcquire(t.Context(), zklock.WithoutHandover())
				},
				"a reader":    func() (*zklock.Lock, error) { return client.RWMutex("x").Reader().TryAcquire(t.Context()) },
				"WithWait(0)": func() (*zklock.Lock, error) { return client.Mutex("x").Acquire(t.Context(), zklock.WithWait(0)) },
				"WithMaxWaiters": func() (*zklock.Lock, error) {
					return client.Mutex("x").TryAcquire(t.Context(), zklock.WithMaxWaiters(1))
				},
			} {
				if _, err := try(); !errors.Is(err, zklock.ErrNotAcquired) || errors.Is(err, zklock.ErrTooManyWaiters) {
					t.Errorf("%s, %s: %v", c.what, what, err)
				}
			}
			for range c.tries {
				if err := <-refused; !errors.Is(err, zklock.ErrNotAcquired) {
					t.Errorf("%s: %v", c.what, err)
				}
			}
			mustRelease(t, l)
			mustRelease(t, <-next)
		}
	})
}

// max_waiters is 1 and one request waits. A further request for an exclusive lock or for a
// permit would have to wait behind it. So the client refuses it without a request to the
// ensemble, whatever kind of node the waiter has. The same goes for a reader that a
// goroutine of this process keeps out.
func TestOneTooManyIsRefusedWithoutARequest(t *testing.T) {
	mutex := func(c *zklock.Client) zklock.Acquirer { return c.Mutex("x") }
	reader := func(c *zklock.Client) zklock.Acquirer { return c.RWMutex("x").Reader() }
	semaphore := func(c *zklock.Client) zklock.Acquirer { return c.Semaphore("x", 1) }
	all := func(c *zklock.Client) zklock.Acquirer { return zklock.All(c.Mutex("y"), c.Mutex("x")) }
	alone := []zklock.AcquireOption{zklock.WithoutHandover()}
	for _, c := range []struct {
		what         string
		waits, comes func(*zklock.Client) zklock.Acquirer
		waitOpts     []zklock.AcquireOption
		comeOpts     []zklock.AcquireOption
	}{
		{"mutex", mutex, mutex, nil, nil},
		{"mutex behind one without hand-over", mutex, mutex, alone, nil},
		{"mutex without hand-over behind one with it", mutex, mutex, nil, alone},
		{"mutex behind all", all, mutex, nil, nil},
		{"all behind a mutex", mutex, all, nil, nil},
		{"mutex behind a reader", reader, mutex, nil, nil},
		{"reader behind a mutex", mutex, reader, nil, nil},
		{"reader behind a reader", reader, reader, nil, nil},
		{"semaphore", semaphore, semaphore, nil, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			other, client := connect(t, e.Connector(), nil), connect(t, e.Connector(), map[string]string{"max_waiters": "1"})
			holder := mutex(other)
			if _, ok := c.comes(client).(*zklock.Semaphore); ok {
				holder = semaphore(other)
			}
			l := mustLock(t)(holder.Acquire(t.Context()))
			next := acquiring(t, c.waits(client), t.Context(), c.waitOpts...)
			synctest.Wait()
			wantCost(t, c.what, cost(e, func() {
				if _, err := c.comes(client).Acquire(t.Context(), c.comeOpts...); !errors.Is(err, zklock.ErrTooManyWaiters) {
					t.Errorf("%s: %v", c.what, err)
				}
			}), memcontrol.Ops{})
			mustRelease(t, l)
			mustRelease(t, <-next)
		})
	}
}

// A request that is refused is not a waiter: the Wait hook is not called for it.
func TestRejectedAcquisitionDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits int
		hooks := zklock.Hooks{Wait: func(ctx context.Context, _ zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
			waits++
			return ctx, nil
		}}
		client := connect(t, memdriver.New().Connector(), nil, zklock.WithHooks(hooks))
		l := mustLock(t)(client.Mutex("x").Acquire(t.Context()))
		next := acquiring(t, client.Mutex("x"), t.Context())
		synctest.Wait()
		if _, err := client.RWMutex("x").Reader().Acquire(t.Context(), zklock.WithMaxWaiters(1)); !errors.Is(err, zklock.ErrTooManyWaiters) || waits != 1 {
			t.Errorf("error %v and %d calls of the Wait hook, want ErrTooManyWaiters and one call", err, waits)
		}
		mustRelease(t, l)
		mustRelease(t, <-next)
		if st := client.Stats(); st.Failed != 1 || st.Acquired != 2 {
			t.Errorf("Stats are %+v, want 1 failed and 2 acquired", st)
		}
	})
}

// A second request is accepted while the first one is still asking the ensemble. When it
// becomes known that the lock is taken, the second one is not refused if max_waiters
// allows all requests that wait by then.
func TestMaxWaitersRejectsNoneWhileThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(10 * time.Millisecond))
		other, client := connect(t, e.Connector(), nil), connect(t, e.Connector(), map[string]string{"max_waiters": "1"})
		theirs := mustLock(t)(other.Mutex("x").Acquire(t.Context()))
		gone, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() { _, err := client.Mutex("x").Acquire(gone); first <- err }()
		time.Sleep(time.Millisecond) // until it is asking the ensemble
		second := acquiring(t, client.Mutex("x"), t.Context())
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if _, err := client.Mutex("x").Acquire(t.Context()); !errors.Is(err, zklock.ErrTooManyWaiters) {
			t.Errorf("a request while one waits: %v, want ErrTooManyWaiters", err)
		}
		mustRelease(t, theirs)
		mustRelease(t, <-second)
	})
}

// While a name's first request in a process asks the ensemble, WithMaxWaiters counts only the
// requests behind it.
func TestMaxWaitersCountsWaitersOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(10 * time.Millisecond))
		client := connect(t, e.Connector(), nil)
		mustRelease(t, mustLock(t)(client.Mutex("y").Acquire(t.Context()))) // so that there is a session
		var all []chan *zklock.Lock
		for range 3 { // the first asks, two wait for it
			all = append(all, acquiring(t, client.Mutex("x"), t.Context()))
		}
		if _, err := client.Mutex("x").Acquire(t.Context(), zklock.WithMaxWaiters(2)); !errors.Is(err, zklock.ErrTooManyWaiters) {
			t.Errorf("WithMaxWaiters(2) while two wait: %v, want ErrTooManyWaiters", err)
		}
		l, err := client.Mutex("x").Acquire(t.Context(), zklock.WithMaxWaiters(3), zklock.WithWait(time.Millisecond))
		if !errors.Is(err, zklock.ErrNotAcquired) {
			t.Errorf("WithMaxWaiters(3) while two wait: %v, %v, want ErrNotAcquired", l, err)
		}
		for _, l := range all {
			mustRelease(t, <-l)
		}
	})
}

// calling is a context whose Value calls do.
type calling struct {
	context.Context
	do func()
}

func (c calling) Value(key any) any {
	c.do()
	return c.Context.Value(key)
}

// The context of a request that is refused may call the client.
func TestRefusedRequestHasAContextThatCallsTheClient(t *testing.T) {
	e := memdriver.New(memdriver.WithLatency(10 * time.Millisecond))
	other, client := connect(t, e.Connector(), nil), connect(t, e.Connector(), map[string]string{"max_waiters": "1"})
	theirs := mustLock(t)(other.Mutex("x").Acquire(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	calls := calling{ctx, func() {
		done := make(chan struct{})
		go func() {
			client.Stats()
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(5 * time.Second):
			t.Error("Stats does not return while the context of a request is asked for a value")
		}
	}}
	refused := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := client.Mutex("x").Acquire(calls, zklock.WithoutHandover())
			refused <- err
		}()
	}
	if err := <-refused; !errors.Is(err, zklock.ErrTooManyWaiters) {
		t.Errorf("one of two requests: %v, want ErrTooManyWaiters", err)
	}
	cancel()
	if err := <-refused; !errors.Is(err, context.Canceled) {
		t.Errorf("the other request: %v, want that of its context", err)
	}
	mustRelease(t, theirs)
}

func TestWaitLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), map[string]string{"max_waiters": "2", "max_names": "2"})
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		first := acquiring(t, c.Mutex("x"), t.Context())
		wantCost(t, "a refused waiter", cost(e, func() {
			if _, err := c.Mutex("x").Acquire(t.Context(), zklock.WithMaxWaiters(1)); !errors.Is(err, zklock.ErrTooManyWaiters) {
				t.Errorf("WithMaxWaiters(1) with one waiter: %v, want ErrTooManyWaiters", err)
			}
		}), memcontrol.Ops{})
		second := acquiring(t, c.Mutex("x"), t.Context())
		if _, err := c.Mutex("x").Acquire(t.Context(), zklock.WithMaxWaiters(9)); !errors.Is(err, zklock.ErrTooManyWaiters) {
			t.Errorf("max_waiters=2 with two waiters: %v, want ErrTooManyWaiters", err)
		}
		y := mustLock(t)(c.Mutex("y").Acquire(t.Context()))
		if _, err := c.Mutex("z").Acquire(t.Context()); !errors.Is(err, zklock.ErrTooManyWaiters) {
			t.Errorf("max_names=2 with two names: %v, want ErrTooManyWaiters", err)
		}
		mustRelease(t, y)
		mustRelease(t, mustLock(t)(c.Mutex("z").Acquire(t.Context())))
		mustRelease(t, l)
		mustRelease(t, <-first)
		mustRelease(t, <-second)
	})
}

func TestMaxContendersIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		limit := map[string]string{"max_contenders": "3"}
		holder := connect(t, e.Connector(), limit)
		l := mustLock(t)(holder.Mutex("x").Acquire(t.Context()))
		type result struct {
			l   *zklock.Lock
			err error
		}
		results := make(chan result, 8)
		for range 8 {
			c := connect(t, e.Connector(), limit)
			go func() {
				l, err := c.Mutex("x").Acquire(t.Context())
				results <- result{l, err}
			}()
		}
		synctest.Wait()
		for range 6 {
			if r := <-results; !errors.Is(r.err, zklock.ErrTooManyWaiters) {
				t.Errorf("a contender above the limit: %v, want ErrTooManyWaiters", r.err)
			}
		}
		if n := nodes(e); n != 3 {
			t.Errorf("%d contenders, want 3", n)
		}
		mustRelease(t, l)
		for range 2 {
			r := <-results
			mustRelease(t, mustLock(t)(r.l, r.err))
		}
	})
}

// max_contenders limits new contenders only. A waiter that is in the queue already is not
// refused when its client replaces its place by a new one at the tail.
func TestRequeueIsNotANewcomer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), map[string]string{"max_contenders": "1"})
		other := connect(t, e.Connector(), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		next := acquiring(t, c.Mutex("x"), t.Context())
		theirs := acquiring(t, other.Mutex("x"), t.Context())
		time.Sleep(time.Second) // longer than handover_time
		mustRelease(t, l)
		mustRelease(t, <-theirs)
		mustRelease(t, <-next)
	})
}
