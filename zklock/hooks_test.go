package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// pairing counts starts and ends of hooks.
type pairing struct {
	mu     sync.Mutex
	begun  map[string]int
	ended  map[string]int
	twice  []string
	events []string
}

func (p *pairing) start(kind string) func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun[kind]++
	n := 0
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ended[kind]++
		if n++; n > 1 {
			p.twice = append(p.twice, kind)
		}
	}
}

func (p *pairing) note(event string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, event)
}

func newPairing() (*pairing, zklock.Hooks) {
	p := &pairing{begun: map[string]int{}, ended: map[string]int{}}
	return p, zklock.Hooks{
		Acquire: func(ctx context.Context, _ zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
			end := p.start("acquire")
			return ctx, func(r zklock.AcquireResult) {
				if (r.Lock == nil) != (r.Err != nil) {
					p.note(fmt.Sprintf("acquire ended with %v and %v", r.Lock, r.Err))
				}
				end()
			}
		},
		Wait: func(ctx context.Context, _ zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
			end := p.start("wait")
			return ctx, func(zklock.WaitResult) { end() }
		},
		Release: func(ctx context.Context, _ zklock.ReleaseEvent) (context.Context, func(zklock.ReleaseResult)) {
			end := p.start("release")
			return ctx, func(zklock.ReleaseResult) { end() }
		},
		Operation: func(ctx context.Context, _ zklock.OperationEvent) (context.Context, func(error)) {
			end := p.start("operation")
			return ctx, func(error) { end() }
		},
		Lost: func(context.Context, zklock.LostEvent) { p.note("lost") },
	}
}

func TestHooksAreEndedOnceOnEveryPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, hooks := newPairing()
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		faults := about(faultdriver.Random(1, 0.1, faultdriver.Drop(), faultdriver.LoseReply(), faultdriver.NotSent()))
		c := connect(t, faultdriver.Wrap(e.Connector(), faults), map[string]string{"max_waiters": "6"}, zklock.WithHooks(hooks))
		other := connect(t, e.Connector(), nil)
		var wg sync.WaitGroup
		acquires, releases := 0, 0
		var mu sync.Mutex
		for i := range 24 {
			wg.Go(func() {
				for j := range 5 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(30*(i+j)+1)*time.Millisecond)
					a := []zklock.Acquirer{c.Mutex("x"), c.RWMutex("x").Reader(), c.Semaphore("s", 2), zklock.All(c.Mutex("x"), c.Mutex("y")), other.Mutex("x")}[(i+j)%5]
					var l *zklock.Lock
					var err error
					if (i+j)%7 == 0 {
						l, err = a.TryAcquire(ctx)
					} else {
						l, err = a.Acquire(ctx)
					}
					cancel()
					mine := (i+j)%5 != 4
					mu.Lock()
					if mine {
						acquires++
					}
					mu.Unlock()
					if err != nil {
						if !errors.Is(err, zklock.ErrNotAcquired) && !errors.Is(err, zklock.ErrUnavailable) && !errors.Is(err, zklock.ErrTooManyWaiters) {
							t.Errorf("acquire: %v", err)
						}
						continue
					}
					time.Sleep(time.Duration(j) * 5 * time.Millisecond)
					if err := l.Release(context.Background()); err != nil && !errors.Is(err, zklock.ErrReleasePending) {
						t.Errorf("release: %v", err)
					}
					if mine {
						mu.Lock()
						releases++
						mu.Unlock()
					}
				}
			})
		}
		wg.Wait()
		time.Sleep(25 * time.Second)
		if n := nodes(e); n != 0 {
			t.Errorf("left behind:\n%s", e.Dump())
		}
		if st := c.Stats(); st.Held != 0 || st.Acquiring != 0 {
			t.Errorf("Stats after all releases: %+v", st)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		for kind, n := range p.begun {
			if p.ended[kind] != n {
				t.Errorf("%s: %d begun, %d ended", kind, n, p.ended[kind])
			}
		}
		if len(p.twice) > 0 || len(p.events) > 0 {
			t.Errorf("hooks that ended twice: %v; unexpected events: %v", p.twice, p.events)
		}
		if p.begun["acquire"] != acquires || p.begun["release"] != releases || p.begun["wait"] == 0 {
			t.Errorf("starts of hooks: %v; want %d acquires, %d releases and some waits", p.begun, acquires, releases)
		}
	})
}

func TestLostIsReportedOnceAHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, hooks := newPairing()
		e := memdriver.New()
		type key struct{}
		hooks = zklock.JoinHooks(hooks, zklock.Hooks{
			Acquire: func(ctx context.Context, ev zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
				return context.WithValue(ctx, key{}, ev.Name), nil
			},
			Lost: func(ctx context.Context, ev zklock.LostEvent) {
				if ctx.Value(key{}) != ev.Lock.Name() || !errors.Is(ev.Err, zklock.ErrLost) {
					t.Errorf("the Lost hook was called with the context of %v and error %v", ctx.Value(key{}), ev.Err)
				}
			},
		})
		c := connect(t, e.Connector(), nil, zklock.WithHooks(hooks))
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		ctx, cancel := l.Context(t.Context())
		defer cancel()
		joined := mustLock(t)(c.Mutex("x").Acquire(ctx, zklock.Reenter()))
		r := mustLock(t)(c.RWMutex("y").Reader().Acquire(t.Context()))
		e.ExpireAll()
		<-l.Done()
		<-joined.Done()
		<-r.Done()
		for _, l := range []*zklock.Lock{l, joined, r} {
			if err := l.Release(t.Context()); !errors.Is(err, zklock.ErrLost) {
				t.Errorf("Release: %v", err)
			}
			if _, err := l.Txn(t.Context()); !errors.Is(err, zklock.ErrLost) {
				t.Errorf("Txn: %v", err)
			}
			if err := l.Verify(t.Context()); !errors.Is(err, zklock.ErrLost) {
				t.Errorf("Verify: %v", err)
			}
			if err := l.Downgrade(t.Context()); !errors.Is(err, zklock.ErrLost) {
				t.Errorf("Downgrade: %v", err)
			}
		}
		// Done of all lost locks closes before the Lost hook is called for any of them.
		synctest.Wait()
		if n := len(p.events); n != 3 {
			t.Errorf("the Lost hook was called %d times, want 3: %v", n, p.events)
		}
		if _, err := c.Mutex("x").Acquire(ctx); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("acquire with the context of a lost lock: %v", err)
		}
		if _, err := c.Mutex("x").Acquire(ctx, zklock.Reenter()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("re-entry with the context of a lost lock: %v", err)
		}
	})
}

func TestJoinedHooksStartInOrderAndEndInReverse(t *testing.T) {
	var got []string
	type key struct{}
	hook := func(name string) zklock.Hooks {
		text := func(context.Context) string {
			if name == "a" {
				return ""
			}
			if name == "c" {
				t.Error("Inject or Label of c was called, although b has answered")
			}
			return name
		}
		return zklock.Hooks{
			Acquire: func(ctx context.Context, _ zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
				outer, _ := ctx.Value(key{}).(string)
				got = append(got, "start "+outer+name)
				return context.WithValue(ctx, key{}, outer+name), func(zklock.AcquireResult) { got = append(got, "end "+name) }
			},
			Inject: text,
			Label:  text,
		}
	}
	j := zklock.JoinHooks(hook("a"), zklock.Hooks{}, hook("b"), hook("c"))
	_, end := j.Acquire(t.Context(), zklock.AcquireEvent{})
	end(zklock.AcquireResult{})
	if want := []string{"start a", "start ab", "start abc", "end c", "end b", "end a"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if s := j.Inject(t.Context()); s != "b" {
		t.Errorf("Inject: %q", s)
	}
	if s := j.Label(t.Context()); s != "b" {
		t.Errorf("Label: %q", s)
	}
	if none := zklock.JoinHooks(); none.Label != nil || none.Acquire != nil || none.Session != nil || none.Inject != nil || none.Lost != nil {
		t.Error("JoinHooks without arguments returns a hook")
	}
}

// A slow Lost hook keeps no caller waiting. A new request, or a waiter on the lost session,
// gets the next session. It does not ask the lost session over and over; otherwise the
// clock of the synctest bubble would never advance. What was queued on the lost session is
// removed. When the hook is called, Stats already counts the whole loss.
func TestSessionIsReplacedWhileItsLossIsReported(t *testing.T) {
	corekit.Short(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		reported, ended := make(chan struct{}), make(chan struct{})
		var first sync.Once
		e := memdriver.New()
		c := connect(t, e.Connector(), nil, zklock.WithHooks(zklock.Hooks{
			Lost: func(context.Context, zklock.LostEvent) { first.Do(func() { close(reported) }); <-ended },
		}))
		defer close(ended)
		mustLock(t)(c.Mutex("lost").Acquire(ctx))
		mustLock(t)(c.Mutex("lost, too").Acquire(ctx))
		session := e.Sessions()[0]
		other := connect(t, e.Connector(), nil)
		ahead := mustLock(t)(other.Mutex("awaited").Acquire(ctx))
		awaited := acquiring(t, c.Mutex("awaited"), ctx)
		e.Partition(memdriver.AroundSession(session)) // so that no waiter is the first to notice the loss
		<-reported
		if st := c.Stats(); st.Lost != 2 || st.SessionsLost != 1 || st.Held != 0 {
			t.Errorf("Stats are %+v while the first loss is reported, want both locks and the session counted", st)
		}
		synctest.Wait()
		mustRelease(t, mustLock(t)(c.Mutex("another").Acquire(ctx)))
		e.Heal()
		mustRelease(t, mustLock(t)(c.Mutex("lost").Acquire(ctx)))
		mustRelease(t, ahead)
		if l := <-awaited; l != nil {
			mustRelease(t, l)
		}
	})
}

