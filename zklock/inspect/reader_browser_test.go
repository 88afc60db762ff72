package inspect_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/inspect"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// crowd makes names and queues without clients. It returns a function that makes a further
// contender, and a session that may delete them.
func (w *world) crowd() (add func(name, host string, pid int, label string, asked time.Duration) (node string), s driver.Session) {
	w.Helper()
	if err := w.web.Ping(w.Context()); err != nil {
		w.Fatal(err)
	}
	s, err := w.ensemble.Connector().Connect(w.Context(), 0)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = s.Close(context.Background()) })
	acl := driver.OpenACL(driver.PermAll)
	made := 0
	return func(name, host string, pid int, label string, asked time.Duration) string {
		w.Helper()
		path := "/zklock/" + strings.ReplaceAll(name, "/", "%2F")
		_, _ = s.Create(w.Context(), path, []byte("zklock"), driver.Persistent, acl) // it may exist
		made++
		data := fmt.Sprintf(`{"host":%q,"pid":%d,"label":%q,"mode":"exclusive","since":%d,"sent":%d,"trace":"00-4bf92f3577b34da6a3ce92%010d-00f067aa0ba902b7-01"}`, host, pid, label, time.Now().Add(-asked).UnixMilli(), time.Now().UnixMilli(), made)
		node, err := s.Create(w.Context(), path+"/_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-__WRIT__", []byte(data), driver.EphemeralSequential, acl)
		if err != nil {
			w.Fatal(err)
		}
		return node
	}, s
}

// busyDay makes a thousand names of a shop, and a queue of two hundred.
func (w *world) busyDay() {
	add, _ := w.crowd()
	for i := range 1000 {
		add(fmt.Sprintf("orders/%d", 1000+i), fmt.Sprintf("web-%d", i%20), 800+i%20, "POST /orders/{id}/pay", time.Duration(i%90)*time.Second)
		if i%170 == 0 {
			add(fmt.Sprintf("orders/%d", 1000+i), "jobs-1", 7, "refund", time.Duration(i%40)*time.Second)
		}
	}
	add("warehouse/stock/amsterdam-south-2", "web-3", 812, "POST /orders/{id}/reserve", 130*time.Second)
	for i := range 199 {
		add("warehouse/stock/amsterdam-south-2", fmt.Sprintf("web-%d", i%20), 800+i%20, "POST /orders/{id}/reserve", 126*time.Second-time.Duration(i)*600*time.Millisecond)
	}
}

// A queue changes again and again while a reader has selected the node of a contender, and has
// scrolled to it: the selection, its place on the screen and the focus stay. If the contender leaves, its
// row stays, marked, until the reader selects something else.
func TestReaderIsLeftAlone(t *testing.T) {
	b, w := newBrowser(t), newWorld(t)
	refreshes := long.Count(t, "ZKLOCK_INSPECT_REFRESHES", 5, 30)
	add, s := w.crowd()
	var nodes []string
	for i := range 200 {
		nodes = append(nodes, add("orders/42", "web-3", 800+i, fmt.Sprintf("request %d", i), time.Minute))
	}
	var pages atomic.Int64
	h := inspect.Handler(w.web)
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/") {
			pages.Add(1)
		}
		h.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() { b.open("about:blank"); srv.Close() })
	b.open(srv.URL + "/?name=orders%2F42")
	b.until(live + ` && document.querySelectorAll("tbody tr").length === 200`)
	b.value(`
		row = document.querySelectorAll("tbody tr")[150];
		row.querySelector("a").focus();
		row.scrollIntoView({block: "center"});
		getSelection().selectAllChildren(row.querySelector(".ids:last-child code"));
		top0 = row.getBoundingClientRect().top;
		seen = () => [String(getSelection()), document.activeElement.href, Math.abs(row.getBoundingClientRect().top - top0) < 1.5].join(" ");
		before = seen()`)
	before := b.value("before")
	if !strings.Contains(before, "__WRIT__0000000150@0x") {
		t.Fatalf("selected: %s", before)
	}
	for n := range refreshes {
		seen := pages.Load()
		if err := s.Delete(t.Context(), nodes[n], driver.AnyVersion); err != nil {
			t.Fatal(err)
		}
		last := add("orders/42", "jobs-1", n, fmt.Sprintf("arrival %d", n), time.Second)
		b.until(contains(fmt.Sprintf("arrival %d", n)))
		if pages.Load() == seen {
			t.Fatalf("the page shows %s without a fetch", last)
		}
		if now := b.value("seen()"); now != before {
			t.Fatalf("after %d refreshes: %s, before: %s", n+1, now, before)
		}
	}
	if err := s.Delete(t.Context(), nodes[150], driver.AnyVersion); err != nil {
		t.Fatal(err)
	}
	b.until(`row.classList.contains("gone") && row.isConnected`)
	if now := b.value(`String(getSelection())`); !strings.HasPrefix(before, now) || now == "" {
		t.Errorf("selected after the contender has left: %q", now)
	}
	b.value(`getSelection().removeAllRanges(); document.activeElement.blur()`)
	b.until(`!row.isConnected && document.querySelectorAll("tbody tr").length === 199`)
}

