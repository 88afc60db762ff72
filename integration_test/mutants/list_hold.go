package main

const (
	turnstileFile = "zklock/turnstile.go"
	holdFile      = "zklock/hold.go"
	removeFile    = "zklock/internal/place/place_remove.go"
	txnFile       = "zklock/lock_txn.go"
)

// removeMutants leave nodes behind, or report too early that they are gone.
var removeMutants = []mutant{
	{
		name:   "cancelled-waiter-stays",
		breaks: "a waiter that gives up leaves its node in the queue",
		file:   turnstileFile,
		edits:  change("t.mu.Unlock()\n\tif left != nil {\n\t\tleft.Remove()\n\t}", "t.mu.Unlock()\n\t_ = left"),
		tests:  []string{"TestMiddleWaiterGivesUp"},
	},
	{
		name:   "clean-up-on-the-callers-context",
		breaks: "a waiter that gives up deletes its node with the context that was just cancelled",
		file:   turnstileFile,
		edits: change("t.led(r.lock, left, r.NoSessionSince)", `if left != nil && left.Desk.Repeat(ctx, "release", func(ctx context.Context) error {
		return left.Desk.DS.Delete(ctx, r.Wants[0].Path+"/"+left.Node(), -1)
	}) == nil {
		left = nil
	}
	t.led(r.lock, nil, r.NoSessionSince)`),
		tests: []string{"TestMiddleWaiterGivesUp"},
	},
	{
		name:   "release-without-waiting",
		breaks: "Release returns before the ensemble has confirmed the delete",
		file:   holdFile,
		edits:  change("deleted, err = h.place.Release(ctx, limit)\n", "h.place.Remove()\n\t_ = limit\n"),
		tests:  []string{"TestReleaseOfADeletedNode"},
	},
	{
		name:   "release-tried-once",
		breaks: "a delete whose outcome is unknown counts as applied",
		file:   removeFile,
		by:     core,
		edits:  change("gone := make(chan struct{})\n", "return deleted, nil\n\tgone := make(chan struct{})\n"),
		tests:  []string{"TestEveryRequestMayBeLost"},
	},
	{
		name:   "release-confirmed-by-the-sessions-end",
		breaks: "Release returns nil when the session ends before the ensemble has answered",
		file:   removeFile,
		by:     core,
		edits: []edit{
			{`return deleted, errs.ReleasePending(desk.Cause())`, "return deleted, nil"},
			{`failed = desk.Cause()`, "failed = nil"},
		},
		tests: []string{"TestReleaseCutShortByTheSessionsEndIsPending"},
	},
	{
		name:   "release-overtaken-by-a-loss",
		breaks: "Release returns nil when the session ends before the release is sent",
		file:   holdFile,
		edits:  change("return false, true // no release", "return false, false // no release"),
		tests:  []string{"TestReleaseOvertakenByALoss"},
	},
	{
		name:   "release-of-a-deleted-node",
		breaks: "Release of a lock whose node another program has deleted returns nil",
		file:   removeFile,
		by:     core,
		edits:  change(`deleted = errors.Is(w.Err, driver.ErrNoNode)`, `deleted = false`),
		tests:  []string{"TestReleaseOfADeletedNode"},
	},
	{
		name:   "own-node-unwatched",
		breaks: "the client does not watch the node of a lock that it holds",
		file:   "zklock/internal/place/own_watches.go",
		by:     core,
		edits:  change(`o.desk.Spawn(g.run)`, `_ = g.run`),
		tests:  []string{"TestReleaseOfADeletedNode"},
	},
	{
		name:   "own-watch-not-armed-again",
		breaks: "after a reconnect the client does not read again the node of a lock that it holds",
		file:   "zklock/internal/place/own_guard.go",
		by:     core,
		edits: []edit{
			{"case n.place == nil || n.event != nil && n.gen >= gen:", "case n.place == nil || n.event != nil:"},
		},
		tests: []string{"TestDeletionAfterAReconnectIsALoss"},
	},
	{
		name:   "others-containers-reaped",
		breaks: "empty znodes that other programs created are removed too",
		file:   "zklock/internal/place/parents.go",
		by:     core,
		edits:  change(`case !found.createdHere:`, `case false:`),
		tests:  []string{"TestIdleContainersAreRemoved"},
	},
	{
		name:   "close-before-loss",
		breaks: "Close removes the nodes of locks before their handles report the loss",
		file:   "zklock/internal/session/pool.go",
		edits: change("for _, s := range p.All() {\n\t\ts.End(driver.Closed, errs.ErrClosed)",
			"for _, s := range p.All() {\n\t\t_ = s.DS.Close(context.Background())\n\t\ts.End(driver.Closed, errs.ErrClosed)"),
		tests: []string{"TestCloseLosesLocksBeforeTheirNodesGo"},
		by:    core,
	},
	{
		name:   "loss-delay-cut-short",
		breaks: "a lost session is closed at once, before loss_delay is over",
		file:   sessionFile,
		edits:  change("s.awaitSpared()\n", ""),
		tests:  []string{"TestLossDelayHoldsTheNextBackThoughTheSessionIsReachable"},
		by:     core,
	},
	{
		name:   "loss-delay-not-in-the-lease",
		breaks: "loss_delay does not shorten leases",
		file:   "zklock/internal/session/settings.go",
		edits:  change(`{ return timeout - c.LossDelay }`, `{ return timeout }`),
		tests:  []string{"TestSimulatedLossesAreFollowedByTheDelay"},
		by:     core,
	},
	{
		name:   "loss-delay-not-for-all",
		breaks: "when an All loses one node, its other nodes are deleted at once instead of after loss_delay",
		file:   removeFile,
		by:     core,
		edits:  change(`if delay == 0 || len(p.nodes) == 1 {`, `if true {`),
		tests:  []string{"TestLossDelayKeepsTheOtherNodesOfAnAll"},
	},
}

