package ginlock_test

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/middleware/ginlock"
	"github.com/zklock/go-zklock/zklock"
)

// A route whose group has the same lock joins it with Reenter.
func TestReenterJoinsTheLockOfTheGroup(t *testing.T) {
	w := newWorld(t)
	held := 0
	e := gin.New()
	group := e.Group("/", ginlock.New(w.byID()))
	group.GET("/orders/:id", ginlock.New(w.byID(), middleware.WithAcquire(zklock.Reenter())), func(c *gin.Context) {
		held = len(zklock.HeldIn(c.Request.Context()))
	})
	if rec := do(e, "GET", "/orders/42"); rec.Code != http.StatusOK || held != 2 {
		t.Errorf("status %d, the handler holds %d locks, want 2", rec.Code, held)
	}
}
