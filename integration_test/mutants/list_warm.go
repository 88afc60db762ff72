package main

const (
	warmFile  = "zklock/internal/place/warm.go"
	proofFile = "zklock/internal/place/warm_proof.go"
)

// warmMutants prove wrongly that a contender is alone in the queue.
var warmMutants = []mutant{
	{
		name:   "warm-any-suffix",
		breaks: "a contender of a warm name counts as alone whatever its suffix is, so contenders that came in between are ignored",
		file:   proofFile,
		by:     core,
		edits:  change("suffix == before+1", "suffix > 0"),
		tests:  []string{"TestWarmNameWaitsForOthers"},
	},
	{
		name:   "warm-later-suffix",
		breaks: "a contender of a warm name counts as alone if one other contender came in between",
		file:   proofFile,
		by:     core,
		edits:  change("suffix == before+1", "suffix <= before+2"),
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
		name:   "warm-earlier-connection",
		breaks: "a watch that was armed on an earlier connection counts, whose event may be lost",
		file:   warmFile,
		by:     core,
		edits:  change("return w.armed != nil && w.armed.Holds(gen)", "return w.armed != nil && w.armed.Holds(w.armed.Gen)"),
		tests:  []string{"TestWatchOfAnEarlierConnectionProvesNothing"},
	},
	{
		name:   "warm-of-several-names",
		breaks: "what is proven of one name counts for a contender of several names",
		file:   warmFile,
		by:     core,
		edits: []edit{
			{"if len(wants) > 1 {\n\t\treturn nil\n\t}", "_ = wants"},
			{"if len(p.nodes) != 1 || p.doubtful || p.Zxid == 0", "if p.doubtful || p.Zxid == 0"},
		},
		tests: []string{"TestOneNameProvesNothingForSeveral"},
	},
	{
		name:   "warm-checked-before-the-create",
		breaks: "the watch on the parent is checked before the create is sent, and not after its reply",
		file:   warmFile,
		by:     core,
		edits:  change("p.before.watch.holds(gen),", "gen > 0,"),
		tests:  []string{"TestWarmNameWaitsForOthers"},
	},
	{
		name:   "warm-other-parent",
		breaks: "a watch on a parent that is not the one of the contender before counts",
		file:   warmFile,
		by:     core,
		edits:  change("if err == nil && ArmedFor(w.Node.Stat.Czxid, now.czxid) {", "if err == nil {"),
		tests:  []string{"TestWatchOfAnotherParentProvesNothing"},
	},
	{
		name:   "warm-after-others",
		breaks: "a contender that was not alone when it was created proves that the next one is",
		file:   warmFile,
		by:     core,
		edits:  change("p.parentCzxid == 0 || HasOthers(p) || p.doubtful", "p.parentCzxid == 0 || p.doubtful"),
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
		name:   "warm-after-a-failed-delete",
		breaks: "a contender proves something although its delete has failed, so that a Txn under it may still be applied",
		file:   proofFile,
		by:     core,
		edits:  change("p.GoneBy != 0 && p.GoneBy <= p.Zxid", "p.GoneBy <= p.Zxid"),
		tests:  []string{"TestContenderThatMayStayProvesNothing"},
	},
	{
		name:   "warm-before-the-delete",
		breaks: "a contender proves something although its delete came after the next contender's create",
		file:   proofFile,
		by:     core,
		edits:  change("p.GoneBy != 0 && p.GoneBy <= p.Zxid", "p.GoneBy != 0"),
		tests:  []string{"TestDeleteAfterTheCreateProvesNothing"},
	},
	{
		name:   "warm-without-limit",
		breaks: "a session makes names warm without a limit for the number of watches",
		file:   "zklock/internal/session/watch.go",
		by:     core,
		edits:  change("if len(ws.byKey) < limit {\n\t\treturn true", "if len(ws.byKey) >= 0 {\n\t\treturn true"),
		tests:  []string{"TestWarmNamesMakeRoomForOthers"},
	},
	{
		name:   "warm-never-makes-room",
		breaks: "watches that have fired count for ever against the limit of a session",
		file:   "zklock/internal/session/watch.go",
		by:     core,
		edits:  change("ws.refused*often < len(ws.byKey)", "true"),
		tests:  []string{"TestWarmNamesMakeRoomForOthers"},
	},
	{
		name:   "async-try-does-not-wait",
		breaks: "a try does not wait for a release of this client that is still on its way",
		file:   "zklock/internal/place/attempt_try.go",
		by:     core,
		edits:  change("left != nil {", "false && left != nil {"),
		tests:  []string{"TestTryAfterAnAsyncRelease"},
	},
	{
		name:   "async-release-without-owner",
		breaks: "an asynchronous release of which the first delete fails is not repeated",
		file:   "zklock/internal/place/place_remove.go",
		by:     core,
		edits:  change("if finishDelete(p, w) != nil {", "if <-w.Done; w.Err != nil || finishDelete(p, w) != nil {"),
		tests:  []string{"TestAsyncReleaseIsRepeated"},
	},
}