// handoverMutants hand a place over wrongly inside the process.
var handoverMutants = []mutant{
	{
		name:   "handover-without-lease",
		breaks: "a place is handed over on a lease that is nearly over",
		file:   "zklock/internal/place/place_grant.go",
		by:     core,
		edits:  change(`{ return p.Desk.LeftLocked() >= p.Desk.Lease.Least() }`, `{ return true }`),
		tests:  []string{"TestHandoverNeedsALease"},
	},
	{
		name:   "handover-on-a-short-lease",
		breaks: "a lock is granted or handed over however little of the lease is left",
		file:   "zklock/internal/place/place_grant.go",
		by:     core,
		edits:  change(`{ return p.Desk.LeftLocked() >= p.Desk.Lease.Least() }`, `{ return p.Desk.LeftLocked() > 0 }`),
		tests:  []string{"TestHandoverNeedsALease"},
	},
	{
		name:   "handover-of-a-deleted-node",
		breaks: "a place whose node was deleted is handed over",
		file:   "zklock/internal/place/place_state.go",
		by:     core,
		edits:  change("if !slices.Contains(next[l.state()], to) {", "if _ = slices.Contains[[]state]; to != held && !slices.Contains(next[l.state()], to) {"),
		tests:  []string{"TestDeletedNodeIsNotHandedOver"},
	},
	{
		name:   "handover-of-all",
		breaks: "locks on several names take part in hand-over",
		file:   "zklock/client.go",
		edits:  change(`return len(wants) == 1 && mode`, `return mode`),
		tests:  []string{"TestAllIsNotHandedAPlaceOnOneName"},
	},
	{
		name:   "handover-limit-ignored",
		breaks: "hand-over goes on beyond handover_limit although other processes wait",
		file:   standingFile,
		by:     core,
		edits:  change(`return !s.Others || s.Handovers < limit`, `return true`),
		tests:  []string{"TestHandoverLimitLetsOthersIn"},
	},
	{
		name:   "handover-time-ignored",
		breaks: "hand-over goes on for ever, beyond handover_time",
		file:   standingFile,
		by:     core,
		edits:  change("case s.Limited >= within:", "case false:"),
		tests:  []string{"TestHandoverCostsNothingAndRequeueOneTransaction"},
	},
	{
		name:   "writer-in-a-readers-place",
		breaks: "a writer is handed a reader's place, and holds while readers of other processes hold",
		file:   standingFile,
		edits:  change(`return (s.Mode != queue.Shared || mode == queue.Shared) && `, `return `),
		tests:  []string{"TestDowngradedPlaceIsPassedOnToReadersOnly"},
	},
	{
		name:   "writer-goes-on-in-a-readers-place",
		breaks: "a writer takes over the place in the queue that a reader has left behind",
		file:   acquireFile,
		by:     core,
		edits:  change(`if p == nil || p.mustRequeue() || p.Readers() && r.Mode != queue.Shared {`, `if p == nil || p.mustRequeue() {`),
		tests:  []string{"TestWriterDoesNotGoOnInAReadersPlace"},
	},
	{
		name:   "reserved-place-taken-up-twice",
		breaks: "a place that was held, and then reserved for a waiter which gave up, is used by the next waiter instead of being replaced",
		file:   placeFile,
		by:     core,
		edits:  change("!p.Granted.IsZero() && p.life.state() != reserved", "p.life.state() == spent"),
		tests:  []string{"TestReservedPlaceIsNotTakenUpTwice"},
	},
	{
		name:   "held-place-goes-on",
		breaks: "a place that was held, and must not be handed over again, is used again instead of being replaced",
		file:   acquireFile,
		by:     core,
		edits:  change(`if p == nil || p.mustRequeue() || p.Readers()`, `if p == nil || p.Readers()`),
		tests:  []string{"TestHandoverCostsNothingAndRequeueOneTransaction"},
	},
	{
		name:   "handover-in-doubt",
		breaks: "a place is handed over although a Txn under it may still be applied",
		file:   standingFile,
		by:     core,
		edits:  change(`== queue.Shared) && !s.Doubtful &&`, `== queue.Shared) &&`),
		tests:  []string{"TestLateTxnNeverReachesTheNextHolder"},
	},
	{
		name:   "late-reader-joins",
		breaks: "readers go on joining after handover_time, and writers of other processes starve",
		file:   turnstileFile,
		edits:  change(`!h.place.MayJoin(t.turnstiles.cfg.handoverTime)`, `!h.place.MayJoin(time.Hour)`),
		tests:  []string{"TestReadersShareForAWhile"},
	},
	{
		name:   "reader-passes-a-local-writer",
		breaks: "a reader joins although a writer of this process waits",
		file:   turnstileFile,
		edits:  change("if t.queue.Len() == 0 {\n\t\tif l := t.shareLocked(r); l != nil {", "if true {\n\t\tif l := t.shareLocked(r); l != nil {"),
		tests:  []string{"TestWritersNodeGoesToReadersAndBack"},
	},
	{
		name:   "wake-up-lost",
		breaks: "a waiter that gives up while the lock is handed to it keeps the lock",
		file:   turnstileFile,
		edits:  change("got.lock.hold.drop(got.lock)\n", ""),
		tests:  []string{"TestWaiterThatLeavesPassesOnWhatItGot"},
	},
	{
		name:   "lead-lost",
		breaks: "a waiter that gives up while it is made the leader stays the leader",
		file:   turnstileFile,
		edits:  change("t.led(nil, got.start, got.noSessionSince)\n", ""),
		tests:  []string{"TestWaiterThatLeavesPassesOnWhatItGot"},
	},
}

