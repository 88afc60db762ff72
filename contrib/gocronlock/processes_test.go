package gocronlock_test

import (
	"strings"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/fleet"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
)

// Two processes have the same job, on a real ZooKeeper; one of them is killed, and then another
// is cut off, while it runs the job.
func TestProcesses(t *testing.T) {
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{})
	for _, mode := range []string{"locker", "slots", "once", "elector"} {
		// awaitOther waits until the second process wants to run the job, and shows that it
		// does not.
		awaitOther := func(t *testing.T, second *fleet.Process, address string) {
			t.Helper()
			second.Expect("ready")
			switch mode {
			case "locker": // it does not wait for the lock
				second.ExpectWithout("skipped", "began")
			case "slots", "once":
				fleet.AwaitContenders(t, address, "cron/report", 2)
			case "elector":
				fleet.AwaitContenders(t, address, "cron", 2)
			}
			second.Silent("began")
		}
		// finish waits until the second process has run the job. With slots it shows that the
		// process does not run it again in its slot.
		finish := func(t *testing.T, second *fleet.Process) {
			t.Helper()
			second.Expect("began")
			second.Send("go on")
			second.Expect("ended")
			if mode == "slots" {
				second.ExpectWithout("skipped", "began")
			}
		}
		t.Run(mode+"/killed", func(t *testing.T) {
			t.Parallel()
			address := e.URL("/killed-"+mode, fleet.ShortSession())
			first := fleet.Start(t, "job", address, mode)
			first.Expect("began")
			second := fleet.Start(t, "job", address, mode)
			awaitOther(t, second, address)
			first.Kill()
			finish(t, second)
		})
		t.Run(mode+"/lost", func(t *testing.T) {
			t.Parallel()
			root := "/lost-" + mode
			p, err := proxy.New(e.Hosts())
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			first := fleet.Start(t, "job", ensemble.URL(p.Addr(), root, fleet.ShortSession()), mode)
			first.Expect("began")
			second := fleet.Start(t, "job", e.URL(root, fleet.ShortSession()), mode)
			awaitOther(t, second, e.URL(root, fleet.ShortSession()))
			p.Stall(proxy.Both)
			if mode == "once" || mode == "elector" { // the seam of the locker cannot express it
				if why := first.Expect("cancelled"); !strings.Contains(why, "lost") {
					t.Errorf("the job was cancelled with %q, want the loss", why)
				}
				first.Expect("lost")
			}
			finish(t, second)
		})
	}
}
