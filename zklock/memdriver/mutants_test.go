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
}
