package inspect_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/inspect"
)

// shop makes locks that look like those of a service.
func shop(w *world) {
	w.hold(w.web.Mutex("orders/42"), "POST /orders/{id}/pay")
	w.wait(w.jobs.Mutex("orders/42"), "refund 7")
	w.hold(w.jobs.Mutex("import"), "row 1200 of 9000")
	w.hold(w.jobs.RWMutex("catalog").Reader(), "GET /catalog")
	w.wait(w.web.RWMutex("catalog").Writer(), "reindex")
	w.hold(w.web.Semaphore("uploads", 2), "PUT /uploads/{id}")
}

const live = `document.getElementById("state").textContent === "live"`

// In a browser the page is live and can be used with the keyboard: the policy allows the
// page's own script, style and events.
func TestPageInABrowser(t *testing.T) {
	b, w := newBrowser(t), newWorld(t)
	shop(w)
	l := w.hold(w.jobs.Mutex("batch"), "row 0")
	srv := httptest.NewServer(inspect.Handler(w.web))
	t.Cleanup(func() { b.open("about:blank"); srv.Close() })
	b.open(srv.URL + "/")
	b.until(live)
	b.until(contains("row 0"))
	if err := l.SetLabel(t.Context(), "row 1"); err != nil {
		t.Fatal(err)
	}
	b.until(contains("row 1") + " && !" + contains("row 0"))

	// The first row is that of the first name; the focus survives a change of the list.
	b.open(srv.URL + "/?sort=name")
	b.until(live + " && " + contains("row 1"))
	b.press("j")
	b.until(`document.activeElement.textContent === "batch"`)
	if err := l.SetLabel(t.Context(), "row 2"); err != nil {
		t.Fatal(err)
	}
	b.until(contains("row 2"))
	b.until(`document.activeElement.textContent === "batch"`)
	b.press("j")
	b.until(`document.activeElement.textContent === "catalog"`)
	b.press("k")
	b.press("Enter")
	b.until(live + " && " + contains("Queue of batch"))
	if err := l.SetLabel(t.Context(), "row 3"); err != nil {
		t.Fatal(err)
	}
	b.until(contains("row 3"))
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.until(contains("No client holds this name"))
	b.press("Escape")
	b.until(live + " && " + contains("orders/42") + " && !" + contains("batch"))
	b.press("/")
	b.until(`document.activeElement.id === "filter"`)
	if errors := b.value(`getComputedStyle(document.querySelector("table")).borderCollapse`); errors != "collapse" {
		t.Errorf("the style sheet was not applied: border-collapse is %q", errors)
	}
	b.open(srv.URL + "/?name=orders%2F42")
	b.until(live + " && " + contains("refund 7") + ` && document.querySelector("td a[href^='#_c_']").textContent === "#1"`)
}

// A page whose stream ends, and which gets errors for a time, is live again afterwards.
func TestPageIsLiveAgainAfterErrors(t *testing.T) {
	b, w := newBrowser(t), newWorld(t)
	h := inspect.Handler(w.web)
	var down atomic.Bool
	refused := make(chan struct{}, 100)
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if down.Load() {
			http.Error(rw, "bad gateway", http.StatusBadGateway)
			if strings.HasSuffix(r.URL.Path, "/events") {
				refused <- struct{}{}
			}
			return
		}
		h.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() { b.open("about:blank"); srv.Close() })
	b.open(srv.URL + "/?name=x")
	b.until(live)
	down.Store(true)
	srv.CloseClientConnections()
	<-refused
	b.until("!(" + live + ")")
	down.Store(false)
	w.hold(w.jobs.Mutex("x"), "row 0")
	b.until(live + " && " + contains("row 0"))
}

// Of a queue that changes all the time one fetch fails. The page is live again, although a further event
// always waits.
func TestBusyPageIsLiveAfterAnError(t *testing.T) {
	b, w := newBrowser(t), newWorld(t)
	h := inspect.Handler(w.web)
	var fails atomic.Bool
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/events") && r.Header.Get("Sec-Fetch-Dest") == "empty" {
			time.Sleep(100 * time.Millisecond) // a slow link, so that the next event is there first
			if fails.CompareAndSwap(true, false) {
				http.Error(rw, "bad gateway", http.StatusBadGateway)
				return
			}
		}
		h.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() { b.open("about:blank"); srv.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	defer busy.Wait()
	defer cancel()
	busy.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			if l, err := w.jobs.Mutex("x").Acquire(ctx, zklock.WithLabel(fmt.Sprint("row ", n))); err == nil {
				time.Sleep(20 * time.Millisecond)
				_ = l.Release(context.Background())
			}
		}
	})
	b.open(srv.URL + "/?name=x")
	b.until(live + " && " + contains("row"))
	b.value(`states = []; new MutationObserver(() => states.push(state.textContent)).observe(state, {childList: true, characterData: true, subtree: true})`)
	fails.Store(true)
	b.until(`states.some((s) => s.startsWith("no answer from the server of this page")) && ` + live)
}

