package middleware_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/zklock/go-zklock/middleware"
)

// By default a request's label is its method and the pattern of its route, without the
// values in its path.
func TestDefaultLabelIsMethodAndRoute(t *testing.T) {
	w := newWorld(t)
	label := func() string {
		found, err := w.client.Contenders(t.Context(), "orders/42")
		if err != nil || len(found) != 1 {
			t.Fatalf("%d contenders: %v", len(found), err)
		}
		if found[0].Host == "" || found[0].PID == 0 {
			t.Errorf("the contender does not identify its process: %+v", found[0])
		}
		return found[0].Label
	}
	var got string
	seen := w.watched(func(http.ResponseWriter, *http.Request) { got = label() })
	behind := middleware.New(w.fixed, middleware.WithWait(0))(seen)
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}/pay", behind)
	mux.Handle("GET  example.com/orders/{id}", behind)
	mux.Handle("/any/{rest...}", behind)
	for _, c := range []struct {
		h                 http.Handler
		method, url, want string
	}{
		{mux, "POST", "/orders/secret/pay", "POST /orders/{id}/pay"},
		{mux, "GET", "http://example.com/orders/7", "GET example.com/orders/{id}"},
		{mux, "HEAD", "http://example.com/orders/7", "HEAD example.com/orders/{id}"},
		{mux, "PUT", "/any/x", "PUT /any/{rest...}"},
		{behind, "PUT", "/any/x", "PUT"},
		{middleware.New(w.fixed, middleware.WithLabel(nil))(seen), "PUT", "/any/x", ""},
		{middleware.New(w.fixed, middleware.WithLabel(func(*http.Request) string { return "mine" }))(seen), "PUT", "/any/x", "mine"},
	} {
		got = "none"
		if do(c.h, httptest.NewRequest(c.method, c.url, nil)); got != c.want {
			t.Errorf("%s %s: label %q, want %q", c.method, c.url, got, c.want)
		}
	}
}
