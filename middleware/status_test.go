package middleware_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// never is a handler that must not run.
func never(t *testing.T) http.Handler {
	return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })
}

func TestHandlerRunsUnderTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		h := middleware.New(w.fixed)(w.watched(func(rw http.ResponseWriter, r *http.Request) {
			l, _ := zklock.FromContext(r.Context())
			if l.Name() != "orders/42" || !l.Valid() {
				t.Errorf("lock %q, valid %v; want a valid orders/42", l.Name(), l.Valid())
			}
			rw.Header().Set("X-Handler", "yes")
			rw.WriteHeader(http.StatusCreated)
			io.WriteString(rw, "made")
		}))
		rec := do(h, httptest.NewRequest("POST", "/", strings.NewReader("body")))
		if rec.Code != http.StatusCreated || rec.Body.String() != "made" || rec.Header().Get("X-Handler") != "yes" {
			t.Errorf("status %d, body %q, header %v", rec.Code, rec.Body, rec.Header())
		}
		if len(w.Locks()) != 1 {
			t.Errorf("%d locks were acquired, want 1", len(w.Locks()))
		}
	})
}

func TestRequestsOfOneLockAreServedOneAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		inside, most, served := 0, 0, 0
		h := middleware.New(w.fixed)(w.watched(func(http.ResponseWriter, *http.Request) {
			inside++
			most = max(most, inside)
			time.Sleep(time.Millisecond)
			inside--
			served++
		}))
		done := make(chan struct{})
		for range 20 {
			go func() {
				do(h, httptest.NewRequest("GET", "/", nil))
				done <- struct{}{}
			}()
		}
		for range 20 {
			<-done
		}
		if most != 1 || served != 20 {
			t.Errorf("%d handlers at once, %d requests served; want 1 and 20", most, served)
		}
	})
}

func TestNilPickPassesThrough(t *testing.T) {
	w := newWorld(t)
	h := middleware.New(func(*http.Request) zklock.Acquirer { return nil })(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if _, ok := zklock.FromContext(r.Context()); ok {
			t.Error("the context carries a lock")
		}
		rw.WriteHeader(http.StatusTeapot)
	}))
	if rec := do(h, httptest.NewRequest("GET", "/", nil)); rec.Code != http.StatusTeapot {
		t.Errorf("status %d, want 418", rec.Code)
	}
	if len(w.Locks()) != 0 {
		t.Error("a lock was acquired")
	}
}

func TestContendedRequestIsAnsweredWhenItsWaitIsOver(t *testing.T) {
	for _, c := range []struct {
		name string
		opts []middleware.Option
		wait time.Duration
		want int
	}{
		{"by default", nil, 10 * time.Second, 423},
		{"with a wait", []middleware.Option{middleware.WithWait(2 * time.Second)}, 2 * time.Second, 423},
		{"with a try", []middleware.Option{middleware.WithWait(0)}, 0, 423},
		{"as 409", []middleware.Option{middleware.WithWait(0), middleware.WithStatus(409)}, 0, 409},
		{"as 429", []middleware.Option{middleware.WithWait(0), middleware.WithStatus(429)}, 0, 429},
		{"as 503", []middleware.Option{middleware.WithWait(0), middleware.WithStatus(503)}, 0, 503},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				release := w.Hold("orders/42")
				defer release()
				start := time.Now()
				rec := do(middleware.New(w.fixed, c.opts...)(never(t)), httptest.NewRequest("GET", "/", nil))
				if waited := time.Since(start); waited != c.wait {
					t.Errorf("waited %v, want %v", waited, c.wait)
				}
				wantProblem(t, rec, c.want, middleware.ReasonContended)
				if rec.Header().Get("Retry-After") == "" {
					t.Error("no Retry-After")
				}
			})
		})
	}
}

func TestTooManyWaitersIsContention(t *testing.T) {
	h := middleware.New(func(*http.Request) zklock.Acquirer { return zklock.Refuse(zklock.ErrTooManyWaiters) })(never(t))
	wantProblem(t, do(h, httptest.NewRequest("GET", "/", nil)), 423, middleware.ReasonContended)
}

func TestErrorsOfAcquire(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		reason string
		retry  bool
	}{
		{zklock.ErrUnavailable, 503, middleware.ReasonUnavailable, true},
		{zklock.ErrClosed, 503, middleware.ReasonUnavailable, true},
		{zklock.ErrInvalidName, 400, middleware.ReasonName, false},
		{zklock.ErrDeadlock, 500, middleware.ReasonError, false},
		{zklock.ErrConflict, 500, middleware.ReasonError, false},
		{zklock.ErrNoAuth, 500, middleware.ReasonError, false},
		{zklock.ErrBadEnsemble, 500, middleware.ReasonError, false},
		{zklock.ErrMisuse, 500, middleware.ReasonError, false},
		{&zklock.LostError{Cause: zklock.ErrUnavailable}, 503, middleware.ReasonUnavailable, true},
		{errors.New("whatever"), 500, middleware.ReasonError, false},
	} {
		var observed error
		h := middleware.New(func(*http.Request) zklock.Acquirer {
			return zklock.Refuse(&zklock.Error{Op: "acquire", Name: "orders/42", Err: c.err})
		},
			middleware.WithObserver(func(_ *http.Request, err error) { observed = err }))(never(t))
		rec := do(h, httptest.NewRequest("GET", "/", nil))
		wantProblem(t, rec, c.status, c.reason)
		if got := rec.Header().Get("Retry-After") != ""; got != c.retry {
			t.Errorf("%v: Retry-After %v, want %v", c.err, got, c.retry)
		}
		if !errors.Is(observed, c.err) {
			t.Errorf("the observer got %v, want %v", observed, c.err)
		}
	}
}

