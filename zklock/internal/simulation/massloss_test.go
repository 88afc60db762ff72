package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/census"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/internal/testkit/crowd"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A client loses a session with thousands of locks and thousands of waiters. Every context has
// ended before another client is granted one of the names. The waiters, which react to the loss
// at the same time, do not delay that.
//
// First the order is tested, in real time and without any limit: the client notices the loss, and the
// ensemble lets others in when the client has closed its session. Then the client is cut off, and times
// decide. That runs in a synctest bubble, where goroutines take no time: all contexts end with the lease.
// With ZKLOCK_LONG=1 it runs in real time, where the waiters compete for the processors with what
// ends the contexts. A machine can be too busy for that. ZKLOCK_LOSSES=20 runs it twenty times.
func TestThousandsOfLossesAreReportedBeforeTheNextGrant(t *testing.T) {
	n := massLoss()
	losesByEvents(t, n, expired)
	for range fromEnvironment(t, "ZKLOCK_LOSSES", 1) {
		alone := losesByTime(t, crowd.Crowd{Held: n.Held, Rivals: n.Rivals})
		took := losesByTime(t, n)
		if long.On() {
			t.Logf("last of %d contexts ended %v after the lease without waiters, %v after it with %d in the queue and %d in the process: %.1f times as long",
				n.Held, alone.Round(time.Millisecond), took.Round(time.Millisecond), n.Queued, n.Local, took.Seconds()/alone.Seconds())
		} else if alone != 0 || took != 0 {
			t.Errorf("the last context ended %v after the lease without waiters, and %v after it with them, want 0", alone, took)
		}
	}
}

// The same holds for a client that is closed: its nodes go when the last context has ended.
func TestThousandsOfLocksAreLostBeforeCloseLetsOthersIn(t *testing.T) {
	losesByEvents(t, massLoss(), closed)
}

func massLoss() crowd.Crowd {
	if corekit.Race || !long.On() { // the race detector supports at most eight thousand goroutines
		return crowd.Crowd{Held: 1_000, Queued: 300, Local: 1_000, Rivals: 300}
	}
	return crowd.Crowd{Held: 10_000, Queued: 3_000, Local: 10_000, Rivals: 300}
}

// ending ends the session of a client. It is the first of the ensemble's sessions.
type ending func(t *testing.T, e *memdriver.Ensemble, c *zklock.Client)

func cutOff(_ *testing.T, e *memdriver.Ensemble, _ *zklock.Client) {
	e.Partition(memdriver.AroundSession(e.Sessions()[0]))
}

// expired has the client notice that its session is over. The ensemble ends it when the client has closed it.
func expired(_ *testing.T, e *memdriver.Ensemble, _ *zklock.Client) { e.Expire(e.Sessions()[0]) }

