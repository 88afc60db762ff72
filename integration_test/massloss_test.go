package integration_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/crowd"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
)

// A client with thousands of locks on its session, and hundreds of waiters, is cut off from
// a real server. Every lock's context has ended before another client is granted its name.
// ZKLOCK_LOSSES=20 repeats the test twenty times.
func TestThousandsOfLossesOnARealServer(t *testing.T) {
	long.Parallel(t)
	n := crowd.Crowd{Held: 200, Queued: 50, Local: 200, Rivals: 30}
	if long.On() {
		n = crowd.Crowd{Held: 2_000, Queued: 500, Local: 2_000, Rivals: 300}
	}
	for i := range long.Count(t, "ZKLOCK_LOSSES", 1, 1) {
		alone := cutOffCrowd(t, "alone"+strconv.Itoa(i), crowd.Crowd{Held: n.Held, Rivals: n.Rivals})
		took := cutOffCrowd(t, "crowded"+strconv.Itoa(i), n)
		t.Logf("the last of %d contexts ended %v after the lease without waiters, and %v after it with %d waiters in the queue and %d in the process: %.1f times as long",
			n.Held, alone.Round(time.Millisecond), took.Round(time.Millisecond), n.Queued, n.Local, took.Seconds()/alone.Seconds())
	}
}

func cutOffCrowd(t *testing.T, name string, n crowd.Crowd) (last time.Duration) {
	t.Run(name, func(t *testing.T) {
		server := sharedEnsemble(t).Server(0).Addr()
		p := link(t)
		// A lease ends before the session by a margin and this delay. For that long a busy machine may
		// delay this process without failing the test.
		params := quick("session_timeout", "10s", "loss_delay", "3s", "pool_max_sessions", "1", "connect_timeout", "60s")
		c := crowd.Clients{Loser: dial(t, p.Addr(), params), Other: dial(t, server, params), Rival: dial(t, server, params)}
		last = n.Lose(t, c, func() { p.Blackhole(proxy.Both) })
		p.Heal()
	})
	return last
}
