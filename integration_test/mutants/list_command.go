package main

const (
	commandFile = "cmd/zklock/internal/run/run.go"
	groupFile   = "cmd/zklock/internal/run/group.go"
)

// commandMutants let another client have the lock while a command of zklock run lives.
var commandMutants = []mutant{
	{
		name:   "run-starts-without-a-lease",
		breaks: "a command starts although its guard took so long that the lease has ended",
		file:   commandFile,
		edits:  change("if ready, sig := r.isReady(); !ready {", "if ready, sig := r.isReady(); !ready && sig != nil {"),
		tests:  []string{"TestLeaseIsLookedAtAfterTheGuard"},
	},
	{
		name:   "run-lease-ends-unseen-during-the-start",
		breaks: "a program that the kernel loads slowly starts after the end of the lease",
		file:   commandFile,
		edits:  change("if demand == kill {", "if demand == kill && false {"),
		tests:  []string{"TestLeaseEndsDuringTheStart"},
	},
	{
		name:   "run-without-TERM",
		breaks: "a command gets KILL without a TERM before it",
		file:   commandFile,
		edits:  change("r.group.terminate()", "_ = r.group"),
		tests:  []string{"TestTERMComesBeforeKILL"},
	},
	{
		name:   "run-without-KILL",
		breaks: "a command that ignores TERM outlives the lease",
		file:   commandFile,
		edits: []edit{
			{"case demand == kill:\n\t\tr.killForLease()\n", "case demand == kill:\n"},
			{"if !now.Before(r.killAt) {\n\t\t\tr.group.kill()\n", "if !now.Before(r.killAt) {\n"},
		},
		tests: []string{"TestKILLComesBeforeTheEndOfTheLease"},
	},
	{
		name:   "run-returns-with-the-first-process",
		breaks: "the lock is released while processes live that the command has left behind",
		file:   commandFile,
		edits:  change("if r.group.isEmpty(func() { r.heedLease(time.Now()) }) {", "if r.group.launching == nil {"),
		tests:  []string{"TestRunOutlivesTheGroup"},
	},
	{
		name:   "run-without-a-margin",
		breaks: "KILL comes when the lease ends, and not before",
		file:   "cmd/zklock/internal/run/timing.go",
		edits:  []edit{{"case left <= t.Margin:", "case left <= 0:"}, {"return terminate, left - t.Margin", "return terminate, left"}},
		tests:  []string{"TestTimingDemands", "TestKILLComesBeforeTheEndOfTheLease"},
	},
	{
		name:   "run-outside-the-guards-group",
		breaks: "the guard kills a group that the command is not in",
		file:   groupFile,
		edits:  change("Pgid: g.id}", "Pgid: 0}"),
		tests:  []string{"TestGuardKillsTheGroup"},
	},
	{
		name:   "run-guard-not-replaced",
		breaks: "a command has no guard any more once its guard was killed",
		file:   groupFile,
		edits:  change("if !g.doomed {\n\t\tg.launch()", "if !g.doomed && false {\n\t\tg.launch()"),
		tests:  []string{"TestGuardIsReplaced"},
	},
	{
		name:   "run-one-look-at-the-group",
		breaks: "a process that was forked while the others were listed is missed, and outlives the lock",
		file:   groupFile,
		edits:  change("} else if some {\n\t\t\treturn false\n\t\t}", "} else {\n\t\t\treturn !some\n\t\t}"),
		tests:  []string{"TestChainOfForksIsNotMissed"},
	},
	{
		name:   "run-spares-the-group-of-the-first-process",
		breaks: "a command that makes a group of its own leaves a process behind when it gets KILL",
		file:   groupFile,
		edits:  change("syscall.Kill(-g.main, sig)", "syscall.Kill(g.main, sig)"),
		tests:  []string{"TestGroupOfTheFirstProcessIsKilled"},
	},
	{
		name:   "run-waits-for-a-new-guard",
		breaks: "the loop does not heed the lease while another guard starts",
		file:   "cmd/zklock/internal/run/launch.go",
		edits:  change("go func() {", "func() {"),
		tests:  []string{"TestLeaseIsHeededWhileAGuardStarts"},
	},
}