// While the ensemble does not answer, the page is grey and says since when; the table stays, and the
// page is live again afterwards.
func TestOutageIsShownAtOnce(t *testing.T) {
	for query, cut := range map[string]memdriver.Cut{"": memdriver.AroundClients(0).Reset(), "?name=orders%2F42": memdriver.AroundClients(0)} {
		if query != "" && !long.On() {
			continue // a silent outage shows when the driver gives the connection up
		}
		b, w := newBrowser(t), newWorld(t)
		shop(w)
		srv := httptest.NewServer(inspect.Handler(w.web))
		t.Cleanup(func() { b.open("about:blank"); srv.Close() })
		b.open(srv.URL + "/" + query)
		b.until(live + " && " + contains("refund 7") + " || " + live + " && " + contains("row 1200"))
		w.ensemble.Partition(cut)
		began := time.Now()
		b.until(`document.body.classList.contains("stale") && document.getElementById("state").textContent.startsWith("no answer from the ensemble since ")`)
		t.Logf("%q: grey after %v", query, time.Since(began))
		if b.value(contains("orders/42")) != "true" || b.value(`document.getElementById("state").textContent.includes("live")`) == "true" {
			t.Errorf("the page in an outage:\n%s", b.value("document.body.innerText"))
		}
		w.ensemble.Heal()
		b.until(live + ` && !document.body.classList.contains("stale") && ` + contains("orders/42"))
	}
}

// In an outage a stream breaks, and another process answers, which has read nothing from the ensemble yet. The page keeps its table, with the error, and is live again afterwards.
func TestTableOutlastsServersWithoutOne(t *testing.T) {
	b, w := newBrowser(t), newWorld(t)
	shop(w)
	cfg, err := zklock.ParseURL("mem://?connect_timeout=500ms")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Connector = w.ensemble.Connector()
	c, err := zklock.OpenConfig(cfg, zklock.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	before, after := inspect.Handler(w.web), inspect.Handler(c)
	var restarted atomic.Bool
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if restarted.Load() {
			after.ServeHTTP(rw, r)
		} else {
			before.ServeHTTP(rw, r)
		}
	}))
	t.Cleanup(func() { b.open("about:blank"); srv.Close() })
	for _, query := range []string{"", "?name=orders%2F42"} {
		restarted.Store(false)
		b.open(srv.URL + "/" + query)
		b.until(live + " && " + contains("orders/42"))
		rows := b.value(`document.querySelectorAll("tbody tr").length`)
		w.ensemble.Partition(memdriver.AroundClients(0).Reset())
		restarted.Store(true)
		srv.CloseClientConnections()
		b.until(contains("no usable ZooKeeper session for 500ms"))
		if now := b.value(`document.querySelectorAll("tbody tr").length`); now != rows || b.value(`document.body.classList.contains("stale")`) != "true" {
			t.Errorf("%q: %s rows before the outage, %s in it:\n%s", query, rows, now, b.value("document.body.innerText"))
		}
		if query == "" {
			b.open(srv.URL + "/") // a page that knows nothing says no numbers
			b.until(contains("no usable ZooKeeper session for 500ms"))
			if b.value(contains("0 names")) == "true" {
				t.Errorf("a page without an answer:\n%s", b.value("document.body.innerText"))
			}
		}
		w.ensemble.Heal()
		b.until(live + " && " + contains("orders/42") + " && !" + contains("no usable ZooKeeper session"))
		if query == "" { // this page was opened in the outage
			b.value(`filter.value = "row"; filter.dispatchEvent(new Event("input"))`)
			b.until(contains("No name is in use that contains row"))
		}
	}
}

