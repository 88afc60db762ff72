package middleware_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
)

func TestInsideATimeoutHandlerTheLockOutlivesTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		left := make(chan struct{})
		h := http.TimeoutHandler(middleware.New(w.fixed)(w.watched(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			time.Sleep(time.Second) // the handler is slow to return
			close(left)
		})), time.Second, "too slow")
		rec := do(h, httptest.NewRequest("GET", "/", nil))
		if rec.Code != http.StatusServiceUnavailable || rec.Body.String() != "too slow" {
			t.Errorf("status %d, body %q; want 503 and the timeout's body", rec.Code, rec.Body)
		}
		if _, err := w.client.Mutex("orders/42").TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
			t.Errorf("TryAcquire while the handler runs: %v, want ErrNotAcquired", err)
		}
		<-left
		synctest.Wait()
		if n := w.client.Stats().Held; n != 0 {
			t.Errorf("%d locks are held, want none", n)
		}
	})
}

func TestInsideATimeoutHandlerTheWaitEndsWithTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		release := w.Hold("orders/42")
		defer release()
		h := http.TimeoutHandler(middleware.New(w.fixed)(never(t)), time.Second, "too slow")
		if rec := do(h, httptest.NewRequest("GET", "/", nil)); rec.Code != http.StatusServiceUnavailable {
			t.Errorf("status %d, want 503", rec.Code)
		}
		synctest.Wait()
		if n := w.client.Stats().Waiting; n != 0 {
			t.Errorf("%d acquisitions still wait, want none", n)
		}
	})
}

func TestInsideATimeoutHandlerALossIsNotAnAnswer(t *testing.T) {
	w := newWorld(t)
	h := http.TimeoutHandler(middleware.New(w.fixed)(w.watched(func(rw http.ResponseWriter, r *http.Request) {
		io.WriteString(rw, "half an ")
		w.Lose(r.Context())
	})), time.Minute, "too slow")
	srv := serve(t, h)
	if resp, err := srv.Client().Get(srv.URL); err == nil {
		resp.Body.Close()
		t.Errorf("the client got status %d, want an aborted connection", resp.StatusCode)
	}
}

func TestInsideARecoveryThePanicIsAnsweredAfterTheRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		h := recovery(middleware.New(w.fixed)(w.watched(func(http.ResponseWriter, *http.Request) { panic("boom") })))
		if rec := do(h, httptest.NewRequest("GET", "/", nil)); rec.Code != 500 {
			t.Errorf("status %d, want 500", rec.Code)
		}
	})
}

// measured is the writer of a tracing middleware. It records status and size, and passes
// all calls on to the inner writer.
type measured struct {
	http.ResponseWriter
	code  int
	bytes int
}

func (m *measured) WriteHeader(code int) { m.code = code; m.ResponseWriter.WriteHeader(code) }
func (m *measured) Write(p []byte) (int, error) {
	n, err := m.ResponseWriter.Write(p)
	m.bytes += n
	return n, err
}
func (m *measured) Flush()                      { m.ResponseWriter.(http.Flusher).Flush() }
func (m *measured) Unwrap() http.ResponseWriter { return m.ResponseWriter }

func TestInsideTracingTheSpanSeesWhatWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		loses := false
		lock := middleware.New(w.fixed)(w.watched(func(rw http.ResponseWriter, r *http.Request) {
			if loses {
				w.Lose(r.Context())
			}
			rw.WriteHeader(http.StatusCreated)
			io.WriteString(rw, "made")
			rw.(http.Flusher).Flush()
		}))
		for _, loses = range []bool{false, true} {
			m := &measured{ResponseWriter: httptest.NewRecorder()}
			start := time.Now()
			release := w.Hold("orders/42")
			time.AfterFunc(time.Second, release)
			lock.ServeHTTP(m, httptest.NewRequest("POST", "/", strings.NewReader("")))
			want, size := http.StatusCreated, 4
			if loses {
				want, size = http.StatusFailedDependency, m.ResponseWriter.(*httptest.ResponseRecorder).Body.Len()
			}
			if m.code != want || m.bytes != size || size == 0 {
				t.Errorf("lost %v: the span has status %d and %d bytes, want %d and %d", loses, m.code, m.bytes, want, size)
			}
			if waited := time.Since(start); waited < time.Second {
				t.Errorf("the span lasts %v, and does not include the wait of 1s", waited)
			}
		}
	})
}
