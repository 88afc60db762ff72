package ginlock_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/middleware/ginlock"
)

// compress is a middleware that compresses on the fly, as gin's usual one does.
func compress(c *gin.Context) {
	c.Header("Content-Encoding", "gzip")
	gz := gzip.NewWriter(c.Writer)
	defer gz.Close()
	c.Writer = &compressing{c.Writer, gz}
	c.Next()
}

type compressing struct {
	gin.ResponseWriter
	gz *gzip.Writer
}

func (c *compressing) Write(p []byte) (int, error)       { return c.gz.Write(p) }
func (c *compressing) WriteString(s string) (int, error) { return io.WriteString(c.gz, s) }

func TestErrorAnswersCanBeReadThroughCompression(t *testing.T) {
	w := newWorld(t)
	lock := ginlock.New(w.byID(), middleware.WithWait(0))
	losing := func(c *gin.Context) {
		w.Lose(c.Request.Context())
		c.String(201, "made")
	}
	for nesting, chain := range map[string][]gin.HandlerFunc{
		"the lock inside":  {compress, lock, losing},
		"the lock outside": {lock, compress, losing},
	} {
		e := gin.New()
		e.Use(gin.RecoveryWithWriter(io.Discard))
		e.GET("/orders/:id", chain...)
		srv := httptest.NewServer(e)
		release := w.Hold("orders/taken")
		for _, want := range []struct {
			id     string
			status int
			reason string
		}{{"taken", 423, middleware.ReasonContended}, {"lost", 424, middleware.ReasonLost}} {
			if want.id == "lost" {
				release() // before the handler expires all sessions, or this lock would be lost too
			}
			resp, err := srv.Client().Get(srv.URL + "/orders/" + want.id)
			if err != nil {
				t.Fatal(err)
			}
			var p struct{ Reason string }
			if err := json.NewDecoder(resp.Body).Decode(&p); err != nil || resp.StatusCode != want.status || p.Reason != want.reason {
				t.Errorf("%s, %s: status %d, reason %q, %v; header %v", nesting, want.id, resp.StatusCode, p.Reason, err, resp.Header)
			}
			resp.Body.Close()
		}
		srv.Close()
	}
}
