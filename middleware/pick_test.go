package middleware_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/hostile"
	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
)

// locked serves a request on a mux with the pattern /orders/{id}. It returns the name
// of the lock that was held, and the status.
func locked(w *world, pick func(*http.Request) zklock.Acquirer, r *http.Request) (name string, status int) {
	mux := http.NewServeMux()
	h := middleware.New(pick)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if l, ok := zklock.FromContext(r.Context()); ok {
			name = l.Name()
		}
	}))
	mux.Handle("/orders/{id}", h)
	mux.Handle("/files/{id...}", h)
	mux.Handle("/{$}", h)
	return name, do(mux, r).Code
}

func TestPicks(t *testing.T) {
	w := newWorld(t)
	path := middleware.ByPathValue(w.client, "id", "orders/%s")
	header := middleware.ByHeader(w.client, "Idempotency-Key", "once/%s")
	query := middleware.ByQuery(w.client, "id", "%s-orders")
	long := make([]byte, 600)
	for i := range long {
		long[i] = 'x'
	}
	for _, c := range []struct {
		name   string
		pick   func(*http.Request) zklock.Acquirer
		url    string
		header []string
		want   string
		status int
	}{
		{"path value", path, "/orders/42", nil, "orders/42", 200},
		{"path value with escapes", path, "/orders/a%20b", nil, "orders/a b", 200},
		{"path value with a slash", path, "/orders/a%2Fb", nil, "orders/a/b", 200},
		{"path value that climbs", path, "/orders/..%2Fusers", nil, "", 400},
		{"path value that ends in a slash", path, "/orders/a%2F", nil, "", 400},
		{"path value with a control character", path, "/orders/a%00", nil, "", 400},
		{"path value that is not UTF-8", path, "/orders/%ff", nil, "", 400},
		{"path value too long", path, "/orders/" + string(long), nil, "", 400},
		{"no path value", path, "/files/", nil, "", 400},
		{"a route without a path value", path, "/", nil, "", 500},
		{"wildcard", path, "/files/a/b", nil, "orders/a/b", 200},
		{"header", header, "/", []string{"k1"}, "once/k1", 200},
		{"no header", header, "/", nil, "", 400},
		{"empty header", header, "/", []string{""}, "", 400},
		{"two headers", header, "/", []string{"k1", "k1"}, "", 400},
		{"query", query, "/?id=7", nil, "7-orders", 200},
		{"no query", query, "/", nil, "", 400},
		{"empty query", query, "/?id=", nil, "", 400},
		{"two queries", query, "/?id=7&id=8", nil, "", 400},
		{"optional path value", middleware.Optional(path), "/files/", nil, "", 200},
		{"optional path value of another route", middleware.Optional(path), "/", nil, "", 200},
		{"optional header", middleware.Optional(header), "/", nil, "", 200},
		{"optional query", middleware.Optional(query), "/", nil, "", 200},
		{"optional, and there", middleware.Optional(query), "/?id=7", nil, "7-orders", 200},
		{"optional, and bad", middleware.Optional(path), "/orders/a%2F..", nil, "", 400},
		{"optional, and ambiguous", middleware.Optional(query), "/?id=7&id=8", nil, "", 400},
		{"optional, and invalid", middleware.Optional(path), "/orders/a%2F%2Fb", nil, "", 400},
		{"all of two", func(r *http.Request) zklock.Acquirer { return zklock.All(path(r), query(r)) }, "/orders/42?id=7", nil, "7-orders,orders/42", 200},
		{"all of two, without one", func(r *http.Request) zklock.Acquirer { return zklock.All(path(r), query(r)) }, "/orders/42", nil, "", 400},
		{"a refused name", func(*http.Request) zklock.Acquirer { return zklock.Refuse(zklock.ErrInvalidName) }, "/", nil, "", 400},
		{"a refusal without a reason", func(*http.Request) zklock.Acquirer { return zklock.Refuse(nil) }, "/", nil, "", 500},
		{"a typed nil", func(*http.Request) zklock.Acquirer { return (*zklock.Mutex)(nil) }, "/", nil, "", 500},
		{"a zero lock", func(*http.Request) zklock.Acquirer { return new(zklock.Mutex) }, "/", nil, "", 500},
		{"a nil client", func(*http.Request) zklock.Acquirer { return (*zklock.Client)(nil).Mutex("a") }, "/", nil, "", 500},
		{"a zero client", func(*http.Request) zklock.Acquirer { return new(zklock.Client).Mutex("a") }, "/", nil, "", 500},
	} {
		r := httptest.NewRequest("GET", c.url, nil)
		r.Header["Idempotency-Key"] = c.header
		if got, status := locked(w, c.pick, r); got != c.want || status != c.status {
			t.Errorf("%s: lock %q, status %d; want %q, %d", c.name, got, status, c.want, c.status)
		}
	}
}

