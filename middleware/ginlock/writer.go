package ginlock

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"
)

// writer is the gin.ResponseWriter of handlers that hold a lock. Methods that send
// bytes call guarded, which is package middleware's writer and calls gin's own.
// The other methods call gin's own directly. So does WriteHeader, since in gin it
// sends nothing.
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
		// An empty write makes gin's writer send the header.
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
