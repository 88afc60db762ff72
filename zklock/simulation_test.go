package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// resource is what the simulated locks protect. It sees every holder come and
// go, in virtual time, and is told of nothing else.
type resource struct {
	operator bool // overlaps are nobody's fault

	mu      sync.Mutex
	holders map[string]map[*zklock.Lock]bool // guarded by mu; by name, those inside
	writer  map[string]zklock.Token          // guarded by mu; by name, the newest of a writer
	reader  map[string]zklock.Token          // guarded by mu; by name, the newest of a reader
	grants  map[string]int                   // guarded by mu; by mode
	faults  []string                         // guarded by mu; violations
}

func newResource(operator bool) *resource {
	return &resource{operator: operator, holders: map[string]map[*zklock.Lock]bool{},
		writer: map[string]zklock.Token{}, reader: map[string]zklock.Token{}, grants: map[string]int{}}
}

func (r *resource) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

const permits = 2

func (r *resource) enter(l *zklock.Lock) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.grants[l.Mode().String()]++
	for _, name := range l.Names() {
		if r.holders[name] == nil {
			r.holders[name] = map[*zklock.Lock]bool{}
		}
		beside, exclusive := []string(nil), l.Mode() == zklock.Exclusive
		for other := range r.holders[name] {
			if other.Valid() {
				beside = append(beside, fmt.Sprintf("%v %v of %s", other.Mode(), other.Token(), other.Name()))
				exclusive = exclusive || other.Mode() == zklock.Exclusive
			}
		}
		if !r.operator && l.Valid() && (len(beside) > 0 && exclusive || l.Mode() == zklock.Permit && len(beside) >= permits) {
			r.fault("%s: %v %v of %s is valid beside %v", name, l.Mode(), l.Token(), l.Name(), beside)
		}
		r.holders[name][l] = true
		if r.operator || l.Mode() == zklock.Permit {
			continue
		}
		if l.Token().Compare(r.writer[name]) <= 0 {
			r.fault("%s: %v token %v after a writer's %v", name, l.Mode(), l.Token(), r.writer[name])
		}
		if l.Mode() == zklock.Exclusive {
			if l.Token().Compare(r.reader[name]) <= 0 {
				r.fault("%s: token %v after a reader's %v", name, l.Token(), r.reader[name])
			}
			r.writer[name] = l.Token()
		} else if l.Token().Compare(r.reader[name]) > 0 {
			r.reader[name] = l.Token()
		}
	}
}

func (r *resource) leave(l *zklock.Lock) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range l.Names() {
		delete(r.holders[name], l)
	}
}

// pick chooses what a simulated worker wants next. Names of semaphores are their
// own; All is always exclusive, so that its mode says how each name is held.
func pick(c *zklock.Client, rng *rand.Rand) zklock.Acquirer {
	name := func() string { return "n" + strconv.Itoa(rng.IntN(3)) }
	switch rng.IntN(8) {
	case 0, 1, 2:
		return c.Mutex(name())
	case 3, 4:
		return c.RWMutex(name()).Reader()
	case 5:
		return c.Semaphore("s"+strconv.Itoa(rng.IntN(2)), permits)
	case 6:
		return zklock.All(c.Mutex("n0"), c.Mutex(name()))
	}
	return zklock.All(c.Mutex("n2"), c.Mutex("n1"), c.Mutex("n0"))
}

