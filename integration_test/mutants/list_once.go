package main

const (
	onceFile       = "zklock/once/once.go"
	onceLedgerFile = "zklock/once/ledger.go"
)

// onceMutants run a slot twice, or not at all.
var onceMutants = []mutant{
	{
		name:   "once-again",
		breaks: "the slot that has run last runs again",
		file:   onceFile,
		edits:  change("case slot <= before.Slot:", "case slot < before.Slot:"),
		tests:  []string{"TestDoRunsEachSlotOnce", "TestWriteWithAnUnknownOutcome"},
	},
	{
		name:   "once-failure-counts",
		breaks: "a slot counts as run although its job has failed",
		file:   onceFile,
		edits:  change("if err := fn(work); err != nil {", "if err := fn(work); err != nil && false {"),
		tests:  []string{"TestFailedSlotStaysOpen"},
	},
	{
		name:   "once-write-with-the-callers-context",
		breaks: "the ledger is not written if the caller's context ends while the job runs",
		file:   onceLedgerFile,
		edits:  change("context.WithTimeout(context.WithoutCancel(ctx), timeout)", "context.WithTimeout(ctx, timeout)"),
		tests:  []string{"TestLedgerIsWrittenWhenTheContextHasEnded"},
	},
	{
		name:   "once-no-repeat",
		breaks: "a write of the ledger whose outcome is not known is given up",
		file:   onceLedgerFile,
		edits:  change("if err != nil && mayRepeat(err) && ctx.Err() == nil {", "if err != nil && false {"),
		tests:  []string{"TestWriteWithAnUnknownOutcome"},
	},
	{
		name:   "once-any-version",
		breaks: "a write of the ledger overwrites what an operator has written meanwhile",
		file:   onceLedgerFile,
		edits:  change("driver.SetOp(l.path, l.encode(slot), now.version)", "driver.SetOp(l.path, l.encode(slot), driver.AnyVersion)"),
		tests:  []string{"TestOtherWritersOfTheLedger"},
	},
	{
		name:   "once-foreign-znode",
		breaks: "another program's znode is taken for a ledger, and written",
		file:   onceLedgerFile,
		edits:  change("if !ok || json.Unmarshal(data, &p) != nil {", "if (!ok || json.Unmarshal(data, &p) != nil) && false {"),
		tests:  []string{"TestOtherWritersOfTheLedger"},
	},
	{
		name:   "once-right-after-the-job",
		breaks: "a client that may not create the ledger runs the job, again and again",
		file:   onceLedgerFile,
		edits:  change("if err != nil || !now.missing {\n\t\treturn now, err\n\t}", "if err != nil || !now.missing || true {\n\t\treturn now, err\n\t}"),
		tests:  []string{"TestWithoutTheRightToCreate"},
	},
	{
		name:   "once-loss-hidden",
		breaks: "a job that has lost its lock counts as run",
		file:   onceFile,
		edits:  change("if err := l.record(ctx, before, slot); err != nil {", "if err := l.record(ctx, before, slot); err != nil && !errors.Is(err, zklock.ErrLost) {"),
		tests:  []string{"TestOthersWaitForTheRun", "TestStoppedHolderWritesNothing"},
	},
	{
		name:   "once-joins",
		breaks: "two calls that join the lock of their caller run the same slot",
		file:   onceFile,
		edits:  change("if isJoined(ctx, lock) {", "if false {"),
		tests:  []string{"TestDoJoinsNoLock"},
	},
	{
		name:   "once-stopped-runs",
		breaks: "a process that was stopped between the read of the ledger and the call of its job runs it when it goes on",
		file:   onceFile,
		edits:  change("case !lock.Valid():", "case !lock.Valid() && false:"),
		tests:  []string{"TestProcessThatWasStoppedBeforeTheJobDoesNotRunIt"},
	},
	{
		name:   "get-after-the-lock",
		breaks: "Lock.Get returns what was read when the lock was not held any more",
		file:   "zklock/lock_txn.go",
		by:     core,
		edits:  change("case errors.Is(err, errs.ErrSessionOver), err == nil && !l.Valid():", "case errors.Is(err, errs.ErrSessionOver):"),
		tests:  []string{"TestGetThatEndsAfterTheLock"},
	},
}
