package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
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

// throng is many callers at once, of one client or of several. They give up at any instant: at a deadline,
// when they are cancelled, and at the beginning or the end of a request that is made for them. Now and then
// a connection is lost, a client is stopped or cut off, or a session expires.
type throng struct {
	throngPlan
	ensemble *memdriver.Ensemble
	clients  []*zklock.Client
	judge    throngJudge

	mu      sync.Mutex
	rng     *rand.Rand
	session []int64 // guarded by mu; of each client, the last that has connected
}

// between returns a time up to most, and 0 now and then.
func (h *throng) between(rng *rand.Rand, most time.Duration) time.Duration {
	if most == 0 || rng.IntN(16) == 0 {
		return 0
	}
	return time.Duration(rng.Int64N(int64(most)+1)) / h.grain * h.grain
}

// callKey is the key of the function that cancels a caller's context.
type callKey struct{}

// open opens a client of the throng.
func (h *throng) open(t *testing.T, i int) *zklock.Client {
	leaves := func(ctx context.Context) {
		h.mu.Lock()
		now := h.rng.Float64() < h.hooks
		h.mu.Unlock()
		if cancel, ok := ctx.Value(callKey{}).(func()); ok && now {
			cancel()
		}
	}
	hooks := zklock.Hooks{
		Operation: func(ctx context.Context, _ zklock.OperationEvent) (context.Context, func(error)) {
			leaves(ctx)
			return ctx, func(error) { leaves(ctx) }
		},
		Wait: func(ctx context.Context, _ zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
			leaves(ctx)
			return ctx, nil
		},
		Session: func(e zklock.SessionEvent) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.session[i] = e.ID
		},
	}
	return corekit.OpenConfig(t, zklock.Config{
		Connector:      h.ensemble.Connector(),
		SessionTimeout: simTimeout, TickTime: simTick, ConnectTimeout: 3 * time.Second,
		PoolMaxSessions: h.pool, Keep: h.keep, LossDelay: h.loss, MaxWaiters: h.waiters,
	}, zklock.WithHooks(hooks))
}

// each returns what has all names of a client.
func each(c *zklock.Client) []zklock.Acquirer {
	var all []zklock.Acquirer
	for _, name := range throngNames {
		all = append(all, c.Mutex(name))
	}
	return append(all, zklock.All(all...), c.Semaphore("s", permits))
}

