package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/faultcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// asked counts the requests of clients by kind.
type asked struct {
	mu sync.Mutex
	of map[string]int // guarded by mu; by client and kind
}

// hooks returns hooks that count the requests of a client.
func (b *asked) hooks(client int) zklock.Option {
	return zklock.WithHooks(zklock.Hooks{Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.of[fmt.Sprint(client, " ", ev.Kind)]++
		return ctx, nil
	}})
}

// take returns the counts since the last call.
func (b *asked) take() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := b.of
	b.of = make(map[string]int)
	return of
}

// contestants is clients that want one name. They queue in the order of their numbers.
type contestants struct {
	e      *memdriver.Ensemble
	asked  *asked
	locks  []chan *zklock.Lock
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// lineUp begins acquisitions of one client each. want makes the acquirer of client i.
func lineUp(t *testing.T, e *memdriver.Ensemble, clients int, want func(i int, c *zklock.Client) zklock.Acquirer, opts ...zklock.Option) *contestants {
	w := &contestants{e: e, asked: &asked{of: make(map[string]int)}}
	ctx, cancel := context.WithCancel(t.Context())
	w.cancel = cancel
	for i := range clients {
		a := want(i, connect(t, e.Connector(), nil, append([]zklock.Option{w.asked.hooks(i)}, opts...)...))
		got := make(chan *zklock.Lock, 1)
		w.wg.Go(func() {
			if l, err := a.Acquire(ctx); err == nil {
				got <- l
			}
		})
		time.Sleep(100 * time.Millisecond) // it is in the queue
		w.locks = append(w.locks, got)
	}
	return w
}

// leave ends the acquisitions that wait.
func (w *contestants) leave() {
	w.cancel()
	w.wg.Wait()
}

// A waiter that is far from the front and gives up needs no lease to leave: its session sends the delete, and no heartbeat.
func TestFarWaiterThatLeavesSendsNoHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		w := lineUp(t, e, 2, func(_ int, c *zklock.Client) zklock.Acquirer { return c.Mutex("x") })
		defer w.leave()
		third := connect(t, e.Connector(), nil, w.asked.hooks(2))
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := third.Mutex("x").Acquire(ctx)
			left <- err
		}()
		time.Sleep(time.Minute)
		w.asked.take()
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if n := w.asked.take()["2 heartbeat"]; n > 0 || nodes(e) != 2 {
			t.Errorf("the waiter sent %d heartbeats, want none; there are %d nodes, want 2", n, nodes(e))
		}
	})
}

// Of a thousand sessions that want one name, only those of the holders and of the first in
// line send heartbeats. The others prove their leases when it is their turn.
func TestFarWaitersSendNoHeartbeats(t *testing.T) {
	corekit.Short(t)
	mutex := func(_ int, c *zklock.Client) zklock.Acquirer { return c.Mutex("x") }
	for _, kind := range []struct {
		name    string
		holders int
		want    func(i int, c *zklock.Client) zklock.Acquirer
	}{
		{"mutex", 1, mutex},
		{"semaphore", 3, func(_ int, c *zklock.Client) zklock.Acquirer { return c.Semaphore("x", 3) }},
		{"writers behind readers", 3, func(i int, c *zklock.Client) zklock.Acquirer {
			if i < 3 {
				return c.RWMutex("x").Reader()
			}
			return mutex(i, c)
		}},
		{"two names", 1, func(_ int, c *zklock.Client) zklock.Acquirer { return zklock.All(c.Mutex("x"), c.Mutex("y")) }},
		{"readers behind two writers", 1, func(i int, c *zklock.Client) zklock.Acquirer {
			if i < 2 {
				return mutex(i, c)
			}
			return c.RWMutex("x").Reader()
		}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const during = 2 * time.Minute
				clients := corekit.Crowd(100)
				if kind.name == "mutex" && !corekit.Race && long.On() {
					clients = 1000
				}
				e := memdriver.New()
				w := lineUp(t, e, clients, kind.want)
				defer w.leave()
				time.Sleep(30 * time.Second)
				w.asked.take()
				d := cost(e, func() { time.Sleep(during) })
				busy := kind.holders + 1
				if least, most := 40*busy, 66*busy; d.Writes() < least || d.Writes() > most {
					t.Errorf("%d writes in two minutes, want %d to %d: 0.33 to 0.55 a second for each of %d sessions", d.Writes(), least, most, busy)
				}
				asked := w.asked.take()
				for i := busy; i < clients; i++ {
					if n := asked[fmt.Sprint(i, " heartbeat")]; n > 0 {
						t.Fatalf("client %d sent %d heartbeats while it waited", i, n)
					}
					if n := asked[fmt.Sprint(i, " sync")]; n < 60 {
						t.Fatalf("client %d sent %d Syncs in two minutes while it waited, want more than 60", i, n)
					}
				}
			})
		})
	}
}

