package inspect_test

import (
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/inspect"

	_ "github.com/zklock/go-zklock/zklock/zkdriver"
)

// Real servers are away for 20 seconds, once killed and once stopped with their connections left open:
// the page becomes grey, does not say live until the servers are back, keeps its table, and is live again
// afterwards, with what has changed. The lock is held all the time, since its session is longer than the outage.
func TestOutageOfServersIsShown(t *testing.T) {
	long.Test(t, "three servers are away for a while")
	for how, away := range map[string]struct{ begin, end func(*ensemble.Server) error }{
		"killed":  {func(s *ensemble.Server) error { s.Kill(); return nil }, (*ensemble.Server).Start},
		"stopped": {(*ensemble.Server).Freeze, (*ensemble.Server).Thaw},
	} {
		t.Run(how, func(t *testing.T) {
			const length = 20 * time.Second
			b := newBrowser(t)
			// On a busy machine the servers need a minute more to find a leader.
			servers := ensemble.Start(t, ensemble.Config{Servers: 3, TickTime: 3 * time.Second, MaxSessionTimeout: 3 * time.Minute})
			c, err := zklock.Open(servers.URL("/zklock", url.Values{"session_timeout": {"3m"}}), zklock.WithLogger(nil))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			lock, err := c.Mutex("orders/42").Acquire(t.Context(), zklock.WithLabel("refund 7"))
			if err != nil {
				t.Fatal(err)
			}
			srv := httptest.NewServer(inspect.Handler(c))
			t.Cleanup(func() { b.open("about:blank"); srv.Close() })
			b.open(srv.URL + "/")
			b.until(live + " && " + contains("refund 7"))

			began := time.Now()
			for _, s := range servers.Servers() {
				if err := away.begin(s); err != nil {
					t.Fatal(err)
				}
			}
			b.until(`document.body.classList.contains("stale") && document.getElementById("state").textContent.startsWith("no answer from the ensemble since ")`)
			t.Logf("grey after %v", time.Since(began))
			b.value(`
				claims = [];
				new MutationObserver(() => claims.push(document.getElementById("state").textContent)).observe(document.getElementById("state"), {childList: true, characterData: true, subtree: true});`)
			time.Sleep(length - time.Since(began)) // the outage goes on
			if claims := b.value(`claims.filter(c => !c.startsWith("no answer from the ensemble since ")).join("; ")`); claims != "" {
				t.Errorf("the page said in the outage: %s", claims)
			}
			if b.value(contains("refund 7")) != "true" || b.value(`document.body.classList.contains("stale")`) != "true" {
				t.Errorf("the page in an outage:\n%s", b.value("document.body.innerText"))
			}
			for _, s := range servers.Servers() {
				if err := away.end(s); err != nil {
					t.Fatal(err)
				}
			}
			if err := servers.AwaitServing(); err != nil {
				t.Fatal(err)
			}
			began = time.Now()
			b.until(live + ` && !document.body.classList.contains("stale") && ` + contains("refund 7"))
			t.Logf("live %v after the servers served again", time.Since(began))
			if !lock.Valid() {
				t.Errorf("the outage cost the lock: %v", lock.Err())
			}
			if err := lock.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.until(live + " && !" + contains("refund 7"))
		})
	}
}

// One server of three falls silent. The page says which one its session has left, without a reload, and is live.
func TestDepartureFromAServerIsShown(t *testing.T) {
	long.Test(t, "three servers, and a session that leaves one of them")
	b := newBrowser(t)
	servers := ensemble.Start(t, ensemble.Config{Servers: 3, TickTime: 2 * time.Second, InitLimit: 10, SyncLimit: 5, DirectQuorum: true})
	seat := make(chan string, 100)
	c, err := zklock.Open(servers.URL("/zklock", url.Values{"pool_max_sessions": {"1"}}), zklock.WithLogger(nil), zklock.WithHooks(zklock.Hooks{
		Session: func(e zklock.SessionEvent) {
			select {
			case seat <- e.Server:
			default:
			}
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	lock, err := c.Mutex("orders/42").Acquire(t.Context(), zklock.WithLabel("refund 7"))
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(inspect.Handler(c))
	t.Cleanup(func() { b.open("about:blank"); srv.Close() })
	b.open(srv.URL + "/")
	b.until(live + " && " + contains("refund 7") + " && !" + contains("no lock was lost"))
	at := <-seat
	for _, s := range servers.Servers() {
		if s.Addr() == at {
			if err := s.Freeze(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Thaw() })
		}
	}
	b.until(live + " && " + contains("left "+at+", silent for ") + " && " + contains("; no lock was lost, ") + " && " + contains("refund 7"))
	t.Log(b.value(`document.querySelector(".left").innerText`))
	if !lock.Valid() {
		t.Errorf("the silence cost the lock: %v", lock.Err())
	}
}
