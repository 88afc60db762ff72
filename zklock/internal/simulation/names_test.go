package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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

// storm is what the holders of a few names have seen.
type storm struct {
	t    *testing.T
	seed uint64
	mu   sync.Mutex

	exclusive map[string]*zklock.Lock // the newest exclusive holder of each name
	shared    map[string][]*zklock.Lock
}

// enter records that a lock was acquired. It fails the test if another valid lock of the name
// excludes it, or if its token is not above that of the holder before it.
func (s *storm) enter(l *zklock.Lock, names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if old := s.exclusive[name]; old != nil {
			if old.Valid() && l.Valid() {
				s.t.Errorf("%s has two holders, with tokens %v and %v", name, old.Token(), l.Token())
			}
			if l.Token().Compare(old.Token()) <= 0 {
				s.t.Errorf("%s: token %v after %v", name, l.Token(), old.Token())
			}
		}
		if l.Mode() == zklock.Shared {
			s.shared[name] = append(s.shared[name], l)
			continue
		}
		for _, old := range s.shared[name] {
			if old.Valid() && l.Valid() {
				s.t.Errorf("%s has a writer and a reader", name)
			}
		}
		s.exclusive[name], s.shared[name] = l, nil
	}
}

// Clients use names whose znodes are made and removed all the time: by other clients, by a
// server that removes idle containers every few milliseconds, and by another program. Replies
// get lost, and requests arrive late. No name has two holders, tokens rise, each acquisition ends,
// and nothing stays queued. ZKLOCK_RUNS sets the number of runs, and ZKLOCK_SEED the seed of the
// first one.
func TestFreshNamesInAStorm(t *testing.T) {
	corekit.Short(t)
	first, runs := fromEnvironment(t, "ZKLOCK_SEED", 1), fromEnvironment(t, "ZKLOCK_RUNS", 3)
	for seed := first; seed < first+runs; seed++ {
		synctest.Test(t, func(t *testing.T) { freshStorm(t, uint64(seed)) })
	}
}

func freshStorm(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	e := memdriver.New(memdriver.WithServers([]int{1, 3}[rng.IntN(2)]), memdriver.WithLatency(time.Duration(rng.IntN(1500))*time.Microsecond),
		memdriver.WithReapInterval(time.Duration(20+rng.IntN(100))*time.Millisecond))
	defer e.Close()
	rate := []float64{0, 0.01, 0.05}[rng.IntN(3)]
	params := map[string]string{}
	if rng.IntN(2) == 0 {
		params["keep"] = "20ms"
	}
	const pool = 12
	s := &storm{t: t, seed: seed, exclusive: map[string]*zklock.Lock{}, shared: map[string][]*zklock.Lock{}}
	var wg sync.WaitGroup
	for range 3 {
		inj := corekit.About(faultdriver.Random(rng.Uint64(), rate, faultdriver.Drop(), faultdriver.LoseReply(), faultdriver.NotSent(),
			faultdriver.LateAfter(time.Duration(1+rng.IntN(200))*time.Millisecond), faultdriver.DelayReply(20*time.Millisecond)))
		c := corekit.Connect(t, faultdriver.Wrap(e.Connector(), inj), params)
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 8 {
			rng := rand.New(rand.NewPCG(rng.Uint64(), 1))
			wg.Go(func() {
				for i := range 40 {
					var names []string
					for range []int{1, 1, 1, 3}[rng.IntN(4)] {
						names = append(names, fmt.Sprint("n", rng.IntN(pool)+(i/10)*pool))
					}
					slices.Sort(names)
					s.use(c, rng, slices.Compact(names))
				}
			})
		}
	}
	stop := make(chan struct{})
	var others sync.WaitGroup
	operator := corekit.Plain(t, e)
	others.Go(func() {
		rng := rand.New(rand.NewPCG(rng.Uint64(), 2))
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(rng.IntN(5000)) * time.Microsecond):
			}
			path := fmt.Sprint("/zklock/n", rng.IntN(4*pool))
			if rng.IntN(2) == 0 {
				_, _ = operator.Create(t.Context(), path, []byte([]string{"", "zklock", "notes"}[rng.IntN(3)]), driver.Persistent, driver.OpenACL(driver.PermAll))
			} else {
				_ = operator.Delete(t.Context(), path, driver.AnyVersion)
			}
		}
	})
	wg.Wait()
	close(stop)
	others.Wait()
	time.Sleep(time.Minute)
	if n := corekit.Nodes(e); n != 0 {
		t.Errorf("%d nodes left:\n%s", n, e.Dump())
	}
}

// use acquires names once, and releases them.
func (s *storm) use(c *zklock.Client, rng *rand.Rand, names []string) {
	var list []zklock.Acquirer
	for _, name := range names {
		if rng.IntN(3) == 0 && len(names) == 1 {
			list = append(list, c.RWMutex(name).Reader())
		} else {
			list = append(list, c.Mutex(name))
		}
	}
	var opts []zklock.AcquireOption
	if rng.IntN(3) == 0 {
		opts = append(opts, zklock.WithoutHandover())
	}
	limit := time.Hour
	if rng.IntN(4) == 0 {
		limit = time.Duration(rng.IntN(5000)) * time.Microsecond
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), limit)
	defer cancel()
	l, err := zklock.All(list...).Acquire(ctx, opts...)
	if err != nil {
		if limit == time.Hour || !errors.Is(err, zklock.ErrNotAcquired) && !errors.Is(err, zklock.ErrUnavailable) {
			s.t.Errorf("seed %d: acquire %v: %v", s.seed, names, err)
		}
		return
	}
	s.enter(l, names)
	if rng.IntN(2) == 0 {
		time.Sleep(time.Duration(rng.IntN(3000)) * time.Microsecond)
	}
	if err := l.Release(s.t.Context()); err != nil && !errors.Is(err, zklock.ErrReleasePending) && !errors.Is(err, zklock.ErrLost) {
		s.t.Errorf("release %v: %v", names, err)
	}
}
