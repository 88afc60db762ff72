package election

import "github.com/zklock/go-zklock/internal/testkit/mutant"

var _ = []mutant.Mutant{
	{
		Name:   "election-resigns-while-working",
		Breaks: "a leader resigns when its context ends, while its function still works",
		In:     (*candidate).serve,
		Find:   "defer returned()",
		Put: `defer returned()
defer context.AfterFunc(inner, func() { _ = t.Release(context.WithoutCancel(ctx)) })()`,
		Tests: []string{"TestNoOtherLeadsUntilTheWorkHasEnded", "TestSimulatedElections"},
	},
	{
		Name:   "election-waits-for-the-function-of-stuck",
		Breaks: "no other candidate leads while the function of WithStuck waits, for a log for example",
		In:     (*candidate).serve,
		Find:   "watched = done; defer returned()",
		Put:    "_, _ = &watched, inner; defer done(); defer returned()",
		Tests:  []string{"TestResigningWhileTheFunctionOfWithStuckWaits"},
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
