package inspect_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/internal/testkit/leaks"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/inspect"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// world is an ensemble with two clients.
type world struct {
	*testing.T
	ensemble  *memdriver.Ensemble
	web, jobs *zklock.Client
	waiting   chan struct{}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, ensemble: memdriver.New(), waiting: make(chan struct{}, 100)}
	t.Cleanup(func() { _ = w.ensemble.Close() })
	open := func(host string, pid int) *zklock.Client {
		cfg := zklock.Config{Connector: w.ensemble.Connector(), SessionTimeout: corekit.SessionTimeout, ConnectTimeout: corekit.ConnectTimeout}
		c, err := zklock.OpenConfig(cfg, zklock.WithLogger(nil), zklock.WithIdentity(zklock.Identity{Host: host, PID: pid}),
			zklock.WithHooks(zklock.Hooks{Wait: func(ctx context.Context, _ zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
				w.waiting <- struct{}{}
				return ctx, nil
			}}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	w.web, w.jobs = open("web-3", 812), open("jobs-1", 7)
	return w
}

// hold acquires a lock until the test ends, or the function that it returns is called.
func (w *world) hold(a zklock.Acquirer, label string) *zklock.Lock {
	w.Helper()
	l, err := a.Acquire(w.Context(), zklock.WithLabel(label))
	if err != nil {
		w.Fatal(err)
	}
	return l
}

// wait makes a request wait for a lock until the test ends.
func (w *world) wait(a zklock.Acquirer, label string) {
	w.Helper()
	go func() { _, _ = a.Acquire(w.Context(), zklock.WithLabel(label)) }()
	<-w.waiting
}

// get requests a URL of a handler.
func get(t *testing.T, h http.Handler, url string) *httptest.ResponseRecorder {
	t.Helper()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest("GET", url, nil))
	return rec
}

type contender struct {
	Node, Host, Label, Trace, Mode, Session, Zxid, Revoked string
	PID                                                    int
	Held, Foreign, Kept                                    bool
	Since                                                  *string
	HeldSince                                              *string  `json:"held_since"`
	Waits                                                  []string `json:"waits_for"`
	One                                                    bool     `json:"waits_for_one"`
}

type lock struct {
	Name, Path, Error string
	Contenders        []contender
}

// decoded decodes an answer, which must have no field that is not listed above.
func decoded[T any](t *testing.T, rec *httptest.ResponseRecorder) (v T) {
	t.Helper()
	if rec.Code != http.StatusOK || rec.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("status %d, %s: %s", rec.Code, rec.Header().Get("Content-Type"), rec.Body)
	}
	d := json.NewDecoder(rec.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// The list and the queue of a name have what Locks and Contenders return, and say which
// contenders block each other.
func TestAPI(t *testing.T) {
	w := newWorld(t)
	h := inspect.Handler(w.web)
	if text := get(t, h, "/api/locks").Body.String(); strings.TrimSpace(text) != `{"locks":[],"more":false}` {
		t.Errorf("the list of an ensemble without locks is %s", text)
	}
	l := w.hold(w.web.Mutex("orders/42"), "POST /pay")
	w.wait(w.jobs.RWMutex("orders/42").Reader(), "report")
	for _, name := range []string{"a", "orders/43"} {
		w.hold(w.web.Mutex(name), name)
	}
	type list struct {
		Locks []lock
		More  bool
	}
	all := decoded[list](t, get(t, h, "/api/locks"))
	if len(all.Locks) != 3 || all.Locks[0].Name != "a" || all.Locks[1].Name != "orders/42" || all.More {
		t.Errorf("%+v", all)
	}
	if some := decoded[list](t, get(t, h, "/api/locks?prefix=orders%2F&limit=1")); len(some.Locks) != 1 || some.Locks[0].Name != "orders/42" || !some.More {
		t.Errorf("%+v", some)
	}
	one := decoded[lock](t, get(t, h, "/api/locks/orders%2F42"))
	want, err := w.web.Contenders(t.Context(), "orders/42")
	if err != nil || len(one.Contenders) != 2 || one.Name != "orders/42" || one.Path != l.Name() && one.Path != w.web.Mutex("orders/42").Path() {
		t.Fatalf("%+v, %v", one, err)
	}
	holder, reader := one.Contenders[0], one.Contenders[1]
	if holder.Host != "web-3" || holder.PID != 812 || holder.Label != "POST /pay" || holder.Mode != "exclusive" || !holder.Held || holder.Waits == nil || len(holder.Waits) != 0 {
		t.Errorf("the holder is %+v", holder)
	}
	if reader.Host != "jobs-1" || reader.Held || reader.Mode != "shared" || len(reader.Waits) != 1 || reader.Waits[0] != want[0].Node {
		t.Errorf("the waiter is %+v", reader)
	}
	if !strings.HasPrefix(holder.Zxid, "0x") || !strings.HasPrefix(holder.Session, "0x") || holder.Since == nil || len(*holder.Since) != len("2006-01-02T15:04:05.000Z") || holder.HeldSince == nil || reader.HeldSince != nil {
		t.Errorf("ids and times: %+v; the list was read before and after it was granted the lock", holder)
	}
	for url, code := range map[string]int{"/api/locks?limit=0": 400, "/api/locks?limit=x": 400, "/api/locks/a%2F%2Fb": 400, "/api/locks/unused": 200} {
		if rec := get(t, h, url); rec.Code != code {
			t.Errorf("%s: status %d, want %d: %s", url, rec.Code, code, rec.Body)
		}
	}
}

// Each contender waits for those that the queue's rules name.
func TestAPISaysWhichContenderBlocksWhich(t *testing.T) {
	w := newWorld(t)
	h := inspect.Handler(w.web)
	s, err := w.ensemble.Connector().Connect(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	if err := w.web.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		kinds []string
		want  string // for each contender, the positions that it waits for
	}{
		"writers": {[]string{"WRIT", "WRIT", "WRIT"}, "- 0 1"},
		"readers": {[]string{"READ", "READ", "WRIT", "READ", "READ", "WRIT"}, "- - 1,0 2 2 4,3"},
		"permits": {[]string{"PERM2", "PERM2", "PERM2", "PERM2", "PERM2"}, "- - 1,0 2 3"},
		"alone":   {[]string{"WRIT"}, "-"},
	} {
		if _, err := s.Create(t.Context(), "/zklock/"+name, []byte("zklock"), driver.Persistent, driver.OpenACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
		for _, kind := range c.kinds {
			if _, err := s.Create(t.Context(), "/zklock/"+name+"/_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-__"+kind+"__", nil, driver.EphemeralSequential, driver.OpenACL(driver.PermAll)); err != nil {
				t.Fatal(err)
			}
		}
		at := make(map[string]string)
		var got []string
		for i, c := range decoded[lock](t, get(t, h, "/api/locks/"+name)).Contenders {
			at[c.Node] = string(rune('0' + i))
			if c.Since != nil || c.One != (name == "permits" && i == 2) {
				t.Errorf("%s: %+v: want no time, as the nodes have none, and waits_for_one for the first in line for a permit", name, c)
			}
			if len(c.Waits) == 0 {
				got = append(got, "-")
				continue
			}
			var for_ []string
			for _, node := range c.Waits {
				for_ = append(for_, at[node])
			}
			got = append(got, strings.Join(for_, ","))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}

// The handler works wherever it is mounted, with and without StripPrefix, because its links
// are relative.
func TestLinksWorkWhereverThePageIsMounted(t *testing.T) {
	w := newWorld(t)
	w.hold(w.web.Mutex("orders/42"), "x")
	h := inspect.Handler(w.web)
	mux := http.NewServeMux()
	mux.Handle("/plain/debug/zklock/", h)
	mux.Handle("/stripped/", http.StripPrefix("/stripped", h))
	mux.Handle("/exact", h)
	mux.Handle("/exact/", h)
	mux.Handle("/api/locks/below/", h)
	srv := httptest.NewServer(mux)
	defer srv.Close()
	for _, mount := range []string{"/plain/debug/zklock/", "/stripped/", "/exact", "/api/locks/below/"} {
		resp, err := http.Get(srv.URL + mount)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || !strings.Contains(string(body), "orders/42") {
			t.Errorf("%s: %s\n%s", mount, resp.Status, body)
		}
		for link, want := range map[string]string{"style.css": "prefers-color-scheme", "app.js": "EventSource", "api/locks": `"orders/42"`, "?name=orders%2F42": "Queue of orders/42", "api/locks/orders%2F42": `"contenders"`} {
			to, err := resp.Request.URL.Parse(link)
			if err != nil {
				t.Fatal(err)
			}
			got, err := http.Get(to.String())
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(got.Body)
			got.Body.Close()
			if got.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
				t.Errorf("%s at %s: %s, without %q", link, mount, got.Status, want)
			}
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// The page is read-only, allows nothing from elsewhere, and escapes what clients write.
func TestPageIsSafe(t *testing.T) {
	w := newWorld(t)
	const evil = `<script>alert("1")</script>`
	w.hold(w.web.Mutex(evil), evil)
	h := inspect.Handler(w.web)
	for _, url := range []string{"/", "/?name=" + url.QueryEscape(evil), "/?prefix=" + url.QueryEscape(evil), "/?name=%00"} {
		rec := get(t, h, url)
		if strings.Contains(rec.Body.String(), "<script>alert") {
			t.Errorf("%s: a label or name is not escaped:\n%s", url, rec.Body)
		}
		policy := rec.Header().Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy %q lacks %s", url, policy, want)
			}
		}
		if strings.Contains(policy, "unsafe") || rec.Header().Get("X-Content-Type-Options") != "nosniff" || rec.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: headers %v", url, rec.Header())
		}
		for _, inline := range []string{" style=", " onclick=", "<style", "javascript:", "http:", "https:", "//"} {
			if strings.Contains(rec.Body.String(), inline) {
				t.Errorf("%s: the page contains %q", url, inline)
			}
		}
	}
	if rec := get(t, h, "/?name=%00"); rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), `role="alert"`) {
		t.Errorf("a bad name: status %d\n%s", rec.Code, rec.Body)
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
		for _, path := range []string{"/", "/api/locks", "/api/locks/x", "/api/events"} {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, httptest.NewRequest(method, path, nil))
			if rec.Code != http.StatusMethodNotAllowed || rec.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: status %d, Allow %q", method, path, rec.Code, rec.Header().Get("Allow"))
			}
		}
	}
	rec := get(t, h, "//evil.example/x")
	if to := rec.Header().Get("Location"); rec.Code != http.StatusTemporaryRedirect || to != "./x/" {
		t.Errorf("a path without a slash: status %d, to %q", rec.Code, to)
	}
	defer func() {
		if recover() == nil {
			t.Error("Handler accepted a nil Client")
		}
	}()
	inspect.Handler(nil)
}

// The page and the API say so when the ensemble cannot be reached.
func TestOutageIsShown(t *testing.T) {
	w := newWorld(t)
	c, err := zklock.OpenConfig(zklock.Config{Connector: w.ensemble.Connector(), ConnectTimeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	w.ensemble.Partition(memdriver.AroundClients(0))
	h := inspect.Handler(c)
	for _, url := range []string{"/", "/?name=x", "/api/locks", "/api/locks/x"} {
		if rec := get(t, h, url); rec.Code != http.StatusServiceUnavailable || !strings.Contains(rec.Body.String(), zklock.ErrUnavailable.Error()) {
			t.Errorf("%s: status %d: %s", url, rec.Code, rec.Body)
		}
	}
	w.ensemble.Heal()
}
