package drivertest

import (
	"slices"
	"testing"
	"testing/synctest"
)

// Run runs the suite. Each of its tests is a subtest of t, whose name is a noun and a
// sentence about it. Run calls newHarness once for each subtest, with the subtest's t;
// newHarness registers its clean-up there, and may return the same ensemble each time.
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

// RunSynctest runs the suite as Run does, with each subtest in a bubble of its own of package
// testing/synctest, where waiting takes no wall time. It calls newHarness inside the bubble.
// So newHarness must make an ensemble that lives in this process and takes the time from
// package time only. The ensemble's goroutines must have ended when the clean-up that
// newHarness has registered with its t is done.
func RunSynctest(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	for _, c := range tests() {
		t.Run(c.name, func(t *testing.T) {
			// Without this, a skip inside the bubble would be a success outside.
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
	// name is "noun/sentence". It is unique, since tests are looked up by it.
	name string

	// run fails e if the sentence in name is not true of the driver.
	run func(e *env)
}

// tests returns the whole suite. The quick tests come first, so that the author of a driver
// sees basic errors before errors about expiry.
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
		multiContainerTests(),
		errorTests(),
		aclTests(),
		watchTests(),
		watchChildrenTests(),
		watchExistsTests(),
		sessionTests(),
		ephemeralTests(),
		connTests(),
		ctxTests(),
		closeTests(),
		credentialsTests(),
		expiryTests(),
		containerTests(),
	)
}
