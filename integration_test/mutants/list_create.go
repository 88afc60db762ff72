package main

const (
	enqueueFile = "zklock/enqueue.go"
	placeFile   = "zklock/place.go"
	commitFile  = "zklock/internal/session/commit.go"
)

// createMutants make queue nodes wrongly, or lose them.
var createMutants = []mutant{
	{
		name:   "two-are-alone",
		breaks: "a count of two children passes for nobody else being there",
		file:   enqueueFile,
		edits:  change(`alone = alone && n == 1`, `alone = alone && n <= 2`),
		tests:  []string{"TestExpiryWhileQueuedGoesToTheTail"},
	},
	{
		name:   "set-before-create",
		breaks: "the parent is set before the node is created, so the count leaves the own node out",
		file:   enqueueFile,
		edits: []edit{
			{"w.Ops = append(w.Ops, driver.CreateOp(c.dir+\"/\"+cfg.dialect.Prefix(c.guid, c.kind), data, driver.EphemeralSequential, cfg.acls()))\n\t\tif parents[i].ours {\n\t\t\tw.Ops = append(w.Ops, driver.SetOp(c.dir, parentMark, driver.AnyVersion))\n\t\t}",
				"if parents[i].ours {\n\t\t\tw.Ops = append(w.Ops, driver.SetOp(c.dir, parentMark, driver.AnyVersion))\n\t\t}\n\t\tw.Ops = append(w.Ops, driver.CreateOp(c.dir+\"/\"+cfg.dialect.Prefix(c.guid, c.kind), data, driver.EphemeralSequential, cfg.acls()))"},
			{"children = make([]int32, 0, len(p.nodes))", "children = make([]int32, 0, len(p.nodes))\n\tcount := int32(-1)"},
			{"children = append(children, -1)", "children = append(children, count)\n\t\t\tcount = -1"},
			{"children[len(children)-1] = stat.NumChildren", "count = stat.NumChildren"},
		},
		tests: []string{"TestExpiryWhileQueuedGoesToTheTail"},
	},
	{
		name:   "others-unknown",
		breaks: "nobody is known to wait in another process, so hand-over goes on until its time is over",
		file:   enqueueFile,
		edits:  change(`p.others = !alone`, `p.others = false`),
		tests:  []string{"TestHandoverLimitLetsOthersIn"},
	},
	{
		name:   "max-contenders-one-more",
		breaks: "max_contenders lets one more in",
		file:   enqueueFile,
		edits:  change(`int(children[i]) > limit {`, `int(children[i]) > limit+1 {`),
		tests:  []string{"TestMaxContendersIsExact"},
	},
	{
		name:   "max-contenders-one-less",
		breaks: "max_contenders keeps one too many out",
		file:   enqueueFile,
		edits:  change(`int(children[i]) > limit {`, `int(children[i]) >= limit {`),
		tests:  []string{"TestMaxContendersIsExact"},
	},
	{
		name:   "container-not-made-again",
		breaks: "a parent that the server has removed is not created again",
		file:   enqueueFile,
		edits:  change("for _, w := range r.wants {\n\t\t\ts.parents.forget(w.path)\n\t\t}", ""),
		tests:  []string{"TestParentRemovedByTheServerIsMadeAgain"},
	},
	{
		name:   "parent-overwritten",
		breaks: "data of a parent that somebody else made is written over",
		file:   "zklock/parent.go",
		edits:  change(`found.ours, err = z.claim(ctx)`, `found.ours, err = true, nil`),
		tests:  []string{"TestForeignChildrenAndDataAreLeftAlone"},
	},
	{
		name:   "token-regression-accepted",
		breaks: "an ensemble that was set back grants with tokens smaller than before",
		file:   enqueueFile,
		edits:  change(`if p.zxid <= seen {`, `if false {`),
		tests:  []string{"TestTokensThatRunBackAreRefused"},
	},
	{
		name:   "unknown-is-not-applied",
		breaks: "a create whose reply was lost is taken for not applied, and sent again",
		file:   enqueueFile,
		edits:  change("case errors.Is(err, driver.ErrConnLoss):\n\t\t\tp.doubtful", "case false:\n\t\t\tp.doubtful"),
		tests:  []string{"TestLostCreateIsFoundAgain"},
	},
	{
		name:   "recovery-without-sync",
		breaks: "what became of a lost create is read from a server that may lag",
		file:   recoverFile,
		edits:  change("if err := s.DS.Sync(ctx, c.dir); err != nil {\n\t\t\t\treturn err\n\t\t\t}\n", ""),
		tests:  []string{"TestLostCreateIsFoundAgain"},
	},
	{
		name:   "recovery-adopts-any-session",
		breaks: "recovery takes another session's node for its own",
		file:   recoverFile,
		edits:  change(`if q[j].GUID == c.guid {`, `if q[j].GUID.Serial == c.guid.Serial {`),
		tests:  []string{"TestEveryRequestMayBeLost"},
	},
	{
		name:   "recovery-adopts-the-highest",
		breaks: "of two nodes with one GUID the later one is kept",
		file:   recoverFile,
		edits:  change("node = q[j].Name\n\t\t\t\tbreak", `node = q[j].Name`),
		tests:  []string{"TestOfTwinsTheFirstCounts"},
	},
	{
		name:   "twin-not-deleted",
		breaks: "a node whose create was given up as lost, and was applied late, stays in the queue",
		file:   recoverFile,
		edits:  change(`if c == nil || c.node != "" && c.node != q[i].Name {`, `if false && c == nil {`),
		tests:  []string{"TestEveryRequestMayBeLost"},
	},
	{
		name:   "open-create-deleted",
		breaks: "a list deletes a node whose create is still being answered",
		file:   recoverFile,
		edits:  change(`if c == nil || c.node != "" && c.node != q[i].Name {`, `if c == nil || c.node != q[i].Name {`),
		tests:  []string{"TestOpenCreateIsLeftAlone"},
	},
	{
		name:   "no-sweep",
		breaks: "nobody comes back for a create that is applied after its place was given up",
		file:   placeFile,
		edits:  change(`sweep := there && p.doubtful`, `sweep := false`),
		tests:  []string{"TestEveryRequestMayBeLost"},
	},
	{
		name:   "twin-of-all-in-the-way",
		breaks: "a twin of an All is left ahead of somebody whom the All waits for",
		file:   frontFile,
		edits:  change("if p.doubtful {\n\t\t// A twin", "if false {\n\t\t// A twin"),
		tests:  []string{"TestTwinOfAllOnItsSecondName"},
	},
	{
		name:   "create-abandoned",
		breaks: "a caller that gives up while its create is under way leaves the node behind",
		file:   enqueueFile,
		edits:  change("case <-ctx.Done():\n\t\t\tp.abandon(w)", "case <-ctx.Done():\n\t\t\tp.giveUp()"),
		tests:  []string{"TestCreateCancelledUnderWayLeavesNothing"},
	},
}

