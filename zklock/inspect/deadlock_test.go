package inspect_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/inspect"
)

// onList lets an injector see only lists of the register of waits.
func onList(inj faultdriver.Injector) faultdriver.Injector {
	return faultdriver.If("about the register", func(op faultdriver.Op) bool {
		return len(op.Paths) > 0 && strings.HasSuffix(op.Paths[0], "/%waits")
	}, faultdriver.On(faultdriver.Children, inj))
}

// open opens a client with faults, and without heartbeats in an hour.
func (w *world) open(inj faultdriver.Injector, as zklock.Identity) *zklock.Client {
	w.Helper()
	cfg := zklock.Config{Connector: faultdriver.Wrap(w.ensemble.Connector(), inj), SessionTimeout: time.Hour, ConnectTimeout: time.Second, DeadlockTimeout: 50 * time.Millisecond}
	c, err := zklock.OpenConfig(cfg, zklock.WithLogger(nil), zklock.WithIdentity(as))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = c.Close() })
	return c
}

// deadlock makes two processes wait for each other until the function that it returns is called. Their clients
// cannot list the register, so they do not end the deadlock. The second wait is registered last.
func (w *world) deadlock() (end func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	var waits sync.WaitGroup
	var locks []*zklock.Lock
	end = sync.OnceFunc(func() {
		cancel()
		waits.Wait()
		for _, l := range locks {
			_ = l.Release(context.Background())
		}
	})
	w.Cleanup(end)
	names, labels := []string{"customers/7", "orders/42"}, []string{"POST /merge", "POST /move"}
	var clients []*zklock.Client
	for i, as := range []zklock.Identity{{Host: "web-1", PID: 77}, {Host: "web-3", PID: 812}} {
		clients = append(clients, w.open(onList(faultdriver.Drop()), as))
		locks = append(locks, w.hold(clients[i].Mutex(names[i]), labels[i]))
	}
	for i, l := range locks {
		waits.Go(func() {
			ctx, cancel := l.Context(ctx)
			defer cancel()
			if _, err := clients[i].Mutex(names[1-i]).Acquire(ctx, zklock.WithLabel(labels[i])); !errors.Is(err, context.Canceled) {
				w.Errorf("%s: %v", names[1-i], err)
			}
		})
		for began := time.Now(); strings.Count(w.ensemble.Dump(), " w1-") <= i; time.Sleep(10 * time.Millisecond) {
			if time.Since(began) > patience {
				w.Fatalf("wait %d is not registered:\n%s", i, w.ensemble.Dump())
			}
		}
	}
	return end
}

// A deadlock is on the list, and on the pages of its names and processes: each wait with what it holds, and
// which of them fails. It goes when it ends.
func TestDeadlockIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		h := inspect.Handler(w.web)
		const (
			circle = "deadlock: each of these 2 waits for the next, and the last for the first\n" +
				"  web-3/812 \"POST /move\" holds orders/42 and waits for customers/7: this wait fails, and the others go on\n" +
				"  web-1/77 \"POST /merge\" holds customers/7 and waits for orders/42\n"
			ends = `<q>POST /move</q> holds <a href="?name=orders%2F42">orders/<wbr>42</a> and waits for <a href="?name=customers%2F7">customers/<wbr>7</a>: <strong>this wait fails</strong>, and the others go on</li>`
		)
		end := w.deadlock()
		below := "\n  " + strings.ReplaceAll(strings.TrimSpace(circle), "\n", "\n  ") + "\n"
		for query, wants := range map[string][]string{
			"/?format=text":                    {circle, "2 names, 2 waiting processes, 1 deadlock, longest wait"},
			"/?format=text&q=CUST":             {circle},
			"/?format=text&prefix=orders/":     {circle},
			"/?format=text&host=web-1":         {circle},
			"/?format=text&host=web-3&pid=812": {circle},
			"/?format=text&name=orders/42":     {"web-3/812 \"POST /move\" holds orders/42, asked 0s ago" + below},
			"/?format=text&name=customers/7":   {"web-1/77 \"POST /merge\" holds customers/7, asked 0s ago" + below},
			"/":                                {"<h2 id=\"mover\">Deadlocks</h2>", ends, `<strong class="dead">1 deadlock</strong>`},
			"/?host=web-1&pid=77":              {"<h2 id=\"mover\">What holds up its waits</h2>", ends},
			"/?name=orders/42":                 {"<h2 id=\"mover\">What holds it up</h2>", ends},
		} {
			text := get(t, h, query).Body.String()
			for _, want := range wants {
				if strings.Count(text, want) != 1 {
					t.Errorf("%s: lacks, or repeats\n%s\nin\n%s", query, want, text)
				}
			}
			if strings.Contains(text, "a circle, if one request does both") || strings.Contains(text, "and its process holds") {
				t.Errorf("%s: a guess about the deadlock:\n%s", query, text)
			}
		}
		for _, query := range []string{"q=x", "prefix=x", "host=web-1&pid=812", "host=jobs-1", "name=x", "session=0x1"} {
			if text := get(t, h, "/?format=text&"+query).Body.String(); strings.Contains(text, "this wait fails") {
				t.Errorf("%s: shows a deadlock of others:\n%s", query, text)
			}
		}
		end()
		for _, query := range []string{"/", "/?name=orders/42"} {
			if text := get(t, h, query).Body.String(); strings.Contains(text, "deadlock") {
				t.Errorf("%s: a deadlock that is over:\n%s", query, text)
			}
		}
	})
}

