// Package routertest holds package middleware to working with routers and
// middlewares of others. It is a module of its own, so that they do not become
// dependencies of the library:
//
//	go -C middleware/internal/routertest test ./...
package routertest
