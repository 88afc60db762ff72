package ginlock

import (
	"fmt"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/zklock/go-zklock/internal/naming"
	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
)

// ByParam picks a mutex. Its name is nameFormat, with %s replaced by the value of a
// parameter of the route. The leading slash of a catch-all parameter is left out. A
// request without the value gets a 400, see middleware.Optional. If its route does
// not have the parameter, the response is 500, and the error is logged. Apart from
// that, ByParam is like middleware.ByPathValue, also in when it panics.
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

// ByFullPath picks one mutex for each route. Its name is nameFormat, with %s replaced
// by the route's pattern without the slashes at its ends, such as reports/:year. It
// is for handlers that must run once at a time, whatever their parameters. The route
// "/" and requests that match no route get a 400, see middleware.Optional.
// ByFullPath panics if c is nil, and if ByParam would panic because of nameFormat.
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
