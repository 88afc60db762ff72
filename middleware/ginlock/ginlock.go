package ginlock

import (
	"context"
	"net/http"
	"runtime"

	"github.com/gin-gonic/gin"

	"github.com/zklock/go-zklock/internal/served"
	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
)

// New makes a gin middleware that holds a lock while the handlers behind it run.
// pick chooses the lock for each request; if it returns nil, the request is served
// without a lock. pick must not keep the *gin.Context. The options are those of
// package middleware. The default label is the request's method and its FullPath.
//
// New panics if pick is nil.
func New(pick func(*gin.Context) zklock.Acquirer, opts ...middleware.Option) gin.HandlerFunc {
	if pick == nil {
		panic("ginlock: New: pick is nil: want a function that chooses each request's lock")
	}
	all := append([]middleware.Option{middleware.WithLabel(routeOf)}, opts...)
	all = append(all, middleware.WithObserver(record))
	h := middleware.New(func(r *http.Request) zklock.Acquirer { return pick(callOf(r).gin) }, all...)(http.HandlerFunc(next))
	return func(c *gin.Context) {
		call := &call{gin: c}
		outer := c.Request
		// Functions that get only the request find the *gin.Context through this.
		r := outer.WithContext(context.WithValue(outer.Context(), callKey{}, call))
		defer func() {
			if served.Over(outer.Context()) {
				return // the *gin.Context may serve another request
			}
			outer.MultipartForm = r.MultipartForm // the server removes its files
			if !call.passed {
				c.Abort()
			}
		}()
		h.ServeHTTP(c.Writer, r)
		if !call.passed && served.Over(outer.Context()) {
			// The chain goes on when this function returns, and c.Abort could end that of another request. So
			// end the goroutine, which a middleware has started that has answered.
			runtime.Goexit()
		}
	}
}

// call is one request that is served.
type call struct {
	gin    *gin.Context
	passed bool // the handlers behind the middleware were called
}

// callKey is the context key of a *call.
type callKey struct{}

// callOf returns the innermost call that r belongs to.
func callOf(r *http.Request) *call { return r.Context().Value(callKey{}).(*call) }

// next runs the handlers behind the middleware, with the request and the writer that
// package middleware made for them.
func next(w http.ResponseWriter, r *http.Request) {
	call := callOf(r)
	c := call.gin
	request, inner := c.Request, c.Writer
	c.Request = r
	if w != http.ResponseWriter(inner) {
		c.Writer = &writer{ResponseWriter: inner, guarded: w}
	}
	defer func() {
		if !served.Over(request.Context()) {
			c.Request, c.Writer = request, inner
		}
	}()
	call.passed = true
	c.Next()
}

// routeOf returns the default label of a request: its method and the path of its route.
func routeOf(r *http.Request) string {
	c := callOf(r).gin
	if c.FullPath() == "" { // no route matches the request
		return r.Method
	}
	return r.Method + " " + c.FullPath()
}
