package middleware_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	testworld "github.com/zklock/go-zklock/internal/testkit/world"
	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
)

// hasty is a timeout middleware that answers when the time is up, and does not wait for what it has called.
// limit returns the context of that, which ends when the function is called.
func hasty(next http.Handler, limit func(context.Context) (context.Context, func())) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, end := limit(r.Context())
		inner := r
		if ctx != r.Context() {
			inner = r.WithContext(ctx)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			next.ServeHTTP(w, inner)
		}()
		select {
		case <-done:
		case <-time.After(time.Second):
			end()
			w.Header().Set("X-Late", "yes")
			w.WriteHeader(http.StatusGatewayTimeout)
		}
	})
}

// After a timeout middleware has answered, the response and the request belong to it, or to the server. The
// race detector finds a lock that touches them. If the middleware has set a deadline, the lock answers before it.
func TestTimeoutMiddlewareAroundTheLock(t *testing.T) {
	for what, c := range map[string]struct {
		limit  func(context.Context) (context.Context, func())
		status int
	}{
		"it sets a deadline": {func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			return ctx, cancel
		}, http.StatusServiceUnavailable},
		"it cancels": {func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancel(ctx)
			return ctx, cancel
		}, http.StatusGatewayTimeout},
		"the server cancels": {func(ctx context.Context) (context.Context, func()) { return ctx, func() {} }, http.StatusGatewayTimeout},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				release := w.Hold("orders/42")
				observed := make(chan error, 1)
				lock := middleware.New(w.fixed, middleware.WithObserver(func(_ *http.Request, err error) { observed <- err }))
				client := testworld.Serve(t, &http.Server{Handler: hasty(lock(never(t)), c.limit), ErrorLog: quiet()})
				resp, err := client.Get("http://shop/")
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if resp.StatusCode != c.status {
					t.Errorf("status %d, want %d", resp.StatusCode, c.status)
				}
				err = <-observed
				want := context.Canceled
				if c.status == http.StatusServiceUnavailable {
					want = context.DeadlineExceeded
				}
				if !errors.Is(err, want) {
					t.Errorf("the observer got %v, want %v", err, want)
				}
				synctest.Wait()
				release()
			})
		})
	}
}

// The same for a handler that has the lock when the middleware answers, and loses it or not. The connection
// serves the next request.
func TestTimeoutMiddlewareAroundAHandler(t *testing.T) {
	for _, loses := range []bool{false, true} {
		for _, begins := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				observed := make(chan error, 1)
				lock := middleware.New(w.fixed, middleware.WithObserver(func(_ *http.Request, err error) { observed <- err }))
				over, left := make(chan struct{}), make(chan struct{})
				slow := lock(w.watched(func(rw http.ResponseWriter, r *http.Request) {
					<-over
					if begins {
						_, _ = rw.Write(nil) // it is too late for that, and the handler cannot know
					}
					if loses {
						held, _ := zklock.FromContext(r.Context())
						w.ensemble.ExpireAll()
						<-held.Done()
					}
				}))
				joined := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					defer close(left)
					slow.ServeHTTP(&deaf{header: http.Header{}, to: rw}, r)
				})
				mux := http.NewServeMux()
				mux.Handle("/", hasty(joined, func(ctx context.Context) (context.Context, func()) { return ctx, func() {} }))
				mux.HandleFunc("/next", func(http.ResponseWriter, *http.Request) {})
				client := testworld.Serve(t, &http.Server{Handler: mux, ErrorLog: quiet()})
				get := func(path string, status int) {
					t.Helper()
					resp, err := client.Get("http://shop" + path)
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
					if resp.StatusCode != status {
						t.Errorf("status %d, want %d", resp.StatusCode, status)
					}
				}
				get("/", http.StatusGatewayTimeout)
				close(over)
				<-left
				if loses {
					if err := <-observed; !errors.Is(err, zklock.ErrLost) {
						t.Errorf("the observer got %v, want ErrLost", err)
					}
				}
				get("/next", http.StatusOK)
			})
		}
	}
}

// deaf is the writer of a timeout middleware that has answered: it drops what comes. It leads to the connection.
type deaf struct {
	header http.Header
	to     http.ResponseWriter
}

func (d *deaf) Header() http.Header         { return d.header }
func (d *deaf) Write(p []byte) (int, error) { return len(p), nil }
func (d *deaf) WriteHeader(int)             {}
func (d *deaf) Unwrap() http.ResponseWriter { return d.to }

// In the server's own goroutine the lock answers, although the client has gone: what stands around the lock
// must not take that for a 200.
func TestDisconnectIsAnsweredInTheServersGoroutine(t *testing.T) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		w := newWorld(t)
		release := w.Hold("orders/42")
		lock, seen := middleware.New(w.fixed)(never(t)), make(chan int, 1)
		srv := serveProto(t, proto, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			m := &measured{ResponseWriter: rw}
			lock.ServeHTTP(m, r)
			seen <- m.code
		}))
		ctx, hangUp := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "GET", srv.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		failed := make(chan error, 1)
		go func() {
			resp, err := srv.Client().Do(req)
			if err == nil {
				resp.Body.Close()
			}
			failed <- err
		}()
		<-w.waiting
		hangUp()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("the client got %v, want context.Canceled", err)
		}
		if code := <-seen; code != http.StatusServiceUnavailable {
			t.Errorf("%s: what stands around the lock saw the status %d, want 503", proto, code)
		}
		release()
	}
}
