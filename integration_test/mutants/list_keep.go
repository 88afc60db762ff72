package main

const (
	keepFile   = "zklock/internal/place/keep.go"
	keepInFile = "zklock/turnstile_keep.go"
	keptFile   = "zklock/kept.go"
	guardFile  = "zklock/internal/place/own_guard.go"
	tryFile    = "zklock/internal/place/attempt_try.go"

	standingFile = "zklock/internal/place/standing.go"
)

// keepMutants keep places that must leave the queue, or do not give them up when another
// contender comes.
var keepMutants = []mutant{
	{
		name:   "keep-in-doubt",
		breaks: "a place is kept although a Txn under it may still be applied, so the next acquisition has to replace it",
		file:   standingFile,
		by:     core,
		edits:  change("!s.Others && !s.Doubtful && ", "!s.Others && "),
		tests:  []string{"TestPlaceInDoubtIsNotKept"},
	},
	{
		name:   "keep-after-recall",
		breaks: "a place that another contender waits for is kept after its use",
		file:   standingFile,
		by:     core,
		edits:  change("s.Keepable && !s.Others && ", "s.Keepable && "),
		tests:  []string{"TestKeptReaders"},
	},
	{
		name:   "keep-unwatched",
		breaks: "nothing watches the queue of a kept place",
		file:   keepFile,
		by:     core,
		edits:  change("if !watched {", "if !watched && false {"),
		tests:  []string{"TestKeptNameIsRecalled"},
	},
	{
		name:   "keep-watch-not-armed-again",
		breaks: "after a reconnect the client does not list the queue of a kept place again, and relies on the driver alone",
		file:   guardFile,
		by:     core,
		edits:  change("case n.place == nil || n.event != nil && n.gen >= gen:", "case n.place == nil || n.event != nil && (n.gen >= gen || n.keeper != nil):"),
		tests:  []string{"TestRecallAfterALostWatch"},
	},
	{
		name:   "keep-list-unread",
		breaks: "a contender that came before the watch on the queue was armed does not recall the place",
		file:   guardFile,
		by:     core,
		edits:  change("name != c.node() && desk.isContender(name)", "false"),
		tests:  []string{"TestRecallByAContenderThatCameBefore"},
	},
	{
		name:   "keep-other-children-recall",
		breaks: "children of a lock's znode that are not contenders recall a kept place",
		file:   guardFile,
		by:     core,
		edits:  change("name != c.node() && desk.isContender(name)", "name != c.node()"),
		tests:  []string{"TestChildrenWithoutASequenceDoNotRecall"},
	},
	{
		name:   "recall-without-limits",
		breaks: "after a recall the limits of hand-over do not count",
		file:   standingFile,
		by:     core,
		edits:  change("{ return s.Watched && !s.Others }", "{ return s.Watched }"),
		tests:  []string{"TestRecallOfALockInUse", "TestRecallDuringALongHold"},
	},
	{
		name:   "recall-limits-since-the-grant",
		breaks: "after a recall the limits of hand-over count from the grant, so waiters of this process that came earlier are overtaken",
		file:   keepFile,
		by:     core,
		edits:  change("p.others, p.handovers, p.recalled = true, 0, time.Since(p.Granted)", "p.others = true"),
		tests:  []string{"TestRecallOfALockInUse"},
	},
	{
		name:   "recalls-not-counted",
		breaks: "a name is kept again right after a recall",
		file:   keepFile,
		by:     core,
		edits:  change("known.recalls = min(known.recalls+1, maxRecalls)", "_ = known"),
		tests:  []string{"TestKeptNameIsRecalled"},
	},
	{
		name:   "keep-between-turns",
		breaks: "a name is kept although other processes use it in between",
		file:   keepFile,
		by:     core,
		edits:  change("case suffix == known.streak.suffix+1:", "case suffix > known.streak.suffix:"),
		tests:  []string{"TestUsesInBetweenCount"},
	},
	{
		name:   "keep-on-an-old-session",
		breaks: "a session that is to be replaced because of its age is used for as long as its names are kept",
		file:   keepFile,
		by:     core,
		edits:  change(" || session.Worn(desk.Session)", ""),
		tests:  []string{"TestKeepIsRefused"},
	},
	{
		name:   "turns-wrap",
		breaks: "the turns of a kept place's holders begin again at 0 after 2^32 of them, and so do their tokens",
		file:   standingFile,
		edits:  change("== queue.Shared) && !s.Doubtful && !s.Revoked && s.Turn < lastTurn", "== queue.Shared) && !s.Doubtful && !s.Revoked"),
		tests:  []string{"TestTurnsEnd"},
	},
	{
		name:   "kept-place-without-a-lease",
		breaks: "a kept place is granted although its session's lease is nearly over",
		file:   keepFile,
		by:     core,
		edits:  change(" || !p.leasedLocked() || !p.life", " || !p.life"),
		tests:  []string{"TestKeptPlaceNeedsALease"},
	},
	{
		name:   "kept-readers-place-for-a-writer",
		breaks: "a writer is granted a reader's kept place, and holds while readers of other processes hold",
		file:   standingFile,
		by:     core,
		edits:  change("{ return s.IsOpen() && s.Grants(mode) }", "{ return s.IsOpen() }"),
		tests:  []string{"TestKeptReaders"},
	},
	{
		name:   "kept-place-of-a-lost-session",
		breaks: "a kept place stays the name's after its session has ended",
		file:   keptFile,
		by:     core,
		edits:  change("func (s *standby) Vacate() { s.keeper.retire(s, true) }", "func (s *standby) Vacate() {}"),
		tests:  []string{"TestKeptPlaceIsLost"},
	},
	{
		name:   "keep-for-ever",
		breaks: "a place stays in the queue although it was not used for longer than keep",
		file:   keptFile,
		by:     core,
		edits:  change("time.Until(k.first.since.Add(k.keep))", "time.Hour"),
		tests:  []string{"TestKeptNameCostsNothing"},
	},
	{
		name:   "keep-max-ignored",
		breaks: "more than keep_max places are kept",
		file:   keptFile,
		by:     core,
		edits:  []edit{{"k.n.Add(1) > int64(k.max)", "k.n.Add(1) < 0"}, {"k.n.Load() > int64(k.max)", "false"}},
		tests:  []string{"TestKeepMax"},
	},
	{
		name:   "shutdown-waits-for-kept-names",
		breaks: "Shutdown waits until the time of kept names is over",
		file:   "zklock/turnstiles.go",
		by:     core,
		edits:  change("\tts.kept.close()\n", ""),
		tests:  []string{"TestShutdownWithKeptNames"},
	},
	{
		name:   "own-kept-names-are-in-the-way",
		breaks: "a semaphore or an All of the same client meets a place that the client only keeps",
		file:   "zklock/turnstile_take.go",
		by:     core,
		edits:  change("\tt.turnstiles.makeWay(r)\n", ""),
		tests:  []string{"TestKeptNameOfTheSameClient"},
	},
	{
		name:   "try-refused-by-a-kept-name",
		breaks: "a try fails although the only place ahead is one that its client keeps and does not use",
		file:   tryFile,
		by:     core,
		edits:  change("&& first.MayBeKept():", "&& first.MayBeKept() && false:"),
		tests:  []string{"TestTryOfAKeptName"},
	},
	{
		name:   "try-waits-for-a-held-name",
		breaks: "a try waits for as long as a lock is held that may be kept afterwards",
		file:   "zklock/internal/place/attempt.go",
		by:     core,
		edits:  change("context.WithTimeoutCause(ctx, recallWait, ", "context.WithTimeoutCause(ctx, time.Hour, "),
		tests:  []string{"TestTryOfAKeptName"},
	},
	{
		name:   "keep-try-cut-off",
		breaks: "a try that loses its connection while it waits for a kept place says that the lock is taken",
		file:   "zklock/internal/place/attempt.go",
		by:     core,
		edits:  change("state != driver.Connected {\n\t\t\terr = errCutOff", "state != driver.Connected && false {\n\t\t\terr = errCutOff"),
		tests:  []string{"TestTryThatIsCutOffDuringARecall"},
	},
}
