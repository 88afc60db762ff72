// Package wait has the wait of tests for something that happens on its own.
package wait

import (
	"testing"
	"time"
)

// patience is far longer than what tests wait for takes on a busy machine.
const patience = time.Minute

// Until waits until holds returns true, and ends the test if that takes a minute. what says what
// the test waits for.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
