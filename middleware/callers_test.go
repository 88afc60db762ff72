package middleware_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// trustAll trusts all callers.
func trustAll(*http.Request) bool { return true }

// callee is the second service of a chain of calls. Its handler acquires the lock that want picks, as the
// work of the request, and keeps the error.
type callee struct {
	want func() zklock.Acquirer
	opts []zklock.AcquireOption
	err  error
}

func (c *callee) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l, err := c.want().Acquire(r.Context(), append([]zklock.AcquireOption{zklock.WithWait(time.Minute)}, c.opts...)...)
	if c.err = err; err != nil {
		w.WriteHeader(http.StatusConflict)
		return
	}
	_ = l.Release(context.Background())
}

// passing picks no lock.
func passing(*http.Request) zklock.Acquirer { return nil }

// calls sends a request from a handler that has a lock, with the header that Transport adds.
func calls(l *zklock.Lock, h http.Handler) int {
	ctx, cancel := l.Context(context.Background())
	defer cancel()
	code := 0
	base := roundTrip(func(r *http.Request) (*http.Response, error) {
		in := httptest.NewRequest("POST", "/", nil) // another process: none of the context arrives there
		in.Header = r.Header
		rec := do(h, in)
		code = rec.Code
		return rec.Result(), nil
	})
	r, _ := http.NewRequestWithContext(ctx, "POST", "http://callee/", nil)
	_, _ = (&middleware.Transport{Base: base}).RoundTrip(r)
	return code
}

func TestCalleeDoesNotWaitForItsCaller(t *testing.T) {
	own := middleware.WithLabel(nil) // any option
	callers := middleware.WithCallerLocks(trustAll)
	for _, c := range []struct {
		name    string
		opt     middleware.Option
		reader  bool // the caller's lock
		want    func(w *world) zklock.Acquirer
		acquire []zklock.AcquireOption
		err     error
		waited  time.Duration
	}{
		{"the caller's lock", callers, false, func(w *world) zklock.Acquirer { return w.client.Mutex("x") }, nil, zklock.ErrDeadlock, 0},
		{"the caller's lock, by a try", callers, false, func(w *world) zklock.Acquirer { return w.client.Mutex("x") }, []zklock.AcquireOption{zklock.WithWait(0)}, zklock.ErrDeadlock, 0},
		{"the caller's lock, to join it", callers, false, func(w *world) zklock.Acquirer { return w.client.Mutex("x") }, []zklock.AcquireOption{zklock.Reenter()}, zklock.ErrDeadlock, 0},
		{"one of several", callers, false, func(w *world) zklock.Acquirer { return zklock.All(w.client.Mutex("a"), w.client.Mutex("x")) }, nil, zklock.ErrDeadlock, 0},
		{"another lock", callers, false, func(w *world) zklock.Acquirer { return w.client.Mutex("other") }, nil, nil, 0},
		{"a reader, behind a reader", callers, true, func(w *world) zklock.Acquirer { return w.client.RWMutex("x").Reader() }, nil, nil, 0},
		{"a writer, behind a reader", callers, true, func(w *world) zklock.Acquirer { return w.client.RWMutex("x").Writer() }, nil, zklock.ErrDeadlock, 0},
		{"a caller that is not trusted", middleware.WithCallerLocks(func(*http.Request) bool { return false }), false, func(w *world) zklock.Acquirer { return w.client.Mutex("x") }, nil, zklock.ErrNotAcquired, time.Minute},
		{"without the option", own, false, func(w *world) zklock.Acquirer { return w.client.Mutex("x") }, nil, zklock.ErrNotAcquired, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var of zklock.Acquirer = w.client.Mutex("x")
				if c.reader {
					of = w.client.RWMutex("x").Reader()
				}
				l, err := of.Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer l.Release(t.Context())
				far := newWorldOn(t, w.ensemble, w.ensemble.Connector()) // the callee's process
				to := &callee{want: func() zklock.Acquirer { return c.want(far) }, opts: c.acquire}
				began := time.Now()
				calls(l, middleware.New(passing, c.opt)(to))
				if !errors.Is(to.err, c.err) || c.waited > 0 && errors.Is(to.err, zklock.ErrDeadlock) {
					t.Errorf("error %v, want %v", to.err, c.err)
				}
				if took := time.Since(began); took != c.waited {
					t.Errorf("waited %v, want %v", took, c.waited)
				}
			})
		})
	}
}

// The middleware's own lock is one that the callee acquires for the caller, too.
func TestMiddlewareDoesNotWaitForItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		far := newWorldOn(t, w.ensemble, w.ensemble.Connector())
		release := w.Hold("orders/42")
		defer release()
		h := middleware.New(far.fixed, middleware.WithCallerLocks(trustAll))(never(t))
		wantProblem(t, do(h, sent(sequencer("orders/42", 7))), http.StatusInternalServerError, middleware.ReasonError)
	})
}

