package main

const removeFile = "zklock/internal/place/place_remove.go"

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
		name:   "own-node-watched-late",
		breaks: "a client that passes on a deleted node learns of the deletion half a session timeout after the grant",
		file:   "zklock/internal/place/own_watches.go",
		by:     core,
		edits:  change("desk.Timeout/6", "desk.Timeout/2"),
		tests:  []string{"TestTokensAfterABreak"},
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
		file:   "zklock/internal/place/reaper.go",
		by:     core,
		edits:  change(`if !p.createdHere {`, `if false {`),
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
		edits:  change(`{Timeout: timeout - c.LossDelay,`, `{Timeout: timeout,`),
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
	{
		name:   "async-try-does-not-wait",
		breaks: "a try does not wait for a release of this client that is still on its way",
		file:   tryFile,
		by:     core,
		edits:  change("left != nil {", "false && left != nil {"),
		tests:  []string{"TestTryAfterAnAsyncRelease"},
	},
	{
		name:   "async-release-without-owner",
		breaks: "an asynchronous release of which the first delete fails is not repeated",
		file:   removeFile,
		by:     core,
		edits:  change("if finishDelete(p, w) != nil {", "if <-w.Done; w.Err != nil || finishDelete(p, w) != nil {"),
		tests:  []string{"TestAsyncReleaseIsRepeated"},
	},
}
