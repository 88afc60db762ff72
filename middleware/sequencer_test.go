package middleware_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// allSenders trusts all senders, as one origin.
func allSenders(*http.Request) (string, bool) { return "shop", true }

// resource returns a service that checks sequencers and acquires no locks.
func resource(trust func(*http.Request) (string, bool), opts ...middleware.Option) http.Handler {
	opts = append(opts, middleware.WithSequencerCheck(new(fence.Guard), trust))
	return middleware.New(func(*http.Request) zklock.Acquirer { return nil }, opts...)(
		http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			io.WriteString(rw, strings.Join(r.Header.Values(fence.Key), "|"))
		}))
}

// sent returns a request with sequencers.
func sent(values ...string) *http.Request {
	r := httptest.NewRequest("PUT", "/", nil)
	for _, v := range values {
		r.Header.Add(fence.Key, v)
	}
	return r
}

func sequencer(name string, zxid int64) string {
	return fence.Sequencer{Name: name, Mode: zklock.Exclusive, Token: zklock.Token{Zxid: zxid}}.String()
}

func TestStaleSequencerIsRefused(t *testing.T) {
	h := resource(allSenders)
	for _, c := range []struct {
		name   string
		r      *http.Request
		status int
	}{
		{"the first", sent(sequencer("a", 10)), 200},
		{"the same again", sent(sequencer("a", 10)), 200},
		{"a newer one", sent(sequencer("a", 12)), 200},
		{"the stale one", sent(sequencer("a", 10)), 409},
		{"another name", sent(sequencer("b", 3)), 200},
		{"one of two stale", sent(sequencer("b", 4), sequencer("a", 11)), 409},
		{"nothing was noted of the refused", sent(sequencer("b", 3)), 200},
		{"two in one line", sent(sequencer("b", 5) + ", " + sequencer("a", 12)), 200},
		{"none", sent(), 200},
		{"nonsense", sent("nonsense"), 400},
	} {
		rec := do(h, c.r)
		if rec.Code != c.status {
			t.Errorf("%s: status %d, want %d", c.name, rec.Code, c.status)
		}
		switch rec.Code {
		case 409:
			wantProblem(t, rec, 409, middleware.ReasonStale)
		case 400:
			wantProblem(t, rec, 400, middleware.ReasonName)
		}
	}
}

func TestSequencersAreNotCheckedUnlessAskedForOrTrusted(t *testing.T) {
	w := newWorld(t)
	off := middleware.New(w.fixed)(w.watched(func(http.ResponseWriter, *http.Request) {}))
	strangers := resource(func(*http.Request) (string, bool) { return "", false })
	for _, h := range []http.Handler{off, strangers} {
		for _, v := range []string{sequencer("a", 10), sequencer("a", 9), "nonsense"} {
			if rec := do(h, sent(v)); rec.Code != 200 {
				t.Errorf("status %d for sequencer %q, want 200", rec.Code, v)
			}
		}
	}
}

func TestOriginsHaveTokensOfTheirOwn(t *testing.T) {
	h := resource(func(r *http.Request) (string, bool) { return r.Header.Get("X-Origin"), true })
	for _, c := range []struct {
		origin string
		zxid   int64
		status int
	}{{"a", 10, 200}, {"b", 5, 200}, {"a", 5, 409}, {"b", 6, 200}} {
		r := sent(sequencer("orders", c.zxid))
		r.Header.Set("X-Origin", c.origin)
		if rec := do(h, r); rec.Code != c.status {
			t.Errorf("%+v: got status %d", c, rec.Code)
		}
	}
}

func TestSequencerThatGoesStaleDuringTheWaitIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		guard := new(fence.Guard)
		h := middleware.New(w.fixed, middleware.WithSequencerCheck(guard, allSenders))(never(t))
		release := w.Hold("orders/42")
		time.AfterFunc(time.Second, func() {
			newer := fence.Sequencer{Name: "upstream", Mode: zklock.Exclusive, Token: zklock.Token{Zxid: 11}, Origin: "shop"}
			if err := guard.Check([]fence.Sequencer{newer}); err != nil {
				t.Error(err)
			}
			release()
		})
		wantProblem(t, do(h, sent(sequencer("upstream", 10))), 409, middleware.ReasonStale)
	})
}

