package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/leaks"
	"github.com/zklock/go-zklock/internal/testkit/wait"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// world is an ensemble with a client. The client's hooks check that every lock is
// released exactly once, and never while its handler runs.
type world struct {
	t        *testing.T
	ensemble *memdriver.Ensemble
	client   *zklock.Client

	mu       sync.Mutex
	released map[*zklock.Lock]int // guarded by mu; 0: held
	running  map[*zklock.Lock]int // guarded by mu; running handlers
	waiting  chan struct{}        // gets one value for every wait
}

func newWorld(t *testing.T) *world {
	t.Helper()
	e := memdriver.New()
	w := newWorldOn(t, e, e.Connector())
	return w
}

func newWorldOn(t *testing.T, e *memdriver.Ensemble, connector driver.Connector) *world {
	t.Helper()
	w := &world{t: t, ensemble: e, released: make(map[*zklock.Lock]int), running: make(map[*zklock.Lock]int), waiting: make(chan struct{}, 100)}
	client, err := zklock.OpenConnector(connector, zklock.WithHooks(zklock.Hooks{
		Acquire: func(ctx context.Context, _ zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
			return ctx, func(r zklock.AcquireResult) {
				if r.Lock != nil {
					w.mu.Lock()
					defer w.mu.Unlock()
					w.released[r.Lock] += 0
				}
			}
		},
		Wait: func(ctx context.Context, _ zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
			w.waiting <- struct{}{}
			return ctx, nil
		},
		Release: func(ctx context.Context, e zklock.ReleaseEvent) (context.Context, func(zklock.ReleaseResult)) {
			if ctx.Err() != nil {
				t.Errorf("released on a context that has ended: %v", ctx.Err())
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.released[e.Lock]++
			if n := w.running[e.Lock]; n != 0 {
				t.Errorf("a lock was released while %d of its handlers were running", n)
			}
			return ctx, nil
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	w.client = client
	t.Cleanup(w.close)
	return w
}

// close checks that every lock was released.
func (w *world) close() {
	// The handler notices a loss a moment before Stats does.
	eventually(w.t, "Stats to count no held lock", func() bool { return w.client.Stats().Held == 0 })
	if err := w.client.Close(); err != nil {
		w.t.Error(err)
	}
	_ = w.ensemble.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	for l, n := range w.released {
		if n != 1 {
			w.t.Errorf("lock %q was released %d times, want once", l.Name(), n)
		}
	}
}

// locks returns how many locks were acquired so far.
func (w *world) locks() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.released)
}

// handles returns the locks that were acquired so far.
func (w *world) handles() []*zklock.Lock {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.released))
}

// watched wraps a handler, so that the hooks know when it runs.
func (w *world) watched(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		l, ok := zklock.FromContext(r.Context())
		if !ok {
			w.t.Error("the handler's context carries no lock")
		}
		w.mu.Lock()
		w.running[l]++
		w.mu.Unlock()
		defer func() {
			w.mu.Lock()
			w.running[l]--
			w.mu.Unlock()
		}()
		h(rw, r)
	})
}

// fixed picks one mutex for all requests.
func (w *world) fixed(*http.Request) zklock.Acquirer { return w.client.Mutex("orders/42") }

// hold acquires the mutex that fixed picks, with another client.
func (w *world) hold() (release func()) {
	w.t.Helper()
	other, err := zklock.OpenConnector(w.ensemble.Connector())
	if err != nil {
		w.t.Fatal(err)
	}
	l, err := other.Mutex("orders/42").Acquire(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return sync.OnceFunc(func() {
		if err := l.Release(context.Background()); err != nil {
			w.t.Error(err)
		}
		if err := other.Close(); err != nil {
			w.t.Error(err)
		}
	})
}

// lose ends all sessions and waits until the lock that ctx carries is lost.
func (w *world) lose(ctx context.Context) {
	w.ensemble.ExpireAll()
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, zklock.ErrLost) {
		w.t.Errorf("the context's cause is %v, want ErrLost", cause)
	}
}

// do serves a request without a network.
func do(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

type problem struct {
	Type, Title, Detail, Reason string
	Status                      int
}

// wantProblem checks an error response of the middleware.
func wantProblem(t *testing.T, rec *httptest.ResponseRecorder, status int, reason string) {
	t.Helper()
	if rec.Code != status {
		t.Errorf("status %d, want %d", rec.Code, status)
	}
	if got := rec.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type %q, want application/problem+json", got)
	}
	var p problem
	if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil {
		t.Fatalf("body %q: %v", rec.Body, err)
	}
	if p.Status != status || p.Title != http.StatusText(status) || p.Reason != reason || p.Type != "about:blank" || p.Detail == "" {
		t.Errorf("problem %+v, want status %d and reason %s", p, status, reason)
	}
	for _, secret := range []string{"orders", "s/42", "zklock", "127.0.0.1", "session", "held by", "behind"} {
		if strings.Contains(rec.Body.String(), secret) {
			t.Errorf("the response contains %q: %s", secret, rec.Body)
		}
	}
}

var eventually = wait.Until

// quiet returns a logger for servers whose handlers are aborted on purpose.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// serveProto runs a server that speaks one version of HTTP.
func serveProto(t *testing.T, proto string, h http.Handler) *httptest.Server {
	t.Helper()
	if proto == "HTTP/1.1" {
		return serve(t, h)
	}
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = quiet()
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}
