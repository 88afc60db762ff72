package integration_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
)

// TestPhilosophers has five processes that take two of five forks each, in random order, while followers are
// cut off now and then. The processes' reports are the journal. From that alone the test knows which circles
// of waits there were, and it judges the library's errors by them:
//
//   - each error of a deadlock names a circle that there was at that moment, and its own wait first;
//   - each circle ends with such an error, of one of its waits;
//   - no other wait of it fails, and none fails in another way.
//
// It leaves out, and counts, waits during which the process lost a lock, as with the end of its session.
// It prints how long that takes, and judges no duration. ZKLOCK_PHILOSOPHERS sets how long they eat; 5m by
// default.
func TestPhilosophers(t *testing.T) {
	long.Test(t, "five processes eat for minutes")
	ensemble.Require(t)
	length := long.Time(t, "ZKLOCK_PHILOSOPHERS", 5*time.Minute, 5*time.Minute)
	const timeout = 30 * time.Second // of sessions: a machine that stalls for some seconds ends none
	zk := ensemble.Start(t, ensemble.Config{Servers: 3, MaxSessionTimeout: timeout})
	url := zk.URL(rootOf(t), quick("session_timeout", timeout.String()))
	var all []*process
	for i := range 5 {
		all = append(all, startWorker(t, task{Role: "philosopher", Name: fmt.Sprint("p", i), For: length, URL: url}))
	}
	for _, p := range all {
		p.await("ready")
	}
	cuts := make(chan []turn, 1)
	eaten := make(chan struct{})
	go func() { cuts <- cutFollowers(t, zk, eaten) }()
	journals := make([]chan []report, len(all))
	for i, p := range all {
		journals[i] = make(chan []report, 1)
		go func() {
			var said []report
			for r := range p.reports {
				said = append(said, r)
			}
			journals[i] <- said
		}()
		p.start()
	}
	var journal []report
	for i, said := range journals {
		limit := time.NewTimer(length + 3*patience)
		select {
		case j := <-said:
			if last := j[len(j)-1]; last.What != "done" {
				t.Fatalf("philosopher %d has ended with %s: %s\n%s", i, last.What, last.Err, all[i].stderr.String())
			}
			journal = append(journal, j...)
		case <-limit.C:
			t.Fatalf("philosopher %d does not end", i)
		}
		limit.Stop()
	}
	close(eaten)
	slices.SortStableFunc(journal, func(a, b report) int { return int(a.At - b.At) })
	table := judgePhilosophers(journal)
	for _, w := range table.wrong {
		t.Error(w)
	}
	if table.ended == 0 {
		t.Error("no circle was judged, so the run proves nothing")
	}
	t.Logf("%s\n%v", table.summary(<-cuts), zk.Settings(timeout, len(all), "a"))
}

// cutFollowers cuts a follower off from the leader for some seconds, and pauses, again and again until done.
// It returns when they were cut off.
func cutFollowers(t *testing.T, zk *ensemble.Ensemble, done <-chan struct{}) (cuts []turn) {
	defer zk.Heal()
	wait := func(d time.Duration) bool {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-done:
			return false
		case <-timer.C:
			return true
		}
	}
	for i := 0; wait(3 * time.Second); i++ {
		followers := zk.Followers()
		if len(followers) == 0 {
			continue // a moment without a leader
		}
		began := monotonic()
		if err := zk.CutFromLeader(followers[i%len(followers)]); err != nil {
			t.Log(err)
			continue
		}
		more := wait(3 * time.Second)
		zk.Heal()
		cuts = append(cuts, turn{began, monotonic()})
		if !more {
			return cuts
		}
	}
	return cuts
}