// roundTrip is a function as an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// echo responds with the request's sequencers.
var echo = roundTrip(func(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{"Got": r.Header.Values(fence.Key)}, Body: http.NoBody, Request: r}, nil
})

func TestTransportSendsTheLocksThatAreHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		transport := &middleware.Transport{Base: echo}
		get := func(ctx context.Context, transport http.RoundTripper, header ...string) []string {
			t.Helper()
			r, _ := http.NewRequestWithContext(ctx, "GET", "http://stock.example/", nil)
			for _, h := range header {
				r.Header.Add(fence.Key, h)
			}
			resp, err := transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Header.Values(fence.Key); !slices.Equal(got, header) {
				t.Errorf("the caller's request was changed: %q", got)
			}
			return resp.Header["Got"]
		}
		if got := get(t.Context(), transport); len(got) != 0 {
			t.Errorf("sent %q without a lock", got)
		}
		if got := get(t.Context(), transport, "passed on"); len(got) != 1 || got[0] != "passed on" {
			t.Errorf("sent %q, want only the one that is passed on", got)
		}
		h := middleware.New(w.fixed)(w.watched(func(_ http.ResponseWriter, r *http.Request) {
			l, _ := zklock.FromContext(r.Context())
			want := fence.Of(l)[0].String()
			if got := get(r.Context(), transport); !slices.Equal(got, []string{want}) {
				t.Errorf("sent %q, want %q", got, want)
			}
			if got := get(r.Context(), transport, "passed on", "1, "+want); !slices.Equal(got, []string{"passed on", "1", want}) {
				t.Errorf("sent %q, want each once", got)
			}
			if got := get(r.Context(), transport, "passed on"); !slices.Equal(got, []string{"passed on", want}) {
				t.Errorf("sent %q, want the one that is passed on and %q", got, want)
			}
			if got := get(zklock.Detach(r.Context()), transport); len(got) != 0 {
				t.Errorf("sent %q from a detached context", got)
			}
			picky := &middleware.Transport{Base: echo, To: func(r *http.Request) bool { return r.URL.Host != "stock.example" }}
			if got := get(r.Context(), picky); len(got) != 0 {
				t.Errorf("sent %q to a host that To excludes", got)
			}
			if got := get(t.Context(), picky, "passed on"); len(got) != 0 {
				t.Errorf("sent the caller's %q to a host that To excludes", got)
			}
		}))
		do(h, httptest.NewRequest("GET", "/", nil))
	})
}

func TestTransportSendsNothingToTheTargetOfARedirect(t *testing.T) {
	w := newWorld(t)
	var got []string
	client := &http.Client{Transport: &middleware.Transport{Base: roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Header.Get(fence.Key) != "" {
			got = append(got, r.URL.String())
		}
		next := map[string]string{"http://a.example/1": "/2", "http://a.example/2": "http://b.example/3", "http://b.example/3": "/4"}[r.URL.String()]
		resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}
		if next != "" {
			resp.StatusCode = 302
			resp.Header.Set("Location", next)
		}
		return resp, nil
	})}}
	for _, passedOn := range []bool{false, true} {
		got = nil
		do(middleware.New(w.fixed)(w.watched(func(_ http.ResponseWriter, r *http.Request) {
			ctx := r.Context()
			if passedOn { // http.Client copies the header from one request to the next
				ctx = zklock.Detach(ctx)
			}
			req, _ := http.NewRequestWithContext(ctx, "GET", "http://a.example/1", nil)
			if passedOn {
				req.Header.Set(fence.Key, sequencer("upstream", 10))
			}
			if _, err := client.Do(req); err != nil {
				t.Error(err)
			}
		})), httptest.NewRequest("GET", "/", nil))
		if strings.Join(got, " ") != "http://a.example/1 http://a.example/2" {
			t.Errorf("passed on %v: sent to %q, want only the first host", passedOn, got)
		}
	}
}