// If the register cannot be read, the page says so, and shows the rest.
func TestRegisterThatThePageCannotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.deadlock()
		h := inspect.Handler(w.open(onList(faultdriver.Fail(driver.ErrNoAuth)), zklock.Identity{}))
		for _, query := range []string{"/", "/?format=text", "/?name=orders/42", "/?format=text&name=orders/42", "/?host=web-1"} {
			rec := get(t, h, query)
			text := rec.Body.String()
			if rec.Code != 200 || !strings.Contains(text, "orders/") || strings.Contains(text, "this wait fails") ||
				!strings.Contains(text, "it is not known whether there is a deadlock: ") || !strings.Contains(text, `data-error=""`) && !strings.Contains(query, "text") {
				t.Errorf("%s: %d\n%s", query, rec.Code, text)
			}
		}
		if text := get(t, h, "/?format=text&name=orders/42").Body.String(); !strings.Contains(text, "a circle, if one request does both; it is not registered as a deadlock") {
			t.Errorf("without the register there is no guess:\n%s", text)
		}
	})
}

// All pages that show the list share its reading. It costs a sync and a list of the register more than without
// deadlocks, the same again while a process waits, and some reads while there is a deadlock.
func TestCostOfDeadlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var mu sync.Mutex
		register := make(map[string]int) // requests about the register, by kind
		count := faultdriver.If("counts", func(op faultdriver.Op) bool {
			mu.Lock()
			defer mu.Unlock()
			if len(op.Paths) > 0 && strings.Contains(op.Paths[0], "/%waits") {
				register[fmt.Sprint(op.Kind)]++
			}
			return false
		}, faultdriver.None())
		c := w.open(count, zklock.Identity{Host: "inspector"})
		cost := func(f func()) (reads memcontrol.Ops, ofRegister string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			clear(register)
			mu.Unlock()
			before := memcontrol.Of(w.ensemble).Ops()
			f()
			synctest.Wait()
			after := memcontrol.Of(w.ensemble).Ops()
			mu.Lock()
			defer mu.Unlock()
			return memcontrol.Ops{Gets: after.Gets - before.Gets, Children: after.Children - before.Children}, fmt.Sprint(register)
		}
		h := inspect.Handler(c)
		ctx, leave := context.WithCancel(t.Context())
		var pages sync.WaitGroup
		defer pages.Wait()
		defer leave()
		check := func(lists, gets int, want string) { // of 10 refreshes
			t.Helper()
			list, _ := cost(func() {
				for _, err := range c.Locks(t.Context(), "") {
					if err != nil {
						t.Error(err)
					}
				}
			})
			reads, ofRegister := cost(func() { time.Sleep(20 * time.Second) })
			if most := (memcontrol.Ops{Gets: 10 * (list.Gets + gets), Children: 10 * (list.Children + lists)}); reads != most || ofRegister != want {
				t.Errorf("ten refreshes for three pages cost %+v, of the register %s, want %+v, %s", reads, ofRegister, most, want)
			}
		}
		w.hold(c.Mutex("x"), "a name")
		for range 3 {
			pages.Go(func() {
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/api/events", nil).WithContext(ctx))
			})
		}
		time.Sleep(time.Second)
		check(1, 0, "map[children:10 sync:10]")
		w.deadlock()
		time.Sleep(time.Second)
		check(2, 6, "map[children:20 get:20 sync:20]") // one more, since requests wait: what these hold and wait for
	})
}

// In a browser the deadlock is there, and goes when it ends. ZKLOCK_INSPECT_PICTURES keeps the picture that
// docs/guarantees.md shows.
func TestDeadlockInABrowser(t *testing.T) {
	b, w := newBrowser(t), newWorld(t)
	end := w.deadlock()
	srv := httptest.NewServer(inspect.Handler(w.web))
	t.Cleanup(func() { b.open("about:blank"); srv.Close() })
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 1200, "height": 510, "deviceScaleFactor": 1, "mobile": false})
	b.open(srv.URL + "/?name=orders%2F42")
	b.until(live + " && " + contains("this wait fails") + ` && document.querySelectorAll(".tree .member").length === 2 && document.querySelectorAll("tbody tr").length === 2`)
	png, err := base64.StdEncoding.DecodeString(fmt.Sprint(b.call("Page.captureScreenshot", map[string]any{"format": "png"})["data"]))
	if err != nil || !strings.HasPrefix(string(png), "\x89PNG") {
		t.Fatalf("a screenshot of %d bytes: %v", len(png), err)
	}
	if dir := os.Getenv(picturesEnv); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, "inspect-deadlock.png"), png, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// A wait whose registration is made again is in no circle for a moment, so the link is looked for and followed at once.
	b.until(`(link => link !== null && (link.click(), true))(document.querySelector(".member a[href*='customers']"))`)
	b.until(live + " && " + contains("Queue of customers/7") + " && " + contains("this wait fails"))
	b.open(srv.URL + "/")
	b.until(live + " && " + contains("1 deadlock") + " && " + contains("this wait fails"))
	end()
	b.until(live + " && !" + contains("deadlock"))
}