// The page has another background in light and in dark. ZKLOCK_INSPECT_PICTURES keeps the
// pictures, of a desktop and of a phone.
func TestPageInLightAndDark(t *testing.T) {
	b, w := newBrowser(t), newWorld(t)
	w.busyDay()
	srv := httptest.NewServer(inspect.Handler(w.web))
	t.Cleanup(func() { b.open("about:blank"); srv.Close() })
	backgrounds := make(map[string]bool)
	for _, scheme := range []string{"light", "dark"} {
		b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}})
		for screen, size := range map[string][3]int{"": {1200, 620, 1}, "-phone": {360, 740, 2}} {
			b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": size[0], "height": size[1], "deviceScaleFactor": size[2], "mobile": screen != ""})
			for page, path := range map[string]string{"list": "/", "queue": "/?name=warehouse%2Fstock%2Famsterdam-south-2", "process": "/?host=web-3&pid=812"} {
				if os.Getenv(picturesEnv) == "" && (page != "list" || screen != "") {
					continue // the colors are the same
				}
				b.open(srv.URL + path)
				b.until(live)
				backgrounds[b.value("getComputedStyle(document.body).backgroundColor")] = true
				png, err := base64.StdEncoding.DecodeString(fmt.Sprint(b.call("Page.captureScreenshot", map[string]any{"format": "png"})["data"]))
				if err != nil || !strings.HasPrefix(string(png), "\x89PNG") {
					t.Fatalf("a screenshot of %d bytes: %v", len(png), err)
				}
				if dir := os.Getenv(picturesEnv); dir != "" {
					if err := os.WriteFile(filepath.Join(dir, "inspect-"+page+screen+"-"+scheme+".png"), png, 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	if len(backgrounds) != 2 {
		t.Errorf("backgrounds %v, want one for light and one for dark", backgrounds)
	}
}

// What clients write stays text when the script puts it into the page that is open.
func TestScriptsOfClientsDoNotRun(t *testing.T) {
	b, w := newBrowser(t), newWorld(t)
	srv := httptest.NewServer(inspect.Handler(w.web))
	t.Cleanup(func() { b.open("about:blank"); srv.Close() })
	b.open(srv.URL + "/")
	b.until(live + " && " + contains("No name is in use"))
	const evil = `<script>window.ran = 1</script><img src=x onerror="window.ran = 2">`
	l := w.hold(w.jobs.Mutex(evil), "harmless")
	b.until(contains(evil))
	b.open(srv.URL + "/?name=" + url.QueryEscape(evil))
	b.until(live + " && " + contains("harmless"))
	if err := l.SetLabel(t.Context(), evil+"2"); err != nil {
		t.Fatal(err)
	}
	b.until(contains(evil + "2"))
	if found := b.value(`document.querySelectorAll("main script, main img").length + " " + window.ran`); found != "0 undefined" {
		t.Errorf("elements of clients, and what they ran: %s", found)
	}
}

// The keyboard alone is enough: Tab and Enter reach everything, without the keys of the script.
func TestKeyboardAlone(t *testing.T) {
	b, w := newBrowser(t), newWorld(t)
	shop(w)
	srv := httptest.NewServer(inspect.Handler(w.web))
	t.Cleanup(func() { b.open("about:blank"); srv.Close() })
	b.open(srv.URL + "/")
	b.until(live)
	focus := func(expression string) {
		t.Helper()
		for range 40 {
			if b.value("document.activeElement."+expression) == "true" {
				return
			}
			b.press("Tab")
		}
		t.Fatalf("Tab does not reach %s", expression)
	}
	focus(`id === "filter"`)
	for _, key := range "orders" {
		b.press(string(key))
	}
	b.press("Enter")
	b.until(live + " && location.search.includes('q=orders') && " + contains("orders/42") + ` && !document.querySelector("tbody").innerText.includes("catalog")`)
	focus(`textContent === "orders/42"`)
	b.press("Enter")
	b.until(live + " && " + contains("Queue of orders/42"))
	focus(`textContent === "#1"`)
	b.press("Enter")
	b.until(`location.hash.startsWith("#_c_") && document.querySelector("tr:target .number").textContent === "1"`)
	focus(`textContent === "Locks"`)
	b.press("Enter")
	b.until(live + " && location.search === '' && " + contains("catalog"))
}

// With ten thousand names of which one is stuck, the head line and the first row say so at once. The
// page has twenty rows; the others can be reached, and the filter finds a name while the reader types.
func TestPageWithTenThousandNames(t *testing.T) {
	long.Test(t, "ten thousand names")
	b, w := newBrowser(t), newWorld(t)
	w.hold(w.web.Mutex("job-5000"), "row 7")
	w.wait(w.jobs.Mutex("job-5000"), "row 8")
	s, err := w.ensemble.Connector().Connect(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	acl := driver.OpenACL(driver.PermAll)
	for i := range 10_000 {
		if i == 5000 {
			continue
		}
		path := fmt.Sprintf("/zklock/job-%04d", i)
		if _, err := s.Create(t.Context(), path, []byte("zklock"), driver.Persistent, acl); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Create(t.Context(), path+"/_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-__WRIT__", nil, driver.EphemeralSequential, acl); err != nil {
			t.Fatal(err)
		}
	}
	srv := httptest.NewServer(inspect.Handler(w.web))
	t.Cleanup(func() { b.open("about:blank"); srv.Close() })
	began := time.Now()
	b.open(srv.URL + "/")
	b.until(contains("10,000 names, 1 waiting process,"))
	t.Logf("the answer took %v", time.Since(began))
	b.until(`document.querySelector(".total").innerText.includes("job-5000, held by web-3/812") && document.querySelector("tbody th").innerText === "job-5000"`)
	b.until(live + ` && document.querySelectorAll("main tbody tr").length === 20 && ` + contains("Names 1 to 20 of 10,000"))
	b.press("/")
	b.until(`document.activeElement.id === "filter"`)
	for _, key := range "b-9998" {
		b.press(string(key))
	}
	began = time.Now()
	b.until(live + ` && document.querySelectorAll("main tbody tr").length === 1 && ` + contains("job-9998") + ` && document.activeElement.id === "filter"`)
	t.Logf("the filter took %v", time.Since(began))
	b.open(srv.URL + "/?sort=name&rows=1000&page=10")
	b.until(live + ` && document.querySelectorAll("main tbody tr").length === 1000 && ` + contains("job-9999"))
}
