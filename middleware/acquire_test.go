package middleware_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
)

// A handler behind two middlewares that pick the same lock: with Reenter the inner one joins,
// without it the request would wait for itself.
func TestReenterJoinsTheOuterLock(t *testing.T) {
	for _, c := range []struct {
		opts []middleware.Option
		want int
	}{{nil, http.StatusInternalServerError}, {[]middleware.Option{middleware.WithAcquire(zklock.Reenter())}, http.StatusOK}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			var tokens []zklock.Token
			h := w.watched(func(_ http.ResponseWriter, r *http.Request) {
				for _, l := range zklock.HeldIn(r.Context()) {
					tokens = append(tokens, l.Token())
				}
			})
			h = middleware.New(w.fixed)(middleware.New(w.fixed, append(c.opts, middleware.WithLogger(slog.New(slog.DiscardHandler)))...)(h))
			if rec := do(h, httptest.NewRequest("GET", "/", nil)); rec.Code != c.want {
				t.Errorf("status %d, want %d", rec.Code, c.want)
			}
			if c.want == http.StatusOK && (len(tokens) != 2 || tokens[0] != tokens[1]) {
				t.Errorf("the handler holds locks with the tokens %v, want the same twice", tokens)
			}
		})
	}
}

// With WithMaxWaiters a request is refused while that many wait already.
func TestMaxWaitersRefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		h := middleware.New(w.fixed, middleware.WithAcquire(zklock.WithMaxWaiters(2)), middleware.WithStatus(http.StatusTooManyRequests))(w.watched(func(http.ResponseWriter, *http.Request) {}))
		release := w.Hold("orders/42")
		codes := make(chan int, 5)
		for range 5 {
			go func() { codes <- do(h, httptest.NewRequest("GET", "/", nil)).Code }()
			synctest.Wait()
		}
		if len(codes) != 3 {
			t.Errorf("%d requests were answered while the lock was held, want 3", len(codes))
		}
		release()
		got := map[int]int{}
		for range 5 {
			got[<-codes]++
		}
		if got[http.StatusTooManyRequests] != 3 || got[http.StatusOK] != 2 {
			t.Errorf("statuses %v, want 3 requests to be refused", got)
		}
	})
}

// With WithoutHandover each request has a token with a Zxid of its own.
func TestWithoutHandoverGivesEachRequestANode(t *testing.T) {
	for _, c := range []struct {
		opts []middleware.Option
		want int
	}{{nil, 1}, {[]middleware.Option{middleware.WithAcquire(zklock.WithoutHandover())}, 3}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			zxids := make(map[int64]bool)
			first, done := make(chan struct{}), make(chan struct{}, 3)
			h := middleware.New(w.fixed, c.opts...)(w.watched(func(_ http.ResponseWriter, r *http.Request) {
				l, _ := zklock.FromContext(r.Context())
				if zxids[l.Token().Zxid] = true; len(zxids) == 1 {
					<-first
				}
			}))
			for range 3 {
				go func() { do(h, httptest.NewRequest("GET", "/", nil)); done <- struct{}{} }()
				synctest.Wait()
			}
			close(first)
			for range 3 {
				<-done
			}
			if len(zxids) != c.want {
				t.Errorf("three requests have had %d Zxids, want %d", len(zxids), c.want)
			}
		})
	}
}

// A zklock.WithWait among the options of WithAcquire has no effect. The package's own WithWait
// bounds the wait, since it also bounds the reading of the body.
func TestWaitIsThatOfWithWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.Hold("orders/42")()
		start := time.Now()
		h := middleware.New(w.fixed, middleware.WithWait(2*time.Second), middleware.WithAcquire(zklock.WithWait(0), zklock.WithLabel("other")))(never(t))
		if code := do(h, httptest.NewRequest("GET", "/", nil)).Code; code != http.StatusLocked || time.Since(start) != 2*time.Second {
			t.Errorf("status %d after %v, want 423 after 2s", code, time.Since(start))
		}
	})
}
