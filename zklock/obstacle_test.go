package zklock_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// The error of a wait names the holder, or the contender ahead and how many are, without any
// request.
func TestEndedWaitNamesTheHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		client := func(host string, pid int) *zklock.Client {
			return connect(t, e.Connector(), nil, zklock.WithIdentity(zklock.Identity{Host: host, PID: pid}))
		}
		a, b, c, hidden := client("web-3", 812), client("web-4", 7), client("web-5", 9), client("", 0)
		fails := func(what string, from zklock.Acquirer, want string) {
			t.Helper()
			_, err := from.Acquire(t.Context(), zklock.WithWait(time.Second))
			if !errors.Is(err, zklock.ErrNotAcquired) || !strings.HasSuffix(err.Error(), "; "+want) {
				t.Errorf("%s: %v, want an end of %q", what, err, want)
			}
		}
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context(), zklock.WithLabel("POST /pay")))
		time.Sleep(40 * time.Second)
		fails("first in line", b.Mutex("x"), `held by web-3/812 "POST /pay" for 41s`)
		fails("in the holder's process", a.Mutex("x"), `held by web-3/812 "POST /pay" for 42s`)
		second := acquiring(t, b.Mutex("x"), t.Context(), zklock.WithLabel("GET \n\""))
		fails("further back", c.Mutex("x"), `behind web-4/7 "GET \n\"", 2 ahead`)
		fails("a reader behind writers", c.RWMutex("x").Reader(), `behind web-4/7 "GET \n\"", 2 ahead`)
		fails("further back in the process", b.Mutex("x"), `behind web-4/7 "GET \n\"", 1 ahead`)
		mustRelease(t, l)
		mustRelease(t, <-second)

		permits := func(c *zklock.Client) *zklock.Semaphore { return c.Semaphore("s", 2) }
		first := mustLock(t)(permits(a).Acquire(t.Context(), zklock.WithLabel("one")))
		other := mustLock(t)(permits(b).Acquire(t.Context(), zklock.WithLabel("two")))
		fails("first in line for a permit", permits(c), `held by web-4/7 "two" for 1s`)
		mustRelease(t, first)
		mustRelease(t, other)

		l = mustLock(t)(hidden.Mutex("h").Acquire(t.Context()))
		fails("a holder without identity", b.Mutex("h"), "held by another client for 1s")
		mustRelease(t, l)

		s := plain(t, e)
		if _, err := s.Create(t.Context(), "/zklock/h/_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-__WRIT__", []byte("10.0.0.1"), driver.EphemeralSequential, driver.OpenACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
		fails("a holder of another library", b.Mutex("h"), "held by a contender of another library")

		l = mustLock(t)(a.Mutex("t").Acquire(t.Context()))
		wantCost(t, "a try", cost(e, func() {
			if _, err := b.Mutex("t").TryAcquire(t.Context()); err == nil || strings.Contains(err.Error(), "held by") {
				t.Errorf("a try: %v; it has not waited, so it knows no holder", err)
			}
		}), memdriver.Ops{Children: 1})
		mustRelease(t, l)
	})
}
