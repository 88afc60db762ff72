package middleware_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestRetryAfterIsJitteredAndNeverShorter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		release := w.Hold("orders/42")
		defer release()
		for _, c := range []struct {
			d           time.Duration
			least, most int
		}{{time.Second, 1, 2}, {100 * time.Millisecond, 1, 2}, {9500 * time.Millisecond, 10, 15}} {
			h := middleware.New(w.fixed, middleware.WithWait(0), middleware.WithRetryAfter(c.d))(never(t))
			seen := make(map[int]bool)
			for range 200 {
				n, err := strconv.Atoi(do(h, httptest.NewRequest("GET", "/", nil)).Header().Get("Retry-After"))
				if err != nil || n < c.least || n > c.most {
					t.Fatalf("Retry-After %d, %v: want between %d and %d", n, err, c.least, c.most)
				}
				seen[n] = true
			}
			if len(seen) != c.most-c.least+1 {
				t.Errorf("%v: only the values %v occurred in 200 responses", c, seen)
			}
		}
		h := middleware.New(w.fixed, middleware.WithWait(0), middleware.WithRetryAfter(0))(never(t))
		if got := do(h, httptest.NewRequest("GET", "/", nil)).Header().Values("Retry-After"); got != nil {
			t.Errorf("Retry-After %q, want none with WithRetryAfter(0)", got)
		}
	})
}

// A request that is refused since its wait would be too long comes back after the estimate, but within a minute or so.
func TestRetryAfterHasTheEstimate(t *testing.T) {
	for _, c := range []struct {
		estimate, delay time.Duration
		least, most     int
	}{
		{19500 * time.Millisecond, time.Second, 20, 30},
		{20 * time.Second, 40 * time.Second, 40, 60},
		{time.Hour, time.Second, 60, 90},
		{time.Hour, 2 * time.Minute, 120, 180},
	} {
		pick := func(*http.Request) zklock.Acquirer { return zklock.Refuse(&zklock.BusyError{Wait: c.estimate}) }
		rec := do(middleware.New(pick, middleware.WithRetryAfter(c.delay))(never(t)), httptest.NewRequest("GET", "/", nil))
		wantProblem(t, rec, 423, middleware.ReasonContended)
		if n, err := strconv.Atoi(rec.Header().Get("Retry-After")); err != nil || n < c.least || n > c.most {
			t.Errorf("an estimate of %v, WithRetryAfter(%v): Retry-After %d, %v; want between %d and %d", c.estimate, c.delay, n, err, c.least, c.most)
		}
	}
}

func TestFailOpenServesWithoutALockOnlyWithoutAnEnsemble(t *testing.T) {
	corekit.Short(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var log strings.Builder
		served := 0
		h := middleware.New(w.fixed, middleware.WithFailOpen(), middleware.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))(
			http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				served++
				if _, ok := zklock.FromContext(r.Context()); ok {
					t.Error("the context carries a lock")
				}
				io.Copy(rw, r.Body)
			}))

		release := w.Hold("orders/42")
		wantProblem(t, do(h, httptest.NewRequest("GET", "/", nil)), 423, middleware.ReasonContended)
		release()
		if served != 0 || log.Len() != 0 {
			t.Errorf("served %d requests while another client held the lock, logged %q", served, log.String())
		}
		// The request above has ended, but its place is still in the queue, and the release wakes
		// that place. The client then reads its node. The reply is the last one before the outage,
		// so the outage counts from now on.
		synctest.Wait()

		w.ensemble.Partition(memdriver.AroundClients(0))
		rec := do(h, httptest.NewRequest("POST", "/", strings.NewReader("body")))
		if rec.Code != 200 || rec.Body.String() != "body" || served != 1 {
			t.Errorf("in the outage: status %d, body %q, served %d", rec.Code, rec.Body, served)
		}
		synctest.Wait()
		if !strings.Contains(log.String(), "level=WARN") || strings.Contains(log.String(), "orders") {
			t.Errorf("logged %q, want level WARN and no lock name", log.String())
		}

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		do(h, httptest.NewRequestWithContext(ctx, "GET", "/", nil))
		if served != 1 {
			t.Error("served a request whose client has disconnected")
		}
		// The client keeps trying to reach the ensemble, so it still knows of the outage.
		time.Sleep(time.Second)
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if rec := do(h, httptest.NewRequestWithContext(ctx, "GET", "/", nil)); rec.Code != 200 || served != 2 {
			t.Errorf("later in the outage: status %d, served %d", rec.Code, served)
		}
	})
}

