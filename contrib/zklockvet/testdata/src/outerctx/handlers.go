package outerctx

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/middleware/ginlock"
	"github.com/zklock/go-zklock/zklock"
)

func handler(ctx context.Context, client *zklock.Client, mux *http.ServeMux) {
	lock := middleware.New(middleware.ByPathValue(client, "id", "orders/%s"))
	mux.Handle("POST /orders/{id}/pay", lock(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = serve(ctx) // want `ctx does not end when the lock of middleware.New is lost: use r.Context\(\)`
		_ = serve(r.Context())
	})))
	mux.Handle("POST /orders/{id}/ship", lock(http.HandlerFunc(ship)))
}

var base = context.Background()

func ship(w http.ResponseWriter, r *http.Request) {
	_ = serve(base) // want `base does not end when the lock of middleware.New is lost: use r.Context\(\)`
}

func inHandler(mutex *zklock.Mutex) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_ = zklock.Do(r.Context(), mutex, func(held context.Context, _ *zklock.Lock) error {
			return serve(r.Context()) // want `r.Context\(\) does not end when the lock of zklock.Do is lost: use held`
		})
	}
}

func replaced(mutex *zklock.Mutex) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_ = zklock.Do(r.Context(), mutex, func(held context.Context, _ *zklock.Lock) error {
			r = r.WithContext(held)
			return serve(r.Context())
		})
	}
}

func ginHandler(ctx context.Context, client *zklock.Client, router *gin.Engine) {
	lock := ginlock.New(ginlock.ByParam(client, "id", "orders/%s"))
	router.POST("/orders/:id/pay", lock, func(c *gin.Context) {
		_ = serve(ctx)                 // want `ctx does not end when the lock of ginlock.New is lost: use c.Request.Context\(\)`
		_ = serve(c)                   // want `c does not end when the lock of ginlock.New is lost: use c.Request.Context\(\)`
		_ = serve(c.Request.Context()) // the request's
	})
	router.POST("/orders", func(c *gin.Context) { _ = serve(c) }) // not behind the lock
}
