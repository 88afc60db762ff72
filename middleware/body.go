package middleware

import (
	"io"
	"net/http"
)

// requestBody is the Body of a request.
type requestBody = io.ReadCloser

// readAhead reads what there is of a short body, so that the server notices a
// client that hangs up during the wait: it listens for that only once the body
// has been read to its end. It returns what the handler is to read instead, or
// nil if nothing was read.
func (c *config) readAhead(r *http.Request) requestBody {
	limit := c.bufferBody
	if r.ProtoMajor != 1 || r.Body == nil || r.Body == http.NoBody || c.wait <= 0 || limit <= 0 || r.ContentLength > limit {
		return nil
	}
	if r.ContentLength > 0 {
		limit = r.ContentLength
	}
	// One more than the limit: it is the read behind the last byte that finds
	// the end.
	ahead, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	return &replay{ahead: ahead, err: err, rest: r.Body}
}

// replay is a body of which a part has been read already.
type replay struct {
	ahead []byte
	err   error // that ended the reading ahead, but for io.EOF
	rest  io.ReadCloser
}

// Read implements io.Reader.
func (b *replay) Read(p []byte) (int, error) {
	if len(b.ahead) > 0 {
		n := copy(p, b.ahead)
		b.ahead = b.ahead[n:]
		return n, nil
	}
	if b.err != nil {
		return 0, b.err
	}
	return b.rest.Read(p)
}

// Close implements io.Closer.
func (b *replay) Close() error {
	b.ahead, b.err = nil, http.ErrBodyReadAfterClose
	return b.rest.Close()
}
