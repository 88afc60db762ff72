package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/faultcontrol"
	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/census"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A reader waits in a place that a writer of its client had made, behind another client's writer that waits for a reader of the circle. Another
// writer of the reader's client waits ahead of it. That circle stood for ever.
func TestCircleThroughAPlaceThatReadersTookOver(t *testing.T) {
	if corekit.Race {
		t.Skip("it takes fifty times as long: CI has it without the race detector")
	}
	defer corekit.SingleProcessor()()
	var settings census.Census
	synctest.Test(t, func(t *testing.T) { simulateDeadlocks(t, 2216, &settings) })
}

// TestSimulatedDeadlocks runs clients whose goroutines acquire two to four locks, one within the other, in
// random order: mutexes, readers, writers and several names. Some locks are released or downgraded by
// another goroutine during a nested wait, and some waits are bounded. In half of the runs the ensemble and
// the network break. A judge that knows only calls and their returns checks in each run:
//
//   - The circle of each victim was real: see circleJudge.
//   - A circle ends within deadlock_timeout and 12 s if no fault is under way.
//   - One wait of a circle fails, and no second one.
//   - When all is over, no wait is registered and no queue node is left.
//
// The judge allows for what the design excepts, only if a fault was under way, and counts how often it did.
// ZKLOCK_RUNS sets the number of runs, and ZKLOCK_SEED the seed of the first one. A seed repeats what is done,
// but not always the order in which goroutines do it.
func TestSimulatedDeadlocks(t *testing.T) {
	first, runs := fromEnvironment(t, "ZKLOCK_SEED", 1), 20
	if corekit.Race && !long.On() {
		runs = 4 // each takes fifty times as long
	}
	runs = fromEnvironment(t, "ZKLOCK_RUNS", runs)
	defer corekit.SingleProcessor()()
	var sum circleCounts
	var settings census.Census
	began := time.Now()
	for seed := first; seed < first+runs && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) { sum.add(simulateDeadlocks(t, uint64(seed), &settings)) })
		if seed%16 == 0 {
			runtime.GC() // it does not run by itself here
		}
	}
	t.Logf("%d runs from seed %d in %v: %d nested acquisitions, %d victims, the longest circle had %d waits; excepted because of faults: %d circles that had ended just before, %d with a registration that outlasted its wait; %d circles with a victim of another circle\n%v",
		runs, first, time.Since(began).Round(time.Millisecond), sum.nested, sum.victims, sum.longest, sum.late, sum.stays, sum.overlap, &settings)
	if sum.victims < runs {
		t.Errorf("%d victims in %d runs: too few to prove anything", sum.victims, runs)
	}
	if runs >= 1000 && sum.longest < 4 {
		t.Errorf("the longest circle had %d waits", sum.longest)
	}
}

// nesting is a run of clients whose goroutines nest their acquisitions.
type nesting struct {
	seed    uint64
	e       *memdriver.Ensemble
	judge   *circleJudge
	clients []*zklock.Client
	session []atomic.Int64 // of each client
	servers int
	names   int
	depth   int
	faulty  atomic.Bool // faults are made
	rate    float64     // of faults among requests
	rates   *rand.Rand  // used under ratesMu
	ratesMu sync.Mutex
	stop    atomic.Bool
	serial  atomic.Int64
	tasks   sync.WaitGroup
}

func simulateDeadlocks(t *testing.T, seed uint64, settings *census.Census) circleCounts {
	rng := rand.New(rand.NewPCG(seed, 0xdead))
	n := &nesting{seed: seed, judge: newCircleJudge(), servers: []int{1, 3, 3}[rng.IntN(3)], names: 3 + rng.IntN(4), depth: 2 + rng.IntN(3)}
	n.rates = rand.New(rand.NewPCG(seed, 0xfa17))
	broken := seed%2 == 0
	if broken {
		n.rate = []float64{0, 0.005, 0.02}[rng.IntN(3)]
	}
	syncLimit, latency := []int{5, 25}[rng.IntN(2)], time.Duration(200+rng.IntN(2000))*time.Microsecond
	n.e = memdriver.New(memdriver.WithServers(n.servers), memdriver.WithTickTime(simTick), memdriver.WithSyncLimit(syncLimit), memdriver.WithLatency(latency))
	n.session = make([]atomic.Int64, 2+rng.IntN(3))
	settings.Add(census.Settings{Tick: simTick, Session: simTimeout, Servers: n.servers, Distance: latency, Clients: len(n.session), Name: len(n.name(0))})
	keep := []time.Duration{0, 0, 100 * time.Millisecond, 2 * time.Second}[rng.IntN(4)]
	for i := range n.session {
		n.open(t, i, keep, []time.Duration{-1, 20 * time.Millisecond, 400 * time.Millisecond}[rng.IntN(3)])
	}
	n.faulty.Store(broken)
	base, cancel := context.WithCancel(background)
	var flows sync.WaitGroup
	for i := range 3 + rng.IntN(6) {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		flows.Go(func() {
			for !n.stop.Load() {
				time.Sleep(between(rng, time.Millisecond, 400*time.Millisecond))
				n.nest(base, rng, i%len(n.clients), nil, 2+rng.IntN(n.depth-1))
			}
		})
	}
	n.watch(time.Duration(10+rng.IntN(10))*time.Second, rng, nil)
	n.heal()
	n.watch(20*time.Second, rng, nil)
	n.stop.Store(true)
	var over atomic.Bool
	ended := make(chan struct{})
	go func() {
		flows.Wait()
		n.tasks.Wait()
		over.Store(true)
		close(ended)
	}()
	n.watch(3*time.Minute, rng, over.Load)
	if !over.Load() {
		n.judge.violate("goroutines still wait long after the end")
	}
	cancel()
	<-ended
	time.Sleep(2*simTimeout + 20*time.Second) // for what was kept, and what was applied late
	if left := strings.Count(n.e.Dump(), " w1-"); left != 0 || corekit.Nodes(n.e) != 0 {
		n.judge.violate("%d waits are registered and %d queue nodes are left:\n%s", left, corekit.Nodes(n.e), n.e.Dump())
	}
	for _, c := range n.clients {
		if err := c.Close(); err != nil {
			n.judge.violate("close: %v", err)
		}
	}
	_ = n.e.Close()
	if j := n.judge; len(j.wrong) > 0 {
		t.Errorf("seed %d: %s", seed, strings.Join(j.wrong, "\n"))
		t.Logf("seed %d, %d clients:\n%s", seed, len(n.clients), strings.Join(j.lines, "\n"))
	}
	return n.judge.counts
}

