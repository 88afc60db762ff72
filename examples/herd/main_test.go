package main

import (
	"strconv"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/integration_test/ensemble"
)

// Two of the recipes tell everybody each time, the third one tells one. It takes
// a real server and is not run on mem://: what the program prints are the
// counters of the server itself (mntr), and two of the three recipes are spoken to
// it without zklock, by sessions of their own. A model's counters would show what
// its author thought that a server does.
func TestHerd(t *testing.T) {
	ensemble.Require(t)
	const n = 40
	var out strings.Builder
	if err := run(t.Context(), []string{"-server", ensemble.Start(t, ensemble.Config{}).Hosts(), "-waiters", strconv.Itoa(n)}, &out); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + out.String())
	rows := strings.Split(strings.TrimSpace(out.String()), "\n")[1:]
	if len(rows) != len(recipes) {
		t.Fatalf("%d rows, want %d", len(rows), len(recipes))
	}
	for i, row := range rows {
		fields := strings.Fields(strings.TrimSpace(row)[len(recipes[i].name):])
		notifications, err1 := strconv.Atoi(fields[1])
		reads, err2 := strconv.Atoi(fields[2])
		if err1 != nil || err2 != nil {
			t.Fatal(row)
		}
		// Who leaves tells all that are left: n*(n+1)/2 in all. Some may miss it
		// since they are not back at their watch yet.
		if herd := i < 2; herd && (notifications < n*n/8 || reads < n*n/8) {
			t.Errorf("%s: a herd of %d was told %d times and read %d times", recipes[i].name, n, notifications, reads)
		} else if !herd && (notifications > 3*n || reads > 6*n) {
			t.Errorf("%s: %d waiters were told %d times and read %d times", recipes[i].name, n, notifications, reads)
		}
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	var out strings.Builder
	err := run(t.Context(), []string{"-server", "127.0.0.1:1"}, &out)
	if err == nil || !strings.Contains(err.Error(), "no server") || out.Len() > 0 {
		t.Errorf("nobody answers there: %v, %q", err, out.String())
	}
}
