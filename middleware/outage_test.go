package middleware_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// outageAfter is how long a client is without a connection, by default, before it declares an
// outage: almost all of connect_timeout.
const outageAfter = 10 * time.Second * 19 / 20

// outages is a handler behind WithFailOpen, in a synctest bubble.
type outages struct {
	*world
	h   http.Handler
	log bytes.Buffer
}

func newOutages(t *testing.T, opts ...middleware.Option) *outages {
	o := &outages{world: newWorld(t)}
	opts = append(opts, middleware.WithFailOpen(), middleware.WithLogger(slog.New(slog.NewTextHandler(&o.log, nil))))
	o.h = middleware.New(o.fixed, opts...)(http.HandlerFunc(reportHold))
	return o
}

// rival opens another client.
func rival(t *testing.T, e *memdriver.Ensemble) *zklock.Client {
	c, err := zklock.OpenConnector(e.Connector())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// reportHold reports in a response header whether the handler holds a lock.
func reportHold(rw http.ResponseWriter, r *http.Request) {
	if _, ok := zklock.FromContext(r.Context()); ok {
		rw.Header().Set("X-Locked", "yes")
	}
}

// want sends one request, and checks its status, whether it was served under a lock,
// and how long it waited.
func (o *outages) want(what string, code int, locked bool, waits time.Duration) {
	o.t.Helper()
	start := time.Now()
	rec := do(o.h, httptest.NewRequest("GET", "/", nil))
	if got, waited := rec.Header().Get("X-Locked") != "", time.Since(start); rec.Code != code || got != locked || waited != waits {
		o.t.Errorf("%s: status %d, locked %v, after %v; want %d, %v, after %v", what, rec.Code, got, waited, code, locked, waits)
	}
}

func TestFailOpenWaitsOnceInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutages(t)
		o.want("before", 200, true, 0)
		o.ensemble.Partition(memdriver.AroundClients(0).Reset())
		o.want("the first", 200, false, outageAfter)
		for range 100 {
			o.want("later", 200, false, 0)
			time.Sleep(500 * time.Millisecond)
		}
		synctest.Wait()
		if log := o.log.String(); strings.Count(log, "served without its lock") != 101 || !strings.Contains(log, "error=") {
			t.Errorf("log: %.300s", log)
		}
		o.ensemble.Heal()
		for range 4 { // the rest of a back-off
			time.Sleep(500 * time.Millisecond)
			do(o.h, httptest.NewRequest("GET", "/", nil))
		}
		o.want("after the outage", 200, true, 0)
	})
}

// If the servers fall silent, and the connection stays, requests wait in vain for two thirds of session_timeout: by then the
// client gives the connection up, and the outage begins when it has tried to connect for almost all of connect_timeout.
func TestFailOpenWhenTheServersFallSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutages(t)
		o.want("before", 200, true, 0)
		o.ensemble.Partition(memdriver.AroundClients(0))
		began, most := time.Now(), corekit.SessionTimeout*2/3+outageAfter
		for refused := 0; ; refused++ {
			if do(o.h, httptest.NewRequest("GET", "/", nil)).Code == 200 {
				t.Logf("%d requests were refused", refused)
				break
			}
			if time.Since(began) > most {
				t.Fatalf("a request is refused %v after the servers fell silent, want none later than %v", time.Since(began), most)
			}
		}
		if outage := time.Since(began); outage < outageAfter || outage > most {
			t.Errorf("the outage began after %v, want %v to %v", outage, outageAfter, most)
		}
		o.want("later", 200, false, 0)
		o.ensemble.Heal()
	})
}

// Requests that do not wait get a 503 until there is an outage, the first one after a quarter of
// connect_timeout and the others at once. During the outage they are served without their lock.
func TestFailOpenOfTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutages(t, middleware.WithWait(0))
		o.want("before", 200, true, 0)
		o.ensemble.Partition(memdriver.AroundClients(0).Reset())
		began := time.Now()
		o.want("the first", 503, false, 2500*time.Millisecond)
		for time.Since(began) < outageAfter-time.Second {
			o.want("before the outage", 503, false, 0)
			time.Sleep(500 * time.Millisecond)
		}
		time.Sleep(time.Until(began.Add(outageAfter)))
		for range 100 {
			o.want("in the outage", 200, false, 0)
			time.Sleep(500 * time.Millisecond)
		}
		o.ensemble.Heal()
	})
}

