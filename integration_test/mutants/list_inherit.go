package main

const readersFile = "zklock/turnstile_readers.go"

// inheritMutants are bugs where a place in the queue, or the lead, passes to a waiter
// other than the one that it was created for.
var inheritMutants = []mutant{
	{
		name:   "writers-place-stays-a-writers",
		breaks: "a reader that takes over a writer's place waits like a writer",
		file:   acquireFile,
		by:     core,
		edits:  change("if r.Mode == queue.Shared {\n\t\tp.BecomeShared(&r.Origin)\n\t}\n", ""),
		tests:  []string{"TestReaderInheritsAWritersPlace"},
	},
	{
		name:   "handed-place-stays-a-writers",
		breaks: "a reader that was handed a writer's place excludes other readers",
		file:   turnstileFile,
		edits:  change("if r.Mode == queue.Shared {\n\t\tt.shareWhenDueLocked(p)\n\t}\n", ""),
		tests:  []string{"TestReaderOnAWritersNode"},
	},
	{
		name:   "shared-place-not-published",
		breaks: "when a reader takes over a writer's node, the client does not write that to the node's data, where other processes would see it",
		file:   "zklock/internal/place/place_rewrite.go",
		by:     core,
		edits:  change("\t\tDescribe(p, waiting)\n", ""),
		tests:  []string{"TestInheritedPlaceShowsItsHolder"},
	},
	{
		name:   "last-readers-stay-writers",
		breaks: "the last readers that are handed a writer's node exclude readers of other processes",
		file:   readersFile,
		edits:  change("became = p.BecomeShared(nil)\n", ""),
		tests:  []string{"TestWritersNodeGoesToReadersAndBack"},
	},
	{
		name:   "readers-of-a-moment-rewrite",
		breaks: "each hand-over from a writer to a reader costs a write, and a writer after that needs a new place",
		file:   readersFile,
		edits:  change(`case place.HasOthers(p):`, "case true:"),
		tests:  []string{"TestWritersNodeGoesToReadersAndBack"},
	},
	{
		name:   "writer-never-waits-in-line",
		breaks: "a writer that waits behind local readers does not enter the queue when their node has become a reader's",
		file:   readersFile,
		edits:  change("t.serveLocked(nil) // a writer", "// a writer"),
		tests:  []string{"TestWritersNodeGoesToReadersAndBack"},
	},
	{
		name:   "writer-becomes-a-reader",
		breaks: "at the end of handover_time a node is made a reader's although a writer holds it again",
		file:   readersFile,
		edits:  change("if h == nil || !h.shared() || h.isOver() {", "if h == nil || h.isOver() {"),
		tests:  []string{"TestWritersNodeStaysAWriters"},
	},
	{
		name:   "own-kind-from-the-name",
		breaks: "a reader in a writer's place counts as a writer in its own view of the queue, because of its node's name",
		file:   "zklock/internal/place/own_nodes.go",
		by:     core,
		edits:  change(`q[i].Kind = c.kind`, "_ = c.kind"),
		tests:  []string{"TestReaderInheritsAWritersPlace"},
	},
	{
		name:   "readers-kept-out-without-a-writer",
		breaks: "readers of a process stay blocked after the only writer that they waited behind has given up",
		file:   turnstileFile,
		edits:  change("t.serveLocked(nil) // it may", "// it may"),
		tests:  []string{"TestWritersNodeGoesToReadersAndBack"},
	},
	{
		name:   "ended-read-counts-as-no-session",
		breaks: "a wait that is cancelled during a read counts as time without a session, and the waiters behind it fail",
		file:   acquireFile,
		by:     core,
		edits:  change(`if errors.Is(err, errs.ErrUnavailable) && ctx.Err() == nil {`, `if errors.Is(err, errs.ErrUnavailable) {`),
		tests:  []string{"TestWaitThatEndsInAReadIsNotALackOfASession"},
	},
	{
		name:   "only-permit-spins",
		breaks: "the first waiter for a semaphore's only permit reads the queue in a loop without waiting",
		file:   "zklock/internal/place/line_ahead.go",
		by:     core,
		edits:  change("if permits > 0 && l.ahead > permits && d.Granted {", "if permits > 0 && len(l.watched) == 1 && d.Granted {"),
		tests:  []string{"TestOnlyPermitIsWaitedForInPeace"},
	},
}

