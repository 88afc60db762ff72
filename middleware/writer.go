package middleware

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"net/http"
	"syscall"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// errRefused is what a handler gets that writes after the lock was lost.
var errRefused = fmt.Errorf("middleware: nothing is sent any more: %w", zklock.ErrLost)

// phase is how far a response has come.
type phase uint8

const (
	idle     phase = iota // nothing was written
	begun                 // the final header is out, or was handed to the server
	refused               // the handler wrote when the lock was lost already
	hijacked              // the connection is the handler's
)

// writer stands between the handler and the server's ResponseWriter. It looks
// at the lock before the first byte goes out, and keeps the handler's headers
// apart from those that were there before, so that a loss until then can be
// answered as if the handler had not run.
//
// Like any ResponseWriter it is used by one goroutine at a time.
type writer struct {
	inner http.ResponseWriter
	lock  *zklock.Lock
	phase phase

	saved   http.Header // inner's header before the handler saw it; counts if isSaved
	isSaved bool
}

var (
	_ http.ResponseWriter = (*writer)(nil)
	_ io.ReaderFrom       = (*writer)(nil)
	_ io.StringWriter     = (*writer)(nil)
)

// check returns nil if the handler may go on writing. first says that it is
// about to write its first byte: the lock is looked at by the clock then, which
// also tells a process that was stopped for a while. Later on what the timers
// have announced will do, as the end of the call looks by the clock again.
func (w *writer) check(first bool) error {
	if first && w.lock.Valid() {
		return nil
	}
	switch err := w.lock.Err(); {
	case err == nil && !first:
		return nil
	case errors.Is(err, zklock.ErrReleased):
		return nil // by the handler itself
	}
	return errRefused
}

// begin is called before anything that puts a final header out.
func (w *writer) begin() error {
	switch w.phase {
	case idle:
		if err := w.check(true); err != nil {
			w.phase = refused
			return err
		}
		w.phase = begun
		return nil
	case refused:
		return errRefused
	}
	return w.check(false)
}

// save remembers the header as the handler finds it.
func (w *writer) save() {
	if w.isSaved {
		return
	}
	w.isSaved = true
	if h := w.inner.Header(); len(h) > 0 {
		w.saved = h.Clone()
	}
}

// restore takes back what the handler did to the header.
func (w *writer) restore() {
	if w.isSaved {
		h := w.inner.Header()
		clear(h)
		maps.Copy(h, w.saved)
	}
}

// Header implements http.ResponseWriter.
func (w *writer) Header() http.Header {
	w.save()
	return w.inner.Header()
}

// WriteHeader implements http.ResponseWriter. What comes too late is dropped.
func (w *writer) WriteHeader(code int) {
	if code >= 100 && code < 200 && code != http.StatusSwitchingProtocols {
		// Informational: the answer is still to come.
		if w.phase != refused && w.check(true) == nil {
			w.inner.WriteHeader(code)
		}
		return
	}
	if w.begin() == nil {
		w.inner.WriteHeader(code)
	}
}

// Write implements http.ResponseWriter.
func (w *writer) Write(p []byte) (int, error) {
	return inChunks(w, p, w.inner.Write)
}

// WriteString implements io.StringWriter.
func (w *writer) WriteString(s string) (int, error) {
	return inChunks(w, s, func(s string) (int, error) { return io.WriteString(w.inner, s) })
}

// chunkSize is how many bytes are sent between two looks at the lock: enough for
// the looks to cost nothing, and few enough for a loss to cut a download short.
const chunkSize = 256 << 10

// inChunks writes p, and looks at the lock before each chunk of it.
func inChunks[T string | []byte](w *writer, p T, write func(T) (int, error)) (n int, err error) {
	for {
		if err := w.begin(); err != nil {
			return n, err
		}
		chunk := p[n:min(n+chunkSize, len(p))]
		written, err := write(chunk)
		n += written
		if err != nil || written < len(chunk) || n == len(p) {
			return n, err
		}
	}
}

// firstChunk is how much of a source is read before the first byte goes out:
// as much as the server looks at to tell the content's type.
const firstChunk = 512

// ReadFrom implements io.ReaderFrom: a file still goes to the socket without a
// copy. Only the first bytes are read here, since their source may take its
// time, and the look at the lock is to be had after that.
func (w *writer) ReadFrom(src io.Reader) (n int64, err error) {
	if w.phase == idle {
		if n, err = io.Copy(firstWrite{w}, io.LimitReader(src, firstChunk)); err != nil || n < firstChunk {
			return n, err
		}
	}
	if err := w.begin(); err != nil {
		return n, err
	}
	rest, err := w.copyRest(src)
	return n + rest, err
}

// copyRest copies src to the server, and looks at the lock again and again.
func (w *writer) copyRest(src io.Reader) (n int64, err error) {
	file, left := src, int64(math.MaxInt64)
	limited, isLimited := src.(*io.LimitedReader) // what http.ServeFile copies
	if isLimited {
		file, left = limited.R, limited.N
	}
	if !isFile(file) {
		return io.Copy(w.inner, watchedReader{w, src})
	}
	// One io.LimitedReader around a file, and no more, is what the server can
	// have the system send.
	for left > 0 {
		if err := w.begin(); err != nil {
			return n, err
		}
		size := min(left, chunkSize)
		copied, err := io.Copy(w.inner, io.LimitReader(file, size))
		n, left = n+copied, left-copied
		if isLimited {
			limited.N = left
		}
		if err != nil || copied < size {
			return n, err
		}
	}
	return n, nil
}

// isFile reports whether src is a file on a disk: its bytes are there at once,
// other than those of a pipe.
func isFile(src io.Reader) bool {
	// Not *os.File, whose WriteTo hands a type of package os to ReadFrom.
	file, ok := src.(interface {
		fs.File
		syscall.Conn
	})
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode().IsRegular()
}

// watchedReader is a source that fails once the lock is lost: each read may
// take its time.
type watchedReader struct {
	w   *writer
	src io.Reader
}

// Read implements io.Reader.
func (r watchedReader) Read(p []byte) (int, error) {
	n, err := r.src.Read(p)
	if lost := r.w.begin(); lost != nil {
		return 0, lost
	}
	return n, err
}

// firstWrite hides ReadFrom from io.Copy.
type firstWrite struct{ w *writer }

func (f firstWrite) Write(p []byte) (int, error) { return f.w.Write(p) }

// FlushError is what http.ResponseController calls for Flush.
func (w *writer) FlushError() error {
	before := w.phase
	if err := w.begin(); err != nil {
		return err
	}
	err := http.NewResponseController(w.inner).Flush()
	if errors.Is(err, http.ErrNotSupported) {
		w.phase = before // nothing went out
	}
	return err
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return (*beneath)(w) }

// silence lets nothing more out to the client: unsent bytes stay unsent and the
// connection, or the HTTP/2 stream, ends without its proper end. A panic with
// http.ErrAbortHandler does that too, unless a middleware around us recovers
// it, as gin's does, and the server takes a half answer for a whole one.
func silence(w http.ResponseWriter) {
	// What cannot have a deadline has no connection of its own either.
	_ = http.NewResponseController(w).SetWriteDeadline(past)
}

// past is a deadline that is over.
var past = time.Unix(1, 0)
