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

	"github.com/zklock/go-zklock/internal/served"
	"github.com/zklock/go-zklock/zklock"
)

// errRefused is the error of a write after the lock was lost.
var errRefused = fmt.Errorf("middleware: the response was not sent: %w", zklock.ErrLost)

// phase is how far a response has come.
type phase uint8

const (
	idle     phase = iota // nothing was written
	begun                 // the final header was sent, or passed to the server
	refused               // the handler's first write came after the loss of the lock
	hijacked              // the handler has taken over the connection
)

// writer is between the handler and the server's ResponseWriter. It checks the
// lock before the first byte is sent, and saves the headers that were set before
// the handler ran. So after a loss up to then, the response can be the same as if
// the handler had not run.
//
// Like any ResponseWriter it is used by one goroutine at a time.
type writer struct {
	inner http.ResponseWriter
	lock  *zklock.Lock
	phase phase
	cut   *served.Cut // nil without WithMaxHold

	saved   http.Header // inner's header before the handler ran; valid if isSaved
	isSaved bool
}

var (
	_ http.ResponseWriter = (*writer)(nil)
	_ io.ReaderFrom       = (*writer)(nil)
	_ io.StringWriter     = (*writer)(nil)
)

// check returns nil if the handler may go on writing. first means that nothing was
// written yet. Then the check reads the clock, which also finds a loss in a process
// that was stopped for a while. Later it only looks whether the lock was reported
// lost, because the clock is read once more at the end of the call.
func (w *writer) check(first bool) error {
	if first && w.lock.Valid() {
		return nil
	}
	switch err := w.lock.Err(); {
	case err == nil && !first:
		return nil
	case errors.Is(err, zklock.ErrReleased):
		return nil // the handler has released it
	}
	return errRefused
}

// begin is called before anything that sends the final header.
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

// save saves the header as it is before the handler changes it.
func (w *writer) save() {
	if w.isSaved {
		return
	}
	w.isSaved = true
	if h := w.inner.Header(); len(h) > 0 {
		w.saved = h.Clone()
	}
}

// restore undoes the handler's changes to the header.
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

// WriteHeader implements http.ResponseWriter. After a loss it does nothing.
func (w *writer) WriteHeader(code int) {
	if code >= 100 && code < 200 && code != http.StatusSwitchingProtocols {
		// An informational header: the final one follows.
		if w.phase != refused && w.check(true) == nil {
			w.cut.BeginWrite()
			defer w.cut.EndWrite()
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

// chunkSize is how many bytes are sent between two checks of the lock: enough for
// the checks to cost little, and few enough for a loss to interrupt a download.
const chunkSize = 256 << 10

// inChunks writes p, and checks the lock before each chunk of it.
func inChunks[T string | []byte](w *writer, p T, write func(T) (int, error)) (n int, err error) {
	for {
		if err := w.begin(); err != nil {
			return n, err
		}
		chunk := p[n:min(n+chunkSize, len(p))]
		w.cut.BeginWrite()
		written, err := write(chunk)
		w.cut.EndWrite()
		n += written
		if err != nil || written < len(chunk) || n == len(p) {
			return n, err
		}
	}
}

// firstChunk is how many bytes of a source are read before the first byte is sent.
// It is as many as the server uses to detect the content type.
const firstChunk = 512

// ReadFrom implements io.ReaderFrom, so that the system can still send a file
// without copying it. Only the first bytes are read here: the source may take long to deliver
// them, and the check of the lock must follow that.
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

// copyRest copies src to the server, and checks the lock before each chunk.
func (w *writer) copyRest(src io.Reader) (n int64, err error) {
	w.cut.BeginWrite()
	defer w.cut.EndWrite()
	file, left := src, int64(math.MaxInt64)
	limited, isLimited := src.(*io.LimitedReader) // http.ServeFile copies from one
	if isLimited {
		file, left = limited.R, limited.N
	}
	if !isFile(file) {
		return io.Copy(w.inner, watchedReader{w, src})
	}
	// The server lets the system send a file only if exactly one io.LimitedReader
	// is around it.
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

// isFile reports whether src is a file on a disk. Reading that does not wait for
// another process, unlike reading a pipe.
func isFile(src io.Reader) bool {
	// This does not ask for *os.File, because ReadFrom gets another type of package
	// os from the WriteTo of *os.File.
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

// watchedReader is a source that fails once the lock is lost. Each read of it may
// take long.
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

// FlushError is called by Flush of http.ResponseController.
func (w *writer) FlushError() error {
	before := w.phase
	if err := w.begin(); err != nil {
		return err
	}
	w.cut.BeginWrite()
	err := http.NewResponseController(w.inner).Flush()
	w.cut.EndWrite()
	if errors.Is(err, http.ErrNotSupported) {
		w.phase = before // nothing was sent
	}
	return err
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return (*beneath)(w) }

// silence stops everything that would still be sent to the client. Bytes that are
// not sent yet are never sent, and the connection, or the HTTP/2 stream, is
// aborted. A panic with http.ErrAbortHandler would do the same, but an outer middleware may
// recover it, as gin's does. Then the server would take the partial response for a complete
// one.
func silence(w http.ResponseWriter) {
	// A writer without deadlines does not have a connection of its own.
	_ = http.NewResponseController(w).SetWriteDeadline(past)
}

// past is a deadline that has passed.
var past = time.Unix(1, 0)
