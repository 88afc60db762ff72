package integration_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
)

// TestTwoProcessesTakeTurnsInQueueOrder checks the exclusion with a file that only one
// process can create, and with intervals on the machine's monotonic clock. A token is the
// transaction that created the queue node. So if tokens grow in the order of the grants,
// the grants follow the queue.
func TestTwoProcessesTakeTurnsInQueueOrder(t *testing.T) {
	t.Parallel()
	zk, rounds := trioOfServers(t), long.Count(t, "ZKLOCK_TURNS", 15, 50)
	k := task{Role: "contend", Name: "turns", Rounds: rounds, Guard: filepath.Join(t.TempDir(), "held")}
	var workers []*process
	for i := range 2 {
		k.URL = ensemble.URL(zk.Server(i).Addr(), rootOf(t), quick())
		workers = append(workers, startWorker(t, k))
	}
	for _, w := range workers {
		w.await("ready")
	}
	for _, w := range workers {
		w.start()
	}
	type turn struct {
		report
		worker int
	}
	var turns []turn
	for i, w := range workers {
		for r, ok := w.next(); ok && r.What != "done"; r, ok = w.next() {
			if r.What == "gave" {
				turns = append(turns, turn{r, i})
			}
		}
	}
	if len(turns) != 2*rounds {
		t.Fatalf("%d turns, want %d of each process", len(turns), rounds)
	}
	slices.SortFunc(turns, func(a, b turn) int { return int(a.From - b.From) })
	switches := 0
	for i, next := range turns[1:] {
		last := turns[i]
		if next.From <= last.At {
			t.Errorf("process %d held the lock from %d to %d, and process %d from %d: both at the same time", last.worker, last.From, last.At, next.worker, next.From)
		}
		if next.Token.Compare(last.Token) <= 0 {
			t.Errorf("token %v followed by %v, want each token to be greater than the one before", last.Token, next.Token)
		}
		if next.worker != last.worker {
			switches++
		}
	}
	// A process gives the lock back when the other one waits. In its last round it does not look: then
	// only a turn of the other one is left.
	if switches != len(turns)-1 {
		t.Errorf("the lock passed between the processes %d times in %d turns, want each time", switches, len(turns))
	}
	t.Logf("%d turns in %v", len(turns), time.Duration(turns[len(turns)-1].At-turns[0].From))
}

// TestKilledHolderIsFollowedAfterItsSessionTimeout checks both bounds. The next holder does
// not come too early: a session lives for its timeout from the last request that a quorum
// answered. It does not come too late either: the leader may hear of the victim's last
// request half a tick after it was sent, and it expires sessions in steps of a tick. So the
// limit of two ticks after the timeout is half a tick more than needed.
func TestKilledHolderIsFollowedAfterItsSessionTimeout(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	const (
		tick    = time.Second
		timeout = 4 * time.Second

		// slack allows for a busy machine, where the processes of this test and the servers
		// wait for a processor.
		slack = 2 * time.Second
	)
	zk := ensemble.Start(t, ensemble.Config{Servers: 3, TickTime: tick})
	k := task{Role: "hold", Name: "victim", URL: zk.URL(rootOf(t), keys("session_timeout", timeout.String(), "tick_time", tick.String()))}
	victim, heir := startWorker(t, k), startWorker(t, k)
	victim.await("ready")
	heir.await("ready")
	victim.start()
	held := victim.await("held")
	heir.start()
	heir.await("waiting")
	var sent int64
	for range 3 {
		sent = victim.await("beat").From
	}

	killed := monotonic()
	if err := victim.cmd.Process.Signal(os.Kill); err != nil {
		t.Fatal(err)
	}
	for r, ok := victim.next(); ok; r, ok = victim.next() {
		if r.What == "beat" {
			sent = r.From
		}
	}
	got := heir.await("held")
	if got.Token.Compare(held.Token) <= 0 {
		t.Errorf("token %v after %v, want a greater one", got.Token, held.Token)
	}
	t.Logf("killed %v after the last heartbeat was sent; the next holder came %v after the kill",
		time.Duration(killed-sent), time.Duration(got.At-killed))
	if d := time.Duration(got.At - sent); d < timeout {
		t.Errorf("the next holder came %v after the last committed heartbeat was sent, want at least %v", d, timeout)
	}
	if d := time.Duration(got.At - killed); d > timeout+2*tick+slack {
		t.Errorf("the next holder came %v after the kill, want at most %v", d, timeout+2*tick+slack)
	}
}
