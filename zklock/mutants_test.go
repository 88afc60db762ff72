package zklock

import "github.com/zklock/go-zklock/internal/testkit/mutant"

var _ = []mutant.Mutant{
	{
		Name:   "valid-from-a-timer",
		Breaks: "Valid waits for a timer to announce the end of the lease instead of looking at the clock",
		In:     (*Lock).Valid,
		Find:   "l.Err() == nil && l.handle.hold.$Alive()",
		Put:    "l.Err() == nil",
		Tests:  []string{"TestValidLooksAtTheClock"},
	},
	{
		Name:   "lost-is-valid-again",
		Breaks: "a handle whose lock was lost is valid again if its session is alive",
		In:     (*Lock).Valid,
		Find:   "l.Err() == nil",
		Put:    "l.Err() != ErrReleased",
		Tests:  []string{"TestReleaseOfADeletedNode"},
	},
	{
		Name:   "lost-reported-twice",
		Breaks: "Release of a lock that was lost reports the loss a second time",
		In:     (*Lock).Release,
		Find:   "err = l.handle.$reason()",
		Put:    "err = l.handle.$reason(); l.handle.ReportLost()",
		Tests:  []string{"TestLostIsReportedOnceAHandle"},
	},
	{
		Name:   "get-after-the-lock",
		Breaks: "Lock.Get returns what was read when the lock was not held any more",
		In:     (*Lock).Get,
		Find:   "err == nil && !l.Valid()",
		Put:    "false",
		Tests:  []string{"TestGetThatEndsAfterTheLock"},
	},
	{
		Name:   "deadlock-not-seen",
		Breaks: "a goroutine that holds a name and asks for it again waits for itself",
		In:     (*Lock).rejoin,
		Find:   "return nil, ErrDeadlock",
		Put:    "return nil, nil",
		Tests:  []string{"TestReentry"},
	},
	{
		Name:   "reader-reenters-as-writer",
		Breaks: "a reader joins its own lock as a writer by re-entry",
		In:     (*Lock).rejoin,
		Find:   "why != nil",
		Put:    "why != nil && false",
		Tests:  []string{"TestReentry"},
	},
	{
		Name:   "reentry-after-loss",
		Breaks: "re-entry joins a lock whose lease is over",
		In:     (*Lock).rejoin,
		Find:   "if err := l.Err(); err != nil { return nil, err }",
		Put:    "",
		And: []mutant.Change{
			{In: (*Lock).rejoin, Find: "!alive", Put: "false && !alive"},
		},
		Tests: []string{"TestReentryAfterALossIsALoss"},
	},
	{
		Name:   "join-is-observed",
		Breaks: "zklocktest.Order takes a join by Reenter for an acquisition that waits",
		In:     (*Client).acquireLock,
		Find:   "if lock, err := a.$reenter(ctx); lock != nil || err != nil { return lock, err }; a.$observed(ctx)",
		Put:    "a.$observed(ctx); if lock, err := a.$reenter(ctx); lock != nil || err != nil { return lock, err }",
		Tests:  []string{"TestOrder"},
		By:     "zklock/zklocktest",
	},
	{
		Name:   "failure-is-not-observed",
		Breaks: "zklocktest.Order leaves out acquisitions that fail",
		In:     (*Client).acquireLock,
		Find:   "a.$observed(ctx)",
		Put:    "if ctx.Err() == nil { a.$observed(ctx) }",
		With:   map[string]any{"observed": (*acquisition).observed},
		Tests:  []string{"TestOrder"},
		By:     "zklock/zklocktest",
	},
}
