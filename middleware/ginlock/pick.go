package ginlock

import (
	"fmt"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/zklock/go-zklock/internal/naming"
	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
)

// ByParam picks the mutex named by a parameter of the route, put into
// nameFormat in place of its %s. Of a catch-all parameter the slash in front is
// left out. A request without it is answered 400, or 500 if its route has no such
// parameter, which is logged; see middleware.Optional and middleware.ByPathValue
// for the rest, which is the same.
func ByParam(c *zklock.Client, key, nameFormat string) func(*gin.Context) zklock.Acquirer {
	naming.MustHaveClient("ginlock: ByParam", c)
	if key == "" || strings.ContainsAny(key, ":*/") {
		panic(fmt.Sprintf("ginlock: ByParam: key %q: want the name of a parameter, such as id for :id", key))
	}
	name := naming.MustParse("ginlock: ByParam", nameFormat)
	return func(ctx *gin.Context) zklock.Acquirer {
		value, ok := ctx.Params.Get(key)
		if route := ctx.FullPath(); !ok && route != "" {
			return naming.Misconfigured(fmt.Sprintf("the route %q has no parameter %q", route, key))
		}
		value = strings.TrimPrefix(value, "/")
		if value == "" {
			return middleware.Missing()
		}
		return c.Mutex(name.With(value))
	}
}

// ByFullPath picks one mutex for each route: the one named by the route's
// pattern without the slash in front, such as reports/:year, put into
// nameFormat in place of its %s. It is for work that is to be done once at a
// time, whatever its parameters. The route "/" and requests that no route
// matches are answered 400. ByFullPath panics if c is nil.
func ByFullPath(c *zklock.Client, nameFormat string) func(*gin.Context) zklock.Acquirer {
	naming.MustHaveClient("ginlock: ByFullPath", c)
	name := naming.MustParse("ginlock: ByFullPath", nameFormat)
	return func(ctx *gin.Context) zklock.Acquirer {
		route := strings.Trim(ctx.FullPath(), "/")
		if route == "" {
			return middleware.Missing()
		}
		return c.Mutex(name.With(route))
	}
}
