package main

const (
	acquireFile = "zklock/internal/place/attempt.go"
	frontFile   = "zklock/internal/place/attempt_front.go"
	recoverFile = "zklock/internal/place/attempt_recover.go"
	recipeFile  = "zklock/internal/queue/recipe.go"
)

// queueMutants read the queue wrongly.
var queueMutants = []mutant{
	{
		name:   "whole-name-order",
		breaks: "contenders are ordered by their whole names, GUID first, not by the number at the end",
		file:   "zklock/internal/queue/node.go",
		edits:  change(`return int(a.Seq - b.Seq)`, `return strings.Compare(a.Name, b.Name)`),
		tests:  []string{"TestGrantsComeInTheOrderOfTheQueue"},
		by:     core,
	},
	{
		name:   "sequence-end-accepted",
		breaks: "sequence numbers at the end of their range, which repeat, are taken for an order",
		file:   enqueueFile,
		by:     core,
		edits:  change(`if q.Seq >= queue.MaxSequence {`, `if q.Seq < 0 {`),
		tests:  []string{"TestSequenceEndIsRefused"},
	},
	{
		name:   "kinds-side-by-side",
		breaks: "a semaphore and a mutex of one name hold side by side",
		file:   recipeFile,
		edits:  change(`if q[i].Kind.Permits != q[self].Kind.Permits {`, `if false {`),
		tests:  []string{"TestKindsThatDoNotKnowEachOtherConflict"},
	},
	{
		name:   "foreign-recipe-ignored",
		breaks: "a contender of a recipe that does not see ours is not in the way",
		file:   "zklock/internal/place/znode_list.go",
		by:     core,
		edits:  change(`if err == nil && foreign != nil {`, `if false {`),
		tests:  []string{"TestForeignChildrenAndDataAreLeftAlone"},
	},
	{
		name:   "writer-beside-readers",
		breaks: "a writer does not wait for readers ahead",
		file:   recipeFile,
		edits:  change(`if q[self].Kind.Mode == Exclusive || q[i].Kind.Mode == Exclusive {`, `if q[i].Kind.Mode == Exclusive {`),
		tests:  []string{"TestDecideAgreesWithBruteForce"},
	},
	{
		name:   "readers-wait-for-readers",
		breaks: "a reader waits for readers ahead",
		file:   recipeFile,
		edits:  change(`if q[self].Kind.Mode == Exclusive || q[i].Kind.Mode == Exclusive {`, `if true {`),
		tests:  []string{"TestDecideAgreesWithBruteForce"},
	},
	{
		name:   "one-permit-too-many",
		breaks: "n permits are held by n+1",
		file:   recipeFile,
		edits:  change(`case self < n:`, `case self <= n:`),
		tests:  []string{"TestPermitsAreHandedOnWhoeverLeaves"},
	},
	{
		name:   "permits-watch-one",
		breaks: "the first in line for a permit watches one holder instead of all",
		file:   recipeFile,
		edits:  change(`case self > n:`, `case self >= n:`),
		tests:  []string{"TestPermitsAreHandedOnWhoeverLeaves"},
	},
	{
		name:   "permit-mark-not-written",
		breaks: "who is granted a permit does not wake the one behind, now the first in line",
		file:   acquireFile,
		by:     core,
		edits:  change(`if r.Mode == queue.Permit && p.own != nil {`, `if false {`),
		tests:  []string{"TestPermitMarkedBeforeItIsWatched"},
	},
	{
		name:   "permit-mark-not-read",
		breaks: "a mark that was written before the watch goes unnoticed",
		file:   "zklock/internal/place/line_ahead.go",
		by:     core,
		edits:  change(`if permits > 0 && len(l.q)-1 > permits && d.Granted {`, `if false {`),
		tests:  []string{"TestPermitMarkedBeforeItIsWatched"},
	},
}

