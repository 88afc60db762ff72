package middleware_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	testworld "github.com/zklock/go-zklock/internal/testkit/world"
	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A server that cannot answer a request any longer has to refuse it before that, whatever the request waits
// for. Each case says how, and after how long.
func TestWaitEndsBeforeTheServersWriteTimeout(t *testing.T) {
	for _, c := range []struct {
		what    string
		timeout time.Duration // its WriteTimeout
		opts    []middleware.Option
		change  func(w *world, lock http.Handler) http.Handler // nil: the lock itself
		outage  bool
		body    io.Reader
		status  int
		reason  string
		after   time.Duration
	}{
		{what: "another holder", timeout: time.Second, status: 423, reason: middleware.ReasonContended, after: 900 * time.Millisecond},
		{what: "a very short one", timeout: 10 * time.Millisecond, status: 423, reason: middleware.ReasonContended, after: 9 * time.Millisecond},
		{what: "a long one", timeout: time.Minute, status: 200, after: 3 * time.Second},
		{what: "as long as the wait", timeout: 10 * time.Second, opts: []middleware.Option{middleware.WithWait(9 * time.Second)}, status: 200, after: 3 * time.Second},
		{what: "none", status: 200, after: 3 * time.Second},
		{what: "another one of the middleware", timeout: time.Minute, opts: []middleware.Option{middleware.WithWriteTimeout(time.Second)}, status: 423, reason: middleware.ReasonContended, after: 900 * time.Millisecond},
		{what: "none of the middleware", timeout: time.Second, opts: []middleware.Option{middleware.WithWriteTimeout(0)},
			change: func(_ *world, lock http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
					lock.ServeHTTP(w, r)
				})
			}, status: 200, after: 3 * time.Second},
		{what: "a lock inside a lock", timeout: time.Second,
			change: func(w *world, lock http.Handler) http.Handler {
				release := w.Hold("users/7")
				time.AfterFunc(500*time.Millisecond, release)
				return middleware.New(func(*http.Request) zklock.Acquirer { return w.client.Mutex("users/7") })(lock)
			}, status: 423, reason: middleware.ReasonContended, after: 900 * time.Millisecond},
		{what: "a deadline of the request", change: func(_ *world, lock http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				ctx, cancel := context.WithTimeout(r.Context(), time.Second)
				defer cancel()
				lock.ServeHTTP(w, r.WithContext(ctx))
			})
		}, status: 503, reason: middleware.ReasonContended, after: 900 * time.Millisecond},
		{what: "an outage", timeout: time.Second, outage: true, status: 503, reason: middleware.ReasonUnavailable, after: 900 * time.Millisecond},
		{what: "an outage, and a try", timeout: time.Second, opts: []middleware.Option{middleware.WithWait(0)}, outage: true, status: 503, reason: middleware.ReasonUnavailable, after: 900 * time.Millisecond},
		{what: "a try", timeout: time.Second, opts: []middleware.Option{middleware.WithWait(0)}, status: 423, reason: middleware.ReasonContended},
		{what: "a body", timeout: time.Second, body: slowly{}, status: 408, reason: middleware.ReasonBody, after: 900 * time.Millisecond},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				release := w.Hold("orders/42")
				if c.outage {
					release()
					w.ensemble.Partition(memdriver.AroundClients(0).Reset())
					t.Cleanup(func() { w.ensemble.Heal() })
				} else {
					time.AfterFunc(3*time.Second, release)
				}
				served := false
				var h http.Handler = w.watched(func(http.ResponseWriter, *http.Request) { served = true })
				h = middleware.New(w.fixed, c.opts...)(h)
				if c.change != nil {
					h = c.change(w, h)
				}
				client := testworld.Serve(t, &http.Server{Handler: h, WriteTimeout: c.timeout, ErrorLog: quiet()})
				start := time.Now()
				resp, err := client.Post("http://shop/", "", c.body)
				if err != nil {
					t.Fatalf("no answer after %v: %v", time.Since(start), err)
				}
				defer resp.Body.Close()
				var p problem
				_ = json.NewDecoder(resp.Body).Decode(&p) // a request that was served has no body
				if after := time.Since(start); resp.StatusCode != c.status || p.Reason != c.reason || after != c.after {
					t.Errorf("status %d, reason %q after %v; want %d, %q after %v", resp.StatusCode, p.Reason, after, c.status, c.reason, c.after)
				}
				time.Sleep(4 * time.Second) // until the lock is free for the request if it still waits
				if served != (c.status == 200) {
					t.Errorf("the handler ran: %v", served)
				}
			})
		})
	}
}

// slowly is a body that takes longer to arrive than a server waits.
type slowly struct{}

func (slowly) Read(p []byte) (int, error) {
	time.Sleep(2 * time.Second)
	p[0] = 'x'
	return 1, nil
}
