package main

const (
	leaseFile     = "zklock/internal/lease/lease.go"
	heartbeatFile = "zklock/internal/session/heartbeat.go"
	keeperFile    = "zklock/internal/session/keeper.go"
	sessionFile   = "zklock/internal/session/session.go"
)

// leaseMutants compute leases wrongly.
var leaseMutants = []mutant{
	{
		name:   "lease-from-reply",
		breaks: "the lease counts from when a reply was read, not from when its request was sent",
		file:   leaseFile,
		edits:  change(`l.prove(j.sent)`, `l.prove(j.answered)`),
		tests:  []string{"TestLeaseNeedsATickBetweenTheTouchAndTheWriteBeforeLast"},
	},
	{
		name:   "lease-from-connected",
		breaks: "a new session's lease counts from when its handshake was answered, not from when it was sent",
		file:   leaseFile,
		edits:  change(`l.prove(sent)`, `l.prove(answered)`),
		tests:  []string{"TestLeaseOfANewSessionCountsFromItsHandshake"},
	},
	{
		name:   "lease-from-sync",
		breaks: "Syncs, which a deposed leader answers, prove the lease as committed writes do",
		file:   leaseFile,
		edits:  change("if committed {\n\t\tif !sent", "if true {\n\t\tif !sent"),
		tests:  []string{"TestLeaseOfAReconnectWaitsForACommittedWrite"},
	},
	{
		name:   "lease-last-plus-timeout",
		breaks: "the lease is the last acknowledged write plus the timeout",
		file:   leaseFile,
		edits:  change("if committed {\n\t\tif !sent", "if committed {\n\t\tl.prove(sent)\n\t\tif !sent"),
		tests:  []string{"TestLeaseNeedsATickBetweenTheTouchAndTheWriteBeforeLast"},
	},
	{
		name:   "lease-one-before",
		breaks: "the lease is the write before the last plus the timeout",
		file:   leaseFile,
		edits:  change(`if j, ok := l.latestAnswered(p.sent.Add(-l.Tick)); ok {`, `if j := p; ok {`),
		tests:  []string{"TestLeaseNeedsATickBetweenTheTouchAndTheWriteBeforeLast"},
	},
	{
		name:   "lease-without-tick",
		breaks: "no tick is required between the touch that counts and the write before the last: the touch may not have been reported to the leader yet",
		file:   leaseFile,
		edits:  change(`p.sent.Add(-l.Tick)`, `p.sent`),
		tests:  []string{"TestLeaseNeedsATickBetweenTheTouchAndTheWriteBeforeLast"},
	},
	{
		name:   "lease-suspended-during-handshake",
		breaks: "a reconnect's handshake is dated after a suspension that came between the handshake and its reply",
		file:   keeperFile,
		edits:  change("if state == driver.Connected {\n\t\t\tsuspendedThen", "if true {\n\t\t\tsuspendedThen"),
		tests:  []string{"TestSuspensionDuringAReconnectShortensTheLease"},
	},
	{
		name:   "lease-from-reconnect",
		breaks: "a handshake that resumes a session proves the lease by itself",
		file:   leaseFile,
		edits:  change(`if created {`, `if true {`),
		tests:  []string{"TestLeaseOfAReconnectWaitsForACommittedWrite"},
	},
	{
		name:   "lease-overlapping-writes",
		breaks: "a write that was sent before the handshake's answer counts for the new connection",
		file:   leaseFile,
		edits:  change(`if !sent.Before(l.handshake.answered) {`, `if true {`),
		tests:  []string{"TestLeaseOfAReconnectWaitsForACommittedWrite"},
	},
	{
		name:   "lease-without-margin",
		breaks: "the lease has no margin for clocks that run at different rates",
		file:   leaseFile,
		edits:  change(`return l.Timeout/100 + max(l.Timeout/20, 50*time.Millisecond)`, `return 0`),
		tests:  []string{"TestLeaseOfANewSessionCountsFromItsHandshake"},
	},
	{
		name:   "idle-syncs-too-rare",
		breaks: "an idle session's Syncs are so far apart that its first write has no usable lease",
		file:   leaseFile,
		edits:  change(`min(l.Timeout/3, (l.Timeout*65/100-l.Tick)/2)`, `l.Timeout/2`),
		tests:  []string{"TestIdleSyncsLeaveEnoughLeaseForTheFirstWrite"},
	},
}

