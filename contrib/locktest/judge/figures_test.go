package judge_test

import (
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
		{Kind: history.Acquire, ID: 5, Worker: 3, Name: "a"},
		{Kind: history.Granted, ID: 5, Worker: 3, Name: "a", Token: "4"},
		{Kind: history.Settled},
	}
	for i := range events {
		events[i].At = int64(time.Duration(i+1) * time.Second)
	}
	f := judge.Measure(events)
	if f.Grants != 4 || f.Failed != 1 || f.Losses != 1 || f.Kills != 1 || f.Faults != 1 || f.Duration != 16*time.Second || f.PerSecond() != 0.25 {
		t.Errorf("figures %+v", f)
	}
	if !slices.Equal(f.Waits, []time.Duration{time.Second}) || f.Wait(0.5) != time.Second || f.Wait(0.99) != time.Second {
		t.Errorf("waits %v, want one of a second: nothing waited for b", f.Waits)
	}
	if !slices.Equal(f.Stuck, []string{"b"}) || f.Passed() || !f.Safe() {
		t.Errorf("stuck %v, passed %v, want b, and not passed for that reason only", f.Stuck, f.Passed())
	}
	for _, line := range []string{
		"| names stuck after the faults         |            1 |",
		"| wait after a kill, p50               |           1s |",
		"| grants a second                      |          0.2 |",
		"stuck: b",
	} {
		if !strings.Contains(f.Table("test"), line+"\n") {
			t.Errorf("the table has not the line %q:\n%s", line, f.Table("test"))
		}
	}
}
