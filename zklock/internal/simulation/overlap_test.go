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

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// shape is a set of circles that overlap. Each member holds the name of its index, and wants others, all at once.
type shape struct {
	name    string
	wants   [][]int
	circles int
	most    float64 // victims on average
}

// hub is a member that wants all others' names, of which each wants its own: as many circles as others.
func hub(others int) shape {
	s := shape{name: fmt.Sprintf("hub of %d", others), circles: others, wants: make([][]int, 1+others)}
	for i := range others {
		s.wants[0] = append(s.wants[0], 1+i)
		s.wants[1+i] = []int{0}
	}
	return s
}

// shapes are what docs/guarantees.md has figures for.
func shapes() []shape {
	two := shape{name: "two circles with a shared wait", circles: 2, wants: [][]int{{1}, {2, 3}, {0}, {0}}}
	four, eight := hub(4), hub(8)
	two.most, four.most, eight.most = 1.35, 2.3, 3.4
	return []shape{two, four, eight}
}

// victims lets the members wait, at random moments, and returns how many fail. Each other gets what it wants.
func (s shape) victims(t *testing.T, seed uint64, rtt time.Duration) int {
	var failed, granted atomic.Int32
	e := memdriver.New(memdriver.WithLatency(rtt / 2))
	defer e.Close()
	rng := rand.New(rand.NewPCG(seed, 0x0e71a))
	clients, locks := make([]*zklock.Client, len(s.wants)), make([]*zklock.Lock, len(s.wants))
	for i := range clients {
		c, err := zklock.OpenConnector(e.Connector())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if locks[i], err = c.Mutex(fmt.Sprint(i)).Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		clients[i] = c
	}
	began := time.Now()
	var all sync.WaitGroup
	for i, c := range clients {
		var names []zklock.Acquirer
		for _, n := range s.wants[i] {
			names = append(names, c.Mutex(fmt.Sprint(n)))
		}
		start := time.Duration(rng.Int64N(int64(2 * time.Second)))
		all.Go(func() {
			time.Sleep(start)
			ctx, cancel := locks[i].Context(context.Background())
			defer cancel()
			l, err := zklock.All(names...).Acquire(ctx)
			switch {
			case err == nil:
				granted.Add(1)
				_ = l.Release(context.Background())
			case errors.Is(err, zklock.ErrDeadlock):
				failed.Add(1)
			default:
				t.Errorf("%s, seed %d: %v", s.name, seed, err)
			}
			_ = locks[i].Release(context.Background())
		})
	}
	all.Wait()
	// The last wait begins within 2 s, and each circle ends as one that is alone.
	if took, most := time.Since(began), 2*time.Second+time.Duration(s.circles)*(2*time.Second+8*rtt); took > most {
		t.Errorf("%s, seed %d: it took %v, want %v at most", s.name, seed, took, most)
	}
	if n := failed.Load(); n < 1 || int(n) > s.circles || int(n+granted.Load()) != len(s.wants) {
		t.Errorf("%s, seed %d: %d victims and %d grants, want no more victims than %d circles", s.name, seed, n, granted.Load(), s.circles)
	}
	return int(failed.Load())
}

// TestOverlappingCircles: where circles overlap, more waits fail than are needed, since each circle ends by itself: the wait that is registered
// last fails, also if an earlier one could have ended several circles. No more waits fail than there are circles. ZKLOCK_RUNS sets
// how many runs there are of each shape.
func TestOverlappingCircles(t *testing.T) {
	runs := long.Count(t, "ZKLOCK_RUNS", 40, 200)
	if corekit.Race {
		runs = 10
	}
	for _, s := range shapes() {
		for _, rtt := range []time.Duration{0, 80 * time.Millisecond} {
			counts, sum := make([]int, s.circles+1), 0
			for seed := range runs {
				synctest.Test(t, func(t *testing.T) {
					if n := s.victims(t, uint64(seed)+1, rtt); n <= s.circles {
						counts[n]++
						sum += n
					}
				})
			}
			mean := float64(sum) / float64(runs)
			t.Logf("%s, round trip %v: runs by their victims, from 1: %v of %d; %.2f on average", s.name, rtt, counts[1:], runs, mean)
			if !corekit.Race && mean > s.most {
				t.Errorf("%s, round trip %v: %.2f victims on average, want %v at most", s.name, rtt, mean, s.most)
			}
		}
	}
}