func TestUnreachableEnsemble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.ensemble.Partition(memdriver.AroundClients(0))
		rec := do(middleware.New(w.fixed)(never(t)), httptest.NewRequest("GET", "/", nil))
		wantProblem(t, rec, 503, middleware.ReasonUnavailable)
		if rec.Header().Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	})
}

func TestOwnDeadlineDuringTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		release := w.Hold("orders/42")
		defer release()
		for _, c := range []struct {
			end  func(context.Context) (context.Context, context.CancelFunc)
			wait time.Duration
		}{
			{func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Second)
			}, 900 * time.Millisecond},
			{func(ctx context.Context) (context.Context, context.CancelFunc) { // a server that shuts down
				ctx, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(time.Second, func() { cancel(http.ErrServerClosed) })
				return ctx, func() { cancel(nil) }
			}, time.Second},
		} {
			ctx, cancel := c.end(t.Context())
			start := time.Now()
			rec := do(middleware.New(w.fixed)(never(t)), httptest.NewRequestWithContext(ctx, "GET", "/", nil))
			cancel()
			if waited := time.Since(start); waited != c.wait {
				t.Errorf("waited %v, want %v", waited, c.wait)
			}
			wantProblem(t, rec, 503, middleware.ReasonContended)
		}
	})
}

// TestCancelDuringTheWaitIsAnswered cancels a request's context without a cause. The
// server does so when the client has disconnected. An outer middleware may do so while
// the client is still connected.
func TestCancelDuringTheWaitIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		release := w.Hold("orders/42")
		defer release()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		var observed, handled error
		r := httptest.NewRequestWithContext(ctx, "GET", "/", nil)
		observer := middleware.WithObserver(func(_ *http.Request, err error) { observed = err })
		rec := do(middleware.New(w.fixed, observer)(never(t)), r)
		if waited := time.Since(start); waited != time.Second {
			t.Errorf("waited %v, want 1s", waited)
		}
		wantProblem(t, rec, 503, middleware.ReasonContended)
		if rec.Header().Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		if !errors.Is(observed, context.Canceled) {
			t.Errorf("the observer got %v, want context.Canceled", observed)
		}
		rec = do(middleware.New(w.fixed, middleware.WithErrorHandler(func(rw http.ResponseWriter, _ *http.Request, err error) {
			handled = err
			rw.WriteHeader(http.StatusTeapot)
		}))(never(t)), r)
		if rec.Code != http.StatusTeapot || !errors.Is(handled, context.Canceled) {
			t.Errorf("status %d, and the error handler got %v; want 418 and context.Canceled", rec.Code, handled)
		}
		if st := w.client.Stats(); st.Waiting != 0 {
			t.Errorf("%d acquisitions still wait, want none", st.Waiting)
		}
	})
}

// TestCancelWhoseClientIsStillThereIsAnswered has an outer middleware that cancels the
// request, while the client waits for the response.
func TestCancelWhoseClientIsStillThereIsAnswered(t *testing.T) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		w := newWorld(t)
		release := w.Hold("orders/42")
		given, cancel := context.WithCancel(t.Context())
		defer cancel()
		logged := make(chan int, 1)
		lock := middleware.New(w.fixed)(never(t))
		srv := serveProto(t, proto, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			ctx, stop := context.WithCancel(r.Context())
			defer stop()
			defer context.AfterFunc(given, stop)()
			status := &statusWriter{rw, http.StatusOK}
			lock.ServeHTTP(status, r.WithContext(ctx))
			logged <- status.code
		}))
		go func() { <-w.waiting; cancel() }()
		resp, err := srv.Client().Post(srv.URL, "text/plain", strings.NewReader("order"))
		if err != nil {
			t.Errorf("%s: %v", proto, err)
		} else {
			if resp.StatusCode != 503 {
				t.Errorf("%s: status %d, want 503", proto, resp.StatusCode)
			}
			resp.Body.Close()
		}
		if code := <-logged; code != 503 {
			t.Errorf("%s: an outer logger saw status %d, want 503", proto, code)
		}
		release()
	}
}

// statusWriter records the status, as loggers do.
type statusWriter struct {
	http.ResponseWriter
	code int
}

func (s *statusWriter) WriteHeader(code int)        { s.code = code; s.ResponseWriter.WriteHeader(code) }
func (s *statusWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func TestHeadGetsNoBody(t *testing.T) {
	h := middleware.New(func(*http.Request) zklock.Acquirer { return zklock.Refuse(zklock.ErrNotAcquired) })(never(t))
	get, head := do(h, httptest.NewRequest("GET", "/", nil)), do(h, httptest.NewRequest("HEAD", "/", nil))
	if head.Body.Len() != 0 || head.Code != 423 {
		t.Errorf("status %d, body %q; want 423 without a body", head.Code, head.Body)
	}
	if a, b := get.Header().Get("Content-Length"), head.Header().Get("Content-Length"); a != b || a != strconv.Itoa(get.Body.Len()) {
		t.Errorf("Content-Length %s of a GET, %s of a HEAD, %d bytes", a, b, get.Body.Len())
	}
}

func TestNestedLockOfTheSameNameIsAServersError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		lock := middleware.New(w.fixed)
		wantProblem(t, do(lock(lock(never(t))), httptest.NewRequest("GET", "/", nil)), 500, middleware.ReasonError)
	})
}
