package ginlock

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"
)

// writer is the gin.ResponseWriter of handlers under a lock: everything that
// puts bytes out goes through guarded, which is package middleware's, and on
// from there to gin's own. What only asks or remembers goes there directly,
// WriteHeader too: in gin it puts nothing out.
type writer struct {
	gin.ResponseWriter
	guarded http.ResponseWriter
}

var _ gin.ResponseWriter = (*writer)(nil)

// Header implements http.ResponseWriter.
func (w *writer) Header() http.Header { return w.guarded.Header() }

// Write implements http.ResponseWriter.
func (w *writer) Write(p []byte) (int, error) { return w.guarded.Write(p) }

// WriteString implements gin.ResponseWriter.
func (w *writer) WriteString(s string) (int, error) { return io.WriteString(w.guarded, s) }

// WriteHeaderNow implements gin.ResponseWriter.
func (w *writer) WriteHeaderNow() {
	if !w.Written() {
		// Of nothing, it is what makes gin's writer put the header out.
		_, _ = w.guarded.Write(nil)
	}
}

// Flush implements http.Flusher.
func (w *writer) Flush() { w.guarded.(http.Flusher).Flush() }

// Hijack implements http.Hijacker.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return w.guarded.(http.Hijacker).Hijack()
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.guarded }
