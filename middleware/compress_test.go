package middleware_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
)

// compressors are middlewares that compress on the fly, in the two usual ways.
var compressors = map[string]func(http.Handler) http.Handler{
	"announces first": func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Encoding", "gzip")
			gz := gzip.NewWriter(rw)
			defer gz.Close()
			next.ServeHTTP(compressing{rw, gz}, r)
		})
	},
	"announces with the first byte": func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			late := &lateCompressing{compressing: compressing{rw, gzip.NewWriter(rw)}}
			defer late.close()
			next.ServeHTTP(late, r)
		})
	},
}

// compressing is the writer of such a middleware.
type compressing struct {
	http.ResponseWriter
	gz *gzip.Writer
}

func (c compressing) Write(p []byte) (int, error) { return c.gz.Write(p) }

// lateCompressing sets Content-Encoding only when the response's header is written.
type lateCompressing struct {
	compressing
	begun bool
}

func (c *lateCompressing) WriteHeader(code int) {
	c.begun = true
	c.Header().Del("Content-Length")
	c.Header().Set("Content-Encoding", "gzip")
	c.ResponseWriter.WriteHeader(code)
}

func (c *lateCompressing) Write(p []byte) (int, error) {
	if !c.begun {
		c.WriteHeader(http.StatusOK)
	}
	return c.gz.Write(p)
}

func (c *lateCompressing) close() {
	if c.begun {
		c.gz.Close()
	}
}

func TestErrorAnswersCanBeReadThroughCompression(t *testing.T) {
	nestings := map[string]func(lock, compress func(http.Handler) http.Handler, h http.Handler) http.Handler{
		"the lock inside": func(lock, compress func(http.Handler) http.Handler, h http.Handler) http.Handler {
			return compress(lock(h))
		},
		"the lock outside": func(lock, compress func(http.Handler) http.Handler, h http.Handler) http.Handler {
			return lock(compress(h))
		},
	}
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		for name, compress := range compressors {
			for nesting, nest := range nestings {
				for _, method := range []string{"GET", "HEAD"} {
					t.Run(strings.Join([]string{proto, name, nesting, method}, ", "), func(t *testing.T) {
						w := newWorld(t)
						refused := middleware.New(func(*http.Request) zklock.Acquirer { return zklock.Refuse(zklock.ErrNotAcquired) })
						wantReadable(t, proto, method, nest(refused, compress, never(t)), 423, middleware.ReasonContended)
						wantReadable(t, proto, method, nest(middleware.New(w.fixed), compress, w.watched(func(rw http.ResponseWriter, r *http.Request) {
							rw.Header().Set("Content-Length", "4")
							w.Lose(r.Context())
							io.WriteString(rw, "made")
						})), 424, middleware.ReasonLost)
					})
				}
			}
		}
	}
}

// wantReadable sends a request with a client that accepts compression, and checks the
// decompressed response.
func wantReadable(t *testing.T, proto, method string, h http.Handler, status int, reason string) {
	t.Helper()
	srv := serveProto(t, proto, h)
	req, err := http.NewRequestWithContext(t.Context(), method, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	var p problem
	if err == nil && method == "GET" {
		err = json.Unmarshal(body, &p)
	}
	if err != nil {
		t.Fatalf("status %d, header %v, body %q: %v", resp.StatusCode, resp.Header, body, err)
	}
	if resp.StatusCode != status || method == "GET" && p.Reason != reason {
		t.Errorf("status %d, problem %+v; want status %d, reason %s", resp.StatusCode, p, status, reason)
	}
}
