package model

import (
	"testing"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

var (
	writers = []queue.Mode{queue.Exclusive}
	both    = []queue.Mode{queue.Exclusive, queue.Shared}
	permits = []queue.Mode{queue.Permit}
)

func TestQueueExcludesAndLosesNoWakeUp(t *testing.T) {
	holdAll(t, []configuration[lockState]{
		{"four writers", Locks{Clients: 4, Modes: writers, Lag: 2}, 160945},
		{"three writers, a reconnect, a loss", Locks{Clients: 3, Modes: writers, Lag: 1, Reconnects: 1, Losses: 1}, 135021},
		{"three writers, a reconnect, a deleted node", Locks{Clients: 3, Modes: writers, Lag: 1, Reconnects: 1, Breaks: 1}, 83413},
		{"four acquisitions, a reconnect, a deleted node", Locks{Clients: 3, Modes: writers, Lag: 2, Reconnects: 1, Breaks: 1, Acquires: 4}, 143130},
		{"two writers, a late create, a loss", Locks{Clients: 2, Modes: writers, Lag: 2, Reconnects: 1, Losses: 1, Late: 1}, 50316},
		{"readers and writers, a downgrade", Locks{Clients: 3, Modes: both, Lag: 1, Downgrades: 1}, 81454},
		{"readers and writers, a downgrade, a reconnect, a loss", Locks{Clients: 2, Modes: both, Lag: 1, Reconnects: 1, Losses: 1, Downgrades: 1}, 74898},
		{"four acquisitions of two permits", Locks{Clients: 4, Modes: permits, Permits: 2, Lag: 1, Acquires: 4}, 9329},
		{"three clients for two permits", Locks{Clients: 3, Modes: permits, Permits: 2, Lag: 1}, 40115},
		{"one permit, a reconnect", Locks{Clients: 3, Modes: permits, Permits: 1, Lag: 1, Reconnects: 1}, 19628},
	})
}

func TestQueueGuardsAreNeeded(t *testing.T) {
	for _, c := range []struct {
		name, want string
		sys        Locks
		without    LockGuard
	}{
		{"decide by the whole queue", "two clients hold", Locks{Clients: 3, Modes: writers, Lag: 1, Breaks: 1}, DecideByQueue},
		{"a read arms the watch", "its turn", Locks{Clients: 2, Modes: writers, Lag: 1}, ReadArms},
		{"the read of the own node", "two clients hold", Locks{Clients: 3, Modes: writers, Lag: 1, Breaks: 1}, OwnNodeRead},
		{"the watch on the own node", "whose node is gone", Locks{Clients: 2, Modes: writers, Lag: 1, Breaks: 1}, OwnNodeWatched},
		{"the own node on the same connection", "two clients hold", Locks{Clients: 3, Modes: writers, Lag: 2, Breaks: 1, Reconnects: 1}, OneConnection},
		{"events count on their connection", "two clients hold", Locks{Clients: 3, Modes: writers, Lag: 2, Breaks: 1, Reconnects: 1, Acquires: 4}, EventsCombine},
		{"the lease", "two clients hold", Locks{Clients: 2, Modes: writers, Lag: 1, Losses: 1}, LeaseFirst},
		{"contexts end before nodes go", "two clients hold", Locks{Clients: 2, Modes: writers, Lag: 1, Losses: 1}, ContextsFirst},
		{"the mark of a permit", "its turn", Locks{Clients: 4, Modes: permits, Permits: 2, Lag: 1, Acquires: 4}, PermitsMarked},
		{"a mark that was there before the watch", "its turn", Locks{Clients: 4, Modes: permits, Permits: 2, Lag: 1, Acquires: 4}, MarkFoundByRead},
		{"the mark of a downgrade", "its turn", Locks{Clients: 2, Modes: both, Lag: 1, Downgrades: 1}, DowngradeMarked},
		{"stray nodes are removed", "that no client uses", Locks{Clients: 2, Modes: writers, Lag: 1, Late: 1, Reconnects: 1}, StraysRemoved},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.sys.Without = c.without
			breaks(t, c.sys, c.want)
		})
	}
}
