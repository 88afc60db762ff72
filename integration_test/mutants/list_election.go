package main

const (
	electionFile = "zklock/election/election.go"
	runFile      = "zklock/election/run.go"
	observeFile  = "zklock/election/observe.go"
	termFile     = "zklock/election/term.go"
)

// electionMutants are the bugs that other libraries' elections had.
var electionMutants = []mutant{
	{
		name:   "election-resigns-while-working",
		breaks: "a leader resigns when its context ends, while its function still works",
		file:   runFile,
		edits: change("	defer e.watchStuck(inner, t)()\n",
			"	defer e.watchStuck(inner, t)()\n	defer context.AfterFunc(inner, func() { _ = t.Release(context.WithoutCancel(ctx)) })()\n"),
		tests: []string{"TestNoOtherLeadsUntilTheWorkHasEnded", "TestSimulatedElections"},
	},
	{
		name:   "election-ends-by-a-loss",
		breaks: "a lost term ends the candidacy",
		file:   runFile,
		edits:  change("case errors.Is(lost, zklock.ErrClosed):", "case errors.Is(lost, zklock.ErrLost):"),
		tests:  []string{"TestALostTermDoesNotEndTheCandidacy"},
	},
	{
		name:   "election-hands-over",
		breaks: "a place is handed over inside the process: two terms have one node",
		file:   electionFile,
		edits:  change("{zklock.WithoutHandover(), zklock.WithLabel(e.value)}", "{zklock.WithLabel(e.value)}"),
		tests:  []string{"TestEachTermHasATokenOfItsOwn", "TestAThousandCandidates"},
	},
	{
		name:   "election-observers-miss-none",
		breaks: "observers do not learn that no candidate leads",
		file:   observeFile,
		edits: change("	o.reported, o.last = true, now\n	switch {\n	case !leads:\n",
			"	o.reported, o.last = true, now\n	switch {\n	case !leads && o.newest != (zklock.Token{}):\n		return now, false, nil\n	case !leads:\n"),
		tests: []string{"TestObserversLearnThatThereIsNoLeader"},
	},
	{
		name:   "election-forgets-a-resignation",
		breaks: "a resignation that is repeated does not wait for the confirmation",
		file:   termFile,
		edits:  change("	return t.awaitGone(ctx)\n", "	return nil\n"),
		tests:  []string{"TestAFailedResignationIsNotForgotten"},
	},
	{
		name:   "election-hot-loop",
		breaks: "a leader that returns at once is elected again at once",
		file:   runFile,
		edits:  change("rest(ctx, e.client, b.next(short))", "rest(ctx, e.client, b.next(short)/1000)"),
		tests:  []string{"TestALeaderThatReturnsAtOnceRestsLonger"},
	},
	{
		name:   "election-stopped-leads",
		breaks: "a process that was stopped between its grant and the call of its function leads when it goes on",
		file:   runFile,
		edits:  change("if inner.Err() != nil || !t.Valid() {", "if inner.Err() != nil {"),
		tests:  []string{"TestALeaderThatWasStoppedBeforeItsTermDoesNotLead"},
	},
	{
		name:   "election-value-cut",
		breaks: "the value of a leader is cut if the name of its host needs many bytes in JSON",
		file:   "zklock/internal/queue/data.go",
		by:     "zklock/internal/queue",
		edits:  change("if escaped(d.Label) > MaxLabel {", "if len(d.Label) > 0 {"),
		tests:  []string{"TestLabelIsNotCutForOtherTexts"},
	},
}
