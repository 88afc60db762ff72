package locktest_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest"
	"github.com/zklock/go-zklock/contrib/locktest/fault"
	"github.com/zklock/go-zklock/contrib/locktest/history"
	"github.com/zklock/go-zklock/contrib/locktest/judge"
)

// TestKilledHoldersHaveSuccessors: each kill is measured. The next holder was started before the kill, or after it. The
// processes of a name run two commands in turn.
func TestKilledHoldersHaveSuccessors(t *testing.T) {
	t.Parallel()
	for what, restart := range map[string]bool{"another process waits": false, "the process is started again": true} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := toy(t, "", 2*time.Second)
			c.Kills, c.Restart, c.Beat, c.Names = 3, restart, time.Millisecond, []string{"a", "b"}
			c.Others = [][]string{{os.Args[0], "second"}}
			f, events := judged(t, c)
			if times := judge.Successions(events); !f.Passed() || len(times) != c.Kills {
				t.Errorf("passed: %v; %v, want %d times", f.Passed(), times, c.Kills)
			}
			var kinds []string
			started, kills := make(map[int]int), 0
			for i, e := range events {
				switch {
				case e.Kind == history.Start:
					started[e.Worker] = i
					kinds = append(kinds, strings.TrimPrefix(e.Reason, os.Args[0]))
				case e.Reason == history.HolderKilled:
					kills++
					holds := judge.Holds(events[:i])
					at := slices.IndexFunc(holds, func(h judge.Hold) bool { return h.Worker == e.Worker })
					next := slices.IndexFunc(events[i:], func(n history.Event) bool { return n.Kind == history.Granted && n.Name == holds[at].Name })
					if first, known := started[events[i+next].Worker]; known == restart {
						t.Errorf("the next holder of %s was started by event %d, and the holder killed by event %d", holds[at].Name, first, i)
					}
				}
			}
			slices.Sort(kinds)
			if want := []string{"", "", "", " second", " second"}; kills != c.Kills || !slices.Equal(kinds, want) {
				t.Errorf("%d kills of processes %q, want %d of %q", kills, kinds, c.Kills, want)
			}
		})
	}
}

// TestKilledHoldersExclude: if two processes have the lock at once, the library fails, and nothing is measured.
func TestKilledHoldersExclude(t *testing.T) {
	t.Parallel()
	c := toy(t, excludesNever, long)
	c.Kills, c.Beat, c.Names = 1, 10*time.Second, []string{"a"}
	f, events := judged(t, c)
	if times := judge.Successions(events); f.Passed() || f.Overlaps == 0 || len(times) > 0 {
		t.Errorf("%+v and %v, want overlaps and no time", f.Verdict, times)
	}
}

// TestKilledHoldersMayHaveNoSuccessor: a lock that stays with a dead process ends the run.
func TestKilledHoldersMayHaveNoSuccessor(t *testing.T) {
	t.Parallel()
	c := toy(t, "", long)
	c.Kills, c.Beat, c.Names, c.Settle = 1, time.Millisecond, []string{"a"}, 3*time.Second
	if _, err := locktest.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "worker 2 was not granted the lock within 3s") {
		t.Errorf("a lock that stays: %v", err)
	}
	c.Faults = []fault.Fault{{Kind: fault.Blink}}
	if _, err := locktest.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "no faults") {
		t.Errorf("kills of holders with a fault: %v", err)
	}
	c.Faults, c.Env = nil, []string{roleEnv + "=silent"}
	if _, err := locktest.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "ended before it was ready") {
		t.Errorf("a worker that ends: %v", err)
	}
}
