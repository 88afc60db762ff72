package main

// driverMutants are bugs in zkdriver, the driver for real servers.
var driverMutants = []mutant{
	{
		name:   "new-session-after-expiry",
		breaks: "the client's new session takes the place of one that has expired",
		file:   "zklock/zkdriver/session.go",
		edits:  change(`if !first && resp.sessionID != s.id {`, `if false {`),
		tests:  []string{"TestExpiryIsForEver"},
	},
	{
		name:   "reconnect-unnoticed",
		breaks: "a reconnect looks like the same connection",
		file:   "zklock/zkdriver/session.go",
		edits:  change(`s.setLocked(driver.Connected, s.generation+1)`, `s.setLocked(driver.Connected, max(s.generation, 1))`),
		tests:  []string{"TestReconnect"},
	},
	{
		name:   "timeout-as-asked-for",
		breaks: "the session timeout is the one asked for, not the one negotiated",
		file:   "zklock/zkdriver/session.go",
		edits:  change("s.timeout = resp.timeout\n", ""),
		tests:  []string{"TestConnectTakesWhatTheHandshakeSays"},
	},
	{
		name:   "sent-is-not-sent",
		breaks: "a request that was sent and not answered counts as never sent",
		file:   "zklock/zkdriver/errors.go",
		edits:  change("if alive {\n\t\treturn both(driver.ErrConnLoss, err)", "if false {\n\t\treturn both(driver.ErrConnLoss, err)"),
		tests:  []string{"TestCloseWithRequestsInFlight"},
	},
	{
		name:   "abandoned-is-not-sent",
		breaks: "a request that its caller has abandoned counts as never sent",
		file:   "zklock/zkdriver/request.go",
		edits:  change(`return zero, wrap(c, both(driver.ErrConnLoss, context.Cause(ctx), ctx.Err()))`, `return zero, wrap(c, both(driver.ErrNotSent, context.Cause(ctx), ctx.Err()))`),
		tests:  []string{"TestContextThatEndsAfterTheSend"},
	},
	{
		name:   "session-moved-is-definite",
		breaks: "a request refused because the session has moved counts as answered",
		file:   "zklock/zkdriver/errors.go",
		edits:  change(`if name == nil {`, `if name == nil || err == zk.ErrSessionMoved {`),
		tests:  []string{"TestErrorsOfServers"},
	},
	{
		name:   "watches-not-set-again",
		breaks: "on a new connection no watch is set again",
		file:   "zklock/zkdriver/setwatches.go",
		edits:  change("if left(lists) == 0 {\n\t\treturn nil", "if left(lists) >= 0 {\n\t\treturn nil"),
		tests:  []string{"TestWatchesAreSetBeforeAnythingElse"},
	},
	{
		name:   "watch-of-a-missing-node-in-the-list-of-data",
		breaks: "after a reconnect the watch on a missing node is set again as one on a node that exists",
		file:   "zklock/zkdriver/watch.go",
		edits:  change("a.list = onCreation", "a.list = onData"),
		tests:  []string{"TestEachWatchIsSetAgainInItsList"},
	},
	{
		name:   "change-of-children-ends-no-watch",
		breaks: "an event of a znode's children ends the watches on its data",
		file:   "zklock/zkdriver/watch.go",
		edits:  change("return driver.EventChildren, []watchList{onChildren}", "return driver.EventChildren, []watchList{onData}"),
		tests:  []string{"TestEventsEndTheirWatches"},
	},
	{
		name:   "watches-before-credentials",
		breaks: "on a new connection watches are set before the credentials are presented",
		file:   "zklock/zkdriver/session.go",
		edits:  change("if !s.authenticates {", "if true {"),
		tests:  []string{"TestWatchesAreSetBeforeAnythingElse"},
	},
	{
		name:   "no-watches-after-credentials",
		breaks: "a session with credentials does not set its watches again on a new connection",
		file:   "zklock/zkdriver/conn.go",
		edits:  change("return frame, c.setWatches(c.session.Timeout())", "return frame, nil"),
		tests:  []string{"TestWatchesAreSetBeforeAnythingElse"},
	},
	{
		name:   "channel-for-every-watch",
		breaks: "each watch that is set again after a reconnect takes additional memory",
		file:   "zklock/zkdriver/watch.go",
		edits:  change(`return x.gen != gen })`, `return false })`),
		tests:  []string{"TestWatchesThatAreSetAgainTakeNoMoreMemory"},
	},
}
