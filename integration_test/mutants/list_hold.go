package main

const (
	holdFile = "zklock/hold.go"
	txnFile  = "zklock/lock_txn.go"
)

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
		edits:  change("{ d.Mode = queue.Shared.String() }", "{}"),
		tests:  []string{"TestNodeDataBound"},
	},
	{
		name:   "label-undone-by-a-downgrade",
		breaks: "a downgrade writes the label that the holder had when it began, over one that was confirmed since",
		file:   "zklock/lock_downgrade.go",
		edits: append(change("done := make", "o := h.Origin()\n\tdone := make"),
			change("{ d.Mode = queue.Shared.String() }", "{ d.Mode, d.Label = queue.Shared.String(), o.Label }")...),
		tests: []string{"TestConfirmedLabelStays"},
	},
	{
		name:   "label-of-the-former-reader",
		breaks: "a node that becomes a reader's is described from a copy, which undoes a label that was confirmed since",
		file:   "zklock/internal/place/place_rewrite.go",
		by:     core,
		edits: append(change("desk.Spawn(func() {\n\t\tvar shown", "if h, ok := p.Holder().(Holder); ok {\n\t\to := h.Origin()\n\t\twaiting = &o\n\t}\n\tdesk.Spawn(func() {\n\t\tvar shown"),
			change("o, shown = &holders, p.turn", "_, shown = &holders, p.turn")...),
		tests: []string{"TestConfirmedLabelStays"},
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
