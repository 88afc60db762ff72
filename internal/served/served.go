// Package served is shared by the adapters for servers. It finds out until when a request may wait for its lock,
// whether a response still belongs to the adapter, and when a client shall come again.
package served

import (
	"context"
	"net/http"
	"runtime"
	"strings"
)

// Over reports whether the response to a request, and the request itself, may belong to others by now. ctx is
// the request's context. It has ended, and the caller runs in a goroutine that a middleware has started. That
// middleware may have answered, and the server may be done with the request.
//
// In the server's goroutine the adapter has to answer: otherwise the server sends an empty 200 to a client
// that still waits. A context does not say what has ended it, so Over looks whose the goroutine is. With
// servers other than those of net/http it cannot know that, and returns false.
func Over(ctx context.Context) bool {
	if ctx.Err() == nil {
		return false
	}
	if _, known := ctx.Value(http.ServerContextKey).(*http.Server); !known {
		return false
	}
	first := first()
	if strings.Contains(first, "timeoutHandler") {
		return true
	}
	for _, server := range []string{"net/http.", "net/http/internal/", "golang.org/x/net/http2."} {
		if strings.HasPrefix(first, server) {
			return false
		}
	}
	return true
}

// first returns the name of the function that this goroutine has begun with.
func first() (name string) {
	var pcs [64]uintptr
	for skip := 0; ; skip += len(pcs) - 1 {
		n := runtime.Callers(skip, pcs[:])
		frames := runtime.CallersFrames(pcs[:n])
		for more := n > 0; more; {
			var f runtime.Frame
			if f, more = frames.Next(); f.Function != "runtime.goexit" {
				name = f.Function
			}
		}
		if n < len(pcs) {
			return name
		}
	}
}