// A client that no request has asked for a lock for a while does not know whether the
// ensemble can be reached.
func TestFailOpenForgetsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutages(t)
		o.ensemble.Partition(memdriver.AroundClients(0).Reset())
		o.want("the first", 200, false, outageAfter)
		o.want("the second", 200, false, 0)
		time.Sleep(time.Minute)
		o.want("a minute later", 200, false, outageAfter)
		time.Sleep(time.Minute)
		o.ensemble.Heal()
		start := time.Now()
		if rec := do(o.h, httptest.NewRequest("GET", "/", nil)); rec.Header().Get("X-Locked") == "" {
			t.Errorf("after the outage: status %d without a lock after %v", rec.Code, time.Since(start))
		}
	})
}

// A session is lost, and another client gets the lock. The ensemble can be reached all
// the time. No wait, however short, makes that an outage.
func TestFailOpenIsNotForLosses(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Nanosecond, 50 * time.Millisecond, 300 * time.Millisecond, 12 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			mine, other := rival(t, e), rival(t, e)
			pick := func(*http.Request) zklock.Acquirer { return mine.Mutex("x") }
			h := middleware.New(pick, middleware.WithFailOpen(), middleware.WithWait(wait), middleware.WithLogger(slog.New(slog.DiscardHandler)))(http.HandlerFunc(reportHold))
			request := func() *httptest.ResponseRecorder { return do(h, httptest.NewRequest("GET", "/", nil)) }
			for range 4 {
				request()
				e.ExpireAll()
				held, err := other.Mutex("x").Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for range 100 {
					if rec := request(); rec.Code == 200 && held.Valid() {
						t.Fatalf("wait %v: served while another client held the lock, X-Locked %q", wait, rec.Header().Get("X-Locked"))
					}
					time.Sleep(50 * time.Millisecond)
				}
				if err := held.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// The ensemble can be reached again, and another client has the lock. A request whose
// body does not arrive does not change that for the others.
func TestFailOpenEndsWithTheOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutages(t, middleware.WithWait(30*time.Second))
		o.ensemble.Partition(memdriver.AroundClients(0).Reset())
		o.want("the first", 200, false, outageAfter)
		o.ensemble.Heal()
		held, err := rival(t, o.ensemble).Mutex("orders/42").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		slow, body := io.Pipe()
		served := make(chan struct{})
		go func() {
			defer close(served)
			r := httptest.NewRequest("POST", "/", slow)
			r.ContentLength = 10
			do(o.h, r)
		}()
		for range 4 { // the rest of a back-off
			time.Sleep(500 * time.Millisecond)
			go do(o.h, httptest.NewRequest("GET", "/", nil))
		}
		time.AfterFunc(10*time.Second, func() { _ = held.Release(t.Context()) })
		start := time.Now()
		rec := do(o.h, httptest.NewRequest("GET", "/", nil))
		if rec.Header().Get("X-Locked") == "" || time.Since(start) < 9*time.Second {
			t.Errorf("status %d after %v, X-Locked %q; want a request that waits for the lock", rec.Code, time.Since(start), rec.Header().Get("X-Locked"))
		}
		_ = body.Close()
		<-served
	})
}

