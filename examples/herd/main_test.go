package main

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

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

// TestServerThatAllowsFewerConnections has a server that closes the connections
// that are too many, of a session or of a request for the counters.
func TestServerThatAllowsFewerConnections(t *testing.T) {
	ensemble.Require(t)
	const limit = 10
	server := ensemble.Start(t, ensemble.Config{Extra: []string{"maxClientCnxns=" + strconv.Itoa(limit)}}).Hosts()
	for _, waiters := range []int{limit + 10, limit - 1} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var out strings.Builder
		err := run(ctx, []string{"-server", server, "-waiters", strconv.Itoa(waiters)}, &out)
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "maxClientCnxns") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%d waiters: %v", waiters, err)
		}
	}
}

// TestSessionsOfTheLibraryThatAreTooMany is the same for the recipe that opens
// its sessions with zklock, which comes last.
func TestSessionsOfTheLibraryThatAreTooMany(t *testing.T) {
	ensemble.Require(t)
	const limit = 10
	server := ensemble.Start(t, ensemble.Config{Extra: []string{"maxClientCnxns=" + strconv.Itoa(limit)}}).Hosts()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := drain(ctx, recipes[2], server, limit+10)
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "maxClientCnxns") || !strings.Contains(err.Error(), "10 sessions") {
		t.Errorf("%v", err)
	}
}
