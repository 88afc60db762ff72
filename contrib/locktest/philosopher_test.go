package locktest_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest"
	"github.com/zklock/go-zklock/contrib/locktest/judge"
)

// TestPhilosophers: the judge sees what a library does with circles of waits. The toy without a bug lets them last.
func TestPhilosophers(t *testing.T) {
	t.Parallel()
	for bug, figure := range map[string]func(judge.Deadlocks) int{
		"":             func(d judge.Deadlocks) int { return d.GivenUp },
		findsDeadlocks: func(d judge.Deadlocks) int { return d.Broken },
		failsAll:       func(d judge.Deadlocks) int { return d.Several },
		failsOthers:    func(d judge.Deadlocks) int { return d.False },
	} {
		t.Run(cmp.Or(bug, "no bug"), func(t *testing.T) {
			t.Parallel()
			c := toy(t, bug, long)
			c.GiveUp = time.Minute
			if bug == "" { // a process is killed for each circle, and its locks are free after the TTL
				c = toy(t, bug, short)
				c.GiveUp, c.Grants = short, 20
			}
			c.Philosophers, c.Clients = true, 1
			c.Names = []string{"a", "b"} // so that most meals end in a circle, at any speed of the machine
			f, events := judged(t, c)
			d := judge.MeasureDeadlocks(events)
			t.Log("\n" + d.Table("toy"))
			if figure(d) == 0 || d.Meals == 0 || d.Passed() != (bug == findsDeadlocks) || !f.Passed() {
				t.Errorf("%+v, passed: %v", d, d.Passed())
			}
		})
	}
	c := toy(t, "", long)
	c.Philosophers, c.Names = true, []string{"a"}
	if _, err := locktest.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "two names") {
		t.Errorf("with one name: %v", err)
	}
}