// A waiter that has rested for minutes is granted the lock after one heartbeat. It sends that
// heartbeat when it becomes the first in line: the contender ahead of it leaves or, for a
// permit, becomes a holder.
func TestRestedWaiterProvesItsLeaseWhenItWakes(t *testing.T) {
	for _, permits := range []int{1, 3} {
		t.Run(fmt.Sprint(permits), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New(memdriver.WithLatency(time.Millisecond))
				w := lineUp(t, e, 30, func(_ int, c *zklock.Client) zklock.Acquirer {
					if permits == 1 {
						return c.Mutex("x")
					}
					return c.Semaphore("x", permits)
				})
				defer w.leave()
				time.Sleep(3 * time.Minute)
				for i := range 20 {
					holder, next := soon(t, "the holder", w.locks[i]), i+permits
					w.asked.take()
					mustRelease(t, holder)
					l := soon(t, "the next in line", w.locks[next])
					asked := w.asked.take()
					if !l.Valid() || asked[fmt.Sprint(next, " heartbeat")] > 1 {
						t.Errorf("client %d sent %d heartbeats to be granted the lock, want at most one; valid: %v", next, asked[fmt.Sprint(next, " heartbeat")], l.Valid())
					}
					w.locks[next] <- l
					time.Sleep(100 * time.Millisecond)
					if n := w.asked.take()[fmt.Sprint(next+1, " heartbeat")]; permits > 1 && n != 1 {
						t.Errorf("client %d, which is the first in line now, sent %d heartbeats, want one", next+1, n)
					}
				}
			})
		})
	}
}

// An idle client sends few Syncs. From its first lock on it sends one each second with the default settings, whenever the
// last one was: so a server that falls silent is noticed as soon as with a lock that is held for long.
func TestFirstLockOfAnIdleClientIsProvenOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		var mu sync.Mutex
		var syncs []time.Time // guarded by mu
		c := connect(t, e.Connector(), nil, zklock.WithHooks(zklock.Hooks{Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
			if mu.Lock(); ev.Kind == "sync" {
				syncs = append(syncs, time.Now())
			}
			mu.Unlock()
			return ctx, nil
		}}))
		for idle := 250 * time.Millisecond; idle < 12*time.Second; idle += 250 * time.Millisecond {
			time.Sleep(idle)
			l, began := mustLock(t)(c.Mutex("x").Acquire(t.Context())), time.Now()
			mu.Lock()
			syncs = nil
			mu.Unlock()
			time.Sleep(3 * time.Second)
			mu.Lock()
			if len(syncs) < 3 || syncs[0].Sub(began) > time.Second {
				t.Errorf("after %v without a lock, which was granted at %v: Syncs at %v, want one each second", idle, began, syncs)
			}
			mu.Unlock()
			mustRelease(t, l)
		}
	})
}

