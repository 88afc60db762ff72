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
		breaks: "contenders are ordered by their whole names, which begin with the GUID, not by the sequence number at the end",
		file:   "zklock/internal/queue/node.go",
		edits:  change(`return int(a.Seq - b.Seq)`, `return strings.Compare(a.Name, b.Name)`),
		tests:  []string{"TestGrantsComeInTheOrderOfTheQueue"},
		by:     core,
	},
	{
		name:   "sequence-end-accepted",
		breaks: "sequence numbers at the end of their range, which repeat, are accepted as an order",
		file:   enqueueFile,
		by:     core,
		edits:  change(`if last >= queue.MaxSequence {`, `if last < 0 {`),
		tests:  []string{"TestSequenceEndIsRefused"},
	},
	{
		name:   "kinds-side-by-side",
		breaks: "a semaphore and a mutex of one name are held at the same time",
		file:   recipeFile,
		edits:  change(`if q[i].Kind.Permits != q[self].Kind.Permits {`, `if false {`),
		tests:  []string{"TestKindsThatDoNotKnowEachOtherConflict"},
	},
	{
		name:   "foreign-recipe-ignored",
		breaks: "a contender of a foreign recipe, which does not see this library's nodes, is ignored",
		file:   "zklock/internal/place/znode_list.go",
		by:     core,
		edits:  change(`if err == nil && foreign != nil {`, `if false {`),
		tests:  []string{"TestForeignChildrenAndDataAreLeftAlone"},
	},
	{
		name:   "writer-ignores-readers",
		breaks: "a writer does not wait for readers ahead of it",
		file:   recipeFile,
		edits:  change(`if q[self].Kind.Mode == Exclusive || q[i].Kind.Mode == Exclusive {`, `if q[i].Kind.Mode == Exclusive {`),
		tests:  []string{"TestDecideAgreesWithBruteForce"},
	},
	{
		name:   "readers-wait-for-readers",
		breaks: "a reader waits for readers ahead of it",
		file:   recipeFile,
		edits:  change(`if q[self].Kind.Mode == Exclusive || q[i].Kind.Mode == Exclusive {`, `if true {`),
		tests:  []string{"TestDecideAgreesWithBruteForce"},
	},
	{
		name:   "one-permit-too-many",
		breaks: "n permits are held by n+1 holders",
		file:   recipeFile,
		edits:  change(`case self < n:`, `case self <= n:`),
		tests:  []string{"TestPermitsAreHandedOnWhicheverHolderLeaves"},
	},
	{
		name:   "permits-watch-one",
		breaks: "the first waiter for a permit watches one holder instead of all",
		file:   recipeFile,
		edits:  change(`case self > n:`, `case self >= n:`),
		tests:  []string{"TestPermitsAreHandedOnWhicheverHolderLeaves"},
	},
	{
		name:   "permit-mark-not-written",
		breaks: "a waiter that is granted a permit does not wake the next waiter, which is now the first in line",
		file:   acquireFile,
		by:     core,
		edits:  change(`if r.Mode == queue.Permit && p.nodeWatches != nil {`, `if false {`),
		tests:  []string{"TestPermitMarkedBeforeItIsWatched"},
	},
	{
		name:   "permit-mark-not-read",
		breaks: "a mark that was written before the watch was set goes unnoticed",
		file:   "zklock/internal/place/line_ahead.go",
		by:     core,
		edits:  change(`if permits > 0 && l.ahead > permits && d.Granted {`, `if false {`),
		tests:  []string{"TestPermitMarkedBeforeItIsWatched"},
	},
}

