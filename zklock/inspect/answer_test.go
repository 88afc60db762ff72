package inspect_test

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/inspect"
)

// The head line and the text for terminals say what is stuck and which process must move, across names.
func TestTextAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		h := inspect.Handler(w.web)
		text := func(query string, wants ...string) {
			t.Helper()
			rec := get(t, h, "/?format=text"+query)
			if kind := rec.Header().Get("Content-Type"); rec.Code != 200 || kind != "text/plain; charset=utf-8" {
				t.Errorf("%s: %d, %s", query, rec.Code, kind)
			}
			for _, want := range wants {
				if !strings.Contains(rec.Body.String(), want) {
					t.Errorf("%s: lacks %q:\n%s", query, want, rec.Body)
				}
			}
		}
		text("", "/zklock\nthe process of this page holds 0 locks\n0 names, 0 waiting processes")
		w.hold(w.web.Mutex("orders/42"), "POST /pay")
		time.Sleep(20 * time.Second)
		w.wait(w.jobs.Mutex("orders/42"), "refund")
		time.Sleep(time.Minute)
		text("", `1 name, 1 waiting process, longest wait 1m0s: orders/42, held by web-3/812 "POST /pay", which asked 1m20s ago`, "orders/42  web-3/812  asked 1m20s ago  1        1m0s          POST /pay")
		w.hold(w.jobs.Mutex("customers/7"), "merge")
		w.wait(w.web.Mutex("customers/7"), "POST /pay")
		text("&name=orders/42", `web-3/812 "POST /pay" holds orders/42, asked 1m20s ago`, "  its process waits for customers/7", `    jobs-1/7 "merge" holds customers/7`, "its process waits for orders/42, since 1m0s: a circle, if one request does both; it is not registered as a deadlock", "2  waits")
		text("&host=jobs-1&pid=7", "jobs-1/7 holds 1 and waits for 1; waiting for what it holds: 1", "customers/7  holds", "orders/42    waits")
		text("&host=jobs-1&pid=8", "jobs-1/8 holds 0 and waits for 0")
		text("&q=CUST", "customers/7")
	})
}

// "Held for" is the time that a contender has held, as far as the page has seen it. Otherwise the page
// says when the holder has asked.
func TestHeldSinceIsTheGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		first := w.hold(w.web.Mutex("x"), "first")
		w.wait(w.jobs.Mutex("x"), "second")
		time.Sleep(10 * time.Minute)
		list, name := followed(t, w.web, "prefix="), followed(t, w.web, "name=x")
		for _, page := range []func() string{list, name} {
			if text := page(); !strings.Contains(text, `asked <time`) || strings.Contains(text, `> for <time`) {
				t.Errorf("a holder that was there before the page:\n%s", text)
			}
		}
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		for _, page := range []func() string{list, name} {
			if text := page(); strings.Contains(text, `asked <time`) || !regexp.MustCompile(`>(28|29|30)s<`).MatchString(text) {
				t.Errorf("30 s after a grant that the page has seen:\n%s", text)
			}
		}
	})
}

// The page has the requests that wait inside its own process: they have no queue nodes.
func TestRequestsOfThisProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.hold(w.web.Mutex("x"), "first")
		for range 11 {
			w.wait(w.web.Mutex("x"), "next")
		}
		h := inspect.Handler(w.web)
		for query, want := range map[string]string{"/": "0 and 11 requests here", "/?name=x": "waiting in this process: 11 requests", "/?format=text": "1 name, 0 waiting processes and 11 requests of this process"} {
			if text := get(t, h, query).Body.String(); !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", query, want, text)
			}
		}
		if n := w.web.Waiting(); len(n) != 1 || n["x"] != 11 {
			t.Errorf("Waiting: %v", n)
		}
	})
}

