package middleware_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A log that is stuck holds up no answer, and no request that waits for a lock.
func TestStuckLog(t *testing.T) {
	t.Run("a refused request that holds another lock", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, log := newWorld(t), corekit.NewStuckLog(t)
			inner := middleware.New(w.fixed, middleware.WithLogger(log.Logger()))(never(t)) // it holds that lock already
			h := middleware.New(w.fixed)(inner)
			for range 3 {
				log.Returns(t, "a request", time.Minute, func() {
					wantProblem(t, do(h, httptest.NewRequest("GET", "/", nil)), 500, middleware.ReasonError)
				})
			}
			w.Hold("orders/42")()
		})
	})
	t.Run("a request without its lock", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, log := newWorld(t), corekit.NewStuckLog(t)
			served := 0
			h := middleware.New(w.fixed, middleware.WithFailOpen(), middleware.WithLogger(log.Logger()))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
			w.ensemble.Partition(memdriver.AroundClients(0))
			defer w.ensemble.Heal()
			for range 3 {
				log.Returns(t, "a request", time.Minute, func() { do(h, httptest.NewRequest("GET", "/", nil)) })
			}
			if served != 3 {
				t.Errorf("%d of 3 requests were served", served)
			}
		})
	})
}