// An acquisition that is refused before it starts still counts: the Acquire hook and Stats
// see it like any other.
func TestRefusedRequestsCallTheAcquireHook(t *testing.T) {
	var events []zklock.AcquireEvent
	var ends []error
	c := open(t, "mem://?dialect=zklock", zklock.WithHooks(zklock.Hooks{
		Acquire: func(ctx context.Context, e zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
			events = append(events, e)
			return ctx, func(r zklock.AcquireResult) {
				if r.Lock != nil || r.Waited != 0 {
					t.Errorf("the result of a refused request is %+v, want no Lock and no wait", r)
				}
				ends = append(ends, r.Err)
			}
		},
		Operation: func(ctx context.Context, e zklock.OperationEvent) (context.Context, func(error)) {
			t.Errorf("a request was sent: %v", e.Kind)
			return ctx, nil
		},
	}))
	curator := open(t, "mem://?dialect=curator", zklock.WithHooks(zklock.Hooks{
		Acquire: func(ctx context.Context, e zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
			events = append(events, e)
			return ctx, func(r zklock.AcquireResult) { ends = append(ends, r.Err) }
		},
	}))
	long := strings.Repeat("x", 600)
	const exclusive, shared, permit = zklock.Exclusive, zklock.Shared, zklock.Permit
	for _, of := range []struct {
		a    zklock.Acquirer
		name string
		mode zklock.Mode
		want error
	}{
		{c.Mutex(""), "", exclusive, zklock.ErrInvalidName},
		{c.Mutex("a//b"), "a//b", exclusive, zklock.ErrInvalidName},
		{c.Mutex(long), long[:512], exclusive, zklock.ErrInvalidName},
		{c.Mutex("a\xff"), "a\ufffd", exclusive, zklock.ErrInvalidName},
		{c.RWMutex("/").Reader(), "/", shared, zklock.ErrInvalidName},
		{c.RWMutex("/").Writer(), "/", exclusive, zklock.ErrInvalidName},
		{c.Semaphore("s", 0), "s", permit, zklock.ErrConflict},
		{c.Semaphore("..", 2), "..", permit, zklock.ErrInvalidName},
		{curator.RWMutex("x").Reader(), "x", shared, zklock.ErrConflict},
		{zklock.All(c.Mutex("a"), c.Mutex("/")), "a", exclusive, zklock.ErrInvalidName},
		{zklock.All(c.Mutex("a"), nil), "a", exclusive, zklock.ErrMisuse},
		{zklock.All((*zklock.Mutex)(nil), c.RWMutex("a").Reader()), "", exclusive, zklock.ErrMisuse},
		{zklock.All(c.RWMutex("a").Reader(), c.Semaphore("s", 2)), "a", shared, zklock.ErrConflict},
		{zklock.All(c.RWMutex("a").Reader(), zklock.All(c.Mutex("b"))), "a", shared, zklock.ErrConflict},
		{zklock.All(zklock.All(c.Mutex("b"))), "", exclusive, zklock.ErrConflict},
		{zklock.All(c.Mutex("a"), curator.Mutex("b")), "a", exclusive, zklock.ErrConflict},
	} {
		for _, try := range []bool{false, true} {
			events, ends = nil, nil
			before := c.Stats().Failed + curator.Stats().Failed
			acquire := of.a.Acquire
			if try {
				acquire = of.a.TryAcquire
			}
			_, err := acquire(t.Context())
			if want := (zklock.AcquireEvent{Name: of.name, Mode: of.mode, Try: try}); !errors.Is(err, of.want) || len(events) != 1 || events[0] != want || len(ends) != 1 || ends[0] != err {
				t.Errorf("%T %.20q, try %v: events %+v, ended with %v; error %v", of.a, of.name, try, events, ends, err)
			}
			if n := c.Stats().Failed + curator.Stats().Failed - before; n != 1 {
				t.Errorf("%T %.20q: Stats counts %d as failed, want 1", of.a, of.name, n)
			}
		}
	}
	if st := c.Stats(); st.Waiting != 0 || st.Acquired != 0 {
		t.Errorf("Stats after refused requests only: %+v", st)
	}
	// A request that knows no Client has no hooks to call.
	for _, a := range []zklock.Acquirer{(*zklock.Mutex)(nil), zklock.All(), zklock.All(nil), (*zklock.Client)(nil).Mutex("x"), new(zklock.Mutex)} {
		if _, err := a.Acquire(t.Context()); err == nil {
			t.Errorf("%T: acquired", a)
		}
	}
}