// A path that is not one of the page's is not found, wherever the page is mounted.
func TestOtherPathsAreNotFound(t *testing.T) {
	w := newWorld(t)
	h := inspect.Handler(w.web)
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.Handle("/debug/zklock/", h)
	mux.Handle("GET /stripped/page/", http.StripPrefix("/stripped", h))
	for _, mount := range []string{"/", "/debug/zklock/", "/stripped/page/"} {
		for path, code := range map[string]int{"": 200, "api/locks": 200, "api/locks/x": 200, "app.js": 200, "api/nothing": 404, "api/": 404, "api": 404, "api/locks/orders/42": 404,
			"favicon.ico": 404, "nothing": 404, "nothing/": 404, "page.html": 404, "api/locks/": 404} {
			if rec := get(t, mux, mount+path); rec.Code != code {
				t.Errorf("%s: %d, want %d", mount+path, rec.Code, code)
			}
		}
	}
	// Without a pattern, the handler cannot know where it begins.
	for path, code := range map[string]int{"/debug/zklock/": 200, "/debug/zklock": 307, "/debug/zklock/api/locks": 200, "/debug/zklock/favicon.ico": 404, "/debug/zklock/api/nothing": 404, "/api/locks/orders/42": 404} {
		if rec := get(t, h, path); rec.Code != code {
			t.Errorf("without a pattern, %s: %d, want %d", path, rec.Code, code)
		}
	}
}

// Answers are compressed for clients that accept it; the stream of events is not.
func TestAnswersAreCompressed(t *testing.T) {
	w := newWorld(t)
	w.hold(w.web.Mutex("orders/42"), "x")
	h := inspect.Handler(w.web)
	for path, want := range map[string]string{"/": "orders/42", "/api/locks": "orders/42", "/app.js": "EventSource", "/api/locks?limit=0": "limit"} {
		for accept, zipped := range map[string]bool{"": false, "gzip": true, "br, gzip;q=0.5": true, "gzip;q=0": false} {
			r := httptest.NewRequest("GET", path, nil)
			r.Header.Set("Accept-Encoding", accept)
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			var body io.Reader = rec.Body
			if (rec.Header().Get("Content-Encoding") == "gzip") != zipped {
				t.Errorf("%s, %q: Content-Encoding %q", path, accept, rec.Header().Get("Content-Encoding"))
				continue
			}
			if zipped {
				var err error
				if body, err = gzip.NewReader(body); err != nil {
					t.Fatal(err)
				}
			}
			if text, err := io.ReadAll(body); err != nil || !strings.Contains(string(text), want) {
				t.Errorf("%s, %q: %v, %s", path, accept, err, text)
			}
		}
	}
	r := httptest.NewRequest("GET", "/api/events", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r.WithContext(ctx))
	if !strings.HasPrefix(rec.Body.String(), "event: silent\n") || rec.Header().Get("Content-Encoding") != "" {
		t.Errorf("events: %q", rec.Body)
	}
}

// The list can be sorted, and each page of it be reached.
func TestListIsSorted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		hold := func(name string, waiters int) {
			w.hold(w.web.Mutex(name), "h")
			time.Sleep(time.Second)
			for range waiters {
				c, err := zklock.OpenConnector(w.ensemble.Connector(), zklock.WithLogger(nil), zklock.WithHooks(zklock.Hooks{Wait: func(ctx context.Context, _ zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
					w.waiting <- struct{}{}
					return ctx, nil
				}}))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				w.wait(c.Mutex(name), "w")
				time.Sleep(time.Second)
			}
		}
		hold("c", 1)
		hold("b", 0)
		hold("a", 2)
		h := inspect.Handler(w.web)
		for query, want := range map[string]string{"": "c a b", "sort=wait": "c a b", "sort=waiters": "a c b", "sort=age": "c b a", "sort=name": "a b c", "sort=bogus": "c a b",
			"sort=name&rows=2": "a b", "sort=name&rows=2&page=2": "c", "sort=name&rows=2&page=9": "c", "q=B": "b"} {
			var got []string
			for line := range strings.Lines(get(t, h, "/?format=text&"+query).Body.String()) {
				if fields := strings.Fields(line); len(fields) > 1 && len(fields[0]) == 1 && fields[0] >= "a" {
					got = append(got, fields[0])
				}
			}
			if text := strings.Join(got, " "); text != want {
				t.Errorf("%s: %q, want %q", query, text, want)
			}
		}
	})
}
