package main

const (
	lineFile = "zklock/internal/place/line.go"
	poolFile = "zklock/internal/session/pool.go"

	sightFile = "zklock/internal/place/sight.go"
)

// massMutants are bugs that matter where very many locks or waiters are affected at once,
// or where a session ends while another operation on it is under way.
var massMutants = []mutant{
	{
		name:   "closed-before-handles-end",
		breaks: "a session is closed, so other clients get its locks, before all its handles have ended",
		file:   sessionFile,
		edits: []edit{
			{"lost := Evict(", "s.Pool.discard(s, isLoss(cause))\n\tlost := Evict("},
			{"\ts.Pool.discard(s, isLoss(cause))\n\ts.stop()\n", "\ts.stop()\n"},
		},
		tests: []string{"TestSessionIsClosedAfterTheLastHandle"},
		by:    core,
	},
	{
		name:   "expired-before-handles-end",
		breaks: "the ensemble in memory removes the nodes of a session that expires before its client has lost the locks",
		file:   "zklock/memdriver/control.go",
		edits:  change("s.lapse()", "e.kill(id)"),
		tests:  []string{"TestExpireWaitsForTheClient"},
	},
	{
		name:   "waiters-woken-before-handles-end",
		breaks: "the waiters of a lost session wake up before all its handles have ended, and get the same session again",
		file:   sessionFile,
		edits: []edit{
			{"lost := Evict(", "s.stop()\n\tlost := Evict("},
			{"{ return s.Cause() != nil }", "{ return false }"},
		},
		tests: []string{"TestSessionThatIsOverIsNeverGivenOut"},
	},
	{
		name:   "dying-session-given-out",
		breaks: "a session that is over is given to callers until it has left its slot in the pool",
		file:   poolFile,
		edits:  change("over := sl.session != nil && sl.session.IsOver()", "over := false"),
		tests:  []string{"TestSessionThatIsOverIsNeverGivenOut"},
	},
	{
		name:   "ended-session-fills-its-slot",
		breaks: "a session that ended while it was being opened stays in its slot for ever",
		file:   poolFile,
		edits:  change(`if cause := s.Cause(); cause != nil {`, `if cause := s.Cause(); false {`),
		tests:  []string{"TestSessionThatIsOverIsNeverGivenOut"},
	},
	{
		name:   "slot-refilled-at-once",
		breaks: "all clients that lost their sessions at the same moment reconnect at the same moment",
		file:   poolFile,
		edits:  change("if wait <= 0 {\n\t\treturn true\n\t}\n", "if wait <= 0 || true {\n\t\treturn true\n\t}\n"),
		tests:  []string{"TestLostSessionsAreReplacedAtDifferentMoments"},
		by:     core,
	},
	{
		name:   "hearts-in-step",
		breaks: "many clients whose heartbeats coincide send them at the same moments for ever",
		file:   "zklock/internal/session/settings.go",
		edits:  change("return period / 10 * part / whole", "return 0 * part"),
		tests:  []string{"TestHeartbeatsGetOutOfStep"},
		by:     core,
	},
	{
		name:   "loss-behind-a-session-hook",
		breaks: "a slow Session hook keeps a lost lock's Done channel open beyond the lease",
		file:   "zklock/internal/session/notices.go",
		edits:  change("if n.changed == nil {\n\t\treturn\n\t}\n", "if n.changed != nil {\n\t\tn.changed(e)\n\t\treturn\n\t}\n"),
		tests:  []string{"TestBusySessionHookDoesNotHoldUpALoss"},
		by:     core,
	},
	{
		name:   "busy-heart-never-ends",
		breaks: "a heartbeat loop whose hook takes longer than a period never notices that its session is over",
		file:   "zklock/internal/session/heartbeat.go",
		edits:  change(`for s.Ctx.Err() == nil {`, "for {"),
		tests:  []string{"TestCloseIsNotHeldUpByBusyOperationHooks"},
		by:     core,
	},
	{
		name:   "readers-list-again",
		breaks: "all readers behind a writer list the queue again when the writer leaves",
		file:   lineFile,
		by:     core,
		edits:  change("return max(maxWalkedByReader, l.ahead/listedPerRead)", "return -1"),
		tests:  []string{"TestReadersBehindAWriterDoNotList"},
	},
	{
		name:   "writers-list-again",
		breaks: "a writer behind two others lists the queue again when the one directly ahead of it leaves",
		file:   lineFile,
		by:     core,
		edits:  change("return maxWalkedByWriter\n", "return 0\n"),
		tests:  []string{"TestShortLineIsWalked"},
	},
	{
		name:   "own-nodes-asked-for",
		breaks: "a client tries to watch queue nodes that its own session has removed",
		file:   lineFile,
		by:     core,
		edits:  change("peers, ok := d.peers[c.dir]\n\tif !ok {", "peers, ok := d.peers[c.dir]\n\tif ok || !ok {"),
		tests:  []string{"TestOwnNodesThatAreGoneAreNotAskedFor"},
	},
	{
		name:   "session-peers-not-waited-for",
		breaks: "a waiter whose neighbour has left does not wait for the contenders of its own session that are further ahead",
		file:   lineFile,
		edits:  change("if o := peers[i-1]; l.waitsFor(o) {", "if o := peers[i-1]; o.Name == \"\" {"),
		tests:  []string{"TestLineSharesItsSessionsContenders"},
	},
	{
		name:   "departure-heard-on-another-connection",
		breaks: "an event is combined with a read from another server, which may not know of that event yet",
		file:   sightFile,
		edits:  change("if s.ByEvent && gen != s.Gen {", "if false {"),
		tests:  []string{"TestLineThatWasHeardIsListedAgainElsewhere"},
	},
	{
		name:   "absence-on-another-connection",
		breaks: "after an event, a node's absence that is read from another server is combined with it",
		file:   "zklock/internal/place/line_ahead.go",
		by:     core,
		edits:  change(`if gen, _ := desk.DS.Conn(); l.seen(gen, true) {`, `if gen, _ := desk.DS.Conn(); true {`),
		tests:  []string{"TestWalkThenReconnectToALaggingServer"},
	},
	{
		name:   "shared-watch-is-presence",
		breaks: "a watch that the next waiter of the same session has armed counts as a read of the waiter's own node",
		file:   "zklock/internal/session/watch.go",
		edits:  change("return w, false, nil", "return w, true, nil"),
		tests:  []string{"TestOwnNodeIsReadThoughAFollowerWatchesIt"},
		by:     core,
	},
	{
		name:   "many-faults-one-by-one",
		breaks: "a group with many failing members is sent again as a whole for each of them",
		file:   commitFile,
		edits:  change("if faults == few && len(group) > 1 {", "if false {"),
		tests:  []string{"TestManyFailuresInAGroupCostAFewTransactionsEach"},
	},
	{
		name:   "pending-writes-after-the-end",
		breaks: "writes that are pending when the session ends call hooks one after the other, and Close waits for them",
		file:   commitFile,
		edits:  change("if c.ctx.Err() != nil { // the session", "if false { // the session"),
		tests:  []string{"TestCloseIsNotHeldUpByPendingWrites"},
		by:     core,
	},
	{
		name:   "waiters-node-unwatched",
		breaks: "a waiter whose node was removed notices it only when its turn would have come",
		file:   frontFile,
		by:     core,
		edits:  change("\t\t\twatchOwn = true\n", ""),
		tests:  []string{"TestWaiterWhoseNodeWasRemovedQueuesAgainAtOnce"},
	},
	{
		name:   "unfired-watch-is-presence",
		breaks: "before a grant a waiter does not read its own node again if its watch on it has not fired",
		file:   "zklock/internal/place/own_nodes.go",
		by:     core,
		edits:  change("if !read[i] {", "if read == nil {"),
		tests:  []string{"TestGrantDoesNotDependOnAnEvent"},
	},
}