// A Session hook that is still busy with the event of a lost connection does not delay
// the end of the lock when the lease is over.
func TestBusySessionHookDoesNotHoldUpALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		slow := zklock.Hooks{Session: func(e zklock.SessionEvent) {
			if e.State != driver.Connected {
				time.Sleep(time.Minute)
			}
		}}
		a, b := connect(t, e.Connector(), nil, zklock.WithHooks(slow)), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))
		ctx, cancel := l.Context(t.Context())
		defer cancel()
		time.Sleep(time.Second)
		id := e.Sessions()[0]
		next := acquiring(t, b.Mutex("x"), t.Context())
		e.Partition(memdriver.AroundSession(id).Reset())
		n := <-next
		if l.Err() == nil || ctx.Err() == nil {
			t.Errorf("another client holds, and the lock's error is %v, its context's %v", l.Err(), ctx.Err())
		}
		mustRelease(t, n)
		e.Heal()
	})
}

// Close returns although the Operation hook takes longer for a heartbeat than the time
// between two heartbeats.
func TestCloseIsNotHeldUpByBusyOperationHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		slow := zklock.Hooks{Operation: func(ctx context.Context, e zklock.OperationEvent) (context.Context, func(error)) {
			if e.Kind == "heartbeat" {
				time.Sleep(1500 * time.Millisecond)
			}
			return ctx, nil
		}}
		c := connect(t, e.Connector(), nil, zklock.WithHooks(slow))
		mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		time.Sleep(10 * time.Second)
		began := time.Now()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("Close took %v", took)
		}
	})
}

// Session events are reported in order, and the newest state is always reported, however
// long a hook takes.
func TestBusySessionHookSeesTheNewestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		var states []driver.State
		slow := zklock.Hooks{Session: func(e zklock.SessionEvent) {
			time.Sleep(7 * time.Second)
			if n := len(states); n == 0 || states[n-1] != e.State {
				states = append(states, e.State)
			}
		}}
		c := connect(t, e.Connector(), nil, zklock.WithHooks(slow))
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		const reconnects = 100
		for range reconnects {
			e.KillConnection(e.Sessions()[0])
			time.Sleep(time.Second)
		}
		if !l.Valid() {
			t.Error("the lock is not valid")
		}
		e.ExpireAll()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if last := states[len(states)-1]; last != driver.Expired && last != driver.Closed {
			t.Errorf("the last state reported is %v", last)
		}
		if n := len(states); n < 10 || n > 2*reconnects+2 {
			t.Errorf("%d of %d changes of state were reported", n, 2*reconnects+2)
		}
	})
}

// Creates below one znode are sent one after the other. When the session ends, those that
// have not been sent fail without a call of the Operation hook, which may be slow.
func TestCloseIsNotHeldUpByPendingWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		slow := zklock.Hooks{Operation: func(ctx context.Context, e zklock.OperationEvent) (context.Context, func(error)) {
			if e.Kind == "enqueue" {
				time.Sleep(500 * time.Millisecond)
			}
			return ctx, nil
		}}
		c := connect(t, e.Connector(), map[string]string{"connect_timeout": "10m"}, zklock.WithHooks(slow))
		var waiters sync.WaitGroup
		for range 300 {
			waiters.Go(func() {
				if _, err := c.Semaphore("x", 3).Acquire(t.Context()); err != nil && !errors.Is(err, zklock.ErrClosed) {
					t.Error(err)
				}
			})
		}
		time.Sleep(3 * time.Second)
		began := time.Now()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("Close took %v", took)
		}
		waiters.Wait()
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