// Also during an outage, a request without a name gets a 400, and another client whose
// ensemble can be reached acquires its locks.
func TestFailOpenIsForOutagesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutages(t)
		theirs := memdriver.New()
		up := rival(t, theirs)
		held, err := rival(t, theirs).Mutex("theirs/1").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		byRegion := func(r *http.Request) zklock.Acquirer {
			if r.Header.Get("Region") == "up" {
				return up.Mutex("theirs/1")
			}
			return middleware.ByHeader(o.client, "Id", "orders/%s")(r)
		}
		h := middleware.New(byRegion, middleware.WithFailOpen(), middleware.WithWait(20*time.Second), middleware.WithLogger(slog.New(slog.DiscardHandler)))(http.HandlerFunc(reportHold))
		request := func(header ...string) *httptest.ResponseRecorder {
			r := httptest.NewRequest("GET", "/", nil)
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			return do(h, r)
		}
		o.ensemble.Partition(memdriver.AroundClients(0).Reset())
		if rec := request("Id", "1"); rec.Code != 200 {
			t.Errorf("in an outage: status %d, want 200", rec.Code)
		}
		wantProblem(t, request(), 400, middleware.ReasonName)
		wantProblem(t, request("Id", "../x"), 400, middleware.ReasonName)
		wantProblem(t, request("Region", "up"), 423, middleware.ReasonContended)
		_ = held.Release(t.Context())
	})
}

// Servers that refuse the client are not an outage: no request is served, at first or
// later.
func TestFailOpenIsNotForRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithTickTime(2 * time.Second)) // session timeouts of at least 4s
		c, err := zklock.OpenConfig(zklock.Config{Connector: e.Connector(), SessionTimeout: 3 * time.Second, TickTime: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		h := middleware.New(func(*http.Request) zklock.Acquirer { return c.Mutex("x") }, middleware.WithFailOpen(), middleware.WithLogger(slog.New(slog.DiscardHandler)))(http.HandlerFunc(reportHold))
		for range 20 {
			if rec := do(h, httptest.NewRequest("GET", "/", nil)); rec.Code == 200 {
				t.Fatal("a request was served without its lock")
			}
			time.Sleep(time.Second)
		}
	})
}

// A request whose sequencer became stale during the wait is refused, even if it would be
// served without its lock.
func TestFailOpenChecksSequencersAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutages(t)
		h := middleware.New(o.fixed, middleware.WithFailOpen(), middleware.WithLogger(slog.New(slog.DiscardHandler)),
			middleware.WithSequencerCheck(new(fence.Guard), allSenders))(http.HandlerFunc(reportHold))
		o.ensemble.Partition(memdriver.AroundClients(0).Reset())
		answers := make(chan int, 2)
		go func() { answers <- do(h, sent(sequencer("a", 10))).Code }()
		time.Sleep(9 * time.Second)
		go func() { answers <- do(h, sent(sequencer("a", 12))).Code }()
		if first, second := <-answers, <-answers; first+second != 409+200 {
			t.Errorf("status %d and %d, want 409 for the older sequencer and 200 for the newer one", first, second)
		}
	})
}

// With WithFailFast, the requests of an outage are refused at once when it has lasted for almost
// connect_timeout, as unavailable and never as contended. That is so for requests that wait, and for
// those that do not.
func TestFailFastRefusesInAnOutage(t *testing.T) {
	for _, wait := range []time.Duration{0, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			o := newOutages(t)
			o.h = middleware.New(o.fixed, middleware.WithWait(wait), middleware.WithAcquire(zklock.WithFailFast()))(http.HandlerFunc(reportHold))
			o.want("before", http.StatusOK, true, 0)
			o.ensemble.Partition(memdriver.AroundClients(0).Reset())
			time.Sleep(outageAfter)
			for range 3 {
				o.want("in the outage", http.StatusServiceUnavailable, false, 0)
			}
			o.ensemble.Heal()
		})
	}
}

// A request whose wait ends in an outage is not one that a holder has kept waiting.
func TestOutageIsNotContention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutages(t)
		o.h = middleware.New(o.fixed, middleware.WithWait(2*time.Second))(http.HandlerFunc(reportHold))
		o.want("before", http.StatusOK, true, 0)
		o.ensemble.Partition(memdriver.AroundClients(0).Reset())
		time.Sleep(100 * time.Millisecond)
		o.want("in the outage", http.StatusServiceUnavailable, false, 2*time.Second)
		o.ensemble.Heal()
	})
}
