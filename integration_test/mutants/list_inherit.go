package main

const readersFile = "zklock/readers.go"

// inheritMutants go wrong where a place in the queue, or the right to lead, comes
// to somebody else than it was made for.
var inheritMutants = []mutant{
	{
		name:   "writers-place-stays-a-writers",
		breaks: "a reader that goes on with a writer's place waits like a writer",
		file:   acquireFile,
		edits:  change("if r.mode == queue.Shared {\n\t\tp.admitReaders(r.origin)\n\t}\n", ""),
		tests:  []string{"TestReaderInheritsAWritersPlace"},
	},
	{
		name:   "handed-place-stays-a-writers",
		breaks: "a reader that was handed a writer's place keeps other readers out",
		file:   turnstileFile,
		edits:  change("if next.r.mode == queue.Shared {\n\t\tt.admitReadersLocked(h.place, next.r)\n\t}\n", ""),
		tests:  []string{"TestReaderOnAWritersNode"},
	},
	{
		name:   "readers-elsewhere-not-told",
		breaks: "readers of other processes do not learn that a writer's node is a reader's now",
		file:   readersFile,
		edits:  change(`s.Spawn(func() { _ = p.rewrite(d) })`, "_ = d"),
		tests:  []string{"TestReaderOnAWritersNode"},
	},
	{
		name:   "last-readers-stay-writers",
		breaks: "readers who are the last to get a writer's node keep those of other processes out",
		file:   readersFile,
		edits:  change("p.admitReaders(h.origin)\n", "_ = h.origin\n"),
		tests:  []string{"TestWritersNodeGoesToReadersAndBack"},
	},
	{
		name:   "readers-of-a-moment-rewrite",
		breaks: "each hand-over from a writer to a reader costs a write, and the way back a new place",
		file:   readersFile,
		edits:  change("if p.others {", "if true {"),
		tests:  []string{"TestWritersNodeGoesToReadersAndBack"},
	},
	{
		name:   "writer-never-waits-in-line",
		breaks: "a writer behind readers whose node has become a reader's takes no place",
		file:   readersFile,
		edits:  change("t.admitLocked(nil) // a writer", "// a writer"),
		tests:  []string{"TestWritersNodeGoesToReadersAndBack"},
	},
	{
		name:   "writer-becomes-a-reader",
		breaks: "a writer's node is made a reader's at the end of handover_time though a writer has it again",
		file:   readersFile,
		edits:  change("if h == nil || !h.shared() || h.isOver() {", "if h == nil || h.isOver() {"),
		tests:  []string{"TestWritersNodeStaysAWriters"},
	},
	{
		name:   "own-kind-from-the-name",
		breaks: "a reader in a writer's place takes itself for a writer, as its node's name says",
		file:   frontFile,
		edits:  change(`q[i].Kind = c.kind`, "_ = c.kind"),
		tests:  []string{"TestReaderInheritsAWritersPlace"},
	},
	{
		name:   "readers-kept-out-by-nobody",
		breaks: "a waiting writer that gives up still keeps readers of its process out",
		file:   turnstileFile,
		edits:  change("t.admitLocked(nil) // it may", "// it may"),
		tests:  []string{"TestWritersNodeGoesToReadersAndBack"},
	},
	{
		name:   "ended-read-is-no-session",
		breaks: "that a wait ended during a read counts as having had no session, for those behind as well",
		file:   acquireFile,
		edits:  change(`if errors.Is(err, errs.ErrUnavailable) && ctx.Err() == nil {`, `if errors.Is(err, errs.ErrUnavailable) {`),
		tests:  []string{"TestWaitThatEndsInAReadIsNoWantOfASession"},
	},
	{
		name:   "only-permit-spins",
		breaks: "who is second in line for the only permit asks all the time",
		file:   frontFile,
		edits:  change("if permits > 0 && len(l.q)-1 > permits && d.Granted {", "if permits > 0 && len(watch) == 1 && d.Granted {"),
		tests:  []string{"TestOnlyPermitIsWaitedForInPeace"},
	},
}

