package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// load is a load on one lock, or on several: callers in a loop, or arrivals that do not wait for each
// other. Each caller waits for at most wait, works for hold when it has the lock, and gives it back.
type load struct {
	kind    string
	clients int
	callers int     // in a loop; 0: arrivals
	rate    float64 // of arrivals, a second
	wait    time.Duration
	work    time.Duration
	rtt     time.Duration
}

// String names a load.
func (l load) String() string {
	who := fmt.Sprintf("%d callers", l.callers)
	if l.callers == 0 {
		who = fmt.Sprintf("%v arrivals a second", l.rate)
	}
	return fmt.Sprintf("%s, %d clients, %s, wait %v, work %v, round trip %v", l.kind, l.clients, who, l.wait, l.work, l.rtt)
}

// acquirer returns what one caller acquires.
func (l load) acquirer(c *zklock.Client, rnd *rand.Rand) (zklock.Acquirer, []zklock.AcquireOption) {
	switch l.kind {
	case "semaphore":
		return c.Semaphore("s", permits), nil
	case "all":
		return zklock.All(c.Mutex("a"), c.Mutex("b")), nil
	case "alls":
		i := rnd.IntN(20)
		return zklock.All(c.Mutex(fmt.Sprint(i)), c.Mutex(fmt.Sprint((i+1+rnd.IntN(19))%20))), nil
	case "separate":
		return c.Mutex("m"), []zklock.AcquireOption{zklock.WithoutHandover()}
	case "readers":
		if rnd.IntN(10) == 0 {
			return c.RWMutex("r").Writer(), nil
		}
		return c.RWMutex("r").Reader(), nil
	case "candidates":
		return c.Mutex("e"), []zklock.AcquireOption{zklock.WithCandidacy()}
	}
	return c.Mutex("m"), nil
}

// goodput runs phases of loads, each for its seconds, and returns the grants of each second.
func goodput(t *testing.T, phases []load, seconds []int) (grants [][]int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := phases[0]
		e := memdriver.New(memdriver.WithLatency(l.rtt / 2))
		defer e.Close()
		clients := make([]*zklock.Client, l.clients)
		for i := range clients {
			c, err := zklock.OpenConnector(e.Connector())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			clients[i] = c
			for _, name := range []string{"m", "a", "b", "r", "e"} {
				if err := zklock.Do(t.Context(), c.Mutex(name), func(context.Context, *zklock.Lock) error { return nil }); err != nil {
					t.Fatal(err)
				}
			}
		}
		var mu sync.Mutex
		rnd := rand.New(rand.NewPCG(1, 2))
		for i, l := range phases {
			count := make([]int, seconds[i])
			began := time.Now()
			end := began.Add(time.Duration(seconds[i]) * time.Second)
			once := func() {
				mu.Lock()
				a, opts := l.acquirer(clients[rnd.IntN(len(clients))], rnd)
				mu.Unlock()
				ctx, cancel := context.WithTimeout(context.Background(), l.wait)
				lock, err := a.Acquire(ctx, opts...)
				cancel()
				if err != nil {
					return
				}
				if s := int(time.Since(began) / time.Second); s < len(count) {
					mu.Lock()
					count[s]++
					mu.Unlock()
				}
				time.Sleep(l.work)
				if err := lock.Release(context.Background()); err != nil {
					t.Error(err)
				}
			}
			var callers sync.WaitGroup
			for range l.callers {
				callers.Go(func() {
					for time.Now().Before(end) {
						once()
					}
				})
			}
			for next := began; l.callers == 0; {
				mu.Lock()
				next = next.Add(time.Duration(rnd.ExpFloat64() / l.rate * float64(time.Second)))
				mu.Unlock()
				if next.After(end) {
					break
				}
				time.Sleep(time.Until(next))
				callers.Go(once)
			}
			callers.Wait()
			grants = append(grants, count)
		}
	})
	return grants
}
