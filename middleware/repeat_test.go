package middleware_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
)

// repeated reports whether clients or proxies repeat a request by themselves after a status: hashicorp's
// go-retryablehttp, urllib3, curl, got and fetch's Retry-After all but 501 of 5xx, and 408, 413, 425 and 429; nginx,
// HAProxy and Envoy, if they are set to, also 401, 403, 404, 409 and 501.
func repeated(status int) bool {
	return status >= 500 || slices.Contains([]int{401, 403, 404, 408, 409, 413, 421, 425, 429}, status)
}

// post sends a POST up to three times, as such a client does, and returns the last status.
func post(t *testing.T, h http.Handler) (status int) {
	t.Helper()
	for range 3 {
		rec := do(h, httptest.NewRequest("POST", "/orders/42/pay", strings.NewReader("{}")))
		if status = rec.Code; !repeated(status) {
			break
		}
	}
	return status
}

// A handler that has paid, and whose lock is lost before its answer, pays once: nothing repeats the
// request by itself.
func TestLostWorkIsNotRepeated(t *testing.T) {
	for how, write := range map[string]func(http.ResponseWriter){
		"nothing written":     func(http.ResponseWriter) {},
		"a header":            func(rw http.ResponseWriter) { rw.WriteHeader(http.StatusOK) },
		"a body":              func(rw http.ResponseWriter) { _, _ = io.WriteString(rw, "paid") },
		"an error of its own": func(rw http.ResponseWriter) { http.Error(rw, "gave up", http.StatusServiceUnavailable) },
	} {
		for _, c := range []struct {
			opts   []middleware.Option
			status int
			paid   int
		}{
			{nil, http.StatusFailedDependency, 1},
			{[]middleware.Option{middleware.WithLostStatus(http.StatusUnprocessableEntity)}, http.StatusUnprocessableEntity, 1},
			{[]middleware.Option{middleware.WithLostStatus(http.StatusServiceUnavailable)}, http.StatusServiceUnavailable, 3},
		} {
			w := newWorld(t)
			paid := 0
			status := post(t, middleware.New(w.fixed, c.opts...)(w.watched(func(rw http.ResponseWriter, r *http.Request) {
				paid++
				w.Lose(r.Context())
				write(rw)
			})))
			if status != c.status || paid != c.paid {
				t.Errorf("%s: status %d, paid %d times, want status %d and %d times", how, status, paid, c.status, c.paid)
			}
		}
	}
}

// A lock that is lost before the handler has run is an outage: the request may be sent again.
func TestLostBeforeTheHandlerIsUnavailable(t *testing.T) {
	loss := &zklock.LostError{Cause: zklock.ErrLeaseOver}
	h := middleware.New(func(*http.Request) zklock.Acquirer { return zklock.Refuse(loss) }, middleware.WithLostStatus(422))(never(t))
	rec := do(h, httptest.NewRequest("POST", "/", nil))
	wantProblem(t, rec, 503, middleware.ReasonUnavailable)
	if rec.Header().Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}
