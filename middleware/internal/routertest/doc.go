// Package routertest tests packages middleware and ginlock together with other projects'
// routers and middlewares. It is a separate module, so that these do not become
// dependencies of the library:
//
//	go -C middleware/internal/routertest test ./...
package routertest
