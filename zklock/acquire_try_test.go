package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// outcomes counts those of tries.
type outcomes struct{ got, taken, unavailable, other atomic.Int64 }

func (n *outcomes) String() string {
	return fmt.Sprintf("%d acquired, %d ErrNotAcquired, %d ErrUnavailable, %d others", n.got.Load(), n.taken.Load(), n.unavailable.Load(), n.other.Load())
}

// count counts one outcome.
func (n *outcomes) count(err error) {
	switch {
	case err == nil:
		n.got.Add(1)
	case errors.Is(err, zklock.ErrUnavailable):
		n.unavailable.Add(1)
	case errors.Is(err, zklock.ErrNotAcquired):
		n.taken.Add(1)
	default:
		n.other.Add(1)
	}
}

// An answer is one also if it is an error: the znode of the name is gone, or another client was faster to make
// it. A try goes on after each of them, although they take longer together than a try waits for one.
func TestTryGoesOnAfterAnswersThatAreErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(500 * time.Millisecond)) // so an answer takes 1 s, and a try waits 2.5 s for one
		c := connect(t, e.Connector(), map[string]string{"session_timeout": "5m"})
		operator, err := e.Connector().Connect(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		defer operator.Close(t.Context())
		for i := range 2 {
			l, err := c.Mutex("x").TryAcquire(t.Context())
			if err != nil {
				t.Fatalf("try %d: %v", i, err)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := operator.Delete(t.Context(), "/zklock/x", driver.AnyVersion); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// An ensemble answers all the time. So no try of a client fails as unavailable: not those that
// begin together before the first session, not those after a loss, and not those while
// pool_max_lifetime replaces a session. Nor does one fail that an ensemble far away answers slowly.
func TestTriesOnAHealthyEnsemble(t *testing.T) {
	const workers = 16
	for _, of := range []struct {
		what    string
		latency time.Duration // there or back
		each    int           // tries of each worker
		params  map[string]string
		upset   func(*memdriver.Ensemble)
		own     func(c *zklock.Client, worker int) zklock.Acquirer
	}{
		{"slow answers, to two clients", 200 * time.Millisecond, 300, map[string]string{"session_timeout": "30s"}, nil, nil}, // 10s are too short for leases there
		{"replacements", time.Millisecond, 625, map[string]string{"pool_max_lifetime": "50ms"}, nil, nil},
		{"expiries", time.Millisecond, 625, nil, (*memdriver.Ensemble).ExpireAll, nil},
		{"sessions that an operator ends", time.Millisecond, 625, nil, killAll, nil},
		{"all of these, with readers", time.Millisecond, 625, map[string]string{"pool_max_lifetime": "50ms", "keep": "5ms"}, killAll, func(c *zklock.Client, worker int) zklock.Acquirer {
			if worker%2 == 0 {
				return c.RWMutex("x").Reader()
			}
			return c.Mutex("x")
		}},
	} {
		t.Run(of.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(of.latency))
				c := connect(t, e.Connector(), of.params)
				clients := []*zklock.Client{c, c}
				if of.latency > time.Millisecond {
					clients[1] = connect(t, e.Connector(), of.params)
				}
				var n, first outcomes
				var wg sync.WaitGroup
				for worker := range workers {
					var a zklock.Acquirer = clients[worker%2].Mutex("x")
					if of.own != nil {
						a = of.own(c, worker)
					}
					wg.Go(func() {
						for i := range corekit.Crowd(of.each) {
							l, err := a.TryAcquire(t.Context())
							if n.count(err); i == 0 {
								first.count(err)
							}
							if err == nil {
								time.Sleep(rand.N(3 * time.Millisecond))
								_ = l.Release(t.Context()) // it may be lost
							} else {
								time.Sleep(rand.N(5 * time.Millisecond))
							}
						}
					})
				}
				stop := make(chan struct{})
				var upsets sync.WaitGroup
				upsets.Go(func() {
					for of.upset != nil {
						select {
						case <-stop:
							return
						case <-time.After(300 * time.Millisecond):
							of.upset(e)
						}
					}
				})
				wg.Wait()
				close(stop)
				upsets.Wait()
				t.Logf("the first %d: %v; all: %v; %d sessions, %d lost", workers, &first, &n, c.Stats().SessionsOpened, c.Stats().SessionsLost)
				if n.unavailable.Load()+n.other.Load() > 0 || n.got.Load() < int64(corekit.Crowd(100)) {
					t.Errorf("%v, want no ErrUnavailable", &n)
				}
			})
		})
	}
}

