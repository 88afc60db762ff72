package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// load is a load on one lock, or on several: callers in a loop, or arrivals that do not wait for each
// other. Each caller waits for at most wait, works for work when it has the lock, and gives it back.
type load struct {
	kind    string
	clients int
	callers int           // in a loop; 0: arrivals
	rate    float64       // of arrivals, a second
	wait    time.Duration // of each caller
	silent  bool          // the callers' contexts have no deadline, and are cancelled
	work    time.Duration
	rtt     time.Duration
}

// String names a load.
func (l load) String() string {
	who, how := fmt.Sprintf("%d callers", l.callers), "wait"
	if l.callers == 0 {
		who = fmt.Sprintf("%v arrivals a second", l.rate)
	}
	if l.silent {
		how = "hang up after"
	}
	return fmt.Sprintf("%s, %d clients, %s, %s %v, work %v, round trip %v", l.kind, l.clients, who, how, l.wait, l.work, l.rtt)
}

// acquirer returns what one caller acquires.
func (l load) acquirer(c *zklock.Client, rnd *rand.Rand) (zklock.Acquirer, []zklock.AcquireOption) {
	switch l.kind {
	case "semaphore":
		return c.Semaphore("s", permits), nil
	case "all":
		return zklock.All(c.Mutex("a"), c.Mutex("b")), nil
	case "overlapping alls":
		i := rnd.IntN(20)
		return zklock.All(c.Mutex(fmt.Sprint(i)), c.Mutex(fmt.Sprint((i+1+rnd.IntN(19))%20))), nil
	case "without hand-over":
		return c.Mutex("m"), []zklock.AcquireOption{zklock.WithoutHandover()}
	case "readers and writers", "readers and writers without hand-over":
		var opts []zklock.AcquireOption
		if l.kind != "readers and writers" {
			opts = append(opts, zklock.WithoutHandover())
		}
		if rnd.IntN(10) == 0 {
			return c.RWMutex("r").Writer(), opts
		}
		return c.RWMutex("r").Reader(), opts
	case "alls of readers and writers":
		if rnd.IntN(4) == 0 {
			return zklock.All(c.RWMutex("r").Writer(), c.RWMutex("q").Writer()), nil
		}
		return zklock.All(c.RWMutex("r").Reader(), c.RWMutex("q").Reader()), nil
	case "fresh names":
		return c.Mutex(fmt.Sprint("fresh-", rnd.Uint64())), nil
	case "candidates":
		return c.Mutex("e"), []zklock.AcquireOption{zklock.WithCandidacy()}
	}
	return c.Mutex("m"), nil
}

// phase is what was seen of a load.
type phase struct {
	grants   []int // in each second
	answers  int   // grants whose caller was still there when its work was done
	requests int   // of all clients
	most     int   // goroutines at the ends of seconds
}

// total returns the grants of all seconds.
func (p *phase) total() (n int) {
	for _, g := range p.grants {
		n += g
	}
	return n
}

// rate returns the grants a second.
func (p *phase) rate() float64 { return float64(p.total()) / float64(len(p.grants)) }

// site is where loads run: an ensemble in memory, and clients of it.
type site struct {
	t       *testing.T
	e       *memdriver.Ensemble
	clients []*zklock.Client

	mu  sync.Mutex
	rnd *rand.Rand // guarded by mu
}

