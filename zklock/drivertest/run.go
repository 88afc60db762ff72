package drivertest

import (
	"slices"
	"testing"
	"testing/synctest"
)

// Run runs the suite: each of its tests is a subtest of t, named by a noun and
// a sentence about it, with a harness of its own from newHarness. newHarness
// may return the same ensemble each time, and registers its clean-up with the
// t it is given.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	for _, c := range tests() {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t)
			if h.Parallel() {
				t.Parallel()
			}
			c.run(newEnv(t, h))
		})
	}
}

// RunSynctest is Run with each subtest in a bubble of package testing/synctest
// of its own, where timeouts cost nothing. newHarness is called inside the
// bubble, and so must make an ensemble that lives in this process and takes
// time from package time only; its goroutines must have ended when the clean-up
// registered with the t it is given is done.
func RunSynctest(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	for _, c := range tests() {
		t.Run(c.name, func(t *testing.T) {
			// A skip inside the bubble would pass for a success outside.
			var skipped string
			synctest.Test(t, func(t *testing.T) {
				e := newEnv(t, newHarness(t))
				defer func() { skipped = e.skipped }()
				c.run(e)
			})
			if skipped != "" {
				t.Skip(skipped)
			}
		})
	}
}

// test is one test of the suite.
type test struct {
	// name is "noun/sentence"; unique, since tests are looked up by it.
	name string

	// run fails e unless the sentence holds.
	run func(e *env)
}

// tests returns the whole suite. The quick ones come first, so that a driver
// that is wrong about the basics is told so before it is told about expiry.
func tests() []test {
	return slices.Concat(
		createTests(),
		deleteTests(),
		getTests(),
		setTests(),
		childrenTests(),
		statTests(),
		sequenceTests(),
		multiTests(),
		errorTests(),
		aclTests(),
		watchTests(),
		sessionTests(),
		ephemeralTests(),
		connTests(),
		ctxTests(),
		closeTests(),
		expiryTests(),
		containerTests(),
	)
}
