package zklock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// The error of a wait names the holder if that is directly ahead. Otherwise it names the contender
// that is, and says how many are ahead. The client makes no request for that.
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
		fails("first in line", b.Mutex("x"), `held by web-3/812 "POST /pay", which asked for it 41s ago`)
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
		fails("first in line for a permit", permits(c), `held by web-4/7 "two", which asked for it 1s ago`)
		mustRelease(t, first)
		mustRelease(t, other)

		l = mustLock(t)(hidden.Mutex("h").Acquire(t.Context()))
		fails("a holder without identity", b.Mutex("h"), "held by another client, which asked for it 1s ago")
		mustRelease(t, l)

		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second - 5*time.Millisecond)))
		l = mustLock(t)(a.Mutex("h").Acquire(t.Context()))
		if _, err := b.Mutex("h").Acquire(t.Context(), zklock.WithWait(10*time.Millisecond)); err == nil || !strings.HasSuffix(err.Error(), "; held by web-3/812") {
			t.Errorf("10ms around the end of a second: %v, want an end without a time", err)
		}
		mustRelease(t, l)

		s := plain(t, e)
		if _, err := s.Create(t.Context(), "/zklock/h/_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-__WRIT__", []byte("10.0.0.1"), driver.EphemeralSequential, driver.OpenACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
		fails("a holder of another library", b.Mutex("h"), "held by a contender of another library")
	})
}

// The error of a try says what its client knows without a further request. If the holder is a
// goroutine of the same process, or the client has read its node, the error says as much as that of
// a wait. Otherwise it says what the names of the nodes in the queue show.
func TestFailedTryNamesTheHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		client := func(host string, pid int) *zklock.Client {
			return connect(t, e.Connector(), nil, zklock.WithIdentity(zklock.Identity{Host: host, PID: pid}))
		}
		a, b, c := client("web-3", 812), client("web-4", 7), client("web-5", 9)
		fails := func(what string, from zklock.Acquirer, costs memcontrol.Ops, want string) {
			t.Helper()
			wantCost(t, what, cost(e, func() {
				t.Helper()
				_, err := from.TryAcquire(t.Context())
				if !errors.Is(err, zklock.ErrNotAcquired) || !strings.HasSuffix(err.Error(), "is ahead in its queue; "+want) {
					t.Errorf("%s: %v, want an end of %q", what, err, want)
				}
			}), costs)
		}
		session := func(name string, n int) string {
			t.Helper()
			found, err := b.Contenders(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("session %#x", found[n].Session)
		}
		for _, c := range []*zklock.Client{a, b, c} {
			if err := c.Ping(t.Context()); err != nil { // opens its session
				t.Fatal(err)
			}
		}
		list, read := memcontrol.Ops{Children: 1}, memcontrol.Ops{Children: 1, Gets: 1}

		l := mustLock(t)(a.RWMutex("x").Writer().Acquire(t.Context(), zklock.WithLabel("POST /pay")))
		first := session("x", 0)
		time.Sleep(41 * time.Second)
		fails("in the holder's process", a.Mutex("x"), free, `held by web-3/812 "POST /pay" for 41s`)
		fails("a reader in the holder's process", a.RWMutex("x").Reader(), free, `held by web-3/812 "POST /pay" for 41s`)
		fails("a reader", b.RWMutex("x").Reader(), read, `held by web-3/812 "POST /pay", which asked for it 41s ago`)
		fails("a writer", b.Mutex("x"), list, "held by "+first)
		fails("several names", allOf(b, "w", "x"), memcontrol.Ops{Children: 2}, "held by "+first)
		fails("in the holder's process, with a place of its own", allOf(a, "w", "x"), memcontrol.Ops{Children: 2}, "held by this client")
		next := acquiring(t, b.Mutex("x"), t.Context(), zklock.WithLabel("GET \n\""))
		second := session("x", 1)
		fails("a writer behind two", c.Mutex("x"), list, "behind "+second+", 2 ahead")
		fails("a reader behind two", c.RWMutex("x").Reader(), read, `behind web-4/7 "GET \n\"", 2 ahead`)
		fails("in the waiter's process", b.Mutex("x"), free, `behind web-4/7 "GET \n\"", 1 ahead`)
		mustRelease(t, l)
		mustRelease(t, <-next)

		permits := func(c *zklock.Client) *zklock.Semaphore { return c.Semaphore("s", 2) }
		one, two := mustLock(t)(permits(a).Acquire(t.Context())), mustLock(t)(permits(b).Acquire(t.Context()))
		fails("a permit", permits(c), list, "held by "+session("s", 0))
		mustRelease(t, one)
		mustRelease(t, two)

		s := plain(t, e)
		if _, err := s.Create(t.Context(), "/zklock/x/_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-__WRIT__", []byte("10.0.0.1"), driver.EphemeralSequential, driver.OpenACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
		fails("a holder of another library", b.Mutex("x"), list, "held by a contender of another library")
		fails("a reader, and a holder of another library", b.RWMutex("x").Reader(), read, "held by a contender of another library")

		// The data of a node that may be kept are from an earlier use.
		k := connect(t, e.Connector(), map[string]string{"keep": "1h"}, zklock.WithIdentity(zklock.Identity{Host: "web-6", PID: 10}))
		for nodes(e) < 2 {
			mustRelease(t, mustLock(t)(k.Mutex("k").Acquire(t.Context(), zklock.WithLabel("earlier"))))
			synctest.Wait()
		}
		time.Sleep(20 * time.Second)
		l = mustLock(t)(k.Mutex("k").Acquire(t.Context()))
		if _, err := b.Mutex("k").TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) || !strings.HasSuffix(err.Error(), "; held by web-6/10") {
			t.Errorf("a kept name in use: %v", err)
		}
		mustRelease(t, l)
	})
}