// A waiter that wakes sends its heartbeat and its first read at the same moment. The heartbeat
// does not wait for the least interval of exchanges after a Sync, only for that after another
// heartbeat.
func TestRestedWaiterWakesRightAfterASync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		held := mustLock(t)(connect(t, e.Connector(), nil).Mutex("x").Acquire(t.Context()))
		second := acquiring(t, connect(t, e.Connector(), nil).Mutex("x"), t.Context())
		time.Sleep(time.Second)
		synced := make(chan struct{}, 1)
		var mu sync.Mutex                  // the heartbeat and the read are sent by two goroutines
		sent := make(map[string]time.Time) // by kind; guarded by mu
		third := connect(t, e.Connector(), nil, zklock.WithHooks(zklock.Hooks{Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
			mu.Lock()
			defer mu.Unlock()
			if sent[ev.Kind].IsZero() {
				sent[ev.Kind] = time.Now()
			}
			return ctx, func(error) {
				if ev.Kind == "sync" {
					select {
					case synced <- struct{}{}:
					default:
					}
				}
			}
		}}))
		waits := acquiring(t, third.Mutex("x"), t.Context())
		time.Sleep(time.Minute)
		mustRelease(t, held)
		held = soon(t, "the second", second)
		time.Sleep(time.Minute)
		select {
		case <-synced:
		default:
		}
		<-synced
		mu.Lock()
		clear(sent)
		mu.Unlock()
		began := time.Now()
		mustRelease(t, held)
		l := soon(t, "the third", waits)
		mu.Lock()
		beat, read := sent["heartbeat"], sent["list"]
		mu.Unlock()
		if beat.IsZero() || !beat.Equal(read) {
			t.Errorf("the heartbeat was sent %v after the release, and the first read %v after it; want the same moment", beat.Sub(began), read.Sub(began))
		}
		if took := time.Since(began); took > 50*time.Millisecond {
			t.Errorf("the lock was granted %v after its release, want a few round trips of 2ms", took)
		}
		mustRelease(t, l)
	})
}

// Readers of many clients rest behind a writer that waits. When it has held the lock and
// leaves, all of them are granted the lock: none lists the queue, although each waits for its
// lease.
func TestRestedReadersDoNotList(t *testing.T) {
	for _, writers := range []int{2, 9} {
		t.Run(fmt.Sprint(writers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clients := corekit.Crowd(100)
				e := memdriver.New(memdriver.WithLatency(time.Millisecond))
				w := lineUp(t, e, writers+clients, func(i int, c *zklock.Client) zklock.Acquirer {
					if i < writers {
						return c.Mutex("x")
					}
					return c.RWMutex("x").Reader()
				})
				defer w.leave()
				time.Sleep(3 * time.Minute)
				for i := range writers - 1 {
					mustRelease(t, soon(t, "a writer", w.locks[i]))
				}
				last := soon(t, "the last writer", w.locks[writers-1])
				time.Sleep(time.Minute)
				w.asked.take()
				var locks []*zklock.Lock
				d := cost(e, func() {
					mustRelease(t, last)
					for _, got := range w.locks[writers:] {
						locks = append(locks, soon(t, "a reader", got))
					}
				})
				asked := w.asked.take()
				for i := range clients {
					if n := asked[fmt.Sprint(writers+i, " heartbeat")]; n != 1 {
						t.Errorf("reader %d sent %d heartbeats, want 1", i, n)
					}
				}
				// Each reader asks for the writers ahead of the last one, and reads its own node.
				if reads := d.Watches + d.Gets; d.Children > 0 || reads > clients*writers || d.Events > clients+1 {
					t.Errorf("the writer's departure cost %d lists, %d events and %d reads, want no lists, %d events and %d reads",
						d.Children, d.Events, reads, clients+1, clients*writers)
				}
				for _, l := range locks {
					mustRelease(t, l)
				}
			})
		})
	}
}

