package main

// models is the package with the models of the protocol, which call the rules that these
// mutants break.
const models = "zklock/internal/model"

// modelMutants break pure rules. The checked model has to find each of them.
var modelMutants = []mutant{
	{
		name:   "model-lease-without-a-tick",
		breaks: "the lease counts from an exchange that was not answered a tick before",
		file:   leaseFile,
		by:     models,
		edits:  change("p.sent.Add(-l.Tick)", "p.sent"),
		tests:  []string{"TestLeaseOutlivesNoSession"},
	},
	{
		name:   "model-lease-by-syncs",
		breaks: "an exchange that no quorum has committed extends the lease",
		file:   leaseFile,
		by:     models,
		edits:  change("	if committed {\n", "	if committed || l.Timeout > 0 {\n"),
		tests:  []string{"TestLeaseOutlivesNoSession"},
	},
	{
		name:   "model-watch-the-first",
		breaks: "an exclusive contender watches the first in the queue, and not the one just ahead",
		file:   recipeFile,
		by:     models,
		edits:  change("			return false, []int{i}\n", "			return false, []int{i * 0}\n"),
		tests:  []string{"TestQueueExcludesAndLosesNoWakeUp"},
	},
	{
		name:   "model-events-count-anywhere",
		breaks: "an event counts together with a read from another server",
		file:   sightFile,
		by:     models,
		edits:  change("if s.ByEvent && gen != s.Gen {", "if s.ByEvent && gen > s.Gen+9 {"),
		tests:  []string{"TestQueueExcludesAndLosesNoWakeUp"},
	},
	{
		name:   "model-place-in-doubt",
		breaks: "a place under which a Txn may still be applied is handed over",
		file:   standingFile,
		by:     models,
		edits:  change(`== queue.Shared) && !s.Doubtful && !s.Revoked`, `== queue.Shared) && !s.Revoked`),
		tests:  []string{"TestPlacesAreHandedOverAndKept"},
	},
	{
		name:   "model-recalled-place-is-kept",
		breaks: "a place for which another contender waits is kept",
		file:   standingFile,
		by:     models,
		edits:  change("s.Keepable && !s.Others && !s.Doubtful", "s.Keepable && !s.Doubtful"),
		tests:  []string{"TestPlacesAreHandedOverAndKept"},
	},
	{
		name:   "model-revoked-place-is-joined",
		breaks: "further readers join the hold of a revoked place",
		file:   standingFile,
		by:     models,
		edits:  change("return !s.Revoked && (s.IsOpen()", "return (s.IsOpen()"),
		tests:  []string{"TestPlacesAreHandedOverAndKept"},
	},
	{
		name:   "model-kept-reader-for-a-writer",
		breaks: "a kept reader's place is taken up by a writer",
		file:   standingFile,
		by:     models,
		edits:  change("s.IsOpen() && s.Grants(mode) }", "s.IsOpen() }"),
		tests:  []string{"TestPlacesAreHandedOverAndKept"},
	},
}
