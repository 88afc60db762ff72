package middleware_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	testworld "github.com/zklock/go-zklock/internal/testkit/world"
	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
)

// Requests that do not wait for their lock are contended only if there is another contender. In an
// outage they are refused soon, as unavailable.
func TestTries(t *testing.T) {
	testworld.CheckTries(t, func(_ *testing.T, pick func() zklock.Acquirer, work func()) func() testworld.Answer {
		h := middleware.New(func(*http.Request) zklock.Acquirer { return pick() }, middleware.WithWait(0))(
			http.HandlerFunc(func(http.ResponseWriter, *http.Request) { work() }))
		return func() testworld.Answer {
			switch do(h, httptest.NewRequest("POST", "/", nil)).Code {
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
