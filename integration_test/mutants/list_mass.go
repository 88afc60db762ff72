package main

const (
	lineFile = "zklock/internal/place/line.go"
	poolFile = "zklock/internal/session/pool.go"
)

// massMutants go wrong where very many locks or waiters are concerned at once, or where
// a session ends at an awkward moment.
var massMutants = []mutant{
	{
		name:   "closed-before-handles-end",
		breaks: "a session is closed, which lets others in, while its handles are being ended",
		file:   sessionFile,
		edits: []edit{
			{"lost := Evict(", "s.Pool.discard(s, isLoss(cause))\n\tlost := Evict("},
			{"\ts.Pool.discard(s, isLoss(cause))\n\ts.stop()\n", "\ts.stop()\n"},
		},
		tests: []string{"TestSessionIsClosedAfterTheLastHandle"},
		by:    core,
	},
	{
		name:   "waiters-woken-before-handles-end",
		breaks: "the waiters of a lost session run while its handles are being ended, and get the same session again",
		file:   sessionFile,
		edits: []edit{
			{"lost := Evict(", "s.stop()\n\tlost := Evict("},
			{"{ return s.Cause() != nil }", "{ return false }"},
		},
		tests: []string{"TestSessionThatIsOverIsNeverGivenOut"},
	},
	{
		name:   "dying-session-given-out",
		breaks: "a session that is over is given out until it has left its slot",
		file:   poolFile,
		edits:  change("over := sl.session != nil && sl.session.IsOver()", "over := false"),
		tests:  []string{"TestSessionThatIsOverIsNeverGivenOut"},
	},
	{
		name:   "ended-session-fills-its-slot",
		breaks: "a session that ended while it was opened stays in its slot for ever",
		file:   poolFile,
		edits:  change(`if cause := s.Cause(); cause != nil {`, `if cause := s.Cause(); false {`),
		tests:  []string{"TestSessionThatIsOverIsNeverGivenOut"},
	},
	{
		name:   "slot-refilled-at-once",
		breaks: "all clients that lost their sessions together come back together",
		file:   poolFile,
		edits:  change("if wait <= 0 {\n\t\treturn true\n\t}\n", "if wait <= 0 || true {\n\t\treturn true\n\t}\n"),
		tests:  []string{"TestLostSessionsAreReplacedAtDifferentMoments"},
		by:     core,
	},
	{
		name:   "hearts-in-step",
		breaks: "heartbeats of many clients stay in step",
		file:   "zklock/internal/session/settings.go",
		edits:  change("return period / 10 * part / whole", "return 0 * part"),
		tests:  []string{"TestHeartbeatsGetOutOfStep"},
		by:     core,
	},
	{
		name:   "loss-behind-a-session-hook",
		breaks: "a Session hook that takes its time keeps Done open beyond the lease",
		file:   "zklock/internal/session/notices.go",
		edits:  change("if n.changed == nil {\n\t\treturn\n\t}\n", "if n.changed != nil {\n\t\tn.changed(e)\n\t\treturn\n\t}\n"),
		tests:  []string{"TestBusySessionHookDoesNotHoldUpALoss"},
		by:     core,
	},
	{
		name:   "busy-heart-never-ends",
		breaks: "a heart whose hook takes longer than a period never sees that its session is over",
		file:   "zklock/internal/session/heartbeat.go",
		edits:  change(`for s.Ctx.Err() == nil {`, "for {"),
		tests:  []string{"TestCloseIsNotHeldUpByBusyOperationHooks"},
		by:     core,
	},
	{
		name:   "readers-list-anew",
		breaks: "all readers behind a writer list the queue when it leaves",
		file:   lineFile,
		by:     core,
		edits:  change("return writers <= maxWalkedByReader", "return false"),
		tests:  []string{"TestReadersBehindAWriterDoNotList"},
	},
	{
		name:   "writers-list-anew",
		breaks: "a writer behind two others lists the queue when its neighbour leaves",
		file:   lineFile,
		by:     core,
		edits:  change("return self <= maxWalkedByWriter", "return self == 0"),
		tests:  []string{"TestShortLineIsWalked"},
	},
	{
		name:   "own-nodes-asked-for",
		breaks: "a session asks for nodes that it has removed itself",
		file:   lineFile,
		by:     core,
		edits:  change("if len(l.ours) == 0 {", "if true {"),
		tests:  []string{"TestOwnNodesThatAreGoneAreNotAskedFor"},
	},
	{
		name:   "departure-heard-on-another-connection",
		breaks: "an event counts beside what is read on a server that may be behind it",
		file:   lineFile,
		edits:  change("if l.heard && gen != l.gen {", "if false {"),
		tests:  []string{"TestLineThatWasHeardIsListedAgainElsewhere"},
	},
	{
		name:   "absence-on-another-connection",
		breaks: "after an event, what is found to be gone on another server counts beside it",
		file:   "zklock/internal/place/line_ahead.go",
		by:     core,
		edits:  change(`if gen, _ := s.DS.Conn(); l.seen(gen, true) {`, `if gen, _ := s.DS.Conn(); true {`),
		tests:  []string{"TestWalkThenReconnectToALaggingServer"},
	},
	{
		name:   "shared-watch-is-presence",
		breaks: "a watch that a follower of the same session has armed counts as a read of the own node",
		file:   "zklock/internal/session/watch.go",
		edits:  change("return w, false, nil", "return w, true, nil"),
		tests:  []string{"TestOwnNodeIsReadThoughAFollowerWatchesIt"},
		by:     core,
	},
	{
		name:   "many-faults-one-by-one",
		breaks: "a group of many members at fault is sent again whole for each of them",
		file:   commitFile,
		edits:  change("if faults == few && len(group) > 1 {", "if false {"),
		tests:  []string{"TestManyFailuresInAGroupCostAFewTransactionsEach"},
	},
	{
		name:   "pending-writes-after-the-end",
		breaks: "what is pending when the session ends calls hooks, one after the other, and Close waits",
		file:   commitFile,
		edits:  change("if c.ctx.Err() != nil { // nothing", "if false { // nothing"),
		tests:  []string{"TestCloseIsNotHeldUpByPendingWrites"},
		by:     core,
	},
	{
		name:   "waiters-node-unwatched",
		breaks: "a waiter whose node was removed learns of it when its turn would have come",
		file:   frontFile,
		by:     core,
		edits:  change("\t\t\twatched = true\n", ""),
		tests:  []string{"TestWaiterWhoseNodeWasRemovedQueuesAgainAtOnce"},
	},
	{
		name:   "unfired-watch-is-presence",
		breaks: "before a grant a waiter does not read its own node if a watch on it has not fired",
		file:   "zklock/internal/place/own_nodes.go",
		by:     core,
		edits:  change("if !read[i] {", "if read == nil {"),
		tests:  []string{"TestGrantDoesNotDependOnAnEvent"},
	},
}
