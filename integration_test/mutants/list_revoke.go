package main

const (
	revokeFile      = "zklock/internal/place/revoke.go"
	queueRevokeFile = "zklock/internal/queue/revoke.go"
	lockRevokeFile  = "zklock/lock_revoke.go"
	ownWatchesFile  = "zklock/internal/place/own_watches.go"
	grantFile       = "zklock/internal/place/place_grant.go"
)

// healthyMutants report a client as ready that is not.
var healthyMutants = []mutant{
	{
		name:   "healthy-while-silent",
		breaks: "a client is ready although the ensemble has not answered for longer than a session timeout",
		file:   "zklock/internal/session/healthy.go",
		by:     core,
		edits:  change("lease.Now().Sub(last) < s.Timeout && ", "lease.Now().Sub(last) < 100*s.Timeout && "),
		tests:  []string{"TestHealthyDuringASilentOutage"},
	},
	{
		name:   "healthy-opens-nothing",
		breaks: "a client that is only asked whether it is ready never opens a session",
		file:   "zklock/internal/session/healthy.go",
		by:     core,
		edits:  change("s, o, err := p.look(p.slot(\"\"))", "var s *Session\n\tvar err error\n\to := &opening{done: make(chan struct{})}"),
		tests:  []string{"TestHealthy"},
	},
}

