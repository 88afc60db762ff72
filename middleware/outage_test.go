package middleware_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// connectTimeout is the default of the URL key connect_timeout.
const connectTimeout = 10 * time.Second

// outages is a handler behind WithFailOpen, in a bubble of time.
type outages struct {
	*world
	h http.Handler
}

func newOutages(t *testing.T, inside http.HandlerFunc) *outages {
	w := newWorld(t)
	quiet := slog.New(slog.DiscardHandler)
	return &outages{w, middleware.New(w.fixed, middleware.WithFailOpen(), middleware.WithLogger(quiet))(inside)}
}

// request is served, and returns whether under a lock, and what it has waited.
func (o *outages) request(ctx context.Context) (locked bool, waited time.Duration) {
	start := time.Now()
	rec := do(o.h, httptest.NewRequestWithContext(ctx, "GET", "/", nil))
	if rec.Code != 200 {
		o.t.Errorf("status %d", rec.Code)
	}
	return rec.Header().Get("X-Locked") != "", time.Since(start)
}

// want checks one request.
func (o *outages) want(what string, locked bool, waits time.Duration) {
	o.t.Helper()
	if got, waited := o.request(o.t.Context()); got != locked || waited != waits {
		o.t.Errorf("%s: locked %v after %v, want %v after %v", what, got, waited, locked, waits)
	}
}

// tell says in the answer whether a handler holds a lock.
func tell(rw http.ResponseWriter, r *http.Request) {
	if _, ok := zklock.FromContext(r.Context()); ok {
		rw.Header().Set("X-Locked", "yes")
	}
}

func TestFailOpenRemembersAnOutageForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutages(t, tell)
		o.want("before", true, 0)
		o.ensemble.Partition(memdriver.AroundClients(0))
		time.Sleep(time.Minute) // the session is over
		o.want("the first", false, connectTimeout)
		for range 3 {
			o.want("within the second", false, 0)
		}
		time.Sleep(time.Second - 1)
		o.want("at its end", false, 0)
		time.Sleep(1)

		// One asks again, and the others go on meanwhile.
		probe := make(chan time.Duration)
		go func() {
			_, waited := o.request(t.Context())
			probe <- waited
		}()
		synctest.Wait()
		o.want("beside who asks again", false, 0)
		time.Sleep(connectTimeout / 2)
		o.want("beside who asks again, later", false, 0)
		if waited := <-probe; waited != connectTimeout {
			t.Errorf("who asked again waited %v", waited)
		}
		o.want("within the next second", false, 0)

		o.ensemble.Heal()
		o.want("within the second, the ensemble being back", false, 0)
		time.Sleep(time.Second)
		o.want("after it", true, 0)
		o.want("after that", true, 0)
	})
}

// TestFailOpenEndsWithTheOutage has the ensemble back while somebody else holds
// the lock: a request that waits for it has found an ensemble.
func TestFailOpenEndsWithTheOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutages(t, tell)
		o.ensemble.Partition(memdriver.AroundClients(0))
		o.want("the first", false, connectTimeout)
		o.ensemble.Heal()
		time.Sleep(time.Second)
		release := o.hold()
		time.AfterFunc(3*time.Second, release)
		done := make(chan bool)
		for range 2 {
			go func() {
				locked, _ := o.request(t.Context())
				done <- locked
			}()
			synctest.Wait() // it waits for the holder
		}
		for range 2 {
			if !<-done {
				t.Error("served beside another holder though the ensemble is back")
			}
		}
	})
}

// TestFailOpenRemembersNoOutageOfARequestsOwn has requests that give up before
// anybody can know.
func TestFailOpenRemembersNoOutageOfARequestsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutages(t, tell)
		o.ensemble.Partition(memdriver.AroundClients(0))
		giveUp := func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			wantProblem(t, do(o.h, httptest.NewRequestWithContext(ctx, "GET", "/", nil)), 503, middleware.ReasonUnavailable)
		}
		giveUp()
		o.want("the first", false, connectTimeout)
		time.Sleep(time.Second)
		giveUp() // it was the one to ask again; the next one does
		o.want("who asks again", false, connectTimeout)
	})
}

// TestFailOpenIsNotHeldUpByALongRequest has the one who asked again work for long.
func TestFailOpenIsNotHeldUpByALongRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o *outages
		work := time.Duration(0)
		o = newOutages(t, func(rw http.ResponseWriter, r *http.Request) {
			tell(rw, r)
			time.Sleep(work)
		})
		o.ensemble.Partition(memdriver.AroundClients(0))
		o.want("the first", false, connectTimeout)
		o.ensemble.Heal()
		time.Sleep(time.Second)
		work = 2 * time.Second
		done := make(chan bool)
		for range 2 {
			go func() {
				locked, _ := o.request(t.Context())
				done <- locked
			}()
			synctest.Wait()
		}
		for range 2 {
			if !<-done {
				t.Error("served beside who holds the lock")
			}
		}
	})
}

// TestFailOpenAsksAgainThoughTheOneWhoAskedPanicked has the outage's end found out
// by the next one.
func TestFailOpenAsksAgainThoughTheOneWhoAskedPanicked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		panics := false
		h := middleware.New(w.fixed, middleware.WithFailOpen(), middleware.WithLogger(slog.New(slog.DiscardHandler)), middleware.WithLabel(func(*http.Request) string {
			if panics {
				panic("boom")
			}
			return ""
		}))(http.HandlerFunc(tell))
		w.ensemble.Partition(memdriver.AroundClients(0))
		do(h, httptest.NewRequest("GET", "/", nil))
		w.ensemble.Heal()
		time.Sleep(time.Second)
		panics = true
		func() {
			defer func() { _ = recover() }()
			do(h, httptest.NewRequest("GET", "/", nil))
			t.Error("the label was not asked for")
		}()
		panics = false
		if do(h, httptest.NewRequest("GET", "/", nil)).Header().Get("X-Locked") == "" {
			t.Error("served without its lock though the ensemble is back")
		}
	})
}
