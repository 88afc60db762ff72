package memdriver

import "github.com/zklock/go-zklock/internal/testkit/mutant"

var _ = []mutant.Mutant{
	{
		Name:   "server-shows-older-states",
		Breaks: "a server that is behind accepts a client that has seen newer states elsewhere",
		In:     (*server).accept,
		Find:   "h.lastZxid > s.tree.zxid",
		Put:    "false",
		Tests:  []string{"TestReadsAreNotOlderThanReplies"},
		By:     "zklock/zkdriver",
	},
}
