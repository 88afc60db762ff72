package judge_test

import (
	"strings"
	"testing"

	"github.com/zklock/go-zklock/contrib/locktest/history"
	"github.com/zklock/go-zklock/contrib/locktest/judge"
)

// TestLeftovers: a stuck name has its newest grant, and what living processes have not given back, for suspects.
// Names that are not stuck have none.
func TestLeftovers(t *testing.T) {
	events := []history.Event{
		{Kind: history.Start, Worker: 1, Reason: "one"},
		{Kind: history.Start, Worker: 2, Reason: "two"},
		{Kind: history.Acquire, ID: 1, Worker: 1, Name: "a"}, // released, and not the newest: gone
		{Kind: history.Granted, ID: 1, Worker: 1, Name: "a"},
		{Kind: history.Released, ID: 1, Worker: 1, Name: "a"},
		{Kind: history.Acquire, ID: 2, Worker: 2, Name: "a"},
		{Kind: history.Failed, ID: 2, Worker: 2, Name: "a", Reason: "no connection"},
		{Kind: history.Acquire, ID: 3, Worker: 1, Name: "a"},
		{Kind: history.Granted, ID: 3, Worker: 1, Name: "a"},
		{Kind: history.Released, ID: 3, Worker: 1, Name: "a"},
		{Kind: history.Acquire, ID: 4, Worker: 3, Name: "a"}, // killed: gone with its process
		{Kind: history.Kill, Worker: 3},
		{Kind: history.Acquire, ID: 5, Worker: 2, Name: "b+e"},
		{Kind: history.Acquire, ID: 6, Worker: 2, Name: "d"}, // not stuck
		{Kind: history.Acquire, ID: 7, Worker: 4, Name: "c"},
		{Kind: history.Granted, ID: 7, Worker: 4, Name: "c"},
		{Kind: history.Kill, Worker: 4},
		{Kind: history.Calm},
		{Kind: history.Granted, ID: 6, Worker: 2, Name: "d"},
		{Kind: history.Start, Worker: 5, Reason: "probes"},
		{Kind: history.Acquire, ID: 8, Worker: 5, Name: "a"}, // finds it stuck
		{Kind: history.Acquire, ID: 9, Worker: 5, Name: "d"},
		{Kind: history.Granted, ID: 9, Worker: 5, Name: "d"},
		{Kind: history.Settled},
	}
	for i := range events {
		events[i].At = int64(i+1) * 1e9
	}
	table := judge.Measure(events).Table("test")
	_, got, _ := strings.Cut(table, "stuck: a, b+e, c\n")
	want := `What may keep them, of 4 acquisitions the first:
a: process 2 (two) asked for it at 6s, as acquisition 2: failed: no connection
a: process 1 (one) asked for it at 8s, as acquisition 3: released
b+e: process 2 (two) asked for it at 13s, as acquisition 5: no answer
c: process 4 () asked for it at 15s, as acquisition 7: its process was killed
`
	if got != want {
		t.Errorf("the table ends with\n%s\nwant\n%s\nof\n%s", got, want, table)
	}
}