// holdMutants break the guarantees for holders.
var holdMutants = []mutant{
	{
		name:   "token-without-turn",
		breaks: "holders that share a place one after the other have equal tokens",
		file:   "zklock/request.go",
		edits:  change(`token: Token{Zxid: p.Zxid, Turn: turn}}`, `token: Token{Zxid: p.Zxid}}`),
		tests:  []string{"TestWithoutHandoverHasATokenOfItsOwn"},
	},
	{
		name:   "turn-not-raised",
		breaks: "the turn stays the same when a place is handed over",
		file:   "zklock/internal/place/place_grant.go",
		by:     core,
		edits:  change("p.turn++\n", ""),
		tests:  []string{"TestWithoutHandoverHasATokenOfItsOwn"},
	},
	{
		name:   "turn-not-raised-by-downgrade",
		breaks: "readers that join a downgraded writer have the same token as the writer",
		file:   "zklock/lock_downgrade.go",
		edits:  change("h.token = Token{Zxid: p.Zxid, Turn: p.LowerLocked()}\n", "p.LowerLocked()\n"),
		tests:  []string{"TestReaderThatJoinsADowngradedWriterHasALaterToken"},
	},
	{
		name:   "downgrade-asks-under-the-mutex",
		breaks: "a goroutine that downgrades a lock which is being lost waits for a mutex that it holds itself, and blocks the session",
		file:   "zklock/lock_downgrade.go",
		edits:  change("return holdOver, nil", "return asItWas, l.endedError()"),
		tests:  []string{"TestDowngradeOfAHoldThatIsBeingLost"},
	},
	{
		name:   "downgraded-place-handed-to-a-writer",
		breaks: "a downgraded place is handed to a writer, which holds while readers of other processes hold",
		file:   "zklock/internal/place/place_rewrite.go",
		by:     core,
		edits:  change("p.nodes[0].kind = queue.Kind{Mode: queue.Shared}", "_ = queue.Kind{Mode: queue.Shared}"),
		tests:  []string{"TestDowngradeKeepsQueuedWritersOut"},
	},
	{
		name:   "downgrade-not-published",
		breaks: "a downgrade is not written to the node's data, where other processes would see it",
		file:   "zklock/lock_downgrade.go",
		edits:  change("done <- p.Amend(s.Ctx, o.Shared)", "done <- p.Amend(s.Ctx, func(d *queue.Data) { d.Label = o.Label })"),
		tests:  []string{"TestNodeDataBound"},
	},
	{
		name:   "amend-without-version",
		breaks: "a late write of a label undoes a downgrade or another label",
		file:   "zklock/internal/place/place_rewrite.go",
		edits:  change("path, data, n.Stat.Version)", "path, data, driver.AnyVersion)"),
		tests:  []string{"TestLabelAndDowngradeKeepEachOther"},
		by:     core,
	},
	{
		name:   "txn-without-check",
		breaks: "a Txn is applied whether the lock is held or not",
		file:   "zklock/internal/place/place_txn.go",
		by:     core,
		edits: change("for _, c := range p.nodes {\n\t\tall = append(all, driver.CheckOp(c.path(), driver.AnyVersion))\n\t}",
			"for range p.nodes {\n\t\tall = append(all, driver.CheckOp(p.Desk.cfg.Root, driver.AnyVersion))\n\t}"),
		tests: []string{"TestTxn"},
	},
	{
		name:   "txn-in-doubt-is-an-error",
		breaks: "a Txn whose outcome is unknown does not exclude the place from hand-over",
		file:   "zklock/internal/place/place_txn.go",
		by:     core,
		edits:  change("p.Doubt()\n\t\treturn nil, err", "return nil, err"),
		tests:  []string{"TestLateTxnNeverReachesTheNextHolder"},
	},
	{
		name:   "release-under-a-txn",
		breaks: "Release does not wait for Txns under way, which are then applied while the next holder has the lock",
		file:   holdFile,
		edits:  change("limit := h.awaitTxns(ctx)\n", "limit := h.place.Desk.Timeout\n"),
		tests:  []string{"TestReleaseWaitsForTxns"},
	},
}