func closed(t *testing.T, _ *memdriver.Ensemble, c *zklock.Client) {
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// losesByEvents ends a session in real time. No session ends by itself, however slow the machine is, and
// nodes of lost locks do not stay for a while.
func losesByEvents(t *testing.T, n crowd.Crowd, how ending) {
	t.Helper()
	e := memdriver.New(memdriver.WithTickTime(500 * time.Millisecond))
	memcontrol.Of(e).MaxTimeout(0, 24*time.Hour)
	loses(t, e, map[string]string{"session_timeout": "24h"}, n, how)
}

// losesByTime cuts a client off, and returns how long after the lease the last context ended.
func losesByTime(t *testing.T, n crowd.Crowd) (last time.Duration) {
	t.Helper()
	lose := func(t *testing.T) {
		e := memdriver.New(memdriver.WithTickTime(500 * time.Millisecond))
		// The longest timeout at these ticks. A lease ends before the session by a margin and this
		// delay. In real time, a busy machine may delay this process for that long.
		last = loses(t, e, map[string]string{"session_timeout": "10s", "loss_delay": "3s"}, n, cutOff)
	}
	if long.On() {
		lose(t)
	} else {
		synctest.Test(t, lose)
	}
	return last
}

func loses(t *testing.T, e *memdriver.Ensemble, params map[string]string, n crowd.Crowd, how ending, opts ...zklock.Option) time.Duration {
	t.Helper()
	params["tick_time"], params["connect_timeout"] = "500ms", "60s"
	c := crowd.Clients{Loser: corekit.Connect(t, e.Connector(), params, opts...)}
	if err := c.Loser.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Other, c.Rival = corekit.Connect(t, e.Connector(), params), corekit.Connect(t, e.Connector(), params)
	last := n.Lose(t, c, func() { how(t, e, c.Loser) })
	e.Heal()
	return last
}

func fromEnvironment(t *testing.T, key string, otherwise int) int {
	s := os.Getenv(key)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return n
}

// Hundreds of locks are lost, in every way that a lease can end, on slow and fast ensembles and
// with slow hooks. A context that is live when another client has the lock is a violation,
// whatever the seed. At the end no node stays in any queue. ZKLOCK_SEED replays one run,
// ZKLOCK_RUNS sets how many runs there are.
func TestSimulatedMassLosses(t *testing.T) {
	endings := []struct {
		name string
		how  ending
	}{
		{"cut off", cutOff},
		{"cut off, with resets", func(_ *testing.T, e *memdriver.Ensemble, _ *zklock.Client) {
			e.Partition(memdriver.AroundSession(e.Sessions()[0]).Reset())
		}},
		{"closed", closed},
		{"frozen", func(t *testing.T, e *memdriver.Ensemble, _ *zklock.Client) {
			thaw := e.Freeze(e.Sessions()[0])
			time.Sleep(15 * time.Second)
			thaw()
		}},
		{"replies held up", func(_ *testing.T, e *memdriver.Ensemble, _ *zklock.Client) {
			id := e.Sessions()[0]
			release := memcontrol.Of(e).HoldReplies(id)
			e.Partition(memdriver.AroundSession(id))
			time.Sleep(time.Second)
			release()
		}},
		{"on a server without a leader", func(_ *testing.T, e *memdriver.Ensemble, _ *zklock.Client) {
			for i := range memcontrol.Of(e).Servers() {
				if i != e.Leader() {
					e.Partition(memdriver.AroundServer(i))
					break
				}
			}
			e.Partition(memdriver.AroundSession(e.Sessions()[0]))
		}},
	}
	first, runs := fromEnvironment(t, "ZKLOCK_SEED", 1), 30
	if os.Getenv("ZKLOCK_SEED") != "" {
		runs = 1
	}
	runs = fromEnvironment(t, "ZKLOCK_RUNS", runs)
	lost := 0
	var settings census.Census
	for seed := first; seed < first+runs; seed++ {
		rng := rand.New(rand.NewPCG(uint64(seed), 0x1055))
		n := crowd.Crowd{Held: 50 + rng.IntN(250), Queued: rng.IntN(150), Local: rng.IntN(300), Rivals: 50}
		how := endings[rng.IntN(len(endings))]
		latency := time.Duration(rng.IntN(4)) * time.Millisecond
		hookTime := []time.Duration{0, time.Second, 10 * time.Second}[rng.IntN(3)]
		what := fmt.Sprintf("seed %d: %+v, %s, latency %v, hooks take %v", seed, n, how.name, latency, hookTime)
		synctest.Test(t, func(t *testing.T) {
			servers, tick, session := 1+2*rng.IntN(2), 500*time.Millisecond, 6*time.Second
			settings.Add(census.Settings{Tick: tick, Session: session, Servers: servers, Distance: latency, Clients: 3, Name: len("own/0")})
			e := memdriver.New(memdriver.WithServers(servers), memdriver.WithTickTime(tick), memdriver.WithLatency(latency))
			slow := zklock.Hooks{
				Session: func(zklock.SessionEvent) { time.Sleep(hookTime) },
				Lost:    func(context.Context, zklock.LostEvent) { time.Sleep(hookTime / 1000) },
			}
			loses(t, e, map[string]string{"session_timeout": session.String()}, n, how.how, zklock.WithHooks(slow))
			time.Sleep(15 * time.Second)
			if left := corekit.Nodes(e); left > 0 {
				t.Errorf("%d queue nodes stay behind", left)
			}
		})
		if t.Failed() {
			t.Fatal(what)
		}
		lost += n.Held
	}
	t.Logf("%d runs, %d locks lost, no context was live while the next client held the lock\n%v", runs, lost, &settings)
}
