package ginlock_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/zklock/go-zklock/internal/testkit/leaks"
	"github.com/zklock/go-zklock/middleware/ginlock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	leaks.Main(m)
}

// world is an ensemble with a client. The client's hooks check that each lock is released
// exactly once, and never while its handler runs.
type world struct {
	t        *testing.T
	ensemble *memdriver.Ensemble
	client   *zklock.Client
	mu       sync.Mutex
	released map[*zklock.Lock]int // guarded by mu
	running  map[*zklock.Lock]int // guarded by mu; running handlers
	waiting  chan struct{}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, ensemble: memdriver.New(), released: make(map[*zklock.Lock]int), running: make(map[*zklock.Lock]int), waiting: make(chan struct{}, 10)}
	var err error
	w.client, err = zklock.OpenConnector(w.ensemble.Connector(), zklock.WithHooks(zklock.Hooks{
		Acquire: func(ctx context.Context, _ zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
			return ctx, func(r zklock.AcquireResult) {
				if r.Lock != nil {
					w.count(w.released, r.Lock, 0)
				}
			}
		},
		Wait: func(ctx context.Context, _ zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
			w.waiting <- struct{}{}
			return ctx, nil
		},
		Release: func(ctx context.Context, e zklock.ReleaseEvent) (context.Context, func(zklock.ReleaseResult)) {
			w.count(w.released, e.Lock, 1)
			w.mu.Lock()
			defer w.mu.Unlock()
			if n := w.running[e.Lock]; n != 0 {
				t.Errorf("lock %q was released while %d of its handlers were running", e.Lock.Name(), n)
			}
			return ctx, nil
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.allReleased()
		w.client.Close()
		w.ensemble.Close()
		w.mu.Lock()
		defer w.mu.Unlock()
		for l, n := range w.released {
			if n != 1 {
				t.Errorf("lock %q was released %d times, want once", l.Name(), n)
			}
		}
	})
	return w
}

func (w *world) count(of map[*zklock.Lock]int, l *zklock.Lock, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of[l] += n
}

// watched wraps a handler, so that the hooks know when it runs.
func (w *world) watched(h gin.HandlerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		for _, l := range zklock.HeldIn(c.Request.Context()) {
			w.count(w.running, l, 1)
			defer w.count(w.running, l, -1)
		}
		h(c)
	}
}

// hold acquires a mutex with another client.
func (w *world) hold(name string) (release func()) {
	other, err := zklock.OpenConnector(w.ensemble.Connector())
	if err != nil {
		w.t.Fatal(err)
	}
	l, err := other.Mutex(name).Acquire(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return sync.OnceFunc(func() {
		if err := l.Release(context.Background()); err != nil {
			w.t.Error(err)
		}
		other.Close()
	})
}

// allReleased waits until no lock is held. The handler notices a loss a moment before
// Stats does.
func (w *world) allReleased() {
	w.t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for w.client.Stats().Held > 0 {
		select {
		case <-tick.C:
		case <-deadline.C:
			w.t.Fatal("a lock is still held after 10 s")
		}
	}
}

// lose ends all sessions and waits for the lock of c to be lost.
func (w *world) lose(c *gin.Context) {
	w.ensemble.ExpireAll()
	<-c.Request.Context().Done()
	if cause := context.Cause(c.Request.Context()); !errors.Is(cause, zklock.ErrLost) {
		w.t.Errorf("the context's cause is %v, want ErrLost", cause)
	}
}

func (w *world) byID() func(*gin.Context) zklock.Acquirer {
	return ginlock.ByParam(w.client, "id", "orders/%s")
}

// outcome is what an outer middleware sees of a request.
type outcome struct {
	errs    []error
	aborted bool
	status  int
	written bool
	swapped bool // c.Request or c.Writer was not restored
}

// router returns an engine with one handler behind the lock. seen gets an outcome for
// each request when its handlers have returned. The client may get the response before
// that, and in HTTP/2 the server may close the connection before that.
func (w *world) router(lock gin.HandlerFunc, h gin.HandlerFunc, seen chan<- outcome) *gin.Engine {
	h = w.watched(h)
	e := gin.New()
	e.Use(gin.CustomRecoveryWithWriter(io.Discard, func(c *gin.Context, _ any) { c.AbortWithStatus(500) }))
	e.Use(func(c *gin.Context) {
		r, w := c.Request, c.Writer
		c.Header("X-Outer", "yes")
		defer func() {
			got := outcome{aborted: c.IsAborted(), status: c.Writer.Status(), written: c.Writer.Written(), swapped: c.Request != r || c.Writer != w}
			for _, err := range c.Errors {
				got.errs = append(got.errs, err.Err)
			}
			seen <- got
		}()
		c.Next()
	})
	e.Any("/orders/:id", lock, h)
	e.GET("/files/*id", lock, h)
	e.GET("/", lock, h)
	return e
}

func do(h http.Handler, method, url string) *httptest.ResponseRecorder {
	// gin's writer needs an inner writer with CloseNotify.
	rec := httptest.NewRecorder()
	h.ServeHTTP(struct {
		*httptest.ResponseRecorder
		http.CloseNotifier //nolint:staticcheck // gin uses it
	}{rec, nil}, httptest.NewRequest(method, url, nil))
	return rec
}
