package ginlock_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/zklock/go-zklock/internal/testkit/leaks"
	testworld "github.com/zklock/go-zklock/internal/testkit/world"
	"github.com/zklock/go-zklock/middleware/ginlock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	leaks.Main(m)
}

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
	w := testworld.New(t, e, e.Connector())
	return &world{w, t, e, w.Client, w.Waiting}
}

// watched wraps a handler, so that the hooks know when it runs.
func (w *world) watched(h gin.HandlerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		if len(zklock.HeldIn(c.Request.Context())) > 0 {
			defer w.Watch(c.Request.Context())()
		}
		h(c)
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