// sessionMutants judge wrongly whether a session is alive.
var sessionMutants = []mutant{
	{
		name:   "heartbeat-is-a-sync",
		breaks: "heartbeats are Syncs, which need no quorum, and still count as committed writes",
		file:   heartbeatFile,
		edits:  change("if write {\n\t\t_, err = s.DS.Multi", "if false {\n\t\t_, err = s.DS.Multi"),
		tests:  []string{"TestHeartbeatsAreCommitted"},
		by:     core,
	},
	{
		name:   "heartbeat-without-its-sync",
		breaks: "no Sync comes right before a heartbeat, so it proves less, and twice as many are needed",
		file:   heartbeatFile,
		edits:  change("!next.sync || s.request", "!next.sync || next.write || s.request"),
		tests:  []string{"TestHeartbeatsGetOutOfStep"},
		by:     core,
	},
	{
		name:   "heartbeats-too-rare",
		breaks: "heartbeats come an interval too late, so the lease gets shorter",
		file:   leaseFile,
		edits:  change("-max(l.LeastKept()+", "-max(l.LeastKept()-l.ExchangeEvery()+"),
		tests:  []string{"TestLeastLeaseWhileHeld"},
		by:     core,
	},
	{
		name:   "short-leases-renewed-late",
		breaks: "with a short session timeout the heartbeat comes later than the lease promises",
		file:   leaseFile,
		edits:  change("l.Timeout/100, l.Timeout/3)", "l.Timeout/100)"),
		tests:  []string{"TestLeaseTerms"},
		by:     core,
	},
	{
		name:   "least-lease-not-checked",
		breaks: "session timeouts are accepted that leave too little of a lease for a grant",
		file:   "zklock/internal/session/settings.go",
		edits:  change(", l.Short())", ")"),
		tests:  []string{"TestTimeoutsThatCannotWorkAreRefused"},
		by:     core,
	},
	{
		name:   "refused-sync-stops-the-heart",
		breaks: "no heartbeat is sent in place of a Sync that fails",
		file:   heartbeatFile,
		edits:  change("if !next.write && (synced || !next.insist) {", "if !synced || !next.write {"),
		tests:  []string{"TestHeartbeatsGoOnWithoutTheirSyncs"},
		by:     core,
	},
	{
		name:   "shrunk-timeout-kept",
		breaks: "a reconnect that negotiates a shorter timeout changes nothing",
		file:   "zklock/internal/session/keeper.go",
		edits:  change(`if s.DS.Timeout() < s.Timeout {`, `if false {`),
		tests:  []string{"TestReconnectWithAShorterTimeoutIsALoss"},
		by:     core,
	},
	{
		name:   "late-reply-renews",
		breaks: "a heartbeat's reply renews a lease that has run out",
		file:   sessionFile,
		edits:  change(`if s.counting && !answered.Before(s.Lease.Until) {`, `if false {`),
		tests:  []string{"TestLeaseThatRanOutIsNotRenewed"},
	},
	{
		name:   "exchange-across-connections",
		breaks: "an exchange that began on one connection and ended on another proves the lease",
		file:   sessionFile,
		edits: []edit{
			{"if after != gen {\n\t\treturn\n\t}", "_ = after"},
			{"if s.Over != nil || gen != s.gen {", "if s.Over != nil {"},
		},
		tests: []string{"TestReplyOfAnOlderConnectionProvesNothing"},
	},
	{
		name:   "valid-from-a-timer",
		breaks: "Valid waits for a timer to announce the end of the lease instead of looking at the clock",
		file:   "zklock/lock.go",
		edits:  change(`return l.Err() == nil && l.hold.place.Desk.Alive()`, `return l.Err() == nil`),
		tests:  []string{"TestValidLooksAtTheClock"},
	},
	{
		name:   "suspended-clock",
		breaks: "time during which the machine was suspended does not count",
		file:   "zklock/internal/lease/clock.go",
		edits:  []edit{{`return t.Add(time.Duration(suspendedMax.Load()))`, `return t`}, {`return t.Add(d)`, `return t.Add(0 * d)`}},
		tests:  []string{"TestValidLooksAtTheClock"},
		by:     core,
	},
	{
		name:   "suspension-not-looked-for",
		breaks: "the clocks are not compared although the wall clock has moved against the monotonic one",
		file:   "zklock/internal/lease/clock.go",
		edits:  change("since < askEvery && near(skew, askedSkew.Load())", "since < askEvery"),
		tests:  []string{"TestNowAsksForTheClocks"},
	},
	{
		name:   "suspension-looked-for-once",
		breaks: "the clocks are compared again only if the wall clock has moved against the monotonic one",
		file:   "zklock/internal/lease/clock.go",
		edits:  change("since >= 0 && since < askEvery && near", "since < since+askEvery && near"),
		tests:  []string{"TestNowAsksForTheClocks"},
	},
	{
		name:   "lease-news-missing",
		breaks: "a goroutine that waits for a lease does not wake up when the lease begins to count",
		file:   sessionFile,
		edits:  change("countLocked(s) // AwaitLease has to be woken", "s.counting = true // AwaitLease has to be woken"),
		tests:  []string{"TestLeaseThatBeginsToCountIsNews"},
	},
	{
		name:   "lost-is-valid-again",
		breaks: "a handle whose lock was lost is valid again if its session is alive",
		file:   "zklock/lock.go",
		edits:  change(`return l.Err() == nil && l.hold.place.Desk.Alive()`, `return l.Err() != ErrReleased && l.hold.place.Desk.Alive()`),
		tests:  []string{"TestReleaseOfADeletedNode"},
	},
	{
		name:   "until-after-loss",
		breaks: "Until goes on returning the end of the session's lease after the lock was lost",
		file:   "zklock/lock.go",
		edits:  change("func (l *Lock) Until() time.Time {\n\tif l.Err() != nil {", "func (l *Lock) Until() time.Time {\n\tif false {"),
		tests:  []string{"TestUntilEndsWithTheLock"},
	},
	{
		name:   "lost-reported-twice",
		breaks: "Release of a lock that was lost reports the loss a second time",
		file:   "zklock/lock.go",
		edits: change("err = l.reason()\n\t\tend.Call(ReleaseResult{Err: err})",
			"err = l.reason()\n\t\tl.reportLost()\n\t\tend.Call(ReleaseResult{Err: err})"),
		tests: []string{"TestLostIsReportedOnceAHandle"},
	},
	{
		name:   "session-outlives-its-lease",
		breaks: "the end of the lease does not end the session",
		file:   "zklock/internal/session/keeper.go",
		edits:  change("if left <= 0 {", "if left = max(left, time.Second); left <= 0 {"),
		tests:  []string{"TestSimulation"},
		by:     core,
	},
}
