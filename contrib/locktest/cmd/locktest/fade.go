package main

import (
	"flag"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
)

// fadeWorkers is how many sessions expire in each fault of -fade.
const fadeWorkers = 8

// fadeOut sets what the flags do not: processes with a lock each, which no other process asks for, with the tick of fadeTick.
func (o *options) fadeOut(f *flag.FlagSet) {
	set := make(map[string]bool)
	f.Visit(func(f *flag.Flag) { set[f.Name] = true })
	if !set["workers"] {
		o.config.Workers = fadeWorkers
	}
	o.config.Alone, o.config.Clients, o.config.LongHolds, o.config.For = true, 0, 0, 0
	for i := range o.config.Workers {
		o.config.Long = append(o.config.Long, fmt.Sprintf("held-%d", i+1))
	}
}

// fadeTick is the servers' tick: ZooKeeper's usual one, and a shorter one for a short TTL, as zklock refuses sessions of less than three.
func fadeTick(ttl time.Duration) time.Duration { return min(silentTick, ttl/4) }

// fadePlan has a cut of all clients at their usual distance, and one at a sixteenth of the TTL. When a fault begins, the clients have
// had time to acquire their locks. When it is over, their sessions have expired: by its TTL, rounded up to a tick, and what followers
// know is late by a tick at most.
func fadePlan(ttl time.Duration) (faults []fault.Fault) {
	for _, delay := range []time.Duration{0, ttl / 16} {
		faults = append(faults, fault.Fault{Kind: fault.FadeOut, After: ttl, Delay: delay, Lasts: ttl + 4*silentTick})
	}
	return faults
}
