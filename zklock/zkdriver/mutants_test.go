package zkdriver

import "github.com/zklock/go-zklock/internal/testkit/mutant"

var _ = []mutant.Mutant{
	{
		Name:   "new-session-after-expiry",
		Breaks: "the client's new session takes the place of one that has expired",
		In:     (*session).mayEstablish,
		Find:   "!first && resp.sessionID != s.id",
		Put:    "false",
		Tests:  []string{"TestExpiryIsForEver"},
	},
	{
		Name:   "reconnect-unnoticed",
		Breaks: "a reconnect looks like the same connection",
		In:     (*session).establish,
		Find:   "s.$setLocked(driver.Connected, s.generation+1)",
		Put:    "s.$setLocked(driver.Connected, max(s.generation, 1))",
		Tests:  []string{"TestReconnect"},
	},
	{
		Name:   "timeout-as-asked-for",
		Breaks: "the session timeout is the one asked for, not the one negotiated",
		In:     (*session).establish,
		Find:   "s.timeout = resp.timeout",
		Put:    "",
		Tests:  []string{"TestConnectTakesWhatTheHandshakeSays"},
	},
	{
		Name:   "sent-is-not-sent",
		Breaks: "a request that was sent and not answered counts as never sent",
		In:     (*session).interpret,
		Find:   "if alive { $$body }",
		Put:    "if false { $$body }",
		Tests:  []string{"TestCloseWithRequestsInFlight"},
	},
	{
		Name:   "abandoned-is-not-sent",
		Breaks: "a request that its caller has abandoned counts as never sent",
		In:     run[any],
		Find:   "driver.ErrConnLoss",
		Put:    "driver.ErrNotSent",
		Tests:  []string{"TestContextThatEndsAfterTheSend"},
	},
	{
		Name:   "session-moved-is-definite",
		Breaks: "a request refused because the session has moved counts as answered",
		In:     translate,
		Find:   "name == nil",
		Put:    "name == nil || err == zk.ErrSessionMoved",
		Tests:  []string{"TestErrorsOfServers"},
	},
	{
		Name:   "watches-not-set-again",
		Breaks: "on a new connection no watch is set again",
		In:     (*conn).setWatches,
		Find:   "$left(lists) == 0",
		Put:    "$left(lists) >= 0",
		Tests:  []string{"TestWatchesAreSetBeforeAnythingElse"},
	},
	{
		Name:   "no-watches-after-credentials",
		Breaks: "a session with credentials does not set its watches again on a new connection",
		In:     (*conn).answered,
		Find:   "c.$setWatches(c.session.Timeout())",
		Put:    "nil",
		Tests:  []string{"TestWatchesAreSetBeforeAnythingElse"},
	},
	{
		Name:   "long-reply-to-a-write-is-definite",
		Breaks: "a write with a reply that is too long counts as one that was not applied",
		In:     (*conn).skip,
		Find:   "req.send == nil || req.opcode != opChildren2 && req.opcode != opGetData",
		Put:    "req.send == nil",
		Tests:  []string{"TestRepliesThatAreTooLong"},
	},
}
