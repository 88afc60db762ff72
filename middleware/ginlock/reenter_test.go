package ginlock_test

import (
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/zklock/go-zklock/middleware/ginlock"
	"github.com/zklock/go-zklock/zklock"
)

// TestLossBehindHandleContextAbortsTheConnection: a handler passes its request on to
// another route. gin gives that route a writer that bypasses the lock's.
func TestLossBehindHandleContextAbortsTheConnection(t *testing.T) {
	for _, proto := range []int{1, 2} {
		for _, when := range []string{"before", "while the other route answers", "after", "after, and a panic"} {
			t.Run(fmt.Sprintf("HTTP/%d, %s", proto, when), func(t *testing.T) {
				w := newWorld(t)
				seen := make(chan outcome, 10)
				var e *gin.Engine
				e = w.router(ginlock.New(w.byID()), func(c *gin.Context) {
					if when == "before" {
						w.Lose(c.Request.Context())
					}
					c.Request.URL.Path = "/elsewhere"
					e.HandleContext(c)
					switch when {
					case "after":
						w.Lose(c.Request.Context())
					case "after, and a panic":
						w.Lose(c.Request.Context())
						panic("boom")
					}
				}, seen)
				e.GET("/elsewhere", func(c *gin.Context) {
					c.String(200, "a whole ")
					if when == "while the other route answers" {
						w.Lose(c.Request.Context())
					}
					c.String(200, "answer")
				})
				srv := httptest.NewUnstartedServer(e)
				srv.EnableHTTP2 = proto == 2
				srv.StartTLS()
				defer srv.Close()
				resp, err := srv.Client().Get(srv.URL + "/orders/42")
				if err == nil {
					var body []byte
					if body, err = io.ReadAll(resp.Body); err == nil {
						t.Errorf("status %d, and the client took %q for the complete response", resp.StatusCode, body)
					}
					resp.Body.Close()
				}
				<-seen // the other route's outcome
				if got := <-seen; len(got.errs) == 0 || !errors.Is(got.errs[0], zklock.ErrLost) {
					t.Errorf("the outer middleware saw %+v, want ErrLost", got)
				}
			})
		}
	}
}

func TestHandleContextUnderALockIsAnswered(t *testing.T) {
	w := newWorld(t)
	seen := make(chan outcome, 10)
	var e *gin.Engine
	e = w.router(ginlock.New(w.byID()), func(c *gin.Context) {
		c.Request.URL.Path = "/elsewhere"
		e.HandleContext(c)
	}, seen)
	e.GET("/elsewhere", func(c *gin.Context) {
		if len(zklock.HeldIn(c.Request.Context())) != 1 {
			t.Error("the other route's context does not carry the lock")
		}
		c.String(201, "a whole answer")
	})
	if rec := do(e, "GET", "/orders/42"); rec.Code != 201 || rec.Body.String() != "a whole answer" {
		t.Errorf("status %d, body %q", rec.Code, rec.Body)
	}
}
