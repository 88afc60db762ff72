package ginlock_test

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/middleware/ginlock"
	"github.com/zklock/go-zklock/zklock"
)

// By default a request's label is its method and the path of its route, without the values
// in it.
func TestDefaultLabelIsMethodAndFullPath(t *testing.T) {
	w := newWorld(t)
	fixed := func(*gin.Context) zklock.Acquirer { return w.client.Mutex("x") }
	for _, c := range []struct {
		lock              gin.HandlerFunc
		method, url, want string
	}{
		{ginlock.New(fixed), "POST", "/orders/secret", "POST /orders/:id"},
		{ginlock.New(fixed), "GET", "/files/a/b", "GET /files/*id"},
		{ginlock.New(fixed, middleware.WithLabel(nil)), "GET", "/", ""},
		{ginlock.New(fixed, middleware.WithLabel(func(*http.Request) string { return "mine" })), "GET", "/", "mine"},
	} {
		got := "none"
		do(w.router(c.lock, func(g *gin.Context) {
			found, err := w.client.Contenders(g.Request.Context(), "x")
			if err != nil || len(found) != 1 {
				t.Errorf("%d contenders: %v", len(found), err)
				return
			}
			got = found[0].Label
		}, make(chan outcome, 1)), c.method, c.url)
		if got != c.want {
			t.Errorf("%s %s: label %q, want %q", c.method, c.url, got, c.want)
		}
	}
	e := gin.New()
	e.NoRoute(ginlock.New(fixed), func(g *gin.Context) {
		if found, err := w.client.Contenders(g.Request.Context(), "x"); err != nil || found[0].Label != "DELETE" {
			t.Errorf("without a route: %+v, %v", found, err)
		}
	})
	do(e, "DELETE", "/nowhere")
}
