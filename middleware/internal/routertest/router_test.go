package routertest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"
	"github.com/labstack/echo/v4"
	echomiddleware "github.com/labstack/echo/v4/middleware"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/zklock/go-zklock/internal/testkit/leaks"
	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// shortWait is for locks that the test holds, and for locks that were lost just before:
// after the loss of a session, a client needs some time to open another.
const shortWait = 3 * time.Second

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	leaks.Main(m)
}

// world is an ensemble with a client.
type world struct {
	ensemble *memdriver.Ensemble
	client   *zklock.Client
}

func newWorld(t *testing.T) *world {
	w := &world{ensemble: memdriver.New()}
	var err error
	if w.client, err = zklock.OpenConnector(w.ensemble.Connector()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.client.Close()
		w.ensemble.Close()
	})
	return w
}

// behave is the handler. The last segment of the path chooses what it does.
func (w *world) behave(rw http.ResponseWriter, r *http.Request, id string) {
	if l, ok := zklock.FromContext(r.Context()); !ok || l.Name() != "orders/"+id {
		http.Error(rw, "no lock", http.StatusTeapot)
		return
	}
	lose := func() {
		w.ensemble.ExpireAll()
		<-r.Context().Done()
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/early"):
		rw.Header().Set("X-Handler", "yes")
		lose()
		io.WriteString(rw, "made")
	case strings.HasSuffix(r.URL.Path, "/late"):
		io.WriteString(rw, "half an ")
		http.NewResponseController(rw).Flush()
		lose()
		io.WriteString(rw, "answer")
	case strings.HasSuffix(r.URL.Path, "/panic"):
		panic("boom")
	default:
		rw.WriteHeader(http.StatusCreated)
		io.WriteString(rw, "made")
	}
}

// check sends requests to a router that serves /orders/{id}/... with behave.
func (w *world) check(t *testing.T, h http.Handler) {
	t.Helper()
	srv := httptest.NewServer(h)
	defer srv.Close()
	get := func(path string) (status int, body string, header http.Header, err error) {
		resp, err := srv.Client().Get(srv.URL + path)
		if err != nil {
			return 0, "", nil, err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b), resp.Header, err
	}
	if s, b, _, err := get("/orders/42/pay"); s != 201 || b != "made" || err != nil {
		t.Errorf("served: status %d, body %q, %v", s, b, err)
	}
	l, err := w.client.Mutex("orders/42").Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if s, b, _, err := get("/orders/42/pay"); s != 423 || !strings.Contains(b, "LOCK_CONTENDED") || err != nil {
		t.Errorf("contended: status %d, body %q, %v", s, b, err)
	}
	if err := l.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s, b, h, err := get("/orders/42/early"); s != 424 || !strings.Contains(b, "LOCK_LOST") || strings.Contains(b, "made") || h.Get("X-Handler") != "" || err != nil {
		t.Errorf("lost before the response: status %d, body %q, %v", s, b, err)
	}
	if _, b, _, err := get("/orders/42/late"); err == nil || strings.Contains(b, "answer") {
		t.Errorf("lost during the response: the client took %q for all of it", b)
	}
	if s, b, _, err := get("/orders/42/panic"); s != 500 || err != nil {
		t.Errorf("panic: status %d, body %q, %v", s, b, err)
	}
	l, err = w.client.Mutex("orders/42").Acquire(context.Background(), zklock.WithWait(shortWait))
	if err != nil {
		t.Fatalf("a lock was not released: %v", err)
	}
	_ = l.Release(context.Background())
}

func TestChi(t *testing.T) {
	w := newWorld(t)
	r := chi.NewRouter()
	r.Use(quietRecoverer)
	lock := middleware.New(middleware.ByPathValue(w.client, "id", "orders/%s"), middleware.WithWait(shortWait))
	r.With(lock).Get("/orders/{id}/{what}", func(rw http.ResponseWriter, r *http.Request) { w.behave(rw, r, chi.URLParam(r, "id")) })
	w.check(t, r)
}

// quietRecoverer is chi's Recoverer, without printing the stack.
func quietRecoverer(next http.Handler) http.Handler {
	recoverer := chimiddleware.Recoverer(next)
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var entry chimiddleware.LogEntry = silent{}
		recoverer.ServeHTTP(rw, r.WithContext(context.WithValue(r.Context(), chimiddleware.LogEntryCtxKey, entry)))
	})
}

type silent struct{ chimiddleware.LogEntry }

func (silent) Panic(any, []byte) {}

func TestEcho(t *testing.T) {
	w := newWorld(t)
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	e.Use(echomiddleware.Recover())
	// Echo keeps parameters in its own context, so the pick parses the path.
	lock := middleware.New(func(r *http.Request) zklock.Acquirer {
		return w.client.Mutex("orders/" + strings.Split(r.URL.Path, "/")[2])
	}, middleware.WithWait(shortWait))
	e.GET("/orders/:id/:what", func(c echo.Context) error {
		w.behave(c.Response(), c.Request(), c.Param("id"))
		if c.Request().Context().Err() != nil {
			return errors.New("an error after the loss, which must not become the response")
		}
		return nil
	}, echo.WrapMiddleware(lock))
	w.check(t, e)
}

func TestInsideOtelhttp(t *testing.T) {
	w := newWorld(t)
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	mux := http.NewServeMux()
	lock := middleware.New(middleware.ByPathValue(w.client, "id", "orders/%s"), middleware.WithWait(shortWait))
	mux.Handle("GET /orders/{id}/{what}", lock(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.behave(rw, r, r.PathValue("id"))
	})))
	recoverer := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			defer func() {
				switch v := recover(); v {
				case nil:
				case http.ErrAbortHandler:
					panic(v)
				default:
					rw.WriteHeader(500)
				}
			}()
			next.ServeHTTP(rw, r)
		})
	}
	w.check(t, otelhttp.NewHandler(recoverer(mux), "shop", otelhttp.WithTracerProvider(provider)))
	var codes []int64
	for _, s := range spans.Ended() {
		for _, a := range s.Attributes() {
			if a.Key == attribute.Key("http.response.status_code") {
				codes = append(codes, a.Value.AsInt64())
			}
		}
	}
	count := map[int64]int{}
	for _, c := range codes {
		count[c]++
	}
	if count[201] != 1 || count[423] != 1 || count[424] != 1 || count[500] != 1 {
		t.Errorf("the spans have the statuses %v", codes)
	}
}
