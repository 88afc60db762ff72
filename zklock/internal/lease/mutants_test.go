package lease

import "github.com/zklock/go-zklock/internal/testkit/mutant"

var _ = []mutant.Mutant{
	{
		Name:   "lease-from-reply",
		Breaks: "the lease counts from when a reply was read, not from when its request was sent",
		In:     (*Lease).Acknowledged,
		Find:   "j.sent",
		Put:    "j.answered",
		Tests:  []string{"TestLeaseNeedsATickBetweenTheTouchAndTheWriteBeforeLast"},
	},
	{
		Name:   "lease-from-connected",
		Breaks: "a new session's lease counts from when its handshake was answered, not from when it was sent",
		In:     (*Lease).Connected,
		Find:   "l.$prove(sent)",
		Put:    "l.$prove(answered)",
		Tests:  []string{"TestLeaseOfANewSessionCountsFromItsHandshake"},
	},
	{
		Name:   "lease-from-sync",
		Breaks: "Syncs, which a deposed leader answers, prove the lease as committed writes do",
		In:     (*Lease).Acknowledged,
		Find:   "if committed { $$body }",
		Put:    "if true { $$body }",
		Tests:  []string{"TestLeaseOfAReconnectWaitsForACommittedWrite"},
	},
	{
		Name:   "lease-without-tick",
		Breaks: "no tick is required between the touch that counts and the write before the last: the touch may not have been reported to the leader yet",
		In:     (*Lease).Acknowledged,
		Find:   "p.sent.Add(-l.Tick)",
		Put:    "p.sent",
		Tests:  []string{"TestLeaseNeedsATickBetweenTheTouchAndTheWriteBeforeLast"},
	},
	{
		Name:   "lease-from-reconnect",
		Breaks: "a handshake that resumes a session proves the lease by itself",
		In:     (*Lease).Connected,
		Find:   "if created { $$body }",
		Put:    "if true { $$body }",
		Tests:  []string{"TestLeaseOfAReconnectWaitsForACommittedWrite"},
	},
	{
		Name:   "lease-overlapping-writes",
		Breaks: "a write that was sent before the handshake's answer counts for the new connection",
		In:     (*Lease).Acknowledged,
		Find:   "!sent.Before(l.handshake.answered)",
		Put:    "true",
		Tests:  []string{"TestLeaseOfAReconnectWaitsForACommittedWrite"},
	},
	{
		Name:   "lease-without-margin",
		Breaks: "the lease has no margin for clocks that run at different rates",
		In:     (*Lease).margin,
		Find:   "l.Timeout/100 + max(l.Timeout/20, 50*time.Millisecond)",
		Put:    "0",
		Tests:  []string{"TestLeaseOfANewSessionCountsFromItsHandshake"},
	},
	{
		Name:   "suspended-clock",
		Breaks: "time during which the machine was suspended does not count",
		In:     Now,
		Find:   "t.Add(time.Duration(suspendedMax.Load()))",
		Put:    "t",
		And: []mutant.Change{
			{
				In:   Now,
				Find: "t.Add(d)",
				Put:  "t.Add(0 * d)",
			},
		},
		Tests: []string{"TestValidLooksAtTheClock"},
		By:    "zklock",
	},
	{
		Name:   "model-lease-without-a-tick",
		Breaks: "the lease counts from an exchange that was not answered a tick before",
		In:     (*Lease).Acknowledged,
		Find:   "p.sent.Add(-l.Tick)",
		Put:    "p.sent",
		Tests:  []string{"TestLeaseOutlivesNoSession"},
		By:     "zklock/internal/model",
	},
}