// A place with several names rests if it is far from the front on the name that it waits for.
// Its position on the other name does not matter.
func TestWaiterForSeveralNamesRests(t *testing.T) {
	for _, c := range []struct {
		ahead int
		rests bool
	}{{1, false}, {2, true}, {3, true}} {
		synctest.Test(t, func(t *testing.T) {
			w := lineUp(t, memdriver.New(), c.ahead+1, func(i int, client *zklock.Client) zklock.Acquirer {
				if i < c.ahead {
					return client.Mutex("y")
				}
				return zklock.All(client.Mutex("x"), client.Mutex("y")) // it is the first for x
			})
			defer w.leave()
			time.Sleep(30 * time.Second)
			w.asked.take()
			time.Sleep(2 * time.Minute)
			if n := w.asked.take()[fmt.Sprint(c.ahead, " heartbeat")]; c.rests && n > 0 || !c.rests && n < 20 {
				t.Errorf("behind %d others, a waiter for two names sent %d heartbeats in two minutes", c.ahead, n)
			}
			for i := range c.ahead {
				mustRelease(t, soon(t, "a holder", w.locks[i]))
			}
			l := soon(t, "the waiter for two names", w.locks[c.ahead])
			if !l.Valid() {
				t.Error("the lock of both names is not valid")
			}
			mustRelease(t, l)
		})
	}
}

// A session holds one lock and waits far from the front for another. The lock that it holds
// stays valid, and is lost in time when the session is cut off. It does not matter whether the
// session got the lock before it waited, or while it was at rest.
func TestHeldLocksOfASessionThatWaitsFar(t *testing.T) {
	for _, rested := range []bool{false, true} {
		t.Run(fmt.Sprint(rested), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { holdAndWait(t, rested) })
		})
	}
}

func holdAndWait(t *testing.T, rested bool) {
	e := memdriver.New()
	front := mustLock(t)(connect(t, e.Connector(), nil).Mutex("x").Acquire(t.Context()))
	second := acquiring(t, connect(t, e.Connector(), nil).Mutex("x"), t.Context())
	c := connect(t, e.Connector(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan error, 1)
	wait := func() {
		go func() { _, err := c.Mutex("x").Acquire(ctx); waits <- err }()
		time.Sleep(time.Minute)
	}
	if rested {
		wait()
	}
	held := mustLock(t)(c.Mutex("y").Acquire(t.Context()))
	if !rested {
		wait()
	}
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
}

// Waits far from the front that are cancelled leave the session as it was: it sends
// heartbeats while it holds a lock, and none when it does not.
func TestSessionAfterCancelledRests(t *testing.T) {
	corekit.Short(t)
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		front := mustLock(t)(connect(t, e.Connector(), nil).Mutex("x").Acquire(t.Context()))
		second := acquiring(t, connect(t, e.Connector(), nil).Mutex("x"), t.Context())
		b := &asked{of: make(map[string]int)}
		c := connect(t, e.Connector(), nil, b.hooks(0))
		for range 20 {
			if _, err := c.Mutex("x").Acquire(t.Context(), zklock.WithWait(time.Second)); !errors.Is(err, zklock.ErrNotAcquired) {
				t.Fatal(err)
			}
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

// A session at rest sends a Sync after a reconnect, and no heartbeat: else a thousand waiters
// would send a thousand writes when a server restarts.
func TestReconnectDoesNotEndARest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		w := lineUp(t, e, 10, func(_ int, c *zklock.Client) zklock.Acquirer { return c.Mutex("x") })
		defer w.leave()
		time.Sleep(time.Minute)
		w.asked.take()
		for range 20 {
			for _, id := range e.Sessions() {
				e.KillConnection(id)
			}
			time.Sleep(5 * time.Second)
		}
		asked := w.asked.take()
		for i := 2; i < 10; i++ {
			if n := asked[fmt.Sprint(i, " heartbeat")]; n > 0 {
				t.Errorf("client %d sent %d heartbeats after reconnects", i, n)
			}
		}
		mustRelease(t, soon(t, "the holder", w.locks[0]))
		mustRelease(t, soon(t, "the first in line", w.locks[1]))
		mustRelease(t, soon(t, "a waiter that rested", w.locks[2]))
	})
}