// ruleMutants break the rules of the public interface.
var ruleMutants = []mutant{
	{
		name:   "deadlock-not-seen",
		breaks: "a goroutine that holds a name and asks for it again waits for itself",
		file:   "zklock/client_reenter.go",
		edits:  change("if !join {\n\t\treturn nil, ErrDeadlock", "if !join {\n\t\treturn nil, nil"),
		tests:  []string{"TestReentry"},
	},
	{
		name:   "reader-reenters-as-writer",
		breaks: "a reader joins its own lock as a writer by re-entry",
		file:   "zklock/client_reenter.go",
		edits:  change(`if why := h.uncovered(r.Wants); why != nil {`, `if why := h.uncovered(r.Wants); why != nil && false {`),
		tests:  []string{"TestReentry"},
	},
	{
		name:   "reentry-after-loss",
		breaks: "re-entry joins a lock whose lease is over",
		file:   "zklock/client_reenter.go",
		edits: []edit{
			{"if err := l.Err(); err != nil {\n\t\treturn nil, err", "if false {\n\t\treturn nil, nil"},
			{"if !alive {", "if false && !alive {"},
		},
		tests: []string{"TestReentryAfterALossIsALoss"},
	},
	{
		name:   "reentry-into-a-released-lock",
		breaks: "a request fails if the lock of its context is released just before the request joins it",
		file:   "zklock/client_reenter.go",
		edits:  change("if err == nil || l.Err() != ErrReleased {", "if err == nil || l.Err() != nil {"),
		tests:  []string{"TestReenterAtTheMomentOfARelease"},
	},
	{
		name:   "downgrade-under-a-txn",
		breaks: "a writer becomes a reader while a Txn of it is in doubt",
		file:   "zklock/lock_downgrade.go",
		edits:  change("case p.InDoubt():", "case false:"),
		tests:  []string{"TestNoDowngradeUnderATxnInDoubt"},
	},
	{
		name:   "readers-pass-a-waiting-writer",
		breaks: "readers join while a writer of the process waits with a separate place",
		file:   "zklock/turnstiles.go",
		edits:  change("t.separateWriters.Add(1)", "t.separateWriters.Add(0)"),
		tests:  []string{"TestWaitingWriterStopsReadersFromJoining"},
	},
	{
		name:   "writer-behind-readers-has-no-node",
		breaks: "a writer that waits behind readers of its process lets readers of other processes pass",
		file:   "zklock/turnstile.go",
		edits:  change(`return t.sharedLocked() && (r.Mode == queue.Shared || `, `return t.sharedLocked() && (r.Mode == queue.Shared || false && `),
		tests:  []string{"TestRemoteReadersDoNotPassALocalWriter", "TestReaderOnAWritersNode"},
	},
	{
		name:   "names-meet",
		breaks: "two different names share one znode",
		file:   "zklock/internal/queue/name.go",
		edits:  change(`c == '_' || c == '.'`, `c == '_' || c == '%' || c == '.'`),
		tests:  []string{"TestNameThatIsAPrefixOfAnother"},
		by:     core,
	},
	{
		name:   "cancelled-acquire-returns-nothing",
		breaks: "an Acquire whose context is over returns neither a lock nor an error",
		file:   "zklock/client.go",
		edits:  change("if ctx.Err() != nil {\n\t\treturn nil, errs.WaitEnded(ctx, errs.ErrNotAcquired)\n\t}\n\twaitCtx", "if ctx.Err() != nil {\n\t\treturn nil, nil\n\t}\n\twaitCtx"),
		tests:  []string{"TestAcquireWithAnEndedContextIsAnError"},
	},
	{
		name:   "max-waiters-one-more",
		breaks: "max_waiters lets one waiter too many wait",
		file:   "zklock/turnstiles.go",
		edits:  change(`int(t.waiting) < r.maxWaiters`, `int(t.waiting) <= r.maxWaiters`),
		tests:  []string{"TestWaitLimits"},
	},
}
