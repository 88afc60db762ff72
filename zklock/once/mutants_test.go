package once

import "github.com/zklock/go-zklock/internal/testkit/mutant"

var _ = []mutant.Mutant{
	{
		Name:   "day-of-24-hours",
		Breaks: "the next day in a zone begins 24 hours later, so a day in which clocks are set runs twice or not at all",
		In:     (*calendar).after,
		Find:   "c.zone == nil",
		Put:    "c.zone == nil || true",
		Tests:  []string{"TestCalendar", "TestEveryOfDaysInAZone"},
	},
	{
		Name:   "once-again",
		Breaks: "the slot that has run last runs again",
		In:     run,
		Find:   "slot <= before.Slot",
		Put:    "slot < before.Slot",
		Tests:  []string{"TestDoRunsEachSlotOnce", "TestWriteWithAnUnknownOutcome"},
	},
	{
		Name:   "once-any-version",
		Breaks: "a write of the ledger overwrites what an operator has written meanwhile",
		In:     ledger.record,
		Find:   "now.version",
		Put:    "driver.AnyVersion",
		Tests:  []string{"TestOtherWritersOfTheLedger"},
	},
	{
		Name:   "once-loss-hidden",
		Breaks: "a job that has lost its lock counts as run",
		In:     run,
		Find:   "if err := l.$record(ctx, before, slot); err != nil { $$body }",
		Put:    "if err := l.$record(ctx, before, slot); err != nil && !errors.Is(err, zklock.ErrLost) { $$body }",
		Tests:  []string{"TestOthersWaitForTheRun", "TestStoppedHolderWritesNothing"},
	},
	{
		Name:   "once-joins",
		Breaks: "two calls that join the lock of their caller run the same slot",
		In:     run,
		Find:   "$isJoined(ctx, lock)",
		Put:    "false",
		Tests:  []string{"TestDoJoinsNoLock"},
	},
	{
		Name:   "once-stopped-runs",
		Breaks: "a process that was stopped between the read of the ledger and the call of its job runs it when it goes on",
		In:     run,
		Find:   "!lock.Valid()",
		Put:    "!lock.Valid() && false",
		Tests:  []string{"TestProcessThatWasStoppedBeforeTheJobDoesNotRunIt"},
	},
	{
		Name:   "every-silent",
		Breaks: "slots that were missed are passed over without a line in the log",
		In:     (*schedule).pass,
		Find:   "latest.After(s.logged)",
		Put:    "false",
		Tests:  []string{"TestEveryAfterMissedSlots", "TestEveryFleet"},
	},
	{
		Name:   "every-forgets",
		Breaks: "a process that gave a slot up runs it again, and the later slots wait for it",
		In:     (*schedule).next,
		Find:   "!slot.After(s.closed)",
		Put:    "false",
		Tests:  []string{"TestEveryWithASlotThatKeepsFailing"},
	},
	{
		Name:   "every-ends-with-a-passing-conflict",
		Breaks: "an ephemeral znode of another program ends a schedule for good",
		In:     isFinal,
		Find:   "!errors.Is(err, driver.ErrNoChildrenForEphemerals)",
		Put:    "true",
		Tests:  []string{"TestEveryGoesOnAfterAnEphemeralRoot"},
	},
}
