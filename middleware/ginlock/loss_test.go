package ginlock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gin-gonic/gin"

	"github.com/zklock/go-zklock/middleware/ginlock"
	"github.com/zklock/go-zklock/zklock"
)

// Handlers of gin, by how they write a response.
var answers = map[string]func(*gin.Context){
	"not at all":     func(*gin.Context) {},
	"Status":         func(c *gin.Context) { c.Status(201) },
	"JSON":           func(c *gin.Context) { c.JSON(201, "made") },
	"String":         func(c *gin.Context) { c.String(201, "made") },
	"Render nothing": func(c *gin.Context) { c.AbortWithStatus(201) },
	"WriteString":    func(c *gin.Context) { c.Writer.WriteString("made") },
	"Flush":          func(c *gin.Context) { c.Writer.Flush() },
	"controller":     func(c *gin.Context) { http.NewResponseController(c.Writer).Flush() },
	"hijack":         func(c *gin.Context) { c.Writer.Hijack() },
	"beneath": func(c *gin.Context) {
		c.Writer.(interface{ Unwrap() http.ResponseWriter }).Unwrap().Write([]byte("made"))
	},
	"redirect": func(c *gin.Context) { c.Redirect(303, "/elsewhere") },
	"file":     func(c *gin.Context) { c.File("ginlock.go") },
}

func TestLostBeforeTheFirstByte(t *testing.T) {
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				seen := make(chan outcome, 10)
				rec := do(w.router(ginlock.New(w.byID()), func(c *gin.Context) {
					c.Header("X-Handler", "yes")
					w.Lose(c.Request.Context())
					answer(c)
				}, seen), "GET", "/orders/42")
				if rec.Code != 424 || !strings.Contains(rec.Body.String(), "LOCK_LOST") || rec.Flushed {
					t.Errorf("status %d, body %q, flushed %v", rec.Code, rec.Body, rec.Flushed)
				}
				if rec.Header().Get("X-Handler") != "" || rec.Header().Get("Location") != "" || rec.Header().Get("X-Outer") != "yes" {
					t.Errorf("header %v", rec.Header())
				}
				found := false
				got := <-seen
				for _, err := range got.errs {
					found = found || errors.Is(err, zklock.ErrLost)
				}
				if !found || got.swapped || got.status != 424 {
					t.Errorf("the outer middleware saw %+v, want ErrLost and status 424", got)
				}
			})
		})
	}
}

func TestLostAfterTheFirstByteAbortsTheConnectionThoughRecoveryRecovers(t *testing.T) {
	for _, proto := range []int{1, 2} {
		for _, flush := range []bool{false, true} {
			t.Run(fmt.Sprintf("HTTP/%d, flushed %v", proto, flush), func(t *testing.T) {
				w := newWorld(t)
				seen := make(chan outcome, 10)
				srv := httptest.NewUnstartedServer(w.router(ginlock.New(w.byID()), func(c *gin.Context) {
					c.String(200, "half an ")
					if flush {
						c.Writer.Flush()
					}
					w.Lose(c.Request.Context())
					if _, err := c.Writer.WriteString("answer"); !errors.Is(err, zklock.ErrLost) {
						t.Errorf("the handler got %v, want ErrLost", err)
					}
				}, seen))
				srv.EnableHTTP2 = proto == 2
				srv.StartTLS()
				defer srv.Close()
				resp, err := srv.Client().Get(srv.URL + "/orders/42")
				if err == nil {
					var body []byte
					if body, err = io.ReadAll(resp.Body); err == nil {
						t.Errorf("the client took %q for the complete response", body)
					}
					resp.Body.Close()
				}
				srv.Close()
				got := <-seen
				if len(got.errs) == 0 || !errors.Is(got.errs[0], zklock.ErrLost) || got.swapped {
					t.Errorf("the outer middleware saw %+v, want ErrLost", got)
				}
			})
		}
	}
}

// TestProxyThatAbortsAfterALoss has handlers inside gin.Recovery that panic when they
// cannot write the rest of their response, as httputil.ReverseProxy does.
func TestProxyThatAbortsAfterALoss(t *testing.T) {
	for _, proto := range []int{1, 2} {
		t.Run(fmt.Sprintf("HTTP/%d", proto), func(t *testing.T) {
			w := newWorld(t)
			lost := make(chan struct{})
			backend := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				io.WriteString(rw, "half an ")
				rw.(http.Flusher).Flush()
				<-lost
				io.WriteString(rw, "answer")
			}))
			defer backend.Close()
			to, err := url.Parse(backend.URL)
			if err != nil {
				t.Fatal(err)
			}
			proxy := httputil.NewSingleHostReverseProxy(to)
			proxy.FlushInterval = -1
			proxy.ErrorLog = log.New(io.Discard, "", 0)
			seen := make(chan outcome, 10)
			srv := httptest.NewUnstartedServer(w.router(ginlock.New(w.byID()), func(c *gin.Context) {
				context.AfterFunc(c.Request.Context(), func() { close(lost) })
				proxy.ServeHTTP(c.Writer, c.Request)
			}, seen))
			srv.EnableHTTP2 = proto == 2
			srv.StartTLS()
			defer srv.Close()
			resp, err := srv.Client().Get(srv.URL + "/orders/42")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if _, err := io.ReadFull(resp.Body, make([]byte, len("half an "))); err != nil {
				t.Fatal(err)
			}
			w.ensemble.ExpireAll()
			if rest, err := io.ReadAll(resp.Body); err == nil {
				t.Errorf("the client took a response that ends in %q for complete", rest)
			}
			if got := <-seen; len(got.errs) == 0 || !errors.Is(got.errs[0], zklock.ErrLost) || got.swapped {
				t.Errorf("the outer middleware saw %+v, want ErrLost", got)
			}
		})
	}
}
