package doctor

import (
	"fmt"
	"time"
)

// election is how long it takes, after the followers have noticed that their leader is silent, until they have another
// one and clients are connected again.
const election = 3 * time.Second

// silence reports what the silence of one server costs: its host is gone, or its process is stopped. A session leaves a
// follower soon. But without a leader nothing is committed for syncLimit ticks, and leases must last for that.
func (r *Report) silence(p Patient, servers []server) {
	said := make(map[string]bool)
	for _, s := range servers {
		ticks, known := s.number("syncLimit")
		tick, _ := s.tick()
		if s.err != nil || s.srvr["mode"] == "standalone" {
			continue
		}
		outage, least := time.Duration(ticks)*tick+election, leastLease(s.granted, p.TickTime)
		var text string
		add := func() { r.ok("silence", "%s", text) }
		switch {
		case !known:
			add = func() { r.unknown("silence", "%s", text) }
			text = fmt.Sprintf("whether a leader that falls silent costs locks is not known: %s does not say its syncLimit; allow the command conf in 4lw.commands.whitelist, or turn AdminServer on, to have it checked", s.host)
		case least >= outage:
			text = fmt.Sprintf("no server's silence costs a lock: leases last for %v at least, and without its leader the ensemble commits nothing for about %v", least.Round(time.Second/10), outage)
		default:
			need := s.granted
			for leastLease(need, p.TickTime) < outage {
				need += time.Second
			}
			text = fmt.Sprintf("a leader that falls silent costs all locks, a follower none: leases last for %v at least, and without its leader the ensemble commits nothing for about %v", least.Round(time.Second/10), outage)
			add = func() {
				r.warn("silence", text, fmt.Sprintf("set session_timeout=%v or more in the URL of all clients, or lower the servers' syncLimit; docs/operations.md says what a longer timeout costs", need))
			}
		}
		if !said[text] {
			said[text] = true
			add()
		}
	}
}

// leastLease returns how much of a lease is left at least while the ensemble answers, as package zklock computes it: see
// zklock.Lock.MinLease.
func leastLease(timeout, tick time.Duration) time.Duration {
	exchange := min(timeout/10, max(time.Second, timeout/30))
	return max(timeout-timeout*6/100-timeout/5-tick-exchange, 0)
}
