package integration_test

import (
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
)

// TestStoppedProcessSaysSo: a holder that was stopped for longer than its session finds the lock
// lost when it goes on. Its error and its log say that the process did not run, not just that
// no quorum has renewed the lease. It does not matter which goroutine notices the loss first.
func TestStoppedProcessSaysSo(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	const timeout = 4 * time.Second
	zk := ensemble.Start(t, ensemble.Config{TickTime: time.Second})
	k := task{Role: "hold", Name: "victim", URL: zk.URL(rootOf(t), keys("session_timeout", timeout.String(), "tick_time", "1s"))}
	for what, released := range map[string]bool{"the caller releases at once": true, "the session notices": false} {
		t.Run(what, func(t *testing.T) {
			victim, heir := startWorker(t, k), startWorker(t, k)
			victim.await("ready")
			heir.await("ready")
			victim.start()
			victim.await("held")
			heir.start()
			heir.await("waiting")
			signal := func(s syscall.Signal) {
				if err := victim.cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
			}
			signal(syscall.SIGSTOP)
			heir.await("held") // the victim's session has expired, so it was stopped for the better part of its timeout
			if released {
				victim.start()
			}
			signal(syscall.SIGCONT)
			if !released {
				victim.await("lost")
				victim.start()
			}
			var err string
			for r := range victim.reports {
				if r.What == "error" {
					err = r.Err
				}
			}
			if !causes.MatchString(err) {
				t.Errorf("the release: %q, want an end like %v", err, causes)
			}
			if log := victim.stderr.String(); !logs.MatchString(log) {
				t.Errorf("the log is %q, want a line like %v", log, logs)
			}
			heir.start()
			heir.await("done")
		})
	}
}

// A session's heart measures how long its process was stopped by how late its own beat is. So it
// may measure up to one interval less.
var (
	causes = regexp.MustCompile(`lost: (lease ran out before a quorum renewed it|session expired), because this process did not run for at least [2-9]\S*s \(it was stopped, throttled or paused\)$`)
	logs   = regexp.MustCompile(`session lost, and its locks with it; another session takes its place .*because this process did not run for at least \d`)
)
