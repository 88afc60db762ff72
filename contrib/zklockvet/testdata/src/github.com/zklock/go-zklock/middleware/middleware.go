// Package middleware has the names of the real one that the tests call.
package middleware

import (
	"net/http"

	"github.com/zklock/go-zklock/zklock"
)

type Option interface{ apply() }

func ByPathValue(c *zklock.Client, key, nameFormat string) func(*http.Request) zklock.Acquirer {
	return nil
}

func New(pick func(*http.Request) zklock.Acquirer, opts ...Option) func(http.Handler) http.Handler {
	return nil
}
