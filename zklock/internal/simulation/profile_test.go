package simulation

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// profile is what a seed decides about a run before it begins.
type profile struct {
	dialect   string
	clients   int
	workers   int // of each client
	names     int
	servers   int
	syncLimit int
	latency   time.Duration
	pool      int
	handover  time.Duration
	lifetime  time.Duration
	keep      time.Duration
	trusting  bool    // the clients are not the library's, see type trusting
	operator  bool    // an operator expires sessions and deletes nodes: leases promise nothing then
	breaker   bool    // an operator only deletes nodes: leases promise nothing to their holders then, see breakup
	quiet     bool    // nothing else fails
	limit     int     // max_contenders; 0: none
	rate      float64 // of faults among requests
	breaks    int     // per cent of the steps that break something
	loses     bool    // the ensemble is restored to an older state
	slow      bool    // locks are held, and faults last, for longer than a session
	dawdling  bool    // Lost hooks take long
	hush      bool    // nothing fails, but servers fall silent: see silence_test.go
	length    time.Duration
}

func newProfile(rng *rand.Rand) profile {
	p := profile{
		dialect: "zklock", clients: 2 + rng.IntN(2), workers: 2 + rng.IntN(2), names: []int{1, 1, 2, 3}[rng.IntN(4)],
		servers: 3, syncLimit: 5, latency: time.Duration(200+rng.IntN(2000)) * time.Microsecond,
		pool: 1, handover: 100 * time.Millisecond, length: time.Duration(3000+rng.IntN(5000)) * time.Millisecond,
	}
	if rng.IntN(5) == 0 {
		p.dialect = []string{"curator", "zk", "kazoo"}[rng.IntN(3)]
	}
	if rng.IntN(8) == 0 {
		p.servers = []int{1, 5}[rng.IntN(2)]
	}
	if rng.IntN(2) == 0 {
		p.syncLimit = 25 // longer than a session timeout: a server that is cut off still answers
	}
	if rng.IntN(4) == 0 {
		p.pool = 2
	}
	if rng.IntN(4) == 0 {
		p.handover = 400 * time.Millisecond
	}
	if rng.IntN(8) == 0 {
		p.lifetime = 1500 * time.Millisecond
	}
	p.operator = rng.IntN(5) == 0
	p.rate = []float64{0, 0.005, 0.02, 0.06}[rng.IntN(4)]
	p.breaks = []int{2, 4, 8, 14}[rng.IntN(4)]
	if rng.IntN(4) == 0 {
		p.beSlow()
	}
	p.dawdling = rng.IntN(4) == 0
	if rng.IntN(2) == 0 {
		p.keep = []time.Duration{50 * time.Millisecond, 500 * time.Millisecond, 2 * simTimeout}[rng.IntN(3)]
	}
	if rng.IntN(3) == 0 {
		p.clients, p.names = p.clients+3, 1 // so that waiters rest, further back than the first in line
	}
	if !p.operator && rng.IntN(4) == 0 {
		p.breaker, p.quiet = true, rng.IntN(2) == 0
	}
	if p.quiet {
		p.rate, p.breaks, p.names, p.length = 0, 5+rng.IntN(20), 1, p.length/4
	}
	if rng.IntN(5) == 0 {
		p.limit = 1 + rng.IntN(p.clients+1)
	}
	return p
}

// beSlow makes a run of sessions that end while a worker still uses its lock, so that other
// clients get in. Such a run shows whether a client takes its lock for held too long.
func (p *profile) beSlow() {
	p.slow, p.names, p.syncLimit, p.breaks, p.length = true, 1, 25, 6, p.length+simTimeout
}

// travel puts the servers at a distance from the clients and from each other, and gives the run time for its longer
// sessions.
func (p *profile) travel(rng *rand.Rand) {
	p.latency = []time.Duration{0, 5, 25, 100, 250}[rng.IntN(5)] * time.Millisecond
	p.length = 2*p.length + simTimeout/2
}

func (p profile) String() string {
	return fmt.Sprintf("dialect=%s clients=%dx%d names=%d servers=%d syncLimit=%d latency=%v pool=%d handover=%v lifetime=%v keep=%v operator=%v breaker=%v quiet=%v limit=%d rate=%v breaks=%d%% loses=%v slow=%v dawdling=%v hush=%v length=%v",
		p.dialect, p.clients, p.workers, p.names, p.servers, p.syncLimit, p.latency, p.pool, p.handover, p.lifetime, p.keep, p.operator, p.breaker, p.quiet, p.limit, p.rate, p.breaks, p.loses, p.slow, p.dawdling, p.hush, p.length)
}
