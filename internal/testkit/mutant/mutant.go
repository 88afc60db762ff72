// Package mutant has the form of a package's list of deliberate bugs of its own, called
// mutants. Each breaks one rule, and a test must find it:
//
//	var _ = []mutant.Mutant{{
//		Name:   "lease-from-reply",
//		Breaks: "the lease counts from when a reply was read, not from when its request was sent",
//		In:     (*Lease).Acknowledged,
//		Find:   "l.$prove(j.sent)",
//		Put:    "l.$prove(j.answered)",
//		Tests:  []string{"TestLeaseNeedsATickBetweenTheTouchAndTheWriteBeforeLast"},
//	}}
//
// The lists stand in files with names that begin with mutants and end with _test.go. The
// command integration_test/mutants reads them there, as source, and tries each mutant.
package mutant

// Mutant is a deliberate bug: a function with one piece of it replaced.
type Mutant struct {
	Name   string
	Breaks string // the wrong behaviour, as a sentence for the table

	// In is the function that the bug is in: a function or a method expression.
	In any

	// Find is an expression or statements in the body of that function. It is compared
	// with the syntax tree, so layout and comments do not count, and has to occur once.
	// In it, $name stands for any expression, or for the name of a function or a field,
	// and $$name for any number of statements or arguments among others. It names no private function:
	// a rename would break it.
	Find string

	// Put replaces what was found. In it, $name stands for what $name has matched in Find.
	Put string

	// With has functions by the wildcards that stand for their names, and nothing else, in
	// Find and Put: "end" for $end.
	With map[string]any

	// And has further replacements that belong to the same bug.
	And []Change

	Tests []string // the tests that are expected to fail
	By    string   // the folder of the package with these tests, below the module's root; "" means this package
}

// Change is a further replacement of a mutant.
type Change struct {
	In        any
	Find, Put string
	With      map[string]any
}
