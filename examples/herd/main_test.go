package main

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
)

// At each release two of the recipes notify all waiters, and the third notifies one. The
// test needs a real server and does not run on mem://: the program prints the counters of
// the server (mntr), and two of the three recipes open their sessions without zklock. The
// counters of a model would show what its author believes about servers.
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
		t.Fatalf("the table has %d rows, want %d", len(rows), len(recipes))
	}
	for i, row := range rows {
		fields := strings.Fields(strings.TrimSpace(row)[len(recipes[i].name):])
		notifications, err1 := strconv.Atoi(fields[1])
		reads, err2 := strconv.Atoi(fields[2])
		if err1 != nil || err2 != nil {
			t.Fatal(row)
		}
		// Each release notifies all waiters that are left: n*(n+1)/2 notifications in
		// all. Some waiters miss one because they have not armed their watch again yet.
		if herd := i < 2; herd && (notifications < n*n/8 || reads < n*n/8) {
			t.Errorf("%s: a herd of %d waiters got %d notifications and made %d reads, want at least %d of each", recipes[i].name, n, notifications, reads, n*n/8)
		} else if !herd && (notifications > 3*n || reads > 6*n) {
			t.Errorf("%s: %d waiters got %d notifications and made %d reads, want at most %d and %d", recipes[i].name, n, notifications, reads, 3*n, 6*n)
		}
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	var out strings.Builder
	err := run(t.Context(), []string{"-server", "127.0.0.1:1"}, &out)
	if err == nil || !strings.Contains(err.Error(), "no server") || out.Len() > 0 {
		t.Errorf("without a server: error %v, output %q, want an error only", err, out.String())
	}
}

// TestServerThatAllowsFewerConnections uses a server that closes connections above its
// limit: that of a session in the first run, that of a request for counters in the second.
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
			t.Errorf("%d waiters: %v, want one line with advice about maxClientCnxns", waiters, err)
		}
	}
}

// TestSessionsOfTheLibraryThatAreTooMany checks the same for the recipe that opens its
// sessions with zklock. run would fail before it reaches that recipe, the last one.
func TestSessionsOfTheLibraryThatAreTooMany(t *testing.T) {
	ensemble.Require(t)
	const limit = 10
	server := ensemble.Start(t, ensemble.Config{Extra: []string{"maxClientCnxns=" + strconv.Itoa(limit)}}).Hosts()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := drain(ctx, recipes[2], server, limit+10)
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "maxClientCnxns") || !strings.Contains(err.Error(), "10 sessions") {
		t.Errorf("error %v, want advice about maxClientCnxns after 10 sessions", err)
	}
}
