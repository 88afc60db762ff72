package ginlock_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/middleware/ginlock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// A handler does not wait for a lock of its caller, with and without a lock of its own.
func TestHandlerDoesNotWaitForItsCaller(t *testing.T) {
	w := newWorld(t)
	for what, pick := range map[string]func(*gin.Context) zklock.Acquirer{
		"a lock": w.byID(), "no lock": func(*gin.Context) zklock.Acquirer { return nil },
	} {
		var got error
		e := gin.New()
		e.GET("/orders/:id", ginlock.New(pick, middleware.WithCallerLocks(func(*http.Request) bool { return true })), func(c *gin.Context) {
			l, err := w.client.Mutex("x").Acquire(c.Request.Context())
			if got = err; err == nil {
				_ = l.Release(context.Background())
			}
		})
		r := httptest.NewRequest("GET", "/orders/42", nil)
		r.Header.Set(fence.Key, fence.Sequencer{Name: "x", Mode: zklock.Exclusive, Token: zklock.Token{Zxid: 7}}.String())
		e.ServeHTTP(httptest.NewRecorder(), r)
		if !errors.Is(got, zklock.ErrDeadlock) {
			t.Errorf("%s: %v", what, got)
		}
	}
}