// commitMutants group writes wrongly.
var commitMutants = []mutant{
	{
		name:   "two-creates-of-a-name",
		breaks: "two contenders of one name are created by one transaction, with one token",
		file:   commitFile,
		edits:  change(`case w.Creates.Below(creating):`, `case w.Creates.Below(nil):`),
		tests:  []string{"TestGroupHasOneCreateOfANameAndDeletesFirst"},
	},
	{
		name:   "creates-before-deletes",
		breaks: "a create counts nodes that its own transaction removes",
		file:   commitFile,
		edits:  change(`return append(group, creates...)`, `return append(creates, group...)`),
		tests:  []string{"TestGroupHasOneCreateOfANameAndDeletesFirst"},
	},
	{
		name:   "innocent-members-blamed",
		breaks: "one member's failure is every member's, and the others are not sent again",
		file:   commitFile,
		edits:  change(`if known := len(results) == opCount(group); err != nil && known {`, `if known := len(results) < 0; known {`),
		tests:  []string{"TestFailuresInAGroupAreTheirMembersOnly"},
	},
	{
		name:   "innocent-members-sent-one-by-one",
		breaks: "a failure in a group costs every other member a transaction of its own",
		file:   commitFile,
		edits: change("group = slices.Delete(group, guilty, guilty+1)\n",
			"for _, w := range slices.Delete(group, guilty, guilty+1) {\n\t\t\tc.send([]*Write{w})\n\t\t}\n\t\treturn\n"),
		tests: []string{"TestFailuresInAGroupAreTheirMembersOnly"},
	},
	{
		name:   "guilty-member-not-settled",
		breaks: "the member that made a group fail is answered without being settled",
		file:   commitFile,
		edits:  change(`c.answer(group[guilty : guilty+1])`, `close(group[guilty].Done)`),
		tests:  []string{"TestFailuresInAGroupAreTheirMembersOnly"},
	},
	{
		name:   "group-on-a-members-context",
		breaks: "a transaction ends with the context of a caller",
		file:   commitFile,
		edits:  change(`callCtx, cancel := context.WithTimeout(s.Ctx, s.requestTimeout())`, `callCtx, cancel := context.WithTimeout(ctx, s.requestTimeout())`),
		tests:  []string{"TestWritesOutliveTheirCallers"},
		by:     core,
	},
	{
		name:   "groups-by-a-timer",
		breaks: "a write waits a while for others to go with it",
		file:   commitFile,
		edits:  change("c.wg.Go(c.fly)", "c.wg.Go(func() { time.Sleep(time.Millisecond); c.fly() })"),
		tests:  []string{"TestLoneWriteGoesAtOnce"},
	},
	{
		name:   "groups-of-any-size",
		breaks: "a transaction may be larger than a server takes",
		file:   commitFile,
		edits:  change("bytes+size > maxGroupBytes", "false"),
		tests:  []string{"TestGroupHasASize"},
	},
}
