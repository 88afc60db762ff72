package memdriver

import "github.com/zklock/go-zklock/internal/testkit/mutant"

var _ = []mutant.Mutant{
	{
		Name:   "server-goes-back-in-time",
		Breaks: "a server that lags takes over a session that has seen more, and shows it an older state",
		In:     (*server).accept,
		Find:   "h.lastZxid > s.$tree.zxid",
		Put:    "false",
		Tests:  []string{"TestConformanceThreeServers"},
	},
	{
		Name:   "waiter-is-shown-an-older-queue",
		Breaks: "a server that lags shows a waiter a queue without the holder, which the waiter has seen, and the waiter is granted the lock",
		In:     (*server).accept,
		Find:   "h.lastZxid > s.$tree.zxid",
		Put:    "false",
		Tests:  []string{"TestWaiterIsShownNothingFromBeforeItsList"},
		By:     "zklock",
	},
	{
		Name:   "holder-is-shown-an-older-ledger",
		Breaks: "a server that lags shows a holder a ledger from before its grant, and a slot runs twice",
		In:     (*server).accept,
		Find:   "h.lastZxid > s.$tree.zxid",
		Put:    "false",
		Tests:  []string{"TestLedgerIsNotReadBeforeTheGrant"},
		By:     "zklock/once",
	},
}
