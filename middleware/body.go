package middleware

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
)

// requestBody is the Body of a request.
type requestBody = io.ReadCloser

// errSlowBody means that a request's body took longer than the wait.
var errSlowBody = fmt.Errorf("middleware: the request's body did not arrive within the wait for its lock: %w", os.ErrDeadlineExceeded)

// readAhead reads what there is of a short body, so that the server notices a
// client that hangs up during the wait: it listens for that only once the body
// has been read to its end. It returns what the handler is to read instead, or
// nil if nothing was read. An error means that the request is over.
func (c *config) readAhead(w http.ResponseWriter, r *http.Request) (requestBody, error) {
	limit := c.bufferBody
	if r.ProtoMajor != 1 || r.Body == nil || r.Body == http.NoBody || c.wait <= 0 || limit <= 0 || r.ContentLength > limit {
		return nil, nil
	}
	if r.ContentLength > 0 {
		limit = r.ContentLength
	}
	stop := c.boundReading(r.Context(), w)
	// One more than the limit: it is the read behind the last byte that finds
	// the end.
	ahead, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if late := stop(); late != nil {
		return nil, late
	}
	return &replay{ahead: ahead, err: err, rest: r.Body}, nil
}

// boundReading ends reading from a connection when a wait that began now would
// be over, or ctx, the request's, ends. stop must be called after the reading,
// and says whether it was cut short. The connection's read deadline is touched
// only then, as nobody can put back the one that was there; the server ends a
// request whose connection fails, so that it is of no more use anyway.
func (c *config) boundReading(ctx context.Context, w http.ResponseWriter) (stop func() error) {
	limited, cancel := context.WithTimeout(ctx, c.wait)
	cut := make(chan error, 1)
	idle := context.AfterFunc(limited, func() {
		err := ctx.Err() // before the failing read ends ctx
		if err == nil {
			err = errSlowBody
		}
		if http.NewResponseController(w).SetReadDeadline(past) != nil {
			err = nil // there is no way to cut it short
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

// replay is a body of which a part has been read already. Like the server's
// own it may be closed while it is read: HTTP clients that it is handed to do.
type replay struct {
	rest io.ReadCloser

	mu    sync.Mutex
	ahead []byte // guarded by mu
	err   error  // that ended the reading ahead, but for io.EOF; guarded by mu
}

// Read implements io.Reader.
func (b *replay) Read(p []byte) (int, error) {
	if n, err := b.readAhead(p); n > 0 || err != nil {
		return n, err
	}
	// Not under mu: it may take as long as the client does.
	return b.rest.Read(p)
}

// readAhead reads what is there already; 0 and nil mean that nothing is left.
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