// frontMutants wait wrongly.
var frontMutants = []mutant{
	{
		name:   "own-node-unchecked",
		breaks: "after the wait nobody looks whether the own node is still there",
		file:   acquireFile,
		by:     core,
		edits:  change(`if seen, err := mine.see(ctx); err != nil || seen == gen && gen != 0 {`, `if _ = mine; gen|1 != 0 {`),
		tests:  []string{"TestOwnNodeDeletedBeforePredecessorLeaves"},
	},
	{
		name:   "own-node-of-anybody",
		breaks: "a node with the own node's name is taken for it, whoever owns it",
		file:   "zklock/internal/place/own_nodes.go",
		by:     core,
		edits:  change(`if own[i].Node.Stat.EphemeralOwner != s.DS.ID() {`, `if false {`),
		tests:  []string{"TestNodePutInPlaceOfOursIsNotOurs"},
	},
	{
		name:   "own-node-on-another-connection",
		breaks: "the predecessor's absence is seen on one connection, the own node's presence on another",
		file:   acquireFile,
		by:     core,
		edits:  change(`seen == gen && gen != 0 {`, `seen|gen|1 != 0 {`),
		tests:  []string{"TestGrantIsSeenOnOneConnection"},
	},
	{
		name:   "watch-between-connections",
		breaks: "a read that waited for a new connection counts for the one before",
		file:   "zklock/internal/session/watch.go",
		edits:  change(`before = 0`, `before += 0`),
		tests:  []string{"TestGrantIsSeenOnOneConnection"},
		by:     core,
	},
	{
		// Not finding oneself in the list is not enough: the look at the own node
		// would notice as well.
		name:   "own-node-missing",
		breaks: "whose own node has gone counts as the first, in the list and in the look at the node",
		file:   "zklock/internal/place/own_nodes.go",
		by:     core,
		edits: []edit{
			{"return q[:i+1], nil\n\t}\n\treturn nil, errs.ErrNodeGone", "return q[:i+1], nil\n\t}\n\treturn []queue.Node{{Name: c.node, Kind: c.kind}}, nil"},
			{"own, read, err := p.watch(ctx)\n\tif err != nil {", "own, read, err := p.watch(ctx)\n\tif err == errs.ErrNodeGone {\n\t\tp.own = nil\n\t\tgen, _ = p.Desk.DS.Conn()\n\t\treturn gen, nil\n\t} else if err != nil {"},
		},
		tests: []string{"TestBrokenWaitersQueueAgain", "TestOwnNodeDeletedBeforePredecessorLeaves"},
	},
	{
		name:   "watch-by-exists",
		breaks: "a watch on a node that is gone already waits for it to come back",
		file:   "zklock/internal/place/line_ahead.go",
		by:     core,
		edits: change("if errors.Is(err, driver.ErrNoNode) {\n\t\t\t// A newer",
			"if errors.Is(err, driver.ErrNoNode) {\n\t\t\t<-ctx.Done()\n\t\t\treturn nil, s.waitError(ctx)\n\t\t\t// A newer"),
		tests: []string{"TestPredecessorGoneBetweenListAndWatch"},
	},
	{
		name:   "predecessor-gone-is-granted",
		breaks: "when the one ahead has left, nobody looks at the rest of the queue",
		file:   frontFile,
		by:     core,
		edits:  change("case what == aheadGone:\n", "case what == aheadGone:\n\t\t\treturn ahead[0].Gen, nil\n"),
		tests:  []string{"TestMiddleWaiterGivesUp"},
	},
	{
		name:   "any-event-is-a-departure",
		breaks: "a change of the watched node counts as its deletion",
		file:   "zklock/internal/place/desk_change.go",
		by:     core,
		edits:  change(`e.Err == nil && e.Type == driver.EventDeleted && now == fired.Gen {`, `e.Err == nil && now == fired.Gen {`),
		tests:  []string{"TestDowngradeLetsNoWriterIn"},
	},
	{
		name:   "watches-not-armed-anew",
		breaks: "after a reconnect nobody reads again what is watched",
		file:   "zklock/internal/place/desk_change.go",
		by:     core,
		edits:  change(`survived := gen > armed`, `survived := false && gen > armed`),
		tests:  []string{"TestWaitSurvivesAWatchLostInAReconnect"},
	},
	{
		name:   "watches-not-shared",
		breaks: "each of many who wait for one node reads it and has a watch of its own",
		file:   "zklock/internal/session/watch.go",
		edits:  change("if w == nil || w.stale(gen) {", "if true {"),
		tests:  []string{"TestWaitersOfASessionShareAWatch"},
		by:     core,
	},
	{
		name:   "downgraded-writer-blocks",
		breaks: "readers wait for a writer that was downgraded",
		file:   "zklock/internal/queue/data.go",
		edits:  change(`if k.Mode == Exclusive && d.Mode == Shared.String() {`, `if false {`),
		tests:  []string{"TestNodeDataBound"},
		by:     core,
	},
	{
		name:   "try-waits",
		breaks: "a try that was beaten to it waits",
		file:   frontFile,
		by:     core,
		edits:  change(`if r.Try { // beaten`, "if false { // beaten"),
		tests:  []string{"TestTryThatIsBeatenDoesNotWait"},
	},
	{
		name:   "try-writes",
		breaks: "a try queues without looking who is there",
		file:   acquireFile,
		by:     core,
		edits:  change("if r.Try {\n\t\t\tif err := a.blocked", "if false {\n\t\t\tif err := a.blocked"),
		tests:  []string{"TestTriesDoNotWrite"},
	},
	{
		name:   "try-without-sync",
		breaks: "a try does not catch up with what this client released on another session",
		file:   "zklock/internal/place/attempt_try.go",
		by:     core,
		edits:  change(`id != 0 && id != s.DS.ID() {`, `id == 0 && id == s.DS.ID() {`),
		tests:  []string{"TestTrySeesAReleaseOnAnotherSession"},
	},
}