// frontMutants wait for their turn wrongly, or queue wrongly for a try.
var frontMutants = []mutant{
	{
		name:   "own-node-unchecked",
		breaks: "after the wait the waiter does not check whether its own node still exists",
		file:   acquireFile,
		by:     core,
		edits:  change(`if seen, err = mine.see(ctx); err != nil {`, `if _ = mine; err != nil {`),
		tests:  []string{"TestOwnNodeDeletedBeforePredecessorLeaves"},
	},
	{
		name:   "own-node-of-any-session",
		breaks: "a node with the name of the waiter's node counts as the waiter's, whichever session owns it",
		file:   "zklock/internal/place/own_nodes.go",
		by:     core,
		edits:  change(`if own[i].Node.Stat.EphemeralOwner != desk.DS.ID() {`, `if false {`),
		tests:  []string{"TestNodePutInPlaceOfOursIsNotOurs"},
	},
	{
		name:   "own-node-on-another-connection",
		breaks: "the predecessor's absence is read on one connection, and the presence of the waiter's own node on another",
		file:   acquireFile,
		by:     core,
		edits: []edit{
			{`for seen := gen; seen == gen && gen != 0; {`, `for seen := gen; seen|1 != 0; {`},
			{`if seen == gen && isLeased(p) {`, `if isLeased(p) {`},
		},
		tests: []string{"TestGrantIsSeenOnOneConnection"},
	},
	{
		name:   "watch-between-connections",
		breaks: "a read that waited for a new connection counts as one on the connection before",
		file:   "zklock/internal/session/watch.go",
		edits:  change(`before = 0`, `before += 0`),
		tests:  []string{"TestGrantIsSeenOnOneConnection"},
		by:     core,
	},
	{
		// To ignore the missing node in the list only would not be enough: the read of
		// the own node would notice it, too.
		name:   "own-node-missing",
		breaks: "a waiter whose own node is gone counts as the first in line, in the list and in the read of its own node",
		file:   "zklock/internal/place/own_nodes.go",
		by:     core,
		edits: []edit{
			{"return q[:i+1], nil\n\t}\n\treturn nil, errs.ErrNodeGone", "return q[:i+1], nil\n\t}\n\treturn []queue.Node{{Name: c.node(), Kind: c.kind}}, nil"},
			{"own, read, err := o.watch(ctx)\n\tif err != nil {", "own, read, err := o.watch(ctx)\n\tif err == errs.ErrNodeGone {\n\t\to.place.nodeWatches = nil\n\t\tgen, _ = o.place.Desk.DS.Conn()\n\t\treturn gen, nil\n\t} else if err != nil {"},
		},
		tests: []string{"TestBrokenWaitersQueueAgain", "TestOwnNodeDeletedBeforePredecessorLeaves"},
	},
	{
		name:   "watch-by-exists",
		breaks: "a waiter that wants to watch a node which is gone already waits instead of going on",
		file:   "zklock/internal/place/line_ahead.go",
		by:     core,
		edits: change("if errors.Is(err, driver.ErrNoNode) {\n\t\t\t// A newer",
			"if errors.Is(err, driver.ErrNoNode) {\n\t\t\t<-ctx.Done()\n\t\t\treturn nil, desk.waitError(ctx)\n\t\t\t// A newer"),
		tests: []string{"TestPredecessorGoneBetweenListAndWatch"},
	},
	{
		name:   "predecessor-gone-is-granted",
		breaks: "when the contender directly ahead has left, the waiter does not look at the rest of the queue",
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
		name:   "watches-not-armed-again",
		breaks: "after a reconnect waiters do not read their watched nodes again",
		file:   "zklock/internal/place/desk_change.go",
		by:     core,
		edits:  change(`survived := gen > armed`, `survived := false && gen > armed`),
		tests:  []string{"TestWaitSurvivesAWatchLostInAReconnect"},
	},
	{
		name:   "watches-not-shared",
		breaks: "each of many waiters for one node reads it and sets a separate watch",
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
		breaks: "a TryAcquire that another contender has overtaken waits",
		file:   frontFile,
		by:     core,
		edits:  change(`; !held && r.Try && !a.recalls {`, "; r == nil {"),
		tests:  []string{"TestTryThatIsBeatenDoesNotWait"},
	},
	{
		name:   "try-writes",
		breaks: "a TryAcquire queues without checking first whether the lock is held",
		file:   acquireFile,
		by:     core,
		edits:  change("if r.Try {\n\t\t\ta.recalls, err = a.blocked", "if false {\n\t\t\ta.recalls, err = a.blocked"),
		tests:  []string{"TestTriesDoNotWrite"},
	},
	{
		name:   "try-without-sync",
		breaks: "a TryAcquire does not wait until its server knows what this client has released on another session",
		file:   "zklock/internal/place/attempt_try.go",
		by:     core,
		edits:  change(`id != 0 && id != desk.DS.ID() {`, `id == 0 && id == desk.DS.ID() {`),
		tests:  []string{"TestTrySeesAReleaseOnAnotherSession"},
	},
}
