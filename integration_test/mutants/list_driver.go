package main

const driverSession = "zklock/zkdriver/session.go"

// driverMutants are in the driver for real servers.
var driverMutants = []mutant{
	{
		name:   "new-session-after-expiry",
		breaks: "the client's new session takes the place of one that has expired",
		file:   driverSession,
		edits:  change(`if !first && resp.sessionID != s.id {`, `if false {`),
		tests:  []string{"TestExpiryIsForEver"},
	},
	{
		name:   "reconnect-unnoticed",
		breaks: "a reconnect looks like the same connection",
		file:   driverSession,
		edits:  change(`s.setLocked(driver.Connected, s.generation+1)`, `s.setLocked(driver.Connected, max(s.generation, 1))`),
		tests:  []string{"TestReconnect"},
	},
	{
		name:   "timeout-as-asked-for",
		breaks: "the session timeout is the one asked for, not the one negotiated",
		file:   driverSession,
		edits:  change("s.timeout = resp.timeout\n", ""),
		tests:  []string{"TestConnectTakesWhatTheHandshakeSays"},
	},
	{
		name:   "sent-is-not-sent",
		breaks: "a request that was written and not answered counts as never sent",
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
		name:   "watches-set-too-late",
		breaks: "on a new connection other requests go before the watches are set",
		file:   driverSession,
		edits:  change(`s.gate = !watched`, `s.gate = watched || true`),
		tests:  []string{"TestWatchesAreSetBeforeAnythingElse"},
	},
}
