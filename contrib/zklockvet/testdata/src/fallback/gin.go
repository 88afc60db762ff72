package fallback

import (
	"context"

	"github.com/gin-gonic/gin"

	"github.com/zklock/go-zklock/middleware/ginlock"
	"github.com/zklock/go-zklock/zklock"
)

func serve(ctx context.Context) error { return nil }

func handler(client *zklock.Client, router *gin.Engine) {
	router.ContextWithFallback = true
	router.POST("/orders/:id/pay", ginlock.New(ginlock.ByParam(client, "id", "orders/%s")), func(c *gin.Context) {
		_ = serve(c) // it ends with the request's
	})
}
