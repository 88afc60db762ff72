package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/wait"
)

// sessionFiles returns the names of the files of sessions in a directory.
func sessionFiles(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".watch") {
			names = append(names, e.Name())
		}
	}
	return names
}

// emptied fails the test if a session directory does not become empty.
func emptied(t testing.TB, dir string) {
	t.Helper()
	wait.Until(t, "the session directory is empty", func() bool { return len(sessionFiles(t, dir)) == 0 })
}

// kill kills a worker and returns when that was.
func (p *process) kill() (at int64) {
	p.t.Helper()
	at = monotonic()
	if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		p.t.Fatal(err)
	}
	return at
}

// TestKilledHolderIsFollowedAtOnce kills the holder of a lock again and again while another process of
// the machine waits. The next one has the lock long before the session of the dead one would have
// expired, and not before its death.
func TestKilledHolderIsFollowedAtOnce(t *testing.T) {
	for _, servers := range []int{1, 3} {
		t.Run(fmt.Sprint(servers), func(t *testing.T) {
			t.Parallel()
			ensemble.Require(t)
			kills := long.Count(t, "ZKLOCK_KILLS", 5, 50)
			zk := ensemble.Start(t, ensemble.Config{Servers: servers})
			dir := filepath.Join(t.TempDir(), "sessions")
			k := task{Role: "hold", Name: "x", URL: ensemble.URL(zk.Hosts(), rootOf(t), quick("session_dir", dir, "pool_max_sessions", "1"))}
			begin := func() *process {
				p := startWorker(t, k)
				p.await("ready")
				p.start()
				return p
			}
			holder := begin()
			token := holder.await("held").Token
			var waits []time.Duration
			for range kills {
				next := begin()
				next.await("waiting")
				died := holder.kill()
				r := next.await("held")
				waited := time.Duration(r.At - died)
				if waited <= 0 || waited > 5*time.Second {
					t.Errorf("the next one had the lock %v after the death, want it sooner than a session of 10 s expires", waited)
				}
				if r.Token.Compare(token) <= 0 {
					t.Errorf("token %v follows %v", r.Token, token)
				}
				waits, token, holder = append(waits, waited), r.Token, next
			}
			holder.start()
			holder.await("done")
			emptied(t, dir)
			slices.Sort(waits)
			t.Logf("%d kills: half of the next ones had the lock within %v, the slowest after %v", kills, waits[len(waits)/2], waits[len(waits)-1])
		})
	}
}
