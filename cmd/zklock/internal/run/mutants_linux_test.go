package run

import "github.com/zklock/go-zklock/internal/testkit/mutant"

var _ = []mutant.Mutant{
	{
		Name:   "run-starts-without-a-lease",
		Breaks: "a command starts although its guard took so long that the lease has ended",
		In:     Run,
		Find:   "!ready",
		Put:    "!ready && sig != nil",
		Tests:  []string{"TestLeaseIsLookedAtAfterTheGuard"},
	},
	{
		Name:   "run-lease-ends-unseen-during-the-start",
		Breaks: "a program that the kernel loads slowly starts after the end of the lease",
		In:     (*runner).heedLeaseDuring,
		Find:   "demand == kill",
		Put:    "demand == kill && false",
		Tests:  []string{"TestLeaseEndsDuringTheStart"},
	},
	{
		Name:   "run-without-KILL",
		Breaks: "a command that ignores TERM outlives the lease",
		In:     (*runner).heedLease,
		Find:   "r.$killForLease()",
		Put:    "",
		And: []mutant.Change{
			{
				In:   (*runner).heedLease,
				Find: "r.group.$kill()",
				Put:  "",
			},
		},
		Tests: []string{"TestKILLComesBeforeTheEndOfTheLease"},
	},
	{
		Name:   "run-returns-with-the-first-process",
		Breaks: "the lock is released while processes live that the command has left behind",
		In:     (*runner).loop,
		Find:   "r.group.$isEmpty(func() { r.$heedLease(time.Now()) })",
		Put:    "r.group.launching == nil",
		Tests:  []string{"TestRunOutlivesTheGroup"},
	},
	{
		Name:   "run-without-a-margin",
		Breaks: "KILL comes when the lease ends, and not before",
		In:     Timing.demands,
		Find:   "left <= t.Margin",
		Put:    "left <= 0",
		And: []mutant.Change{
			{
				In:   Timing.demands,
				Find: "return terminate, left - t.Margin",
				Put:  "return terminate, left",
			},
		},
		Tests: []string{"TestTimingDemands", "TestKILLComesBeforeTheEndOfTheLease"},
	},
	{
		Name:   "run-outside-the-guards-group",
		Breaks: "the guard kills a group that the command is not in",
		In:     (*group).start,
		Find:   "g.id",
		Put:    "0",
		Tests:  []string{"TestGuardKillsTheGroup"},
	},
	{
		Name:   "run-one-look-at-the-group",
		Breaks: "a process that was forked while the others were listed is missed, and outlives the lock",
		In:     (*group).isEmpty,
		Find:   "if some { return false }",
		Put:    "{ return !some }",
		Tests:  []string{"TestChainOfForksIsNotMissed"},
	},
	{
		Name:   "run-guard-not-replaced",
		Breaks: "a command has no guard any more once its guard was killed",
		In:     (*group).noteGuard,
		Find:   "!g.doomed",
		Put:    "!g.doomed && false",
		Tests:  []string{"TestGuardIsReplaced"},
	},
}