func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rng.Int64N(int64(most-least)))
}

func (n *nesting) open(t *testing.T, i int, keep, handover time.Duration) {
	if handover < 0 {
		keep = 0 // it needs hand-over
	}
	c, err := zklock.OpenConfig(zklock.Config{
		Connector:      faultcontrol.Control(n.e.Connector(), func(op faultdriver.Op) faultdriver.Fault { return n.strike(i, op) }),
		SessionTimeout: simTimeout, TickTime: simTick, ConnectTimeout: 3 * time.Second, PoolMaxSessions: 1,
		HandoverTime: handover, Keep: keep, DeadlockTimeout: simDeadlock,
	}, zklock.WithHooks(zklock.Hooks{Session: func(e zklock.SessionEvent) {
		if e.State == driver.Connected {
			n.session[i].Store(e.ID)
		}
	}}))
	if err != nil {
		t.Fatal(err)
	}
	n.clients = append(n.clients, c)
}

// strike decides which fault strikes a request.
func (n *nesting) strike(client int, op faultdriver.Op) faultdriver.Fault {
	if n.rate == 0 || !n.faulty.Load() {
		return faultdriver.None()
	}
	n.ratesMu.Lock()
	defer n.ratesMu.Unlock()
	if n.rates.Float64() >= n.rate {
		return faultdriver.None()
	}
	d := between(n.rates, time.Millisecond, simTimeout/2)
	f := []faultdriver.Fault{faultdriver.Drop(), faultdriver.LoseReply(), faultdriver.LateAfter(d), faultdriver.Hang(), faultdriver.HangReply(), faultdriver.Delay(d), faultdriver.DelayReply(d), faultdriver.Fail(driver.ErrThrottled)}[n.rates.IntN(8)]
	n.judge.fault(client, simTimeout, fmt.Sprintf("%v %v: %v", op.Kind, op.Paths, f))
	return f
}

// watch lets time pass, and makes a fault now and then while faults are made. The judge looks for circles.
func (n *nesting) watch(d time.Duration, rng *rand.Rand, done func() bool) {
	for end := time.Now().Add(d); time.Now().Before(end) && (done == nil || !done()); {
		time.Sleep(500 * time.Millisecond)
		n.judge.observe()
		if n.faulty.Load() && rng.IntN(5) == 0 {
			n.breaks(rng)
		}
	}
}

// breaks makes a fault of the ensemble or the network.
func (n *nesting) breaks(rng *rand.Rand) {
	i, server, d := rng.IntN(len(n.clients)), rng.IntN(n.servers), between(rng, time.Millisecond, 2*simTimeout)
	id := n.session[i].Load()
	lasting := func(client int, what string, end func()) {
		n.judge.fault(client, d+simTimeout, what) // afterwards it connects again
		n.tasks.Go(func() {
			time.Sleep(d)
			end()
		})
	}
	cut := func(client int, what string, c memdriver.Cut) {
		n.e.Partition(c)
		lasting(client, what, func() { n.e.Heal(c) })
	}
	switch rng.IntN(8) {
	case 0:
		n.judge.fault(i, simTimeout, "connection killed")
		n.e.KillConnection(id)
	case 1:
		n.judge.fault(i, simTimeout, "session killed")
		n.e.KillSession(id)
	case 2:
		cut(i, "client cut off", memdriver.AroundSession(id))
	case 3:
		cut(allClients, "server cut off", memdriver.AroundServer(server))
	case 4:
		n.judge.fault(allClients, simTimeout, "server restarted")
		n.e.Restart(server)
	case 5:
		n.judge.fault(allClients, simTimeout, "leader restarted")
		n.e.Restart(max(n.e.Leader(), 0))
	case 6:
		memcontrol.Of(n.e).Lag(server, between(rng, time.Millisecond, simTimeout/2))
		lasting(allClients, "server lags", func() { memcontrol.Of(n.e).Lag(server, 0) })
	case 7:
		lasting(i, "process stopped", n.e.Freeze(id))
	}
}

