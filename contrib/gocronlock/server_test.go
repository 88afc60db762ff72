package gocronlock_test

import (
	"flag"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/integration_test/ensemble"
	"github.com/zklock/go-zklock/integration_test/fleet"
	"github.com/zklock/go-zklock/integration_test/proxy"
)

// slots is how often the short job is due in TestShortJobRunsOncePerSlot: -slots=60 is a minute.
var slots = flag.Int("slots", 5, "the number of slots of the short job")

// quick are settings with which a session ends soon after its client.
func quick() url.Values {
	return url.Values{"session_timeout": {"2s"}, "tick_time": {"500ms"}, "pool_max_sessions": {"1"}}
}

// Five processes have a job of a millisecond, every second, each at a different time of the
// second. With slots it runs once each second. Without slots most of the five run it, which is
// issue 841 of gocron.
func TestShortJobRunsOncePerSlot(t *testing.T) {
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{})
	count := func(root string, withSlots, n int) (runs int) {
		first := time.Now().Add(4 * time.Second).Truncate(time.Second)
		var fleetOf []*fleet.Process
		for i := range 5 {
			fleetOf = append(fleetOf, fleet.Start(t, "short", e.URL(root, quick()),
				strconv.FormatInt(first.UnixMilli(), 10), strconv.Itoa(100*i), strconv.Itoa(n), strconv.Itoa(withSlots)))
		}
		for _, p := range fleetOf {
			ran, err := strconv.Atoi(p.Expect("ran"))
			if err != nil {
				t.Fatal(err)
			}
			runs += ran
		}
		return runs
	}
	runs := count("/slots", 1, *slots)
	t.Logf("with slots: %d runs in %d slots", runs, *slots)
	if runs > *slots || runs == 0 {
		t.Errorf("the job has run %d times in %d slots, want once in each", runs, *slots)
	}
	if *slots >= 60 {
		if runs != *slots { // a machine that runs each process in each second
			t.Errorf("the job has run %d times in %d slots, want once in each", runs, *slots)
		}
		plain := count("/plain", 0, 10)
		t.Logf("without slots: %d runs in 10 s", plain)
		if plain <= 10 {
			t.Error("without slots the job has run no more often than with them: the test shows nothing")
		}
	}
}

// Two processes have the same job, on a real ZooKeeper; one of them is killed, and then another
// is cut off, while it runs the job.
func TestProcesses(t *testing.T) {
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{})
	for _, mode := range []string{"locker", "once", "elector"} {
		// awaitOther waits until the second process wants to run the job, and shows that it
		// does not.
		awaitOther := func(t *testing.T, second *fleet.Process, address string) {
			t.Helper()
			second.Expect("ready")
			switch mode {
			case "locker": // it does not wait for the lock
				second.ExpectWithout("skipped", "began")
			case "once":
				fleet.AwaitContenders(t, address, "cron/report", 2)
			case "elector":
				fleet.AwaitContenders(t, address, "cron", 2)
			}
			second.Silent("began")
		}
		t.Run(mode+"/killed", func(t *testing.T) {
			address := e.URL("/killed-"+mode, quick())
			first := fleet.Start(t, "job", address, mode)
			first.Expect("began")
			second := fleet.Start(t, "job", address, mode)
			awaitOther(t, second, address)
			first.Kill()
			second.Expect("began")
			second.Send("go on")
			second.Expect("ended")
		})
		t.Run(mode+"/lost", func(t *testing.T) {
			root := "/lost-" + mode
			p, err := proxy.New(e.Hosts())
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			first := fleet.Start(t, "job", ensemble.URL(p.Addr(), root, quick()), mode)
			first.Expect("began")
			second := fleet.Start(t, "job", e.URL(root, quick()), mode)
			awaitOther(t, second, e.URL(root, quick()))
			p.Stall(proxy.Both)
			if mode != "locker" { // the seam of the locker cannot express it
				if why := first.Expect("cancelled"); !strings.Contains(why, "lost") {
					t.Errorf("the job was cancelled with %q, want the loss", why)
				}
				first.Expect("lost")
			}
			second.Expect("began")
		})
	}
}
