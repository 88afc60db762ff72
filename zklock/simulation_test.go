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
	mu       sync.Mutex
	operator bool // overlaps are nobody's fault

	holder map[string]*zklock.Lock // guarded by mu; the last to enter, until it leaves
	newest map[string]zklock.Token // guarded by mu
	grants int                     // guarded by mu
	faults []string                // guarded by mu; violations
}

func (r *resource) enter(l *zklock.Lock) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.grants++
	if other := r.holder[l.Name()]; !r.operator && other != nil && other.Valid() && l.Valid() {
		r.faults = append(r.faults, fmt.Sprintf("%s: %v is valid beside %v", l.Name(), l.Token(), other.Token()))
	}
	if newest := r.newest[l.Name()]; !r.operator && l.Token().Compare(newest) <= 0 {
		r.faults = append(r.faults, fmt.Sprintf("%s: token %v after %v", l.Name(), l.Token(), newest))
	}
	r.newest[l.Name()] = l.Token()
	r.holder[l.Name()] = l
}

func (r *resource) leave(l *zklock.Lock) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holder[l.Name()] == l {
		delete(r.holder, l.Name())
	}
}

// simulate runs clients against an ensemble of three servers while a seeded
// controller breaks things, and returns what went wrong. Every other seed has an
// operator who expires sessions before their time and deletes queue nodes: no
// lease survives that, so two may believe that they hold, and a server that lags
// may tell the one whose node is gone last of all. What must hold then is that
// nobody gets stuck, no error is unclassified, and nothing stays behind.
func simulate(t *testing.T, seed uint64) (grants int, faults []string) {
	operator := seed%2 == 0
	rng := rand.New(rand.NewPCG(seed, 1))
	ensemble := memdriver.New(memdriver.WithServers(3), memdriver.WithTickTime(500*time.Millisecond), memdriver.WithLatency(time.Millisecond))
	res := &resource{operator: operator, holder: map[string]*zklock.Lock{}, newest: map[string]zklock.Token{}}
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
		for w := range 3 {
			workerRNG := rand.New(rand.NewPCG(seed, rng.Uint64()))
			workers.Go(func() {
				for ctx.Err() == nil {
					name := "n" + strconv.Itoa(w%2)
					waitCtx, cancel := ctx, context.CancelFunc(func() {})
					if workerRNG.IntN(4) == 0 {
						waitCtx, cancel = context.WithTimeout(ctx, time.Duration(workerRNG.IntN(300))*time.Millisecond)
					}
					lock, err := c.Mutex(name).Acquire(waitCtx)
					cancel()
					if err != nil {
						if !errors.Is(err, zklock.ErrNotAcquired) && !errors.Is(err, zklock.ErrUnavailable) {
							res.mu.Lock()
							res.faults = append(res.faults, "acquire: "+err.Error())
							res.mu.Unlock()
						}
						continue
					}
					res.enter(lock)
					length := time.Duration(workerRNG.IntN(200)) * time.Millisecond
					if workerRNG.IntN(10) == 0 {
						length *= 50 // longer than a session survives a cut
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
						res.faults = append(res.faults, "release: "+err.Error())
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
			ensemble.Break("/zklock/n" + strconv.Itoa(rng.IntN(2)))
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
	if dump := ensemble.Dump(); strings.Contains(dump, "__WRIT__") {
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
	total := 0
	for seed := from; seed < from+n; seed++ {
		synctest.Test(t, func(t *testing.T) {
			grants, faults := simulate(t, seed)
			total += grants
			for _, f := range faults {
				t.Errorf("seed %d: %s", seed, f)
			}
		})
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d runs, %d grants", n, total)
	if total == 0 {
		t.Error("nothing was ever acquired")
	}
}
