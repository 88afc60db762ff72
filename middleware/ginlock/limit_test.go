package ginlock_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	testworld "github.com/zklock/go-zklock/internal/testkit/world"
	"github.com/zklock/go-zklock/middleware/ginlock"
)

// gin's writer hides nothing of the server: a request is refused while it can be answered, behind one lock
// and behind two.
func TestWaitEndsBeforeTheServersWriteTimeout(t *testing.T) {
	for _, nested := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			time.AfterFunc(3*time.Second, w.Hold("orders/42"))
			chain := []gin.HandlerFunc{ginlock.New(w.byID()), func(*gin.Context) { t.Error("the handler ran") }}
			if nested {
				time.AfterFunc(500*time.Millisecond, w.Hold("all/42"))
				chain = append([]gin.HandlerFunc{ginlock.New(ginlock.ByParam(w.client, "id", "all/%s"))}, chain...)
			}
			e := gin.New()
			e.GET("/orders/:id", chain...)
			client := testworld.Serve(t, &http.Server{Handler: e, WriteTimeout: time.Second})
			start := time.Now()
			resp, err := client.Get("http://shop/orders/42")
			if err != nil {
				t.Fatalf("no answer after %v: %v", time.Since(start), err)
			}
			defer resp.Body.Close()
			if after := time.Since(start); resp.StatusCode != 423 || after != 900*time.Millisecond {
				t.Errorf("nested %v: status %d after %v, want 423 after 900ms", nested, resp.StatusCode, after)
			}
			time.Sleep(3 * time.Second) // until a request that still waits would have the lock
		})
	}
}
