package ginlock_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	testworld "github.com/zklock/go-zklock/internal/testkit/world"
	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/middleware/ginlock"
)

// A timeout middleware answers while the lock waits in a goroutine of it. From then on the *gin.Context belongs
// to gin, which gives it to the next request. The race detector finds a lock that touches it. What gin itself
// does in such a goroutine is left out: the middleware calls the lock, and not c.Next.
func TestTimeoutMiddlewareAroundTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		release := w.Hold("orders/42")
		observed, left := make(chan error, 1), make(chan struct{})
		lock := ginlock.New(w.byID(), middleware.WithObserver(func(_ *http.Request, err error) { observed <- err }))
		e := gin.New()
		e.GET("/orders/:id", func(c *gin.Context) {
			go func() {
				defer close(left)
				lock(c)
				t.Error("the chain goes on to the handlers behind the lock")
			}()
			time.Sleep(time.Second)
			c.Writer.WriteHeader(http.StatusGatewayTimeout)
		})
		e.GET("/next", func(c *gin.Context) { c.String(http.StatusOK, "next") })
		client := testworld.Serve(t, &http.Server{Handler: e})
		get := func(path string, status int) {
			t.Helper()
			resp, err := client.Get("http://shop" + path)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != status {
				t.Errorf("%s: status %d, want %d", path, resp.StatusCode, status)
			}
		}
		get("/orders/42", http.StatusGatewayTimeout)
		if err := <-observed; !errors.Is(err, context.Canceled) {
			t.Errorf("the observer got %v, want context.Canceled", err)
		}
		<-left
		get("/next", http.StatusOK)
		release()
	})
}
