package connectlock

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/zklock/go-zklock/internal/holding"
	"github.com/zklock/go-zklock/internal/served"
	"github.com/zklock/go-zklock/zklock"
)

// Handler passes the connection of each call on to the HandlerInterceptors behind it, so that [WithMaxHold] ends a
// Send that waits for a client. An interceptor alone has no way to the connection. It goes around connect's handler, or
// around a mux of several, inside of whatever replaces the http.ResponseWriter by one on which
// http.ResponseController cannot set deadlines.
func Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), responseKey{}, w)))
	})
}

// responseKey is the key of the context's value with the http.ResponseWriter of a call.
type responseKey struct{}

// newCut returns what ends a Send of a call that holds its lock for too long; nil if nothing does.
func newCut(ctx context.Context, maxHold time.Duration) *served.Cut {
	w, ok := ctx.Value(responseKey{}).(http.ResponseWriter)
	if !ok || maxHold <= 0 {
		return nil
	}
	return served.NewCut(w, maxHold)
}

// handlerStream is the stream that a handler gets instead of connect's.
type handlerStream struct {
	connect.StreamingHandlerConn
	*holding.Stream
	cut atomic.Pointer[served.Cut] // nil until the lock is acquired, and without Handler or WithMaxHold
}

// Send implements connect.StreamingHandlerConn.
func (s *handlerStream) Send(m any) error {
	if err := s.Stopped(); err != nil {
		return err
	}
	cut := s.cut.Load()
	cut.BeginWrite()
	defer cut.EndWrite()
	err := s.StreamingHandlerConn.Send(m)
	if err != nil && cut != nil && context.Cause(s.Ctx) == zklock.ErrMaxHold {
		return s.Errors.TooLong(err)
	}
	return err
}

// Receive implements connect.StreamingHandlerConn.
func (s *handlerStream) Receive(m any) error { return s.Stream.Receive(m) }
