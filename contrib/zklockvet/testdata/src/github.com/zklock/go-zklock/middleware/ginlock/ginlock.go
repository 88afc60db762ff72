// Package ginlock has the names of the real one that the tests call.
package ginlock

import (
	"github.com/gin-gonic/gin"

	"github.com/zklock/go-zklock/zklock"
)

type Option interface{ apply() }

func ByParam(c *zklock.Client, key, nameFormat string) func(*gin.Context) zklock.Acquirer {
	return nil
}

func New(pick func(*gin.Context) zklock.Acquirer, opts ...Option) gin.HandlerFunc {
	return nil
}
