package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/faultcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// ring is a circle of clients: each holds a name, and wants that of the next one.
type ring struct {
	kind    string
	members int
	timeout time.Duration // deadlock_timeout
	rtt     time.Duration
	jitter  bool // each request takes up to a quarter longer
}

// bound is how long a ring may stand, from the beginning of its last wait: two rounds may pass until that is looked at,
// which takes eight requests one after the other.
func (r ring) bound() time.Duration {
	rtt := r.rtt
	if r.jitter {
		rtt += r.rtt / 4
	}
	return 2*r.timeout + 8*rtt
}

// kinds of rings. With passers, readers of another client come and go on all names.
const (
	mutexes        = "mutexes"
	writersBehind  = "writers behind readers"
	readersBehind  = "readers behind writers"
	readersPassing = "writers behind readers that come and go"
)

// hold and want return what a member holds and wants.
func (r ring) hold(c *zklock.Client, name string) zklock.Acquirer {
	switch r.kind {
	case mutexes:
		return c.Mutex(name)
	case readersBehind:
		return c.RWMutex(name).Writer()
	}
	return c.RWMutex(name).Reader()
}

func (r ring) want(c *zklock.Client, name string) zklock.Acquirer {
	switch r.kind {
	case mutexes:
		return c.Mutex(name)
	case readersBehind:
		return c.RWMutex(name).Reader()
	}
	return c.RWMutex(name).Writer()
}

// play closes a ring, and returns how long it has stood until its first member failed.
func (r ring) play(t *testing.T, seed uint64) (stood time.Duration) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0xd157))
	var mu sync.Mutex // for what follows
	delays := rand.New(rand.NewPCG(seed, 0x9177))
	var closed time.Time // when the last wait has begun
	e := memdriver.New(memdriver.WithLatency(r.rtt / 2))
	defer e.Close()
	open := func(hooks zklock.Hooks) *zklock.Client {
		connector := e.Connector()
		if r.jitter {
			connector = faultcontrol.Control(connector, func(faultdriver.Op) faultdriver.Fault {
				mu.Lock()
				defer mu.Unlock()
				return faultdriver.Delay(time.Duration(delays.Int64N(int64(r.rtt/4) + 1)))
			})
		}
		c, err := zklock.OpenConfig(zklock.Config{Connector: connector, DeadlockTimeout: r.timeout, SessionTimeout: time.Minute}, zklock.WithHooks(hooks))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	waits := zklock.Hooks{Wait: func(ctx context.Context, _ zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
		mu.Lock()
		defer mu.Unlock()
		closed = time.Now()
		return ctx, nil
	}}
	clients := make([]*zklock.Client, r.members)
	locks := make([]*zklock.Lock, r.members)
	for i := range clients {
		clients[i] = open(waits)
		defer clients[i].Close()
		// The first use of a name takes longer.
		err := zklock.Do(t.Context(), r.want(clients[i], fmt.Sprint((i+1)%r.members)), func(context.Context, *zklock.Lock) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range clients {
		var err error
		if locks[i], err = r.hold(clients[i], fmt.Sprint(i)).Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	passing, stop := context.WithCancel(t.Context())
	var passers sync.WaitGroup
	if r.kind == readersPassing {
		c := open(zklock.Hooks{})
		defer c.Close()
		for i := range 2 * r.members {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			passers.Go(func() {
				for passing.Err() == nil {
					ctx, cancel := context.WithTimeout(passing, between(rng, time.Millisecond, 2*r.timeout+4*r.rtt))
					l, err := c.RWMutex(fmt.Sprint(i%r.members)).Reader().Acquire(ctx, zklock.WithoutHandover())
					cancel()
					if err == nil {
						time.Sleep(between(rng, time.Millisecond, 3*r.timeout))
						_ = l.Release(context.Background())
					}
				}
			})
		}
		time.Sleep(r.timeout + 4*r.rtt)
	}
	starts := make([]time.Duration, r.members)
	for i := range starts {
		starts[i] = between(rng, 0, 2*r.timeout+2*r.rtt)
	}
	var ended time.Time
	var victims, granted atomic.Int32
	var all sync.WaitGroup
	for i, c := range clients {
		all.Go(func() {
			time.Sleep(starts[i])
			ctx, cancel := locks[i].Context(context.Background())
			defer cancel()
			l, err := r.want(c, fmt.Sprint((i+1)%r.members)).Acquire(ctx)
			switch {
			case err == nil:
				granted.Add(1)
				_ = l.Release(context.Background())
			case errors.Is(err, zklock.ErrDeadlock):
				mu.Lock()
				if ended.IsZero() {
					ended = time.Now()
				}
				mu.Unlock()
				victims.Add(1)
			default:
				t.Errorf("%+v, seed %d: %v", r, seed, err)
			}
			_ = locks[i].Release(context.Background())
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Minute):
		t.Errorf("%+v, seed %d: the ring stands after ten minutes", r, seed)
		for _, l := range locks {
			_ = l.Release(context.Background())
		}
		<-done
	}
	stop()
	passers.Wait()
	if n := victims.Load(); n != 1 || int(granted.Load()) != r.members-1 {
		t.Errorf("%+v, seed %d: %d victims and %d grants, want one victim", r, seed, n, granted.Load())
	}
	return ended.Sub(closed)
}

// TestDeadlocksAtADistance: a circle ends within twice deadlock_timeout and eight round trips, whatever the distance,
// the kinds of its members, and the readers that come and go meanwhile. One of its members fails.
// ZKLOCK_RUNS sets how many rings there are of each kind.
func TestDeadlocksAtADistance(t *testing.T) {
	runs := long.Count(t, "ZKLOCK_RUNS", 3, 150)
	sizes, timeouts := []int{2, 5, 12}, []time.Duration{time.Second}
	trips := []time.Duration{0, 80 * time.Millisecond, 200 * time.Millisecond}
	if long.On() {
		sizes = []int{2, 3, 5, 8, 12, 16}
		timeouts = append(timeouts, 100*time.Millisecond)
		trips = []time.Duration{0, 16 * time.Millisecond, 30 * time.Millisecond, 80 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond}
	}
	if corekit.Race {
		sizes = sizes[:2]
	}
	for _, kind := range []string{mutexes, writersBehind, readersBehind, readersPassing} {
		for _, timeout := range timeouts {
			for _, rtt := range trips {
				for _, jitter := range []bool{false, true} {
					for _, members := range sizes {
						r := ring{kind, members, timeout, rtt, jitter}
						if jitter && rtt == 0 {
							continue
						}
						var slowest time.Duration
						for seed := range runs {
							synctest.Test(t, func(t *testing.T) { slowest = max(slowest, r.play(t, uint64(seed)+1)) })
						}
						t.Logf("%s of %d, deadlock_timeout %v, round trip %v, jitter %v: the slowest of %d stood for %v", r.kind, r.members, r.timeout, r.rtt, r.jitter, runs, slowest)
						if slowest > r.bound() {
							t.Errorf("%+v: a ring stood for %v, want %v at most", r, slowest, r.bound())
						}
					}
				}
			}
		}
	}
}