// revokeMutants miss a request to give a lock back, or let it reach more or less than it was
// meant for.
var revokeMutants = []mutant{
	{
		name:   "revoke-unwatched",
		breaks: "a holder that wants to be asked is asked only when its node is watched anyway",
		file:   ownWatchesFile,
		by:     core,
		edits:  change("if p.due && !p.entrusted {", "if false {"),
		tests:  []string{"TestRevocationIsNoticedAtOnce"},
	},
	{
		name:   "revoke-always-watched",
		breaks: "every holder watches its node at once, whether it wants to be asked or not",
		file:   lockRevokeFile,
		by:     core,
		edits:  change("if !cfg.revocable {\n\t\treturn\n\t}\n", "if !cfg.revocable {\n\t\tplace.Attend(l.hold.place)\n\t\treturn\n\t}\n"),
		tests:  []string{"TestRevocableCosts"},
	},
	{
		name:   "revoke-as-waiter-missed",
		breaks: "a request that was written while the holder still waited for the lock is not noticed",
		file:   ownWatchesFile,
		by:     core,
		edits:  change("noteRevocation(p, n.shared.Node.Data)", "_ = n.shared.Node.Data"),
		tests:  []string{"TestRevocationIsNoticedAtOnce"},
	},
	{
		name:   "revoke-before-attending-missed",
		breaks: "a handle that joins a lock which is revoked already is not asked",
		file:   revokeFile,
		by:     core,
		edits:  change("if r := p.revocation.Load(); r != nil {", "if r := p.revocation.Load(); r != nil && false {"),
		tests:  []string{"TestRevocationIsNoticedAtOnce"},
	},
	{
		name:   "revoke-handed-over",
		breaks: "a revoked place is handed over to the next goroutine of the process",
		file:   revokeFile,
		by:     core,
		edits:  change("{ return p.revocation.Load() != nil }", "{ return false }"),
		tests:  []string{"TestRevokedPlaceIsNotHandedOver", "TestReservedPlaceIsRevoked"},
	},
	{
		name:   "revoke-reserved-handed-over",
		breaks: "a place that is revoked while the next goroutine waits for a longer lease is handed over to it",
		file:   grantFile,
		by:     core,
		edits:  change("if passedOnRevoked(p) || !p.leasedLocked()", "if !p.leasedLocked()"),
		tests:  []string{"TestReservedPlaceIsRevoked"},
	},
	{
		name:   "revoke-joined",
		breaks: "a reader joins the readers of a revoked place, so the place never gets free",
		file:   standingFile,
		by:     core,
		edits:  change("return !s.Revoked && (s.IsOpen()", "return (s.IsOpen()"),
		tests:  []string{"TestRevokedReaders"},
	},
	{
		name:   "revoke-kept",
		breaks: "a revoked place is kept after its use",
		file:   standingFile,
		by:     core,
		edits:  change("!s.Others && !s.Doubtful && !s.Revoked && ", "!s.Others && !s.Doubtful && "),
		tests:  []string{"TestRevokedPlaceIsNotKept"},
	},
	{
		name:   "revoke-kept-place-stays",
		breaks: "a kept place that is revoked stays in the queue",
		file:   keptFile,
		by:     core,
		edits:  change("Revoke(reason string) { s.keeper.retire(s, false) }", "Revoke(reason string) {}"),
		tests:  []string{"TestRevokedPlaceIsNotKept"},
	},
	{
		name:   "revoke-one-reader",
		breaks: "only the first of the readers that share a place is asked",
		file:   lockRevokeFile,
		by:     core,
		edits:  change("handles := slices.Clone(h.handles)", "handles := slices.Clone(h.handles[:1])"),
		tests:  []string{"TestRevokedReaders"},
	},
	{
		name:   "revoke-all-handles",
		breaks: "the context of a lock without WithRevocable ends, because another handle of the hold has the option",
		file:   lockRevokeFile,
		by:     core,
		edits:  change("if r == nil || r.err != nil", "if r == nil {\n\t\tr = &revocation{asked: make(chan struct{})}\n\t}\n\tif r.err != nil"),
		tests:  []string{"TestRevocationIsNoticedAtOnce"},
	},
	{
		name:   "revoke-later-contexts-live",
		breaks: "a context that is made after the request does not end",
		file:   "zklock/lock.go",
		by:     core,
		edits:  change("err := cmp.Or(l.reason(), l.revoked.reason())", "err := cmp.Or(l.reason(), l.reason())"),
		tests:  []string{"TestRevocationIsNoticedAtOnce"},
	},
	{
		name:   "revoke-loses-the-lock",
		breaks: "a request ends the lock, so another client may have it during the clean-up",
		file:   revokeFile,
		by:     core,
		edits:  change("desk.Spawn(func() { h.Revoke(reason) })", "desk.Spawn(func() { h.Revoke(reason); p.Lose(); p.Remove() })"),
		tests:  []string{"TestRevokedHolderCleansUp", "TestIgnoredRevocation"},
	},
	{
		name:   "revoke-without-a-sync",
		breaks: "Revoke on a server that lags behind reports that the node does not exist",
		file:   revokeFile,
		by:     core,
		edits:  change("if err := z.Sync(ctx); err != nil {", "if err := ctx.Err(); err != nil {"),
		tests:  []string{"TestOperatorOnALaggingServer"},
	},
	{
		name:   "revoke-shortens",
		breaks: "the reason of a request costs the holder's host name and trace a part of their length",
		file:   "zklock/internal/queue/data.go",
		by:     "zklock/internal/queue",
		edits:  change("len(noReason)))\n\t\t\tcontinue\n", "len(noReason)))\n"),
		tests:  []string{"TestReasonShortensNoOtherText"},
	},
	{
		name:   "revoke-any-zxid",
		breaks: "Revoke and Break take any node with the right name, whatever its zxid",
		file:   revokeFile,
		by:     core,
		edits:  change("if zxid == 0 || n.Stat.Czxid == zxid {", "if zxid >= 0 {"),
		tests:  []string{"TestRevokeAndBreakOfAnotherNode"},
	},
	{
		name:   "revoke-curator-gets-json",
		breaks: "a contender of Curator gets a request that it does not understand",
		file:   queueRevokeFile,
		by:     core,
		edits:  change("if (Node{GUID: guid}).Ours() {", "if (Node{GUID: guid}).Ours() || true {"),
		tests:  []string{"TestRevocationWithCurator"},
	},
	{
		name:   "revoke-curator-unheard",
		breaks: "the message of Curator's Revoker is not noticed",
		file:   queueRevokeFile,
		by:     core,
		edits:  change(` && string(data) != CuratorRevokes {`, ` {`),
		tests:  []string{"TestRevocationWithCurator"},
	},
	{
		name:   "revoke-without-a-reason-lost",
		breaks: "a request without a reason does not count",
		file:   queueRevokeFile,
		by:     core,
		edits:  change("d.Revoked = noReason\n", "d.Revoked = \"\"\n"),
		tests:  []string{"TestIgnoredRevocation"},
	},
}