// warm has a client start all goroutines that stay.
func warm(t *testing.T, c *zklock.Client) {
	for _, a := range each(c) {
		var held []*zklock.Lock
		for len(held) <= permits {
			l, err := a.Acquire(t.Context(), zklock.WithWait(2*time.Second))
			if err != nil {
				break // it has waited
			}
			held = append(held, l)
		}
		for _, l := range held {
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// call acquires something once, and gives it back after a while.
func (h *throng) call(rng *rand.Rand) {
	c := h.clients[rng.IntN(len(h.clients))]
	w, opts, wait, try := h.choose(rng, c), h.options(rng), h.between(rng, h.wait), rng.IntN(8) == 0
	work, released := h.between(rng, h.work), h.between(rng, h.wait)
	if h.faults > 0 && rng.IntN(40) == 0 {
		work = h.between(rng, 2*simTimeout) // a fault may strike meanwhile
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var end time.Time // of the context
	var mu sync.Mutex
	leave := func() {
		mu.Lock()
		defer mu.Unlock()
		if end.IsZero() {
			end = time.Now()
		}
		cancel()
	}
	if rng.IntN(2) == 0 {
		until := time.Now().Add(wait)
		var done context.CancelFunc
		ctx, done = context.WithDeadline(ctx, until)
		defer done()
		defer context.AfterFunc(ctx, leave)()
	} else {
		defer time.AfterFunc(wait, leave).Stop()
	}
	ctx = context.WithValue(ctx, callKey{}, leave)
	acquire := w.a.Acquire
	if try {
		acquire = w.a.TryAcquire
	}
	lock, err := acquire(ctx, opts...)
	mu.Lock()
	late := time.Duration(0)
	if !end.IsZero() {
		late = time.Since(end)
	}
	mu.Unlock()
	h.judge.returned(w, lock, err, late)
	if err != nil {
		return
	}
	s := h.judge.granted(w, lock)
	if work > 0 {
		time.Sleep(work)
	}
	h.judge.leaving(s)
	limit, done := context.WithTimeout(context.Background(), released)
	defer done()
	h.judge.released(s, lock.Release(limit))
}

// fault makes something fail.
func (h *throng) fault(all *sync.WaitGroup) {
	h.mu.Lock()
	id := h.session[h.rng.IntN(len(h.session))]
	kind, stay := h.rng.IntN(6), time.Duration(1+h.rng.Int64N(int64(2*simTimeout)))
	h.mu.Unlock()
	lasts := func(end func()) { all.Go(func() { time.Sleep(stay); end() }) }
	switch kind {
	case 0, 1:
		h.ensemble.KillConnection(id)
	case 2:
		all.Go(func() { h.ensemble.Expire(id) })
	case 3:
		lasts(h.ensemble.Freeze(id))
	case 4:
		lasts(memcontrol.Of(h.ensemble).HoldReplies(id))
	case 5:
		cut := memdriver.AroundSession(id)
		h.ensemble.Partition(cut)
		lasts(func() { h.ensemble.Heal(cut) })
	}
}

// run has all callers call, and some things fail meanwhile.
func (h *throng) run(seed uint64) {
	var all sync.WaitGroup
	for i := range h.callers {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		all.Go(func() {
			for range h.rounds {
				time.Sleep(h.between(rng, h.pause))
				h.call(rng)
			}
		})
	}
	for range h.faults {
		h.mu.Lock()
		pause := time.Duration(h.rng.Int64N(int64(100 * time.Millisecond)))
		h.mu.Unlock()
		time.Sleep(pause)
		h.fault(&all)
	}
	all.Wait()
}

// calm checks that nothing stays behind, and that each name is free.
func (h *throng) calm(t *testing.T, goroutines int) {
	time.Sleep(3*simTimeout + h.keep)
	synctest.Wait()
	if left, watches := corekit.Nodes(h.ensemble), h.watches(); left > 0 || watches > 0 {
		t.Errorf("%d queue nodes and %d watches stay behind:\n%s", left, watches, h.ensemble.Dump())
	}
	if now, stacks := alive(); now > goroutines {
		t.Errorf("%d goroutines, %d before:\n%s", now, goroutines, stacks)
	}
	for i, c := range h.clients {
		if s := c.Stats(); s.Held != 0 || s.Acquiring != 0 || s.Waiting != 0 || s.Candidates != 0 || s.Leading != 0 || s.Kept != 0 || s.LongestHold != 0 || s.LongestWait != 0 {
			t.Errorf("client %d counts %+v, want no lock and no acquisition", i, s)
		}
	}
	h.hooks = 0
	h.session = append(h.session, 0)
	for i, c := range append(h.clients, h.open(t, len(h.clients))) {
		for _, a := range each(c) {
			began := time.Now()
			l, err := a.TryAcquire(t.Context())
			if took := time.Since(began); err != nil || took > simTimeout/10 {
				t.Errorf("client %d: %s: %v after %v, want the lock at once", i, a.Name(), err, took)
				continue
			}
			if err := l.Release(t.Context()); err != nil {
				t.Errorf("client %d: %s: %v", i, a.Name(), err)
			}
		}
	}
}

// alive counts the goroutines, without those that look for creates of unknown outcome.
func alive() (n int, stacks []byte) {
	stacks = make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	n = bytes.Count(stacks, []byte("\ngoroutine "))
	for _, lookout := range []string{".lookOut(", ".lookAt.func1()"} {
		n -= bytes.Count(stacks, []byte(lookout))
	}
	return n, stacks
}

// watches counts the armed watches. Where clients keep names, one on the znode of a name may stay: see
// world.watches.
func (h *throng) watches() (n int) {
	for path, watches := range memcontrol.Of(h.ensemble).Watched() {
		if withoutGUID(path) != path || h.keep == 0 {
			n += watches
		}
	}
	return n
}

// Callers give up at any instant, thousands of them at once. No two that exclude each other hold at one
// instant, a lock that a caller gets is one, no caller stays much longer than its context, and nothing
// stays behind. ZKLOCK_SEED repeats a run, ZKLOCK_RUNS sets how many there are.
func TestSimulatedThrongs(t *testing.T) {
	first, runs := fromEnvironment(t, "ZKLOCK_SEED", 1), 40
	switch {
	case os.Getenv("ZKLOCK_SEED") != "":
		runs = 1
	case corekit.Race:
		runs = 10
	case long.On():
		runs = 1000
	}
	runs = fromEnvironment(t, "ZKLOCK_RUNS", runs)
	var sum throngTally
	for seed := first; seed < first+runs; seed++ {
		sum.add(playThrong(t, uint64(seed), 0))
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d runs: %+v", runs, sum)
	if runs >= 10 && (sum.Acquired == 0 || sum.GaveUp == 0 || sum.Lost == 0 || sum.Crowded == 0) {
		t.Errorf("%+v: too little has happened to prove anything", sum)
	}
}

// The same of 50,000 callers. They come within a third of a second, and leave by thousands at one instant.
func TestSimulatedThrongsOf50000(t *testing.T) {
	if corekit.Race {
		t.Skip("50,000 goroutines are more than the race detector allows")
	}
	first, runs := fromEnvironment(t, "ZKLOCK_SEED", 5), max(1, long.Count(t, "ZKLOCK_RUNS", 100, 2000)/100) // each takes as long as thirty others
	var sum throngTally
	for seed := first; seed < first+runs && !t.Failed(); seed++ {
		sum.add(playThrong(t, uint64(seed), 50_000))
	}
	t.Logf("%+v", sum)
	if sum.Acquired == 0 || sum.GaveUp == 0 {
		t.Error("too little has happened to prove anything")
	}
}

// playThrong executes one run. For callers see newThrongPlan.
func playThrong(t *testing.T, seed uint64, callers int) (tally throngTally) {
	t.Helper()
	if !corekit.Race {
		defer corekit.SingleProcessor()()
	}
	rng := rand.New(rand.NewPCG(seed, 0x7409))
	h := &throng{throngPlan: newThrongPlan(rng, callers), rng: rng}
	what := fmt.Sprintf("seed %d: %+v", seed, h.throngPlan)
	defer func() {
		if t.Failed() {
			t.Log(what)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		h.ensemble = memdriver.New(memdriver.WithServers(1+2*rng.IntN(2)), memdriver.WithTickTime(simTick), memdriver.WithLatency(h.latency))
		for i := range h.throngPlan.clients {
			h.session = append(h.session, 0)
			c := h.open(t, i)
			warm(t, c)
			h.clients = append(h.clients, c)
		}
		time.Sleep(simTimeout + h.keep)
		h.judge.fail = func(format string, args ...any) { t.Errorf("%s: %s", what, fmt.Sprintf(format, args...)) }
		synctest.Wait()
		goroutines, _ := alive()
		h.run(seed)
		h.calm(t, goroutines)
	})
	runtime.GC()
	return h.judge.tally
}

// gaveUp reports whether an error is that of a caller that has given up, or that may not wait.
func gaveUp(err error) bool {
	for _, known := range []error{zklock.ErrNotAcquired, zklock.ErrUnavailable, zklock.ErrTooManyWaiters, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}