// In an outage no try fails as one that has met another contender, for there is none: not behind
// another try, and not behind an acquisition that waits for an answer.
func TestTriesInAnOutage(t *testing.T) {
	reset := memdriver.AroundClients(0).Reset()
	for _, of := range []struct {
		what  string
		used  bool // there is a session when the outage begins
		cut   memdriver.Cut
		after time.Duration
	}{
		{"before the first session", false, reset, 0},
		{"a connection that breaks", true, reset, time.Millisecond},
		{"a connection that has been broken for long", true, reset, time.Minute},
		{"a connection that falls silent", true, memdriver.AroundClients(0), 0},
		{"a connection that has been silent for long", true, memdriver.AroundClients(0), 30 * time.Second},
	} {
		for _, waiter := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, waiter %v", of.what, waiter), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := memdriver.New()
					c := connect(t, e.Connector(), nil)
					if of.used {
						mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
					}
					e.Partition(of.cut)
					defer e.Heal()
					time.Sleep(of.after)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					var n outcomes
					var wg sync.WaitGroup
					if waiter {
						wg.Go(func() { _, _ = c.Mutex("x").Acquire(ctx) })
						synctest.Wait()
					}
					for range 20 {
						for range 16 {
							wg.Go(func() {
								_, err := c.Mutex("x").TryAcquire(t.Context())
								n.count(err)
							})
						}
						time.Sleep(500 * time.Millisecond)
					}
					cancel()
					wg.Wait()
					if n.unavailable.Load() != 20*16 {
						t.Errorf("%v, want ErrUnavailable only", &n)
					}
				})
			})
		}
	}
}

// Tries that begin together behind one that asks the ensemble share its answer: they make no request
// of their own. The first of a free name gets the lock.
func TestTriesShareAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(10 * time.Millisecond))
		c, other := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		tries := func() *outcomes {
			n := new(outcomes)
			var wg sync.WaitGroup
			for range 16 {
				wg.Go(func() {
					began := time.Now()
					l, err := c.Mutex("x").TryAcquire(t.Context())
					n.count(err)
					if took := time.Since(began); took > 500*time.Millisecond {
						t.Errorf("a try took %v: it has waited for a holder", took)
					}
					if err == nil {
						time.Sleep(time.Second)
						mustRelease(t, l)
					}
				})
			}
			wg.Wait()
			return n
		}
		held := mustLock(t)(other.Mutex("x").Acquire(t.Context()))
		wantCost(t, "16 tries of a name that is held elsewhere", cost(e, func() {
			if n := tries(); n.taken.Load() != 16 {
				t.Errorf("held elsewhere: %v", n)
			}
		}), memcontrol.Ops{Children: 1})
		mustRelease(t, held)
		if n := tries(); n.got.Load() != 1 || n.taken.Load() != 15 {
			t.Errorf("free: %v", n)
		}
	})
}

// A goroutine that asks for the lock gives up before it has a session. A try behind it asks instead.
func TestTryLeadsWhenTheOneAheadGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		e.Partition(memdriver.AroundClients(0).Reset())
		c := connect(t, e.Connector(), nil)
		failed := make(chan error, 1)
		go func() { _, err := c.Mutex("x").Acquire(t.Context(), zklock.WithWait(time.Second)); failed <- err }()
		synctest.Wait()
		var got [2]*zklock.Lock
		var tries sync.WaitGroup
		for i := range got {
			tries.Go(func() {
				var err error
				if got[i], err = c.Mutex("x").TryAcquire(t.Context()); err != nil && !errors.Is(err, zklock.ErrNotAcquired) {
					t.Errorf("try %d: %v", i, err)
				}
			})
			synctest.Wait()
		}
		if err := <-failed; !errors.Is(err, zklock.ErrUnavailable) {
			t.Errorf("the first: %v, want ErrUnavailable", err)
		}
		e.Heal()
		tries.Wait()
		if got[0] == nil || got[1] != nil {
			t.Fatalf("the tries got %v, want the lock for the first one only", got)
		}
		mustRelease(t, got[0])
	})
}

