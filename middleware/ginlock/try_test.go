package ginlock_test

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	testworld "github.com/zklock/go-zklock/internal/testkit/world"
	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/middleware/ginlock"
	"github.com/zklock/go-zklock/zklock"
)

// Requests that do not wait for their lock are contended only if there is another contender. In an
// outage they are refused soon, as unavailable.
func TestTries(t *testing.T) {
	testworld.CheckTries(t, func(_ *testing.T, pick func() zklock.Acquirer, work func()) func() testworld.Answer {
		lock := ginlock.New(func(*gin.Context) zklock.Acquirer { return pick() }, middleware.WithWait(0))
		router := gin.New()
		router.POST("/", lock, func(*gin.Context) { work() })
		return func() testworld.Answer {
			switch do(router, "POST", "/").Code {
			case http.StatusOK:
				return testworld.Served
			case http.StatusLocked:
				return testworld.Contended
			case http.StatusServiceUnavailable:
				return testworld.Unavailable
			}
			return testworld.Refused
		}
	})
}
