package middleware_test

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/leaks"
	"github.com/zklock/go-zklock/internal/testkit/wait"
	testworld "github.com/zklock/go-zklock/internal/testkit/world"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// world is a World with the names that these tests use.
type world struct {
	*testworld.World
	t        *testing.T
	ensemble *memdriver.Ensemble
	client   *zklock.Client
	waiting  chan struct{}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	e := memdriver.New()
	return newWorldOn(t, e, e.Connector())
}

func newWorldOn(t *testing.T, e *memdriver.Ensemble, connector driver.Connector) *world {
	t.Helper()
	w := testworld.New(t, e, connector)
	return &world{w, t, e, w.Client, w.Waiting}
}

// watched wraps a handler, so that the hooks know when it runs.
func (w *world) watched(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		defer w.Watch(r.Context())()
		h(rw, r)
	})
}

// fixed picks one mutex for all requests.
func (w *world) fixed(*http.Request) zklock.Acquirer { return w.client.Mutex("orders/42") }

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
