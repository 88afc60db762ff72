// Package ring makes clients wait for each other in a circle, for tests of deadlocks at a distance: in virtual time, and on
// real servers.
package ring

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// Ring is a circle of clients: each holds a name, and wants that of the next one.
type Ring struct {
	Kind    Kind
	Members int
	Timeout time.Duration // deadlock_timeout
	RTT     time.Duration // the round trip to the servers
	Jitter  bool          // each request takes up to a quarter longer
}

// Bound is how long a ring may stand, from the beginning of its last wait: two rounds may pass until that is looked at,
// which takes eight requests one after the other.
func (r Ring) Bound() time.Duration {
	rtt := r.RTT
	if r.Jitter {
		rtt += r.RTT / 4
	}
	return 2*r.Timeout + 8*rtt
}

// Kind is what the members of a ring hold and want.
type Kind string

// Kinds of rings. With ReadersPassing, readers of another client come and go on all names.
const (
	Mutexes        Kind = "mutexes"
	WritersBehind  Kind = "writers behind readers"
	ReadersBehind  Kind = "readers behind writers"
	ReadersPassing Kind = "writers behind readers that come and go"
)

// Kinds are all of them.
var Kinds = []Kind{Mutexes, WritersBehind, ReadersBehind, ReadersPassing}

// take acquires what a member holds.
func (r Ring) take(t testing.TB, c *zklock.Client, name string) *zklock.Lock {
	t.Helper()
	l, err := r.hold(c, name).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// hold and want return what a member holds and wants.
func (r Ring) hold(c *zklock.Client, name string) zklock.Acquirer {
	switch r.Kind {
	case Mutexes:
		return c.Mutex(name)
	case ReadersBehind:
		return c.RWMutex(name).Writer()
	}
	return c.RWMutex(name).Reader()
}

func (r Ring) want(c *zklock.Client, name string) zklock.Acquirer {
	switch r.Kind {
	case Mutexes:
		return c.Mutex(name)
	case ReadersBehind:
		return c.RWMutex(name).Reader()
	}
	return c.RWMutex(name).Writer()
}

// Play closes a ring of clients that open opens, under names that begin with prefix. It returns how long the ring has stood until its first
// member failed. The test fails if not exactly one does.
func (r Ring) Play(t testing.TB, seed uint64, prefix string, open func(zklock.Hooks) *zklock.Client) (stood time.Duration) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0xd157))
	name := func(i int) string { return fmt.Sprint(prefix, i%r.Members) }
	var mu sync.Mutex    // for what follows
	var closed time.Time // when the last wait has begun
	waits := zklock.Hooks{Wait: func(ctx context.Context, _ zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
		mu.Lock()
		defer mu.Unlock()
		closed = time.Now()
		return ctx, nil
	}}
	clients := make([]*zklock.Client, r.Members)
	locks := make([]*zklock.Lock, r.Members)
	for i := range clients {
		clients[i] = open(waits)
		defer clients[i].Close()
		// The first use of a name takes longer.
		err := zklock.Do(t.Context(), r.want(clients[i], name(i+1)), func(context.Context, *zklock.Lock) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range clients {
		locks[i] = r.take(t, c, name(i))
	}
	passing, stop := context.WithCancel(t.Context())
	var passers sync.WaitGroup
	if r.Kind == ReadersPassing {
		c := open(zklock.Hooks{})
		defer c.Close()
		for i := range 2 * r.Members {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			passers.Go(func() {
				for passing.Err() == nil {
					ctx, cancel := context.WithTimeout(passing, between(rng, time.Millisecond, 2*r.Timeout+4*r.RTT))
					l, err := c.RWMutex(name(i)).Reader().Acquire(ctx, zklock.WithoutHandover())
					cancel()
					if err == nil {
						time.Sleep(between(rng, time.Millisecond, 3*r.Timeout))
						_ = l.Release(context.Background())
					}
				}
			})
		}
		time.Sleep(r.Timeout + 4*r.RTT)
	}
	starts := make([]time.Duration, r.Members)
	for i := range starts {
		starts[i] = between(rng, 0, 2*r.Timeout+2*r.RTT)
	}
	var ended time.Time
	var victims, granted atomic.Int32
	var all sync.WaitGroup
	for i, c := range clients {
		all.Go(func() {
			time.Sleep(starts[i])
			ctx, cancel := locks[i].Context(context.Background())
			defer cancel()
			l, err := r.want(c, name(i+1)).Acquire(ctx)
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
	if n := victims.Load(); n != 1 || int(granted.Load()) != r.Members-1 {
		t.Errorf("%+v, seed %d: %d victims and %d grants, want one victim", r, seed, n, granted.Load())
	}
	return ended.Sub(closed)
}

// between returns a random duration of at least least, and less than most.
func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rng.Int64N(int64(most-least)))
}
