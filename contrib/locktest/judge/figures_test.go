package judge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/history"
	"github.com/zklock/go-zklock/contrib/locktest/judge"
)

// TestFigures counts a short history: process 1 is killed with a while process 2 waits, b is granted
// before the faults are over only, and an acquisition fails.
func TestFigures(t *testing.T) {
	events := []history.Event{
		{Kind: history.Acquire, ID: 1, Worker: 1, Name: "a"},
		{Kind: history.Granted, ID: 1, Worker: 1, Name: "a", Token: "1"},
		{Kind: history.Acquire, ID: 2, Worker: 2, Name: "a"},
		{Kind: history.Acquire, ID: 3, Worker: 1, Name: "b"},
		{Kind: history.Granted, ID: 3, Worker: 1, Name: "b", Token: "2"},
		{Kind: history.Fault, Worker: 1, Reason: "kill"},
		{Kind: history.Kill, Worker: 1},
		{Kind: history.Granted, ID: 2, Worker: 2, Name: "a", Token: "3"},
		{Kind: history.Lost, ID: 2, Worker: 2, Name: "a"},
		{Kind: history.Release, ID: 2, Worker: 2, Name: "a"},
		{Kind: history.Failed, ID: 2, Worker: 2, Name: "a"},
		{Kind: history.Calm},
		{Kind: history.Acquire, ID: 4, Worker: 2, Name: "b"},
		{Kind: history.Failed, ID: 4, Worker: 2, Name: "b", Reason: "no connection"},
		{Kind: history.Start, Worker: 3},
		{Kind: history.Acquire, ID: 5, Worker: 3, Name: "a"},
		{Kind: history.Granted, ID: 5, Worker: 3, Name: "a", Token: "4"},
		{Kind: history.Settled},
	}
	for i := range events {
		events[i].At = int64(time.Duration(i+1) * time.Second)
	}
	f := judge.Measure(events)
	if f.Grants != 4 || f.Failed != 1 || f.Losses != 1 || f.Kills != 1 || f.Faults != 1 || f.Duration != 17*time.Second || f.PerSecond() != 3.0/11 {
		t.Errorf("figures %+v", f)
	}
	if !slices.Equal(f.Waits, []time.Duration{time.Second}) || f.Wait(0.5) != time.Second || f.Wait(0.99) != time.Second {
		t.Errorf("waits %v, want one of a second: nothing waited for b", f.Waits)
	}
	if !slices.Equal(f.Stuck, []string{"b"}) || f.Passed() || !f.Safe() {
		t.Errorf("stuck %v, passed %v, want b, and not passed for that reason only", f.Stuck, f.Passed())
	}
	if !f.Tokens || !strings.Contains(f.Table("test"), "| overlaps after fencing               |            0 |\n") {
		t.Errorf("tokens %v, and the table is\n%s", f.Tokens, f.Table("test"))
	}
	for _, line := range []string{
		"| names stuck after the faults         |            1 |",
		"| wait after a kill, p50               |           1s |",
		"| grants a second                      |          0.3 |",
		"stuck: b",
	} {
		if !strings.Contains(f.Table("test"), line+"\n") {
			t.Errorf("the table has not the line %q:\n%s", line, f.Table("test"))
		}
	}
}