// wake has a client wait as the third in a queue, so far back that its session rests (proves no
// lease). It calls begin, pauses for after, and lets the contender ahead release. wake reports how
// many sessions the client has lost twenty seconds later, and whether it got the lock before the
// contender behind it.
func wake(t *testing.T, decide func(faultdriver.Op) faultdriver.Fault, after time.Duration, begin func()) (lost uint64, inOrder bool) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		held := mustLock(t)(connect(t, e.Connector(), nil).Mutex("x").Acquire(t.Context()))
		second := acquiring(t, connect(t, e.Connector(), nil).Mutex("x"), t.Context())
		time.Sleep(time.Second)
		c := connect(t, faultcontrol.Control(e.Connector(), decide), nil)
		third := acquiring(t, c.Mutex("x"), t.Context())
		time.Sleep(time.Second)
		fourth := acquiring(t, connect(t, e.Connector(), nil).Mutex("x"), t.Context())
		time.Sleep(time.Minute)
		mustRelease(t, held)
		next := soon(t, "the second", second)
		time.Sleep(time.Minute)
		begin()
		time.Sleep(after)
		mustRelease(t, next)
		select {
		case l := <-third:
			inOrder = true
			time.Sleep(20 * time.Second)
			lost = c.Stats().SessionsLost
			_ = l.Release(t.Context())
			mustRelease(t, soon(t, "the fourth", fourth))
		case l := <-fourth:
			lost = c.Stats().SessionsLost
			mustRelease(t, l)
			mustRelease(t, soon(t, "the third", third))
		case <-time.After(time.Minute):
			t.Fatal("no contender has the lock after a minute")
		}
	})
	return lost, inOrder
}

// TestWakeWhileSyncsAreRefused: at whatever moment a waiter wakes, it keeps its place, and then
// its lock.
func TestWakeWhileSyncsAreRefused(t *testing.T) {
	refuse := func(op faultdriver.Op) faultdriver.Fault {
		if op.Kind == faultdriver.Sync {
			return faultdriver.Fail(driver.ErrThrottled)
		}
		return faultdriver.None()
	}
	step := 8 * time.Second / time.Duration(corekit.Crowd(80))
	for after := time.Duration(0); after < 8*time.Second; after += step {
		if lost, inOrder := wake(t, refuse, after, func() {}); lost > 0 || !inOrder {
			t.Errorf("woken after %v: %d sessions were lost; got the lock in its turn: %v", after, lost, inOrder)
		}
	}
}

// TestWakeAfterAStall: the ensemble answers late for some seconds, while the connection stays.
// A waiter that wakes when that is over keeps its place.
func TestWakeAfterAStall(t *testing.T) {
	for stall := 3 * time.Second; stall < 8500*time.Millisecond; stall += 250 * time.Millisecond {
		var until atomic.Int64 // in nanoseconds since the Unix epoch
		slow := func(faultdriver.Op) faultdriver.Fault {
			if d := time.Until(time.Unix(0, until.Load())); d > 0 {
				return faultdriver.DelayReply(d)
			}
			return faultdriver.None()
		}
		if lost, inOrder := wake(t, slow, stall, func() { until.Store(time.Now().Add(stall).UnixNano()) }); lost > 0 || !inOrder {
			t.Errorf("after a stall of %v: %d sessions were lost; got the lock in its turn: %v", stall, lost, inOrder)
		}
	}
}

// TestWaitThatEndsWhileSyncsAreRefused: the ensemble answers, so the wait was one for the lock.
func TestWaitThatEndsWhileSyncsAreRefused(t *testing.T) {
	for after := time.Duration(0); after < 8*time.Second; after += 200 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			held := mustLock(t)(connect(t, e.Connector(), nil).Mutex("x").Acquire(t.Context()))
			second := acquiring(t, connect(t, e.Connector(), nil).Mutex("x"), t.Context())
			c := connect(t, faultdriver.Wrap(e.Connector(), faultdriver.On(faultdriver.Sync, faultdriver.Fail(driver.ErrThrottled))), nil)
			if _, err := c.Mutex("x").Acquire(t.Context(), zklock.WithWait(time.Minute+after)); !errors.Is(err, zklock.ErrNotAcquired) {
				t.Errorf("a wait of a minute and %v: %v, want ErrNotAcquired", after, err)
			}
			mustRelease(t, held)
			mustRelease(t, soon(t, "the second", second))
		})
	}
}