func TestErrorHandlerAnswersInstead(t *testing.T) {
	h := middleware.New(func(*http.Request) zklock.Acquirer { return zklock.Refuse(zklock.ErrNotAcquired) },
		middleware.WithErrorHandler(func(w http.ResponseWriter, r *http.Request, err error) {
			if !errors.Is(err, zklock.ErrNotAcquired) {
				t.Errorf("the error handler got %v, want ErrNotAcquired", err)
			}
			http.Error(w, "busy", http.StatusConflict)
		}))(never(t))
	rec := do(h, httptest.NewRequest("GET", "/", nil))
	if rec.Code != 409 || rec.Body.String() != "busy\n" || rec.Header().Get("Retry-After") == "" {
		t.Errorf("status %d, body %q, header %v", rec.Code, rec.Body, rec.Header())
	}
}

func TestMaxHoldCancelsAndReleasesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		h := middleware.New(w.fixed, middleware.WithMaxHold(3*time.Second))(w.watched(func(rw http.ResponseWriter, r *http.Request) {
			start := time.Now()
			<-r.Context().Done()
			if held := time.Since(start); held != 3*time.Second {
				t.Errorf("the context was cancelled after %v, want 3s", held)
			}
			if cause := context.Cause(r.Context()); cause != zklock.ErrMaxHold {
				t.Errorf("the context's cause is %v, want ErrMaxHold", cause)
			}
			time.Sleep(time.Minute)
			if l, ok := zklock.FromContext(r.Context()); !ok || !l.Valid() {
				t.Error("the lock is not held any more")
			}
			rw.WriteHeader(http.StatusAccepted)
		}))
		if rec := do(h, httptest.NewRequest("GET", "/", nil)); rec.Code != http.StatusAccepted {
			t.Errorf("status %d, want 202", rec.Code)
		}
	})
}

func TestLabelAndTokenHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		h := middleware.New(w.fixed, middleware.WithTokenHeader("X-Fence"),
			middleware.WithLabel(func(r *http.Request) string { return r.Header.Get("X-Request-Id") }))(
			w.watched(func(rw http.ResponseWriter, r *http.Request) {
				l, _ := zklock.FromContext(r.Context())
				if got := rw.Header().Get("X-Fence"); got != l.Token().String() {
					t.Errorf("X-Fence %q, token %v", got, l.Token())
				}
				if dump := w.ensemble.Dump(); !strings.Contains(dump, "req-7") {
					t.Errorf("the label is not in the queue node:\n%s", dump)
				}
			}))
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-Request-Id", "req-7")
		if rec := do(h, r); rec.Header().Get("X-Fence") == "" {
			t.Error("the response does not have the token header")
		}
	})
}

func TestStatusThatDoesNotSayNoIsRefused(t *testing.T) {
	refused := func(code int, option func(int) middleware.Option) (refused bool) {
		defer func() { refused = recover() != nil }()
		option(code)
		return false
	}
	for code, want := range map[int]bool{0: true, -1: true, 200: true, 399: true, 600: true, 400: false, 423: false, 599: false} {
		if refused(code, middleware.WithStatus) != want {
			t.Errorf("WithStatus(%d) panicked: %v, want %v", code, !want, want)
		}
		if refused(code, middleware.WithLostStatus) != want {
			t.Errorf("WithLostStatus(%d) panicked: %v, want %v", code, !want, want)
		}
	}
}
