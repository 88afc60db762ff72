package model

import (
	"testing"
	"time"
)

// TestLarge explores large configurations, one after the other, since each needs much memory.
func TestLarge(t *testing.T) {
	const configurations = 8
	large(t, "a lease, a deposed leader, overlapping requests", configurations,
		Leases{Unit: time.Second, Timeout: 6, Tick: 2, Outstanding: 2, Elections: 1, Reconnects: 1})
	large(t, "a lease, a deposed leader, a slow clock", configurations,
		Leases{Unit: 50 * time.Millisecond, Timeout: 8, Tick: 2, Outstanding: 1, Elections: 1, Reconnects: 1, Slips: 1})
	large(t, "a lease, two elections, two reconnects", configurations,
		Leases{Unit: time.Second, Timeout: 5, Tick: 1, Outstanding: 1, Elections: 2, Reconnects: 2})
	large(t, "three writers, two reconnects, a loss, a deleted node, a late create", configurations,
		Locks{Clients: 3, Modes: writers, Lag: 2, Reconnects: 2, Losses: 1, Breaks: 1, Late: 1})
	large(t, "four readers and writers, a reconnect, a downgrade", configurations,
		Locks{Clients: 4, Modes: both, Lag: 2, Reconnects: 1, Downgrades: 1})
	large(t, "four clients for two permits, a reconnect, a loss", configurations,
		Locks{Clients: 4, Modes: permits, Permits: 2, Lag: 2, Reconnects: 1, Losses: 1})
	large(t, "kept places of three processes with readers and writers", configurations,
		Places{Processes: 3, Modes: both, Keep: true, Limit: 2})
	large(t, "kept places of two processes, with all faults", configurations,
		Places{Processes: 2, Modes: both, Keep: true, Limit: 2, Txns: 1, Revokes: 1, Losses: 1, Shorts: 1})
}

func large[S comparable](t *testing.T, name string, of int, sys System[S]) {
	t.Run(name, func(t *testing.T) {
		holds(t, sys, largeBounds(t, of))
	})
}