// On a phone nothing is wider than the screen, and a row is not high.
func TestPageOnAPhone(t *testing.T) {
	b, w := newBrowser(t), newWorld(t)
	w.busyDay()
	srv := httptest.NewServer(inspect.Handler(w.web))
	t.Cleanup(func() { b.open("about:blank"); srv.Close() })
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": true})
	for _, page := range []string{"", "?name=warehouse%2Fstock%2Famsterdam-south-2", "?host=web-3", "?host=web-3&pid=812"} {
		b.open(srv.URL + "/" + page)
		b.until(live + ` && document.querySelectorAll("tbody tr").length > 0`)
		if width := b.value(`document.documentElement.scrollWidth + " " + document.body.scrollWidth`); width != "360 360" {
			t.Errorf("%q: %s pixels wide, want 360", page, width)
		}
		if high := b.value(`Math.max(...[...document.querySelectorAll("tbody tr")].map(r => r.offsetHeight)) <= 130`); high != "true" {
			t.Errorf("%q: a row is %s pixels high", page, b.value(`Math.max(...[...document.querySelectorAll("tbody tr")].map(r => r.offsetHeight))`))
		}
	}
}

// A button copies the line that asks a holder to give its lock back, with and without a clipboard.
func TestRevocationIsCopied(t *testing.T) {
	b, w := newBrowser(t), newWorld(t)
	l := w.hold(w.web.Mutex("it's/42"), "POST /pay")
	srv := httptest.NewServer(inspect.Handler(w.web))
	t.Cleanup(func() { b.open("about:blank"); srv.Close() })
	want := fmt.Sprintf(`zklock revoke 'it'\''s/42' %s --reason ''`, nodeOf(t, w, "it's/42"))
	for what, script := range map[string]string{
		"clipboard":    `Object.defineProperty(navigator, "clipboard", {value: {writeText: async (t) => { copied = t; }}})`,
		"no clipboard": `Object.defineProperty(navigator, "clipboard", {value: undefined}); document.execCommand = () => { copied = String(getSelection()) || document.activeElement.value; }`,
	} {
		b.open(srv.URL + "/")
		b.until(live + ` && document.querySelector(".copy") !== null`)
		b.value("copied = ''; " + script)
		b.value(`document.querySelector(".copy").focus()`)
		b.press("Enter")
		b.until(`copied !== ""`)
		if got := b.value("copied"); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
		b.until(`document.getElementById("state").textContent.startsWith("copied: ") || ` + live)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// nodeOf returns NODE@ZXID of the holder of a name.
func nodeOf(t *testing.T, w *world, name string) string {
	t.Helper()
	found, err := w.web.Contenders(t.Context(), name)
	if err != nil || len(found) == 0 {
		t.Fatalf("%v, %v", found, err)
	}
	return fmt.Sprintf("%s@%#x", found[0].Node, found[0].Zxid)
}

// From a name to all that its holder's process holds and waits for, by links.
func TestProcessOfAHolder(t *testing.T) {
	b, w := newBrowser(t), newWorld(t)
	shop(w)
	srv := httptest.NewServer(inspect.Handler(w.web))
	t.Cleanup(func() { b.open("about:blank"); srv.Close() })
	b.open(srv.URL + "/?name=orders%2F42")
	b.until(live + ` && document.querySelectorAll("tbody tr").length === 2`)
	b.value(`document.querySelector("tbody a[href*='pid=812']").click()`)
	b.until(live + ` && ` + contains("web-3/812 holds 2 and waits for 1; waiting for what it holds: 1") + ` && document.querySelectorAll("tbody tr").length === 3`)
	b.value(`document.querySelector("tbody a[href*='session=']").click()`)
	b.until(live + ` && location.search.startsWith("?session=0x") && ` + contains("What session 0x"))
}
