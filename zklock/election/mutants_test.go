package election

import "github.com/zklock/go-zklock/internal/testkit/mutant"

var _ = []mutant.Mutant{
	{
		Name:   "election-resigns-while-working",
		Breaks: "a leader resigns when its context ends, while its function still works",
		In:     (*candidate).serve,
		Find:   "defer c.$watchStuck(inner, t)()",
		Put: `defer c.$watchStuck(inner, t)()
defer context.AfterFunc(inner, func() { _ = t.Release(context.WithoutCancel(ctx)) })()`,
		Tests: []string{"TestNoOtherLeadsUntilTheWorkHasEnded", "TestSimulatedElections"},
	},
	{
		Name:   "election-hands-over",
		Breaks: "a place is handed over inside the process: two terms have one node",
		In:     (*Election).Campaign,
		Find:   "[]zklock.AcquireOption{zklock.WithCandidacy(), zklock.WithLabel(e.value), zklock.WithMaxHold(e.maxHold)}",
		Put:    "[]zklock.AcquireOption{zklock.WithLabel(e.value)}",
		Tests:  []string{"TestEachTermHasATokenOfItsOwn", "TestAThousandCandidates"},
	},
	{
		Name:   "election-forgets-a-resignation",
		Breaks: "a resignation that is repeated does not wait for the confirmation",
		In:     (*Term).Resign,
		Find:   "return t.$awaitGone(ctx)",
		Put:    "return nil",
		Tests:  []string{"TestAFailedResignationIsNotForgotten"},
	},
	{
		Name:   "election-stopped-leads",
		Breaks: "a process that was stopped between its grant and the call of its function leads when it goes on",
		In:     (*candidate).serve,
		Find:   "inner.Err() != nil || !t.Valid()",
		Put:    "inner.Err() != nil",
		Tests:  []string{"TestALeaderThatWasStoppedBeforeItsTermDoesNotLead"},
	},
	{
		Name:   "election-ends-with-a-passing-conflict",
		Breaks: "an ephemeral znode of another program ends a candidacy for good",
		In:     isFinal,
		Find:   "errors.Is(err, driver.ErrNoChildrenForEphemerals)",
		Put:    "false",
		Tests:  []string{"TestRunGoesOnAfterAnEphemeralRoot"},
	},
}