func TestCallersHeaderThatSaysNothing(t *testing.T) {
	many := make([]string, 40)
	for i := range many {
		many[i] = sequencer("other"+strings.Repeat("i", i), 9)
	}
	good := sequencer("x", 9)
	for _, c := range []struct {
		name    string
		values  []string
		refused bool
	}{
		{"nonsense", []string{"nonsense"}, false},
		{"nonsense and a lock", []string{good, "nonsense"}, false},
		{"a mode that no lock has", []string{strings.Replace(good, "exclusive", "permit", 1)}, false},
		{"no token", []string{strings.Replace(good, strings.Fields(good)[0], zklock.Token{}.String(), 1)}, false},
		{"too many for a message", append(many, strings.Split(strings.Repeat(good+",", 100)+good, ",")...), false},
		{"behind the bound", append(many[:32:32], good), false},
		{"within the bound", append(many[:31:31], good), true},
		{"joined on the way", []string{many[0] + ", " + good}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				to := &callee{want: func() zklock.Acquirer { return w.client.Mutex("x") }}
				rec := do(middleware.New(passing, middleware.WithCallerLocks(trustAll))(to), sent(c.values...))
				if refused := errors.Is(to.err, zklock.ErrDeadlock); refused != c.refused || !refused && (to.err != nil || rec.Code != 200) {
					t.Errorf("error %v, status %d", to.err, rec.Code)
				}
			})
		})
	}
}

// TestDeadlockThroughACall: a service holds x and calls another one, which waits for y. The holder of y
// waits for x.
func TestDeadlockThroughACall(t *testing.T) {
	for _, trusted := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			far, third := newWorldOn(t, w.ensemble, w.ensemble.Connector()), newWorldOn(t, w.ensemble, w.ensemble.Connector())
			x, err := w.client.Mutex("x").Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			y, err := third.client.Mutex("y").Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			to := &callee{want: func() zklock.Acquirer { return far.client.Mutex("y") }}
			called := make(chan int, 1)
			go func() {
				code := calls(x, middleware.New(passing, middleware.WithCallerLocks(func(*http.Request) bool { return trusted }))(to))
				_ = x.Release(context.Background())
				called <- code
			}()
			ctx, cancel := y.Context(t.Context())
			defer cancel()
			l, waited := third.client.Mutex("x").Acquire(ctx, zklock.WithWait(2*time.Minute))
			if waited == nil {
				_ = l.Release(t.Context())
			}
			_ = y.Release(t.Context())
			<-called
			victims := 0
			for _, err := range []error{to.err, waited} {
				if d := (*zklock.DeadlockError)(nil); errors.As(err, &d) {
					victims++
					t.Log(d)
				} else if err != nil && trusted {
					t.Error(err)
				}
			}
			if want := map[bool]int{true: 1}[trusted]; victims != want {
				t.Errorf("trusted %v: %d acquisitions ended by the deadlock, want %d: %v, %v", trusted, victims, want, to.err, waited)
			}
		})
	}
}

func TestDeadlockIsWorthAnotherTry(t *testing.T) {
	circle := &zklock.DeadlockError{Cycle: []zklock.DeadlockLink{{Host: "h", Held: "orders/42", Waiting: "orders/7"}}}
	h := middleware.New(func(*http.Request) zklock.Acquirer { return zklock.Refuse(circle) })(never(t))
	rec := do(h, httptest.NewRequest("POST", "/", nil))
	wantProblem(t, rec, http.StatusLocked, middleware.ReasonDeadlock)
	if rec.Header().Get("Retry-After") == "" {
		t.Error("the response has no Retry-After")
	}
}

func TestCallersContextReachesTheServersRequest(t *testing.T) {
	mux := http.NewServeMux()
	var seen *http.Request
	mux.HandleFunc("POST /orders/{id}", func(_ http.ResponseWriter, r *http.Request) { _ = r.ParseMultipartForm(1 << 10) })
	h := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		seen = r
		middleware.New(passing, middleware.WithCallerLocks(trustAll))(mux).ServeHTTP(rw, r)
	})
	r := httptest.NewRequest("POST", "/orders/42", strings.NewReader("--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b--\r\n"))
	r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	r.Header.Set(fence.Key, sequencer("x", 9))
	do(h, r)
	if seen.Pattern == "" || seen.MultipartForm == nil {
		t.Errorf("the server's request has the pattern %q and the form %v", seen.Pattern, seen.MultipartForm)
	}
}