// run runs a load for some seconds.
func (s *site) run(l load, seconds int) (p phase) {
	p.grants = make([]int, seconds)
	before, began := s.requests(), time.Now()
	end := began.Add(time.Duration(seconds) * time.Second)
	once := func() {
		s.mu.Lock()
		a, opts := l.acquirer(s.clients[s.rnd.IntN(len(s.clients))], s.rnd)
		s.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), l.wait)
		if l.silent {
			ctx, cancel = context.WithCancel(context.Background())
			defer time.AfterFunc(l.wait, cancel).Stop()
		}
		defer cancel()
		lock, err := a.Acquire(ctx, opts...)
		if err != nil {
			return
		}
		at := int(time.Since(began) / time.Second)
		time.Sleep(l.work)
		s.mu.Lock()
		if at < seconds {
			p.grants[at]++
		}
		if ctx.Err() == nil {
			p.answers++
		}
		s.mu.Unlock()
		if err := lock.Release(context.Background()); err != nil {
			s.t.Error(err)
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
	callers.Go(func() {
		for at := time.Second; at < end.Sub(began); at += time.Second {
			time.Sleep(time.Until(began.Add(at)))
			p.most = max(p.most, runtime.NumGoroutine())
		}
	})
	for next := began; l.callers == 0; {
		s.mu.Lock()
		next = next.Add(time.Duration(s.rnd.ExpFloat64() / l.rate * float64(time.Second)))
		s.mu.Unlock()
		if next.After(end) {
			break
		}
		time.Sleep(time.Until(next))
		callers.Go(once)
	}
	callers.Wait()
	p.requests = s.requests() - before
	return p
}

func (s *site) requests() int {
	o := memcontrol.Of(s.e).Ops()
	return o.Creates + o.Deletes + o.Sets + o.Multis + o.Gets + o.Watches + o.Children + o.WatchChildren + o.WatchExists + o.Syncs
}

// overload runs three callers with patience, then a load, then the three again. It returns what was seen of each.
func overload(t *testing.T, l load) (calm, under, after phase) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &site{t: t, e: memdriver.New(memdriver.WithLatency(l.rtt / 2)), rnd: rand.New(rand.NewPCG(1, 2))}
		defer s.e.Close()
		for range l.clients {
			c, err := zklock.OpenConnector(s.e.Connector())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			s.clients = append(s.clients, c)
			for _, name := range []string{"m", "a", "b", "r", "q", "e"} {
				if err := zklock.Do(t.Context(), c.Mutex(name), func(context.Context, *zklock.Lock) error { return nil }); err != nil {
					t.Fatal(err)
				}
			}
		}
		few := l
		few.callers, few.wait, few.silent = 3, time.Minute, false
		calm, under, after = s.run(few, 9), s.run(l, 6), s.run(few, 4)
		time.Sleep(2 * time.Second) // what is under way: nodes that are deleted, marks
		if n := corekit.Nodes(s.e); n != 0 {
			t.Errorf("%v: %d nodes are left", l, n)
		}
		for _, c := range s.clients {
			began := time.Now()
			if err := c.Close(); err != nil || time.Since(began) > time.Second {
				t.Errorf("%v: Close: %v after %v", l, err, time.Since(began))
			}
		}
	})
	return calm, under, after
}

// TestGoodputUnderOverload: more callers than a lock carries give up, and come again. Each second has nine tenths of
// the grants that three patient callers have, less one, from the first second on, and so has each second after it. The requests
// for each grant are twice as many at most, and two and a half times of 16 clients. The lock goes to callers that are there
// when their work is done: eight tenths of the calm rate, of 16 clients less one. In virtual time the figures depend on round
// trips only.
//
// Among many clients waits must last as long as it takes to pass the lock on, which is about three round trips. With waits of
// four, about every second caller of an All that overlaps with others' leaves during its work, and there are seven times as
// many requests.
func TestGoodputUnderOverload(t *testing.T) {
	const work = 20 * time.Millisecond
	trips := []time.Duration{10 * time.Millisecond}
	if long.On() {
		trips = append(trips, time.Millisecond)
	}
	for _, kind := range []string{"mutex", "readers and writers", "semaphore", "all", "overlapping alls", "without hand-over", "readers and writers without hand-over",
		"alls of readers and writers", "candidates", "fresh names"} {
		for _, clients := range []int{1, 16} {
			for _, rtt := range trips {
				loads := []load{{callers: 100, wait: 5 * work}, {callers: 100, wait: 2*work + time.Millisecond, silent: true}}
				if clients == 1 {
					loads = append(loads, load{callers: 100, wait: work/2 + time.Millisecond})
				}
				if long.On() {
					loads = append(loads, load{callers: 1000, wait: 5 * work}, load{callers: 1000, wait: 50 * work}, load{rate: 5000, wait: 5 * work},
						load{rate: 50000, wait: 5 * work}, load{rate: 500, wait: 50 * work})
				}
				for _, l := range loads {
					if l.kind, l.clients, l.work, l.rtt = kind, clients, work, rtt; corekit.Race && (clients > 1 || !l.silent || l.shares()) {
						continue // it takes ten times as long
					}
					t.Run(l.String(), func(t *testing.T) {
						t.Parallel()
						l.check(t)
					})
				}
			}
		}
	}
}

