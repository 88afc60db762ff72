package main

import (
	"slices"
	"testing"
	"time"
)

// printed is what a test binary prints with -test.v.
const printed = `=== RUN   TestA
=== RUN   TestA/one
    a_test.go:10: about one
=== PAUSE TestA/one
=== RUN   TestA/two
    a_test.go:11: about two
    a_test.go:12: servers of 3.5 cannot do that
=== NAME  TestA/one
    a_test.go:13: more about one
--- PASS: TestA (0.10s)
    --- PASS: TestA/one (0.05s)
    --- SKIP: TestA/two (0.05s)
=== RUN   TestB
    b_test.go:20: first
    b_test.go:21: second
--- FAIL: TestB (0.00s)
=== RUN   TestC
=== RUN   TestC/sub
    c_test.go:1: broken
--- FAIL: TestC (0.00s)
    --- FAIL: TestC/sub (0.00s)
=== RUN   TestD
panic: test timed out
`

func TestJudgeReadsWhatTestsPrint(t *testing.T) {
	c := judge(printed, []string{"TestA", "TestB", "TestC", "TestD", "TestE"})
	if c.passed != 1 {
		t.Errorf("%d passed, want 1: TestA/one", c.passed)
	}
	if want := []note{{"TestA/two", "servers of 3.5 cannot do that"}}; !slices.Equal(c.skipped, want) {
		t.Errorf("skipped %q, want %q", c.skipped, want)
	}
	want := []note{{"TestB", "first"}, {"TestC/sub", "broken"}, {"TestD", "it did not end"}, {"TestE", "it was not run"}}
	if !slices.Equal(c.failed, want) {
		t.Errorf("failed %q, want %q", c.failed, want)
	}
}

// TestJudgeCountsWhatFailsAfterItsSubtests: a test may fail although its subtests pass.
func TestJudgeCountsWhatFailsAfterItsSubtests(t *testing.T) {
	c := judge("=== RUN   TestA\n=== RUN   TestA/one\n    a_test.go:1: too few\n--- FAIL: TestA (0.1s)\n    --- PASS: TestA/one (0.1s)\n", []string{"TestA"})
	if c.passed != 1 || len(c.failed) != 1 || c.failed[0].test != "TestA" {
		t.Errorf("passed %d, failed %q, want TestA/one to have passed and TestA to have failed", c.passed, c.failed)
	}
}

func TestOutcomes(t *testing.T) {
	n := []note{{"TestA", ""}}
	for want, c := range map[string]cell{
		"ok 3, 2 s":              {passed: 3, took: 2 * time.Second},
		"ok 3, skipped 1, 0 s":   {passed: 3, skipped: n},
		"not run":                {left: true},
		"skipped 1, 0 s":         {skipped: n},
		"FAILED 1 of 5, 61 s":    {passed: 3, skipped: n, failed: n, took: 61 * time.Second},
		"FAILED 1 of 1, 1 s":     {failed: n, took: time.Second},
		"ok 12, skipped 1, 90 s": {passed: 12, skipped: n, took: 90 * time.Second},
	} {
		if got := c.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
