package ginlock

import (
	"fmt"
	"slices"
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
	mustBeParam("ginlock: ByParam", key)
	name := naming.MustParse("ginlock: ByParam", nameFormat, 1)
	return func(ctx *gin.Context) zklock.Acquirer {
		value, reason := param(ctx, key)
		switch {
		case reason != "":
			return naming.Misconfigured(reason)
		case value == "":
			return middleware.Missing()
		}
		return c.Mutex(name.With(value))
	}
}

// ByParams picks a mutex by several parameters of the route. Its name is nameFormat, with each %s
// replaced by the value of a key, in their order:
//
//	lock := ginlock.New(ginlock.ByParams(client, "events/%s/seats/%s", "event", "seat"))
//	router.POST("/events/:event/seats/:seat/book", lock, book)
//
// Values are escaped as by middleware.ByPathValues, so that two requests have one lock only if all of
// their values are equal. The rest is as with ByParam and middleware.ByPathValues, also when it
// panics.
func ByParams(c *zklock.Client, nameFormat string, keys ...string) func(*gin.Context) zklock.Acquirer {
	naming.MustHaveClient("ginlock: ByParams", c)
	for _, key := range keys {
		mustBeParam("ginlock: ByParams", key)
	}
	keys = slices.Clone(keys)
	name := naming.MustParse("ginlock: ByParams", nameFormat, len(keys))
	return func(ctx *gin.Context) zklock.Acquirer {
		values, missing := make([]string, len(keys)), false
		for i, key := range keys {
			var reason string
			if values[i], reason = param(ctx, key); reason != "" {
				return naming.Misconfigured(reason)
			}
			missing = missing || values[i] == ""
		}
		if missing {
			return middleware.Missing()
		}
		return c.Mutex(name.Join(values))
	}
}

// mustBeParam panics if key is not the name of a route's parameter. owner is the exported function
// that got it.
func mustBeParam(owner, key string) {
	if key == "" || strings.ContainsAny(key, ":*/") {
		panic(fmt.Sprintf("%s: key %q: want the name of a parameter, such as id for :id", owner, key))
	}
}

// param returns the value of a parameter, without the slash that every value of a catch-all
// parameter begins with; or why no request of the route can have one.
func param(ctx *gin.Context, key string) (value, reason string) {
	value, ok := ctx.Params.Get(key)
	route := ctx.FullPath()
	if !ok && route != "" {
		return "", fmt.Sprintf("the route %q has no parameter %q", route, key)
	}
	if strings.HasSuffix(route, "/*"+key) {
		value = strings.TrimPrefix(value, "/")
	}
	return value, ""
}

// ByFullPath picks one mutex for each route. Its name is nameFormat, with %s replaced
// by the route's pattern without the slashes at its ends, such as reports/:year. It
// is for handlers that must run once at a time, whatever their parameters. The route
// "/" and requests that match no route get a 400, see middleware.Optional.
// ByFullPath panics if c is nil, and if ByParam would panic because of nameFormat.
func ByFullPath(c *zklock.Client, nameFormat string) func(*gin.Context) zklock.Acquirer {
	naming.MustHaveClient("ginlock: ByFullPath", c)
	name := naming.MustParse("ginlock: ByFullPath", nameFormat, 1)
	return func(ctx *gin.Context) zklock.Acquirer {
		route := strings.Trim(ctx.FullPath(), "/")
		if route == "" {
			return middleware.Missing()
		}
		return c.Mutex(name.With(route))
	}
}