func (n *nesting) heal() {
	n.faulty.Store(false)
	n.e.Heal()
	for i := range n.servers {
		memcontrol.Of(n.e).Lag(i, 0)
	}
}

func (n *nesting) name(i int) string { return fmt.Sprint("n", i) }

// choose returns an acquisition of names that are not carried, and its modes; nil if there are none.
func (n *nesting) choose(rng *rand.Rand, c *zklock.Client, carried []*seenHold) (zklock.Acquirer, map[string]zklock.Mode) {
	var free []string
	for i := range n.names {
		name := n.name(i)
		if !slices.ContainsFunc(carried, func(h *seenHold) bool { return h.modes[name] != 0 }) {
			free = append(free, name)
		}
	}
	if len(free) == 0 {
		return nil, nil
	}
	rng.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	name := free[0]
	switch k := rng.IntN(20); {
	case k < 4:
		return c.RWMutex(name).Reader(), map[string]zklock.Mode{name: zklock.Shared}
	case k < 8:
		return c.RWMutex(name).Writer(), map[string]zklock.Mode{name: zklock.Exclusive}
	case k < 10 && len(free) > 1:
		return zklock.All(c.Mutex(name), c.Mutex(free[1])), map[string]zklock.Mode{name: zklock.Exclusive, free[1]: zklock.Exclusive}
	case k == 10 && len(free) > 1:
		return zklock.All(c.Mutex(name), c.RWMutex(free[1]).Reader()), map[string]zklock.Mode{name: zklock.Exclusive, free[1]: zklock.Shared}
	}
	return c.Mutex(name), map[string]zklock.Mode{name: zklock.Exclusive}
}

// nest acquires a lock, acquires others within it, and releases it.
func (n *nesting) nest(ctx context.Context, rng *rand.Rand, client int, carried []*seenHold, depth int) {
	a, modes := n.choose(rng, n.clients[client], carried)
	if a == nil {
		return
	}
	label := fmt.Sprint("w", n.serial.Add(1))
	opts := []zklock.AcquireOption{zklock.WithLabel(label)}
	acquireCtx, cancel := context.WithCancel(ctx)
	switch rng.IntN(10) {
	case 0:
		acquireCtx, cancel = context.WithTimeout(ctx, between(rng, time.Second/2, 8*time.Second))
	case 1:
		opts = append(opts, zklock.WithWait(between(rng, time.Second/2, 8*time.Second)))
	case 2:
		opts = append(opts, zklock.WithoutHandover())
	case 3:
		opts = append(opts, zklock.WithAsyncRelease())
	}
	w := n.judge.calls(label, client, modes, carried)
	l, err := a.Acquire(acquireCtx, opts...)
	cancel()
	if err != nil {
		n.judge.failed(w, err)
		return
	}
	h := n.judge.granted(w)
	inner, cancel := l.Context(ctx)
	defer cancel()
	ended := context.AfterFunc(inner, func() {
		if err := l.Err(); err != nil && !errors.Is(err, zklock.ErrReleased) {
			n.judge.goes(h, "lost")
		}
	})
	defer ended()
	time.Sleep(between(rng, time.Millisecond, 100*time.Millisecond))
	if rng.IntN(6) == 0 {
		inner = context.WithoutCancel(inner) // its waits go on when the lock has been released
	}
	var meanwhile sync.WaitGroup
	later := between(rng, time.Millisecond, 4*time.Second)
	switch k := rng.IntN(20); {
	case depth > 1 && k == 0:
		meanwhile.Go(func() {
			time.Sleep(later)
			n.release(l, h)
		})
	case depth > 1 && k < 3 && len(modes) == 1 && h.exclusive():
		meanwhile.Go(func() {
			time.Sleep(later)
			if l.Downgrade(background) == nil {
				n.judge.downgraded(h)
			}
		})
	}
	if depth > 1 {
		within := append(slices.Clone(carried), h)
		n.nest(inner, rng, client, within, depth-1)
		if rng.IntN(6) == 0 { // two at once
			other := rand.New(rand.NewPCG(rng.Uint64(), 0))
			meanwhile.Go(func() { n.nest(inner, other, client, within, 1) })
			n.nest(inner, rng, client, within, 1)
		}
	}
	meanwhile.Wait()
	n.release(l, h)
}

func (h *seenHold) exclusive() bool {
	for _, m := range h.modes {
		return m == zklock.Exclusive
	}
	return false
}

// release gives a lock back.
func (n *nesting) release(l *zklock.Lock, h *seenHold) {
	n.judge.releases(h)
	err := l.Release(background)
	if err != nil && !errors.Is(err, zklock.ErrReleasePending) && !errors.Is(err, zklock.ErrLost) && !errors.Is(err, zklock.ErrReleased) {
		n.judge.violate("release: %v", err)
	}
	n.judge.goes(h, "released")
}