// simulate runs clients against an ensemble of three servers while a seeded
// controller breaks things, and returns what went wrong. Every other seed has an
// operator who expires sessions before their time and deletes queue nodes: no
// lease survives that, so two may believe that they hold, and a server that lags
// may tell the one whose node is gone last of all. What must hold then is that
// nobody gets stuck, no error is unclassified, and nothing stays behind.
func simulate(t *testing.T, seed uint64) (grants map[string]int, faults []string) {
	operator := seed%2 == 0
	rng := rand.New(rand.NewPCG(seed, 1))
	ensemble := memdriver.New(memdriver.WithServers(3), memdriver.WithTickTime(500*time.Millisecond), memdriver.WithLatency(time.Millisecond))
	res := newResource(operator)
	ctx, stop := context.WithTimeout(t.Context(), 60*time.Second)
	defer stop()

	var clients []*zklock.Client
	var mu sync.Mutex
	ids := map[int64]bool{}
	hooks := zklock.Hooks{Session: func(e zklock.SessionEvent) { mu.Lock(); ids[e.ID] = true; mu.Unlock() }}
	params := map[string][]string{"session_timeout": {"4s"}, "tick_time": {"500ms"}, "pool_max_sessions": {"1"}, "connect_timeout": {"5s"}}
	var workers sync.WaitGroup
	for range 3 {
		c, err := zklock.OpenConnector(ensemble.Connector(), zklock.WithParams(params), zklock.WithHooks(hooks))
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
		for range 4 {
			workerRNG := rand.New(rand.NewPCG(seed, rng.Uint64()))
			workers.Go(func() {
				for ctx.Err() == nil {
					waitCtx, cancel := ctx, context.CancelFunc(func() {})
					if workerRNG.IntN(4) == 0 {
						waitCtx, cancel = context.WithTimeout(ctx, time.Duration(workerRNG.IntN(300))*time.Millisecond)
					}
					lock, err := pick(c, workerRNG).Acquire(waitCtx)
					cancel()
					if err != nil {
						if !errors.Is(err, zklock.ErrNotAcquired) && !errors.Is(err, zklock.ErrUnavailable) {
							res.mu.Lock()
							res.fault("acquire: %v", err)
							res.mu.Unlock()
						}
						continue
					}
					res.enter(lock)
					length := time.Duration(workerRNG.IntN(200)) * time.Millisecond
					if workerRNG.IntN(10) == 0 {
						length *= 50 // longer than a session survives a cut
					}
					if workerRNG.IntN(8) == 0 && lock.Mode() == zklock.Exclusive && len(lock.Names()) == 1 {
						downgrade, cancel := context.WithTimeout(ctx, length)
						_ = lock.Downgrade(downgrade)
						cancel()
					}
					work := time.NewTimer(length)
					select {
					case <-work.C:
					case <-lock.Done():
					}
					res.leave(lock)
					err = lock.Release(context.WithoutCancel(ctx))
					if err != nil && !errors.Is(err, zklock.ErrLost) && !errors.Is(err, zklock.ErrReleasePending) {
						res.mu.Lock()
						res.fault("release: %v", err)
						res.mu.Unlock()
					}
				}
			})
		}
	}

	var schedule []string
	session := func() int64 {
		mu.Lock()
		defer mu.Unlock()
		for id := range ids {
			return id
		}
		return 0
	}
	for ctx.Err() == nil {
		pause := time.NewTimer(time.Duration(rng.IntN(1500)) * time.Millisecond)
		select {
		case <-pause.C:
		case <-ctx.Done():
			continue
		}
		server := rng.IntN(3)
		act := ""
		kinds := 8
		if operator {
			kinds = 10
		}
		switch rng.IntN(kinds) {
		case 0:
			act = "kill connection"
			ensemble.KillConnection(session())
		case 1:
			act = "cut session"
			ensemble.Partition(memdriver.AroundSession(session()))
		case 2:
			act = fmt.Sprint("cut server ", server)
			ensemble.Partition(memdriver.AroundServer(server))
		case 3:
			act = fmt.Sprint("reset server ", server)
			ensemble.Partition(memdriver.AroundServer(server).Reset())
		case 4, 5:
			act = "heal"
			ensemble.Heal()
		case 6:
			act = fmt.Sprint("restart ", server)
			ensemble.Restart(server)
		case 7:
			act = fmt.Sprint("lag ", server)
			ensemble.Lag(server, time.Duration(rng.IntN(2))*time.Second)
		case 8:
			act = "expire"
			ensemble.Expire(session())
		case 9:
			act = "break"
			ensemble.Break("/zklock/n" + strconv.Itoa(rng.IntN(3)))
		}
		schedule = append(schedule, act)
	}
	ensemble.Heal()
	for i := range 3 {
		ensemble.Lag(i, 0)
	}
	workers.Wait()
	quiet := time.NewTimer(20 * time.Second) // sweeps and expiries
	<-quiet.C
	if dump := ensemble.Dump(); strings.Contains(dump, "_c_") {
		res.faults = append(res.faults, "nodes left behind:\n"+dump)
	}
	for _, c := range clients {
		if err := c.Close(); err != nil {
			res.faults = append(res.faults, "close: "+err.Error())
		}
	}
	_ = ensemble.Close()
	if len(res.faults) > 0 {
		res.faults = append(res.faults, fmt.Sprint("schedule: ", schedule))
	}
	return res.grants, res.faults
}

// ZKLOCK_SEED replays one run.
func TestSimulatedFaultsNeverBreakExclusion(t *testing.T) {
	from, n := uint64(1), uint64(20)
	if s := os.Getenv("ZKLOCK_SEED"); s != "" {
		from, _ = strconv.ParseUint(s, 10, 64)
		n = 1
	}
	if s := os.Getenv("ZKLOCK_RUNS"); s != "" {
		n, _ = strconv.ParseUint(s, 10, 64)
	}
	total := map[string]int{}
	for seed := from; seed < from+n; seed++ {
		synctest.Test(t, func(t *testing.T) {
			grants, faults := simulate(t, seed)
			for mode, n := range grants {
				total[mode] += n
			}
			for _, f := range faults {
				t.Errorf("seed %d: %s", seed, f)
			}
		})
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d runs, grants: %v", n, total)
	if n > 1 && len(total) < 3 {
		t.Errorf("some mode was never acquired: %v", total)
	}
}