// Two requests have one lock only if all of their values are equal, whatever a client sends.
func TestValuesOfARequestNameNoOtherLock(t *testing.T) {
	w := newWorld(t)
	var held string
	h := middleware.New(middleware.ByPathValues(w.client, "events/%s/seats/%s", "event", "seat"))(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			l, _ := zklock.FromContext(r.Context())
			held = l.Name()
		}))
	hostile.Pairs(t, func(event, seat string) string {
		r := httptest.NewRequest("POST", "/", nil) // some of the values get to the handler by other routers only
		r.Pattern = "POST /events/{event}/seats/{seat}"
		r.SetPathValue("event", event)
		r.SetPathValue("seat", seat)
		held = ""
		if rec := do(h, r); held == "" {
			wantProblem(t, rec, 400, middleware.ReasonName)
		}
		return held
	})
}

func TestPathValues(t *testing.T) {
	w := newWorld(t)
	pick := middleware.ByPathValues(w.client, "events/%s/seats/%s", "event", "seat")
	serve := func(pick func(*http.Request) zklock.Acquirer, url string) (name string, status int) {
		mux := http.NewServeMux()
		h := middleware.New(pick)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if l, ok := zklock.FromContext(r.Context()); ok {
				name = l.Name()
			}
		}))
		mux.Handle("POST /events/{event}/seats/{seat}", h)
		mux.Handle("POST /events/{event}/rest/{seat...}", h)
		mux.Handle("POST /events/{event}", h)
		return name, do(mux, httptest.NewRequest("POST", url, nil)).Code
	}
	for _, c := range []struct {
		what   string
		pick   func(*http.Request) zklock.Acquirer
		url    string
		want   string
		status int
	}{
		{"two values", pick, "/events/gala/seats/7", "events/gala/seats/7", 200},
		{"a slash", pick, "/events/gala%2Fseats%2F7/seats/7", "events/gala%2Fseats%2F7/seats/7", 200},
		{"an escaped escape", pick, "/events/gala%252F/seats/7", "events/gala%252F/seats/7", 200},
		{"a climb", pick, "/events/..%2F..%2Forders/seats/7", "events/..%2F..%2Forders/seats/7", 200},
		{"the rest of a path", pick, "/events/gala/rest/7/8", "events/gala/seats/7%2F8", 200},
		{"not UTF-8", pick, "/events/%ff/seats/7", "", 400},
		{"too long", pick, "/events/" + strings.Repeat("x", 600) + "/seats/7", "", 400},
		{"no rest", pick, "/events/gala/rest/", "", 400},
		{"no rest, optional", middleware.Optional(pick), "/events/gala/rest/", "", 200},
		{"a route without a value", pick, "/events/gala", "", 500},
		{"one value", middleware.ByPathValues(w.client, "orders/%s", "event"), "/events/a%2Fb", "orders/a%2Fb", 200},
		{"a value twice", middleware.ByPathValues(w.client, "%s/%s", "event", "event"), "/events/a", "a/a", 200},
		{"a separator", middleware.ByPathValues(w.client, "%s:%s", "event", "seat"), "/events/a:b/seats/c:d", "a%3Ab:c%3Ad", 200},
		{"a key of no route, and no rest", middleware.ByPathValues(w.client, "%s/%s", "seat", "place"), "/events/gala/rest/", "", 500},
	} {
		if got, status := serve(c.pick, c.url); got != c.want || status != c.status {
			t.Errorf("%s: lock %q, status %d; want %q, %d", c.what, got, status, c.want, c.status)
		}
	}
}

func TestSetUpMistakesPanic(t *testing.T) {
	w := newWorld(t)
	for name, f := range map[string]func(){
		"a nil pick":               func() { middleware.New(nil) },
		"a nil handler":            func() { middleware.New(w.fixed)(nil) },
		"a format without %s":      func() { middleware.ByPathValue(w.client, "id", "orders") },
		"a format with two %s":     func() { middleware.ByHeader(w.client, "id", "%s/%s") },
		"a format with %d":         func() { middleware.ByQuery(w.client, "id", "%d") },
		"a path key in braces":     func() { middleware.ByPathValue(w.client, "{id}", "orders/%s") },
		"a path key with dots":     func() { middleware.ByPathValue(w.client, "id...", "orders/%s") },
		"an empty path key":        func() { middleware.ByPathValue(w.client, "", "orders/%s") },
		"a path key with a space":  func() { middleware.ByPathValue(w.client, "a b", "orders/%s") },
		"gin's form of a path key": func() { middleware.ByPathValue(w.client, ":id", "orders/%s") },
		"an empty header":          func() { middleware.ByHeader(w.client, "", "orders/%s") },
		"an empty parameter":       func() { middleware.ByQuery(w.client, "", "orders/%s") },
		"a path of no client":      func() { middleware.ByPathValue(nil, "id", "orders/%s") },
		"a header of no client":    func() { middleware.ByHeader(nil, "id", "orders/%s") },
		"a parameter of no client": func() { middleware.ByQuery(nil, "id", "orders/%s") },
		"readers of no client":     func() { middleware.ReadersAndWriters(nil, func(*http.Request) string { return "a" }) },
		"a format of no name":      func() { middleware.ByPathValue(w.client, "id", "orders//%s") },
		"values of no client":      func() { middleware.ByPathValues(nil, "%s/%s", "a", "b") },
		"no values":                func() { middleware.ByPathValues(w.client, "orders") },
		"too few values":           func() { middleware.ByPathValues(w.client, "%s/%s", "a") },
		"too many values":          func() { middleware.ByPathValues(w.client, "%s/%s", "a", "b", "c") },
		"values in braces":         func() { middleware.ByPathValues(w.client, "%s/%s", "a", "{b}") },
		"values of one text":       func() { middleware.ByPathValues(w.client, "%s%s", "a", "b") },
		"readers without a name":   func() { middleware.ReadersAndWriters(w.client, nil) },
		"an optional nothing":      func() { middleware.Optional[*http.Request](nil) },
		"a check without guard":    func() { middleware.WithSequencerCheck(nil, nil) },
	} {
		func() {
			defer func() {
				if v, ok := recover().(string); !ok || !strings.HasPrefix(v, "middleware: ") {
					t.Errorf("%s: recovered %v", name, v)
				}
			}()
			f()
		}()
	}
}

func TestReadersAreServedTogetherAndWritersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pick := middleware.ReadersAndWriters(w.client, func(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, "/") })
		var mu sync.Mutex
		readers, writers, together := 0, 0, 0
		h := middleware.New(pick)(w.watched(func(_ http.ResponseWriter, r *http.Request) {
			l, _ := zklock.FromContext(r.Context())
			n, want := &writers, zklock.Exclusive
			if r.Method == "GET" || r.Method == "HEAD" || r.Method == "OPTIONS" {
				n, want = &readers, zklock.Shared
			}
			if l.Mode() != want {
				t.Errorf("%s holds the lock %v, want %v", r.Method, l.Mode(), want)
			}
			mu.Lock()
			*n++
			together = max(together, readers)
			if writers > 1 || writers > 0 && readers > 0 {
				t.Errorf("%d writers and %d readers at once", writers, readers)
			}
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			*n--
			mu.Unlock()
		}))
		var wg sync.WaitGroup
		serve := func(methods ...string) {
			for _, method := range methods {
				wg.Go(func() {
					if rec := do(h, httptest.NewRequest(method, "/orders", nil)); rec.Code != 200 {
						t.Errorf("%s: status %d", method, rec.Code)
					}
				})
			}
			wg.Wait()
		}
		serve("GET", "HEAD", "OPTIONS", "GET")
		if together != 4 {
			t.Errorf("%d of 4 readers were served together", together)
		}
		serve("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "GET")
		wantProblem(t, do(h, httptest.NewRequest("GET", "/", nil)), 400, middleware.ReasonName)
	})
}

// TestPathKeyThatNoRequestCanHaveIsLogged: if a route does not have the path value of the pick,
// every request to it is refused. The program is set up wrong, and the middleware logs that.
func TestPathKeyThatNoRequestCanHaveIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		lock := func(pick func(*http.Request) zklock.Acquirer, log *strings.Builder) http.Handler {
			return middleware.New(pick, middleware.WithLogger(slog.New(slog.NewTextHandler(log, nil))))(
				http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		}
		onMux := func(h http.Handler) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("POST /orders/{id}/pay", h)
			mux.Handle("/files/{path...}", h)
			return mux
		}
		for _, c := range []struct {
			name, key, url string
			around         func(http.Handler) http.Handler
			status         int
			want           string
		}{
			{"another key", "order", "/orders/42/pay", onMux, 500, `no wildcard {order}`},
			{"the beginning of a key", "i", "/orders/42/pay", onMux, 500, `no wildcard {i}`},
			{"in front of the mux", "id", "/orders/42/pay", func(h http.Handler) http.Handler { return h }, 500, "behind the mux"},
			{"the right key", "id", "/orders/42/pay", onMux, 200, ""},
			{"the client's own fault", "path", "/files/", onMux, 400, ""},
		} {
			pick := middleware.ByPathValue(w.client, c.key, "orders/%s")
			for _, optional := range []bool{false, true} {
				status := c.status
				if optional {
					pick = middleware.Optional(pick)
					status = 200
				}
				var log strings.Builder
				rec := do(c.around(lock(pick, &log)), httptest.NewRequest("POST", c.url, nil))
				if rec.Code != status {
					t.Errorf("%s, optional %v: status %d, want %d", c.name, optional, rec.Code, status)
				}
				want := c.want
				if optional {
					want = ""
				}
				synctest.Wait()
				if text := log.String(); !strings.Contains(text, want) || (text == "") != (want == "") || want != "" && !strings.Contains(text, "level=ERROR") {
					t.Errorf("%s, optional %v: logged %q, want %q", c.name, optional, text, want)
				}
			}
		}
	})
}

// TestProgramsFaultIsLogged: an error that no client can avoid is not a 400.
func TestProgramsFaultIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		h := middleware.New(func(*http.Request) zklock.Acquirer { return new(zklock.Client).Mutex("a") },
			middleware.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))(never(t))
		wantProblem(t, do(h, httptest.NewRequest("GET", "/", nil)), 500, middleware.ReasonError)
		synctest.Wait()
		if text := log.String(); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, "not made by Open") {
			t.Errorf("logged %q, want level ERROR and the reason", text)
		}
	})
}