// TestLateCallOfAHolderThatWasStopped: the first holder's call is delayed until a second holder has
// the lock, and arrives after the second holder's call. The server refuses it.
func TestLateCallOfAHolderThatWasStopped(t *testing.T) {
	w := newWorld(t)
	stock := serve(t, resource(allSenders))
	client := &http.Client{Transport: &middleware.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	call := func(ctx context.Context) int {
		r, _ := http.NewRequestWithContext(ctx, "PUT", stock.URL, nil)
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	first, err := w.client.Mutex("orders/42").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	late := fence.Of(first)[0].String() // the header of the call that is delayed
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := zklock.Do(t.Context(), w.client.Mutex("orders/42"), func(ctx context.Context, _ *zklock.Lock) error {
		if status := call(ctx); status != 200 {
			t.Errorf("the second holder's call: status %d, want 200", status)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	r, _ := http.NewRequest("PUT", stock.URL, nil)
	r.Header.Set(fence.Key, late)
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 409 {
		t.Errorf("the first holder's late call: status %d, want 409", resp.StatusCode)
	}
}

// TestSequencersOfAllOnTheWay: A calls B, and B passes the call on to C under B's own
// lock. When A's lock has a newer holder, C must refuse the call.
func TestSequencersOfAllOnTheWay(t *testing.T) {
	w := newWorld(t)
	guard := new(fence.Guard)
	served := 0
	c := serve(t, middleware.New(func(*http.Request) zklock.Acquirer { return nil }, middleware.WithSequencerCheck(guard, allSenders))(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ })))
	to, err := url.Parse(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := &middleware.Transport{Base: new(http.Transport)}
	t.Cleanup(transport.CloseIdleConnections)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport = transport
	b := serve(t, middleware.New(w.fixed)(proxy))
	client := &http.Client{Transport: transport}
	call := func(ctx context.Context) int {
		r, _ := http.NewRequestWithContext(ctx, "PUT", b.URL, nil)
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	err = zklock.Do(t.Context(), w.client.Mutex("a"), func(ctx context.Context, l *zklock.Lock) error {
		if status := call(ctx); status != 200 {
			t.Errorf("A's call: status %d, want 200", status)
		}
		newer := fence.Of(l)[0]
		newer.Token.Zxid++
		newer.Origin = "shop"
		if err := guard.Check([]fence.Sequencer{newer}); err != nil {
			t.Error(err)
		}
		if status := call(ctx); status != 409 {
			t.Errorf("A's call after A's lock got a newer holder: status %d, want 409", status)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if served != 1 {
		t.Errorf("C served %d calls, want 1", served)
	}
}

// TestHopsWithRootsOfTheirOwn: A calls B twice while it holds one lock, and B calls C
// each time. The locks of A and B have the same name below two roots. Both locks are
// held, so C must serve both calls.
func TestHopsWithRootsOfTheirOwn(t *testing.T) {
	w := newWorld(t)
	other, err := zklock.OpenConfig(zklock.Config{Connector: w.ensemble.Connector(), Root: "/other"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	c := resource(allSenders)
	transport := &middleware.Transport{Base: roundTrip(func(r *http.Request) (*http.Response, error) {
		rec := httptest.NewRecorder()
		c.ServeHTTP(rec, r)
		return rec.Result(), nil
	})}
	b := middleware.New(func(*http.Request) zklock.Acquirer { return other.Mutex("orders/1") })(
		http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			resp, err := transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			rw.WriteHeader(resp.StatusCode)
		}))
	err = zklock.Do(t.Context(), w.client.Mutex("orders/1"), func(ctx context.Context, _ *zklock.Lock) error {
		for i := range 2 {
			if rec := do(b, sent(fence.Values(ctx)...)); rec.Code != 200 {
				t.Errorf("call %d: status %d, want 200", i+1, rec.Code)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
