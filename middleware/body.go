package middleware

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/zklock/go-zklock/internal/served"
)

// requestBody is the Body of a request.
type requestBody = io.ReadCloser

// errSlowBody means that a request's body took longer than the wait.
var errSlowBody = fmt.Errorf("middleware: the request's body did not arrive within the time of WithWait, see WithBufferBody: %w", os.ErrDeadlineExceeded)

// readAhead reads a short body before the wait for the lock, so that the server
// notices a client that disconnects during the wait. The server watches for that
// only after the body has been read to its end. readAhead returns the body that the
// handler reads instead, or nil if nothing was read. After an error the request
// must not be served.
func (c *config) readAhead(w http.ResponseWriter, r *http.Request, l limit) (requestBody, error) {
	limit := c.bufferBody
	if r.ProtoMajor != 1 || r.Body == nil || r.Body == http.NoBody || c.wait <= 0 || limit <= 0 || r.ContentLength > limit {
		return nil, nil
	}
	if r.ContentLength > 0 {
		limit = r.ContentLength
	}
	stop := boundReading(r.Context(), w, c.wait, l)
	// One byte more than the limit: only the read after the last byte finds the
	// end of the body.
	ahead, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if late := stop(); late != nil {
		return nil, late
	}
	return &replay{ahead: ahead, err: err, rest: r.Body}, nil
}

// boundReading interrupts reads from the connection after wait, at the limit, or when ctx,
// the request's context, ends. stop must be called after the reading. It returns an
// error if the reading was interrupted. The connection's read deadline is set only
// to interrupt, because an earlier deadline cannot be read and so not be restored.
// Then it does no harm: the server ends a request whose connection fails.
func boundReading(ctx context.Context, w http.ResponseWriter, wait time.Duration, l limit) (stop func() error) {
	limited, cancel := context.WithTimeout(ctx, l.Within(wait))
	cut := make(chan error, 1)
	idle := context.AfterFunc(limited, func() {
		err := ctx.Err() // before the failing read ends ctx
		switch {
		case err != nil:
		case l.own && l.Passed():
			err = errDeadline
		default:
			err = errSlowBody
		}
		if http.NewResponseController(w).SetReadDeadline(past) != nil {
			err = nil // this writer has no way to interrupt the reading
		}
		cut <- err
	})
	return func() error {
		defer cancel()
		if idle() {
			return nil
		}
		return <-cut
	}
}

// cutBody is a body whose reads end when the lock was held for too long.
type cutBody struct {
	requestBody
	cut *served.Cut
}

// Read implements io.Reader.
func (b *cutBody) Read(p []byte) (int, error) {
	return b.cut.Read(func() (int, error) { return b.requestBody.Read(p) })
}

// replay is a body with a part that has been read already. Like the server's own body it may be
// closed during a Read: HTTP clients that send it on do that.
type replay struct {
	rest io.ReadCloser

	mu    sync.Mutex
	ahead []byte // guarded by mu
	err   error  // that ended the reading ahead, nil for io.EOF; guarded by mu
}

// Read implements io.Reader.
func (b *replay) Read(p []byte) (int, error) {
	if n, err := b.readAhead(p); n > 0 || err != nil {
		return n, err
	}
	// Not under mu: this may wait for the client.
	return b.rest.Read(p)
}

// readAhead returns bytes that were read ahead; 0 and nil mean that none are left.
func (b *replay) readAhead(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.ahead) > 0 {
		n := copy(p, b.ahead)
		b.ahead = b.ahead[n:]
		return n, nil
	}
	return 0, b.err
}

// Close implements io.Closer.
func (b *replay) Close() error {
	b.mu.Lock()
	b.ahead, b.err = nil, http.ErrBodyReadAfterClose
	b.mu.Unlock()
	return b.rest.Close()
}