// TestStuckForNewProcesses: a name is stuck unless a process has got it that was started after the faults, and in
// each way in which there were requests for it.
func TestStuckForNewProcesses(t *testing.T) {
	exclusive, shared, permit := history.Event{Name: "a"}, history.Event{Name: "a", Shared: true}, history.Event{Name: "a", Permits: 2}
	for _, c := range []struct {
		what   string
		before []history.Event // what a process asks for before the end of the faults, and gets after it
		after  []history.Event // what another one asks for and gets, which was started after the faults
		stuck  bool
	}{
		{"all", []history.Event{exclusive, shared, permit}, []history.Event{exclusive, shared, permit}, false},
		{"an old process only", []history.Event{exclusive}, nil, true},
		{"as a shared lock only", []history.Event{exclusive, shared}, []history.Event{shared}, true},
		{"as an exclusive lock only", []history.Event{exclusive, shared}, []history.Event{exclusive}, true},
		{"a permit only", []history.Event{exclusive, permit}, []history.Event{permit}, true},
	} {
		events := []history.Event{{Kind: history.Start, Worker: 1}}
		note := func(kind history.Kind, worker, id int, what history.Event) {
			what.Kind, what.Worker, what.ID = kind, worker, id
			events = append(events, what)
		}
		for i, what := range c.before {
			note(history.Acquire, 1, i+1, what)
		}
		note(history.Calm, 0, 0, history.Event{})
		for i, what := range c.before {
			note(history.Granted, 1, i+1, what)
			note(history.Released, 1, i+1, what)
		}
		note(history.Start, 2, 0, history.Event{})
		for i, what := range c.after {
			note(history.Acquire, 2, i+11, what)
			note(history.Granted, 2, i+11, what)
			note(history.Released, 2, i+11, what)
		}
		for i := range events {
			events[i].At = int64(i + 1)
		}
		if f := judge.Measure(events); (len(f.Stuck) > 0) != c.stuck {
			t.Errorf("%s: stuck %v, want %v", c.what, f.Stuck, c.stuck)
		}
	}
}

// TestWaitsLeaveOutReleases: a process that is killed while it gives its lock back is not a holder that was killed.
func TestWaitsLeaveOutReleases(t *testing.T) {
	for _, releases := range []bool{false, true} {
		events := []history.Event{
			{Kind: history.Acquire, ID: 1, Worker: 1, Name: "a"},
			{Kind: history.Granted, ID: 1, Worker: 1, Name: "a"},
			{Kind: history.Acquire, ID: 2, Worker: 2, Name: "a"},
		}
		if releases {
			events = append(events, history.Event{Kind: history.Release, ID: 1, Worker: 1, Name: "a"})
		}
		events = append(events, history.Event{Kind: history.Kill, Worker: 1}, history.Event{Kind: history.Granted, ID: 2, Worker: 2, Name: "a"})
		for i := range events {
			events[i].At = int64(i + 1)
		}
		if f := judge.Measure(events); (len(f.Waits) == 0) != releases {
			t.Errorf("releases %v: waits %v", releases, f.Waits)
		}
	}
}

// TestFiguresWithoutTokens: a fenced register that has seen no token refuses nothing, so no figure speaks of fencing.
// A work that another one interrupts is a mistake only if an update is lost.
func TestFiguresWithoutTokens(t *testing.T) {
	events := []history.Event{
		{Kind: history.Acquire, ID: 1, Worker: 1, Name: "a"},
		{Kind: history.Granted, ID: 1, Worker: 1, Name: "a"},
		{Kind: history.Read, ID: 1, Worker: 1, Name: "a"},
		{Kind: history.Acquire, ID: 2, Worker: 2, Name: "a"},
		{Kind: history.Granted, ID: 2, Worker: 2, Name: "a"},
		{Kind: history.Read, ID: 2, Worker: 2, Name: "a"},
		{Kind: history.Write, ID: 1, Worker: 1, Name: "a"},
	}
	for i := range events {
		events[i].At = int64(i + 1)
	}
	f := judge.Measure(events)
	if f.Tokens || f.FencedOverlaps != 1 || !f.Passed() {
		t.Errorf("tokens %v, overlaps after fencing %d, passed %v, want a work that was interrupted and passed", f.Tokens, f.FencedOverlaps, f.Passed())
	}
	for _, row := range []string{"overlaps after fencing", "tokens that fell", "lost updates after fencing"} {
		if line := fmt.Sprintf("| %-36s |    no tokens |\n", row); !strings.Contains(f.Table("test"), line) {
			t.Errorf("the table has not the line %q:\n%s", line, f.Table("test"))
		}
	}
	late := history.Event{At: 8, Kind: history.Write, ID: 2, Worker: 2, Name: "a"}
	if f := judge.Measure(append(events, late)); f.Lost != 1 || f.Passed() {
		t.Errorf("lost %d, passed %v, want one update that is lost, and not passed", f.Lost, f.Passed())
	}
}