// lossMutants tell of losses wrongly, or count wrongly who waits.
var lossMutants = []mutant{
	{
		name:   "loss-seen-twice",
		breaks: "who notices a loss that is known removes at once what is left of the lock",
		file:   holdFile,
		edits:  change("if p.gone {\n\t\ts.Mu.Unlock()\n\t\treturn\n\t}\n", ""),
		tests:  []string{"TestLossSeenTwiceIsDelayedOnce"},
	},
	{
		name:   "losses-held-up-by-hooks",
		breaks: "a hook that takes its time about one lost lock leaves the others' holders in the dark",
		file:   holdFile,
		edits:  change("{ return !l.finish(err) })", "{ over := !l.finish(err); l.tellLost(); return over })"),
		tests:  []string{"TestLossesAreNotHeldUpByHooks"},
	},
	{
		name:   "close-held-up-by-hooks",
		breaks: "a hook that takes its time about a lost lock keeps its node in everybody's way",
		file:   "zklock/internal/session/pool.go",
		edits: append(change("\tp.wg.Go(s.shutdown)\n", ""),
			change("busy bool) {\n", "busy bool) {\n\tdefer p.wg.Go(s.shutdown)\n")...),
		tests: []string{"TestSessionIsReplacedWhileItsLossIsTold"},
		by:    core,
	},
	{
		name:   "close-given-up",
		breaks: "who has lost a session gives up closing it while the servers have no leader",
		file:   sessionFile,
		edits:  change("case <-s.Pool.Ctx.Done():\n\t\t\tSleep", "case <-time.After(time.Nanosecond):\n\t\t\tSleep"),
		tests:  []string{"TestLostSessionIsClosedHoweverLate"},
		by:     core,
	},
	{
		name:   "granted-and-waiting",
		breaks: "who was handed a lock counts as waiting for it until it goes on",
		file:   "zklock/turnstiles.go",
		edits:  change("all.servedLocked(r)\n}\n\n// joined", "}\n\n// joined"),
		tests:  []string{"TestHandedLockIsNotWaitedFor"},
	},
	{
		name:   "deleted-twice",
		breaks: "a release that nobody waited for is done again though it was done",
		file:   removeFile,
		edits:  change(`if <-w.Done; w.Err == nil {`, `if <-w.Done; false {`),
		tests:  []string{"TestReleaseThatIsNotWaitedForIsOneRequest"},
	},
	{
		name:   "joined-lock-kept",
		breaks: "a released lock that was joined is never collected",
		file:   holdFile,
		edits: change("h.handles = slices.DeleteFunc(h.handles, func(other *handle) bool { return other == l })",
			"if i := slices.Index(h.handles, l); i >= 0 {\n\t\th.handles = append(h.handles[:i], h.handles[i+1:]...)\n\t}"),
		tests: []string{"TestReleasedLocksAreCollected"},
	},
	{
		name:   "reaped-whatever-it-is",
		breaks: "a lock's znode that somebody has written to since is removed as idle",
		file:   "zklock/reap.go",
		edits:  change("driver.DeleteOp(p.path, p.version)", "driver.DeleteOp(p.path, driver.AnyVersion)"),
		tests:  []string{"TestZnodePutInALocksPlaceIsLeftAlone"},
	},
	{
		name:   "reaped-one-by-one",
		breaks: "each idle name takes a request to remove, so that removals fall behind",
		file:   "zklock/reap.go",
		edits:  change("groups[s] = append(groups[s], w)", "s.CommitApart([]*session.Write{w})"),
		tests:  []string{"TestIdleContainersAreRemoved"},
	},
	{
		name:   "reaped-with-other-writes",
		breaks: "the removal of an idle name travels in one transaction with callers' writes",
		file:   "zklock/reap.go",
		edits:  change(`wg.Go(func() { s.CommitApart(writes) })`, "for _, w := range writes {\n\t\t\ts.Commits.Submit(w)\n\t\t}\n\t\twg.Go(func() { <-writes[0].Done })"),
		tests:  []string{"TestRefusedRemovalFailsNoOtherRequest"},
	},
	{
		name:   "idle-parent-trusted",
		breaks: "a lock's znode is taken to be what it was, however long the name was idle",
		file:   "zklock/parents.go",
		edits:  change("if fresh = occupied || now.Sub(known.used) < reapIdle; fresh {", "if fresh = true; occupied || now.Sub(known.used) >= 0 {"),
		tests:  []string{"TestIdleNameIsLookedAtAgain"},
	},
}
