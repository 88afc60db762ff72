package main

const warmFile = "zklock/internal/place/warm.go"

// warmMutants prove wrongly that a contender is alone in the queue.
var warmMutants = []mutant{
	{
		name:   "warm-any-suffix",
		breaks: "a contender of a warm name counts as alone whatever its suffix is, so contenders that came in between are ignored",
		file:   warmFile,
		by:     core,
		edits:  change("n.Seq == p.before.suffix+1", "n.Seq > 0"),
		tests:  []string{"TestWarmNameWaitsForOthers"},
	},
	{
		name:   "warm-later-suffix",
		breaks: "a contender of a warm name counts as alone if one other contender came in between",
		file:   warmFile,
		by:     core,
		edits:  change("n.Seq == p.before.suffix+1", "n.Seq <= p.before.suffix+2"),
		tests:  []string{"TestWarmNameWaitsForOthers"},
	},
	{
		name:   "warm-without-watch",
		breaks: "the proof does not ask whether the parent is still the same node",
		file:   warmFile,
		by:     core,
		edits:  change("return w.armed != nil && w.armed.Holds(gen)", "return w.armed != nil"),
		tests:  []string{"TestWarmNameWaitsForOthers"},
	},
	{
		name:   "warm-checked-before-the-create",
		breaks: "the watch on the parent is checked before the create is sent, and not after its reply",
		file:   warmFile,
		by:     core,
		edits:  change("\t\tgen, _ := p.Desk.DS.Conn()\n\t\treturn p.before.watch.holds(gen)", "\t\treturn true"),
		tests:  []string{"TestWarmNameWaitsForOthers"},
	},
	{
		name:   "warm-other-parent",
		breaks: "a watch on a parent that is not the one of the contender before counts",
		file:   warmFile,
		by:     core,
		edits:  change("if err == nil && w.Node.Stat.Czxid == now.czxid {", "if err == nil {"),
		tests:  []string{"TestWatchOfAnotherParentProvesNothing"},
	},
	{
		name:   "warm-after-others",
		breaks: "a contender that was not alone when it was created proves that the next one is",
		file:   warmFile,
		by:     core,
		edits:  change("p.parentCzxid == 0 || p.Others || p.doubtful", "p.parentCzxid == 0 || p.doubtful"),
		tests:  []string{"TestContenderThatWasNotAloneProvesNothing"},
	},
	{
		name:   "warm-across-sessions",
		breaks: "what a contender of one session proves is used by the next session, which has not seen that it is gone",
		file:   warmFile,
		by:     core,
		edits:  change("taken != nil && taken.session != session", "false"),
		tests:  []string{"TestWarmthEndsWithItsSession"},
	},
	{
		name:   "warm-before-the-delete-is-confirmed",
		breaks: "a contender proves something before the ensemble has confirmed that it is gone, although a Txn under it may still be applied",
		file:   "zklock/internal/place/place_remove.go",
		by:     core,
		edits:  change("\tdesk.Commits.Submit(w)\n\tlimit", "\tdesk.Commits.Submit(w)\n\tkeepWarm(p)\n\tlimit"),
		tests:  []string{"TestContenderThatMayStayProvesNothing"},
	},
}
