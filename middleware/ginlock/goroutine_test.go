package ginlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/gin-gonic/gin"

	"github.com/zklock/go-zklock/middleware/ginlock"
	"github.com/zklock/go-zklock/zklock"
)

// What docs/adapters.md says about goroutines of a handler: the request's context ends with the lock,
// and a copied *gin.Context does only if the engine has ContextWithFallback. A goroutine that outlives
// its request can acquire a lock of its own.
func TestGoroutineOutlivesItsRequest(t *testing.T) {
	for _, fallback := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			ended := make(chan error, 1)
			copied := make(chan *gin.Context, 1)
			own := make(chan *zklock.Lock, 1)
			seen := make(chan outcome, 1)
			e := w.router(ginlock.New(w.byID()), func(c *gin.Context) {
				ctx := c.Request.Context()
				copied <- c.Copy()
				go func() {
					<-ctx.Done()
					ended <- context.Cause(ctx)
					l, err := w.client.Mutex("orders/42").Acquire(zklock.Detach(context.WithoutCancel(ctx)))
					if err != nil {
						t.Errorf("the goroutine's own lock: %v", err)
					}
					own <- l
				}()
				c.Status(204)
			}, seen)
			e.ContextWithFallback = fallback
			if rec := do(e, "POST", "/orders/42"); rec.Code != 204 {
				t.Fatalf("status %d", rec.Code)
			}
			<-seen
			if err := <-ended; !errors.Is(err, zklock.ErrReleased) {
				t.Errorf("the request's context ended with the cause %v, want ErrReleased", err)
			}
			if c := <-copied; (c.Err() != nil) != fallback || (c.Done() != nil) != fallback {
				t.Errorf("ContextWithFallback %t: the copy has the error %v after its request", fallback, c.Err())
			}
			if l := <-own; l != nil {
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