// A waiter has met a holder, and its connection is lost. A try then does not know whether the holder
// is still there: it asks for itself when there is a connection again.
func TestTryBehindAWaiterThatIsCutOff(t *testing.T) {
	for _, freed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			other := connect(t, e.Connector(), nil)
			held := mustLock(t)(other.Mutex("x").Acquire(t.Context()))
			c := connect(t, e.Connector(), nil)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { _, _ = c.Mutex("x").Acquire(ctx) }()
			synctest.Wait()
			if _, err := c.Mutex("x").TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
				t.Errorf("before the cut: %v, want ErrNotAcquired", err)
			}
			cut := memdriver.AroundSession(e.Sessions()[1]).Reset()
			e.Partition(cut)
			time.Sleep(100 * time.Millisecond)
			if freed {
				cancel()
				synctest.Wait() // the waiter has given up
				mustRelease(t, held)
			}
			began := time.Now() // in the bubble's time
			time.AfterFunc(500*time.Millisecond, func() { e.Heal(cut) })
			l, err := c.Mutex("x").TryAcquire(t.Context())
			switch {
			case !freed && (!errors.Is(err, zklock.ErrNotAcquired) || time.Since(began) < 500*time.Millisecond):
				t.Errorf("across the cut, after %v: %v, want ErrNotAcquired when there is a connection again", time.Since(began), err)
			case freed && err != nil:
				t.Errorf("across the cut, when the name is free: %v", err)
			case freed:
				mustRelease(t, l)
			}
			cancel()
		})
	}
}

// A try goes on for a quarter of connect_timeout without a session or an answer. That time begins
// with the outage, so later tries fail at once, with the reason.
func TestTryInAnOutageIsShort(t *testing.T) {
	corekit.Short(t)
	const limit = 10 * time.Second / 4
	reset := memdriver.AroundClients(0).Reset()
	for _, of := range []struct {
		what  string
		used  bool
		cut   memdriver.Cut
		ahead bool // an acquisition waits ahead of the tries
		apart bool
		known bool // that there is no connection
	}{
		{"before the first session", false, reset, false, false, true},
		{"behind a waiter before the first session", false, reset, true, false, true},
		{"a connection that breaks", true, reset, false, false, true},
		{"behind a waiter whose connection breaks", true, reset, true, false, true},
		{"a separate place", true, reset, false, true, true},
		{"a connection that falls silent", true, memdriver.AroundClients(0), false, false, false},
		{"behind a waiter whose connection falls silent", true, memdriver.AroundClients(0), true, false, false},
	} {
		t.Run(of.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				c := connect(t, e.Connector(), nil)
				if of.used {
					mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
				}
				var opts []zklock.AcquireOption
				if of.apart {
					opts = append(opts, zklock.WithoutHandover())
				}
				try := func(most time.Duration) {
					t.Helper()
					began := time.Now()
					_, err := c.Mutex("x").Acquire(t.Context(), append(opts, zklock.WithWait(0))...)
					if took := time.Since(began); !errors.Is(err, zklock.ErrUnavailable) || errors.Is(err, zklock.ErrNotAcquired) || took > most || of.known && !strings.HasSuffix(err.Error(), ")") {
						t.Errorf("a try took %v: %v, want ErrUnavailable after %v at most, and the reason", took, err, most)
					}
				}
				e.Partition(of.cut)
				ctx, cancel := context.WithCancel(t.Context())
				if of.ahead {
					go func() { _, _ = c.Mutex("x").Acquire(ctx) }()
				}
				synctest.Wait()
				outage := time.Now()
				try(limit)
				if !of.known {
					time.Sleep(time.Until(outage.Add(7 * time.Second))) // a silent connection is given up after two thirds of the session timeout
				}
				for range 100 {
					try(0)
					time.Sleep(500 * time.Millisecond)
				}
				cancel()
				e.Heal()
			})
		})
	}
}

// A session has to be opened first, and that takes a while. The first try of a program waits for it.
func TestFirstTryWaitsForItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		e.Partition(memdriver.AroundClients(0))
		time.AfterFunc(2*time.Second, func() { e.Heal() })
		l, err := connect(t, e.Connector(), nil).Mutex("x").TryAcquire(t.Context())
		if err != nil {
			t.Fatalf("an ensemble that answers after 2s: %v", err)
		}
		mustRelease(t, l)
	})
}

// A reader asks, and a writer and a reader's try queue behind it. When the reader has the lock, the
// writer waits for it. So the try fails at once.
func TestReadersTryBehindAWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New(memdriver.WithLatency(10*time.Millisecond)).Connector(), nil)
		reader := acquiring(t, c.RWMutex("x").Reader(), t.Context())
		writer := acquiring(t, c.RWMutex("x").Writer(), t.Context())
		began := time.Now()
		if _, err := c.RWMutex("x").Reader().TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) || time.Since(began) > time.Second {
			t.Errorf("after %v: %v, want ErrNotAcquired as soon as the reader has the lock", time.Since(began), err)
		}
		mustRelease(t, <-reader)
		mustRelease(t, <-writer)
	})
}