// lossMutants report losses wrongly, or count waiters, handles and removals wrongly.
var lossMutants = []mutant{
	{
		name:   "loss-seen-twice",
		breaks: "a loss that is noticed a second time removes the lock's other nodes before loss_delay is over",
		file:   "zklock/internal/place/place_grant.go",
		by:     core,
		edits:  change("if !p.life.moveLocked(deleted) {\n\t\tdesk.Mu.Unlock()\n\t\treturn\n\t}\n", "p.life.moveLocked(deleted)\n"),
		tests:  []string{"TestLossSeenTwiceIsDelayedOnce"},
	},
	{
		name:   "losses-held-up-by-hooks",
		breaks: "a slow Lost hook for one lock delays the report of the loss to the holders of the others",
		file:   holdFile,
		edits:  change("{ return !hd.end(err) })", "{ over := !hd.end(err); hd.reportLost(); return over })"),
		tests:  []string{"TestLossesAreNotHeldUpByHooks"},
	},
	{
		name:   "close-held-up-by-hooks",
		breaks: "a slow Lost hook keeps the session open, so the lost lock's node still blocks other contenders",
		file:   "zklock/internal/session/pool.go",
		edits: append(change("\tp.wg.Go(s.shutdown)\n", ""),
			change("p.wg.Go(s.Notices.run)\n", "p.wg.Go(func() { s.Notices.run(); s.shutdown() })\n")...),
		tests: []string{"TestSessionIsReplacedWhileItsLossIsReported"},
		by:    core,
	},
	{
		name:   "close-given-up",
		breaks: "a client gives up closing a lost session while the servers have no leader",
		file:   sessionFile,
		edits:  change("case <-s.Pool.Ctx.Done():\n\t\t\tSleep", "case <-time.After(time.Nanosecond):\n\t\t\tSleep"),
		tests:  []string{"TestLostSessionIsClosedHoweverLate"},
		by:     core,
	},
	{
		name:   "granted-and-waiting",
		breaks: "a goroutine that was handed a lock counts as a waiter until it runs",
		file:   "zklock/turnstiles.go",
		edits:  change("ts.servedLocked(r)\n}\n\n// joined", "}\n\n// joined"),
		tests:  []string{"TestHandedLockIsNotWaitedFor"},
	},
	{
		name:   "deleted-twice",
		breaks: "a release whose caller did not wait for it is sent again although it succeeded",
		file:   removeFile,
		by:     core,
		edits:  change(`if <-w.Done; w.Err == nil {`, `if <-w.Done; false {`),
		tests:  []string{"TestReleaseThatIsNotWaitedForIsOneRequest"},
	},
	{
		name:   "joined-lock-kept",
		breaks: "a released handle that shared its hold with others is never garbage-collected",
		file:   holdFile,
		edits: []edit{
			{"h.handles = slices.DeleteFunc(h.handles, func(other *handle) bool { return other == hd })",
				"if i := slices.Index(h.handles, hd); i >= 0 {\n\t\th.handles = append(h.handles[:i], h.handles[i+1:]...)\n\t}"},
			{"hd.letGoOfContext() // a successor", "// a successor"}, // else the array keeps no more than the handle
		},
		tests: []string{"TestReleasedLocksAreCollected"},
	},
	{
		name:   "reaped-whatever-it-is",
		breaks: "a lock's idle znode is removed although another program has written to it since",
		file:   "zklock/internal/place/reaper.go",
		by:     core,
		edits:  change("driver.DeleteOp(p.path, p.version)", "driver.DeleteOp(p.path, driver.AnyVersion)"),
		tests:  []string{"TestZnodePutInALocksPlaceIsLeftAlone"},
	},
	{
		name:   "reaped-one-by-one",
		breaks: "each idle name's removal is a separate request, so that removals fall behind",
		file:   "zklock/internal/place/reaper.go",
		by:     core,
		edits:  change("groups[s] = append(groups[s], w)", "s.Commits.Apart([]*session.Write{w})"),
		tests:  []string{"TestIdleContainersAreRemoved"},
	},
	{
		name:   "reaped-with-other-writes",
		breaks: "the removal of an idle name is in one transaction with callers' writes",
		file:   "zklock/internal/place/reaper.go",
		by:     core,
		edits:  change(`wg.Go(func() { s.Commits.Apart(writes) })`, "for _, w := range writes {\n\t\t\ts.Commits.Submit(w)\n\t\t}\n\t\twg.Go(func() { <-writes[0].Done })"),
		tests:  []string{"TestRefusedRemovalFailsNoOtherRequest"},
	},
	{
		name:   "idle-parent-trusted",
		breaks: "what the client knows of a lock's znode is trusted however long the name was idle",
		file:   "zklock/internal/place/parents.go",
		by:     core,
		edits:  change("if fresh = occupied || !known.marked || now.Sub(known.used) < reapIdle; fresh {", "if fresh = true; occupied || now.Sub(known.used) >= 0 {"),
		tests:  []string{"TestIdleNameIsLookedAtAgain"},
	},
}
