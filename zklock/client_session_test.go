package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// doomed opens sessions. The first ones, as many as left says, end right after they have read
// the root, about when the pool takes them.
type doomed struct {
	driver.Connector
	e      *memdriver.Ensemble
	left   atomic.Int64
	opened atomic.Int64
}

func (d *doomed) Connect(ctx context.Context, timeout time.Duration) (driver.Session, error) {
	s, err := d.Connector.Connect(ctx, timeout)
	d.opened.Add(1)
	if err != nil || d.left.Add(-1) < 0 {
		return s, err
	}
	return &doomedSession{s, d.e}, nil
}

type doomedSession struct {
	driver.Session
	e *memdriver.Ensemble
}

func (s *doomedSession) Get(ctx context.Context, path string) (driver.Node, error) {
	n, err := s.Session.Get(ctx, path)
	s.e.KillSession(s.ID())
	return n, err
}

// A session that ends while it is being opened, or right after that, is not used for an
// acquisition. The pool waits before it opens the next one.
func TestSessionThatEndsAtOnceIsReplaced(t *testing.T) {
	const ends = 1000
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		d := &doomed{Connector: e.Connector(), e: e}
		c := connect(t, d, map[string]string{"connect_timeout": "10h"})
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
		d.left.Store(ends)
		e.ExpireAll()
		synctest.Wait()
		began := time.Now()
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
		if n := d.opened.Load(); n != 1+ends+1 {
			t.Errorf("%d sessions were opened, want %d", n, 1+ends+1)
		}
		if took := time.Since(began); took < ends*100*time.Millisecond {
			t.Errorf("%d sessions that ended at once were replaced within %v, want a pause before each", ends, took)
		}
		if st := c.Stats(); st.Open != 1 {
			t.Errorf("%d sessions are open, want 1", st.Open)
		}
	})
}

// Many clients lose their sessions in an outage. They do not all open new ones at the same
// moment.
func TestLostSessionsAreReplacedAtDifferentMoments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		const clients = 50
		var all []*zklock.Client
		opened := make(chan time.Time, 2*clients)
		for range clients {
			c := connect(t, e.Connector(), nil, zklock.WithHooks(zklock.Hooks{Session: func(e zklock.SessionEvent) {
				if e.State == driver.Connected && e.Lease == 0 {
					opened <- time.Now()
				}
			}}))
			mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
			all = append(all, c)
		}
		synctest.Wait()
		for range clients {
			<-opened
		}
		e.ExpireAll()
		synctest.Wait()
		for i, c := range all {
			got := acquiring(t, c.Mutex(names(clients)[i]), t.Context())
			defer func() { mustRelease(t, <-got) }()
		}
		time.Sleep(time.Second)
		moments := map[time.Time]int{}
		for range clients {
			moments[<-opened]++
		}
		if len(moments) < clients/2 {
			t.Errorf("%d clients opened new sessions at only %d different moments", clients, len(moments))
		}
	})
}

// Clients that acquired their locks at the same moment do not go on sending their
// heartbeats at the same moment.
func TestHeartbeatsGetOutOfStep(t *testing.T) {
	corekit.Short(t)
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		const clients = 50
		var mu sync.Mutex
		var beats [clients][]time.Time
		for i := range clients {
			c := connect(t, e.Connector(), nil, zklock.WithHooks(zklock.Hooks{Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
				if ev.Kind == "heartbeat" {
					mu.Lock()
					defer mu.Unlock()
					beats[i] = append(beats[i], time.Now())
				}
				return ctx, nil
			}}))
			l := mustLock(t)(c.Mutex(names(clients)[i]).Acquire(t.Context()))
			defer func() { mustRelease(t, l) }()
		}
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		moments := map[time.Time]bool{}
		for i, all := range beats {
			if len(all) < 20 || len(all) > 33 {
				t.Fatalf("client %d sent %d heartbeats in a minute, want 20 to 33", i, len(all))
			}
			moments[all[len(all)-1]] = true
		}
		if len(moments) < clients/2 {
			t.Errorf("the last heartbeats of %d clients came at only %d different moments", clients, len(moments))
		}
	})
}

// A goroutine that watches a client's own nodes takes new nodes when old ones have gone.
// So one lock that is kept, while many others come and go, does not keep a goroutine for
// itself alone.
func TestGuardsThatHaveRoomAreUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, memdriver.New().Connector(), nil)
		hold := func(n int) (held []*zklock.Lock) {
			for range n {
				name := fmt.Sprint("lock-", len(held))
				held = append(held, mustLock(t)(c.Mutex(name).Acquire(t.Context(), zklock.WithoutHandover())))
			}
			time.Sleep(2 * time.Second) // they are watched now
			return held
		}
		var kept []*zklock.Lock
		goroutines := 0
		const rounds, many = 10, 64
		for i := range rounds {
			kept = append(kept, mustLock(t)(c.Mutex(fmt.Sprint("kept-", i)).Acquire(t.Context())))
			for _, l := range hold(many - 1) {
				mustRelease(t, l)
			}
			time.Sleep(2 * time.Second)
			synctest.Wait() // until the other goroutines, such as the reaper, are idle
			if n := runtime.NumGoroutine(); i == 0 {
				goroutines = n
			} else if n > goroutines+1 {
				t.Fatalf("round %d: %d goroutines, and %d in the first round; only %d more locks are held", i, n, goroutines, i)
			}
		}
		for _, l := range kept {
			mustRelease(t, l)
		}
	})
}

func TestOldSessionDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), map[string]string{"pool_max_lifetime": "1m"})
		l := mustLock(t)(c.Mutex("a").Acquire(t.Context()))
		time.Sleep(2 * time.Minute)
		k := mustLock(t)(c.Mutex("b").Acquire(t.Context()))
		if st := c.Stats(); st.Open != 2 || st.Draining != 1 || !l.Valid() || !k.Valid() {
			t.Errorf("Stats are %+v, the locks are valid: %v and %v", st, l.Valid(), k.Valid())
		}
		mustRelease(t, l)
		synctest.Wait()
		if st := c.Stats(); st.Open != 1 || st.Draining != 0 || !k.Valid() || st.SessionsLost != 0 {
			t.Errorf("after the last release: %+v", st)
		}
		if n := len(e.Sessions()); n != 1 {
			t.Errorf("%d sessions, want 1", n)
		}
		mustRelease(t, k)
	})
}

// narrow is a connector of servers that have room for one connection.
type narrow struct {
	driver.Connector
	room  chan struct{} // cap 1: holds the connection
	tries atomic.Int32  // those that were refused
}

func (n *narrow) Connect(ctx context.Context, timeout time.Duration) (driver.Session, error) {
	select {
	case n.room <- struct{}{}:
		return n.Connector.Connect(ctx, timeout)
	case <-time.After(time.Second):
		n.tries.Add(1)
		return nil, fmt.Errorf("the server has no room: %w", driver.ErrNotSent)
	}
}

// A client can open one of its sessions only. Every name uses that one, and waits no longer than until the first
// try for another has failed. When there is room, names spread again.
func TestNamesUseASessionThatWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		n := &narrow{Connector: e.Connector(), room: make(chan struct{}, 1)}
		c, err := zklock.OpenConfig(zklock.Config{Connector: n, PoolMaxSessions: 4, ConnectTimeout: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range 40 {
			began := time.Now()
			l, err := c.Mutex(fmt.Sprint("name-", i)).Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 1100*time.Millisecond {
				t.Errorf("name %d took %v", i, took)
			}
			mustRelease(t, l)
		}
		if err := c.Healthy(); err != nil {
			t.Error(err)
		}
		if st := c.Stats(); st.Open != 1 {
			t.Errorf("%d sessions, want 1", st.Open)
		}
		<-n.room
		for c.Stats().Open < 2 {
			<-time.After(time.Second)
			for i := range 40 {
				l, err := c.Mutex(fmt.Sprint("name-", i)).Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				mustRelease(t, l)
			}
		}
	})
}

// hanging is a connector of servers that have opened one session, and answer nothing when a client wants another.
type hanging struct {
	driver.Connector
	opened atomic.Bool
}

func (h *hanging) Connect(ctx context.Context, timeout time.Duration) (driver.Session, error) {
	if !h.opened.Swap(true) {
		return h.Connector.Connect(ctx, timeout)
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// The same with servers that hang: a name waits as long as a try does, and then uses the session that works. Callers that come
// later do not wait.
func TestNamesDoNotWaitForAServerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		c, err := zklock.OpenConfig(zklock.Config{Connector: &hanging{Connector: e.Connector()}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		waited := 0
		for i := range 40 {
			began := time.Now()
			l, err := c.Mutex(fmt.Sprint("name-", i)).Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 2600*time.Millisecond {
				t.Errorf("name %d took %v", i, took)
			} else if took > 0 {
				waited++
			}
			mustRelease(t, l)
		}
		if waited != 1 {
			t.Errorf("%d names waited, want one", waited)
		}
	})
}

// refusing is a connector of servers that refuse the client's identity.
type refusing struct {
	driver.Connector
	tries atomic.Int32
}

func (r *refusing) Connect(context.Context, time.Duration) (driver.Session, error) {
	r.tries.Add(1)
	return nil, driver.ErrAuthFailed
}

// A failure that does not pass ends each call at its first try.
func TestPermanentFailureEndsTheFirstTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		r := &refusing{Connector: e.Connector()}
		c, err := zklock.OpenConfig(zklock.Config{Connector: r})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for i := range int32(50) {
			if err := c.Ping(t.Context()); !errors.Is(err, driver.ErrAuthFailed) || r.tries.Load() != i+1 {
				t.Fatalf("call %d: %v after %d tries, want ErrAuthFailed after one for each call", i, err, r.tries.Load())
			}
		}
	})
}