// shares reports whether some callers of a load hold together.
func (l load) shares() bool {
	switch l.kind {
	case "readers and writers", "readers and writers without hand-over", "alls of readers and writers":
		return true
	}
	return false
}

// check runs a load, and compares it with three patient callers.
func (l load) check(t *testing.T) {
	calm, under, after := overload(t, l)
	perGrant := func(p phase) float64 { return float64(p.requests) / float64(max(p.total(), 1)) }
	t.Logf("calm %v, under load %v, after it %v; requests for a grant %.1f, %.1f; %d goroutines; %d answers of %d", calm.grants, under.grants, after.grants,
		perGrant(calm), perGrant(under), under.most, under.answers, under.total())
	fleet, overlaps := l.clients > 1, l.kind == "overlapping alls"
	share, rate, worst, later := 0.9, float64(slices.Min(calm.grants[1:])), float64(slices.Min(under.grants)), float64(slices.Min(after.grants))
	average := func(of float64) { share, rate, worst, later = of, calm.rate(), under.rate(), after.rate() }
	switch {
	case l.shares(), overlaps && !fleet: // how many hold together differs from second to second
		average(0.8)
	case overlaps: // what the load has taught the clients is forgotten within a second
		average(0.9)
		later = float64(after.grants[len(after.grants)-1])
	case fleet && l.kind == "semaphore": // two of three patient callers may have the same client
		average(0.9)
	case fleet && l.kind == "all" && l.silent: // all callers leave at one instant, and a turn that comes before it waits for those that come then
		average(0.8)
	}
	// One grant more or less is the edge of a second: at 15 grants a second that is a fifteenth.
	if least := share*rate - 1; worst < least || later < least {
		t.Errorf("a second of the load has %.1f grants, and one after it %.1f, want %.1f", worst, later, least)
	}
	times := 2.0
	switch {
	case !fleet && l.kind == "readers and writers" && l.wait < l.work:
		times = 3 // it is chance how many readers meet: 0.5 to 1.1 requests, calm 0.5
	case fleet && l.kind == "readers and writers without hand-over", fleet && l.kind == "alls of readers and writers":
		times = 3.5 // each client has a writer and some readers in ZooKeeper's queue
	case fleet && overlaps && l.silent:
		times = 7
	case fleet && overlaps:
		times = 3.5 // about every second one is in vain
	case fleet:
		times = 2.5
	}
	if most := times * perGrant(calm); perGrant(under) > most && l.kind != "fresh names" {
		t.Errorf("%.1f requests for a grant, want %.1f at most", perGrant(under), most)
	}
	if l.kind == "readers and writers" || fleet && overlaps && l.silent {
		return // all readers that wait join, also those that are about to leave
	}
	enough := 0.8 * rate
	switch {
	case fleet && l.kind == "all" && l.silent:
		enough -= 2 // of 17: see above
	case fleet:
		enough--
	}
	if answers := float64(under.answers) / float64(len(under.grants)); l.wait >= 2*l.work && answers < enough {
		t.Errorf("%.1f callers a second are there when their work is done, want %.1f", answers, enough)
	}
}