// A reader that gives up leaves its place to the goroutine behind it. If that one is a writer's try, the
// place is of no use to it, and no node stays in the queue. Every instant at which the reader can give up
// is tried.
func TestTryThatGetsAReadersPlaceLeavesNothing(t *testing.T) {
	const latency = 10 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(latency))
		c, other := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
		for wait := time.Millisecond; wait < 20*latency; wait += time.Millisecond {
			held := mustLock(t)(other.Mutex("x").Acquire(t.Context()))
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			tried := readThenTry(t, c, ctx)
			if err := <-tried; !errors.Is(err, zklock.ErrNotAcquired) {
				t.Errorf("a reader that waits for %v, and a try: %v, want ErrNotAcquired", wait, err)
			}
			cancel()
			mustRelease(t, held)
			time.Sleep(20 * latency)
			if n := nodes(e); n != 0 {
				t.Fatalf("%d nodes stay behind a reader that gave up after %v and a try behind it\n%s", n, wait, e.Dump())
			}
		}
	})
}

// The place that a try replaces is not in its way.
func TestTryIsNotRefusedForThePlaceItReplaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		silent := faultdriver.NewCounter(faultdriver.Once(about(faultdriver.On(faultdriver.Watch, faultdriver.Hang()))))
		c, other := connect(t, faultdriver.Wrap(e.Connector(), silent), nil), connect(t, e.Connector(), nil)
		held := mustLock(t)(other.Mutex("x").Acquire(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		tried := readThenTry(t, c, ctx) // the reader does not learn of the release
		mustRelease(t, held)
		cancel()
		if err := <-tried; err != nil {
			t.Errorf("a try of a free lock: %v", err)
		}
		synctest.Wait()
		if n := nodes(e); silent.Struck() != 1 || n != 0 {
			t.Errorf("%d watches got no answer, want 1; %d nodes stay, want none", silent.Struck(), n)
		}
	})
}

// readThenTry makes a reader wait for the name x until ctx ends, and then a writer try to acquire it. It
// returns the try's error; a lock that the try got is released.
func readThenTry(t *testing.T, c *zklock.Client, ctx context.Context) <-chan error {
	go func() {
		if l, err := c.RWMutex("x").Reader().Acquire(ctx); err == nil {
			t.Errorf("the reader got %v, and another client holds the lock", l.Token())
		}
	}()
	synctest.Wait()
	tried := make(chan error, 1)
	go func() {
		l, err := c.Mutex("x").TryAcquire(t.Context())
		if err == nil {
			err = l.Release(t.Context())
		}
		tried <- err
	}()
	synctest.Wait()
	return tried
}

// A try finds the lock free, and another client acquires it before the try's node is
// created. The try does not wait for that client.
func TestTryThatIsBeatenDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		other := connect(t, e.Connector(), nil)
		mustRelease(t, mustLock(t)(other.Mutex("x").Acquire(t.Context())))
		var l *zklock.Lock
		c := connect(t, e.Connector(), nil, zklock.WithHooks(operating("enqueue", func() {
			l = mustLock(t)(other.Mutex("x").Acquire(t.Context()))
		})))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		if _, err := c.Mutex("x").TryAcquire(ctx); !errors.Is(err, zklock.ErrNotAcquired) || time.Since(began) > time.Second {
			t.Errorf("TryAcquire returned after %v: %v, want ErrNotAcquired at once", time.Since(began), err)
		}
		synctest.Wait()
		if n := nodes(e); l == nil || n != 1 {
			t.Errorf("%d nodes:\n%s", n, e.Dump())
		}
		mustRelease(t, l)
		mustRelease(t, mustLock(t)(c.Mutex("x").TryAcquire(ctx))) // the first try has left nothing behind
	})
}

// A try sees a release by the same client on another session: it sends a Sync first. On
// the same session it needs none.
func TestTrySeesAReleaseOnAnotherSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), map[string]string{"pool_max_lifetime": "3s"})
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
		var l *zklock.Lock
		try := func() { l = mustLock(t)(c.Mutex("x").TryAcquire(t.Context())) }
		if d := cost(e, try); d.Syncs != 0 {
			t.Errorf("a try on the same session: %+v, want no Sync", d)
		}
		mustRelease(t, l)
		time.Sleep(4 * time.Second)
		if d := cost(e, try); d.Syncs != 1 {
			t.Errorf("a try on another session: %+v, want one Sync", d)
		}
		mustRelease(t, l)
	})
}

func TestTriesDoNotWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("a").Acquire(t.Context()))
		if err := b.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		refused := func(c *zklock.Client) func() {
			return func() {
				if _, err := c.Mutex("a").TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
					t.Errorf("TryAcquire of a held lock: %v", err)
				}
			}
		}
		wantCost(t, "a try, held remotely", cost(e, refused(b)), memcontrol.Ops{Children: 1})
		wantCost(t, "a try, held locally", cost(e, refused(a)), memcontrol.Ops{})
		mustRelease(t, l)
	})
}
