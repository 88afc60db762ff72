package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A client loses its session with thousands of locks on it and thousands of waiters
// behind it. Every context has ended before another client is granted one of the
// names, and what the waiters do about the loss does not hold up the news of it. This
// runs in real time: in a synctest bubble no time passes while goroutines run.
// ZKLOCK_LOSSES=20 does it twenty times.
func TestThousandsOfLossesAreToldBeforeTheNextGrant(t *testing.T) {
	n := massLoss()
	for range repeats(t) {
		alone := crowdOfLosers{held: n.held, rivals: n.rivals}.lose(t, cutOff)
		took := n.lose(t, cutOff)
		t.Logf("last of %d contexts ended %v after the lease without waiters, %v after it with %d in the queue and %d in the process: %.1f times as long",
			n.held, alone.Round(time.Millisecond), took.Round(time.Millisecond), n.queued, n.local, took.Seconds()/alone.Seconds())
	}
}

// The same of a client that is closed: its nodes go when the last context has ended.
func TestThousandsOfLocksAreLostBeforeCloseLetsOthersIn(t *testing.T) {
	massLoss().lose(t, func(_ *memdriver.Ensemble, c *zklock.Client, _ int64) {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func massLoss() crowdOfLosers {
	if raceEnabled { // its detector follows eight thousand goroutines at most
		return crowdOfLosers{held: 1_000, queued: 300, local: 1_000, rivals: 300}
	}
	return crowdOfLosers{held: 10_000, queued: 3_000, local: 10_000, rivals: 300}
}

func repeats(t *testing.T) int {
	s := os.Getenv("ZKLOCK_LOSSES")
	if s == "" {
		return 1
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("ZKLOCK_LOSSES: %v", err)
	}
	return n
}

func cutOff(e *memdriver.Ensemble, _ *zklock.Client, session int64) {
	e.Partition(memdriver.AroundSession(session))
}

// crowdOfLosers is how many there are of each.
type crowdOfLosers struct {
	held   int // locks of the client that is cut off
	queued int // waiters of that client with a queue node, for names that another client holds
	local  int // waiters of that client for its own names
	rivals int // waiters of another client for names that it holds
}

// lose has the client lose its session and returns how long after the end of the lease
// the last context ended.
func (n crowdOfLosers) lose(t *testing.T, how func(e *memdriver.Ensemble, c *zklock.Client, session int64)) time.Duration {
	e := memdriver.New(memdriver.WithTickTime(500 * time.Millisecond))
	params := map[string]string{"session_timeout": "6s", "tick_time": "500ms", "pool_max_sessions": "1", "connect_timeout": "60s"}
	a, b, c := connect(t, e.Connector(), params), connect(t, e.Connector(), params), connect(t, e.Connector(), params)
	if err := a.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	id := e.Sessions()[0]

	own := func(i int) string { return fmt.Sprintf("own/%d", i) }
	foreign := func(i int) string { return fmt.Sprintf("foreign/%d", i) }
	var held []*zklock.Lock
	var contexts []context.Context
	last := make([]time.Time, n.held)
	var handlers, waiters sync.WaitGroup
	for i, l := range acquireAll(t, a, n.held, own) {
		ctx, cancel := l.Context(t.Context())
		held, contexts = append(held, l), append(contexts, ctx)
		handlers.Go(func() {
			<-ctx.Done()
			last[i] = time.Now()
			cancel()
			if err := l.Release(context.Background()); !errors.Is(err, zklock.ErrLost) {
				t.Errorf("release of a lost lock: %v", err)
			}
		})
	}
	theirs := acquireAll(t, b, n.queued, foreign)

	waiting, stop := context.WithCancel(t.Context())
	defer stop()
	wait := func(c *zklock.Client, name string) {
		waiters.Go(func() {
			if l, err := c.Mutex(name).Acquire(waiting); err == nil {
				_ = l.Release(context.Background())
			} else if waiting.Err() == nil && !errors.Is(err, zklock.ErrClosed) {
				t.Errorf("waiting for %s: %v", name, err)
			}
		})
	}
	for i := range n.queued {
		wait(a, foreign(i))
	}
	for i := range n.local {
		wait(a, own(i%n.held))
	}
	var live, granted atomic.Int64
	var rivals sync.WaitGroup
	for i := range n.rivals {
		rivals.Go(func() {
			l, err := c.Mutex(own(i)).Acquire(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			if held[i].Err() == nil || contexts[i].Err() == nil {
				live.Add(1)
			}
			granted.Add(1)
			_ = l.Release(context.Background())
		})
	}
	for nodes(e) < n.held+2*n.queued+n.rivals || a.Stats().Waiting < n.queued+n.local {
		time.Sleep(50 * time.Millisecond)
	}
	how(e, a, id)
	rivals.Wait()
	handlers.Wait()
	if live := live.Load(); live > 0 {
		t.Errorf("of %d grants to another client, %d came while the context of the lost lock was live", granted.Load(), live)
	}
	var end, lost *zklock.LostError
	var latest time.Time
	for i, l := range held {
		if !errors.As(l.Err(), &lost) {
			t.Fatalf("lock %d ended with %v", i, l.Err())
		}
		if end == nil {
			end = lost
		}
		if last[i].After(latest) {
			latest = last[i]
		}
	}
	stop()
	waiters.Wait()
	for _, l := range theirs {
		_ = l.Release(context.Background())
	}
	e.Heal()
	return latest.Sub(end.At)
}

// acquireAll takes the first n names, many at a time.
func acquireAll(t *testing.T, c *zklock.Client, n int, name func(int) string) []*zklock.Lock {
	t.Helper()
	all := make([]*zklock.Lock, n)
	var wg sync.WaitGroup
	turns := make(chan int)
	for range 256 {
		wg.Go(func() {
			for i := range turns {
				l, err := c.Mutex(name(i)).Acquire(t.Context())
				if err != nil {
					t.Error(err)
					continue
				}
				all[i] = l
			}
		})
	}
	for i := range n {
		turns <- i
	}
	close(turns)
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return all
}
