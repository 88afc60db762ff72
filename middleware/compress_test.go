package middleware_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
)

// compressors are middlewares that compress on the fly, as they are written
// everywhere.
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

// compressing is the usual writer of such a middleware.
type compressing struct {
	http.ResponseWriter
	gz *gzip.Writer
}

func (c compressing) Write(p []byte) (int, error) { return c.gz.Write(p) }

// lateCompressing decides when it knows the answer's header.
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
	w := newWorld(t)
	refused := func(http.Handler) http.Handler {
		return middleware.New(func(*http.Request) zklock.Acquirer { return failing{zklock.ErrNotAcquired} })(never(t))
	}
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		for name, compress := range compressors {
			for _, c := range []struct {
				name   string
				lock   func(http.Handler) http.Handler
				status int
				reason string
			}{
				{"refused", refused, 423, middleware.ReasonContended},
				{"lost", middleware.New(w.fixed), 503, middleware.ReasonLost},
			} {
				losing := func(rw http.ResponseWriter, r *http.Request) {
					rw.Header().Set("Content-Length", "4")
					w.lose(r.Context())
					io.WriteString(rw, "made")
				}
				for nesting, h := range map[string]http.Handler{
					"the lock inside":  compress(c.lock(http.HandlerFunc(losing))),
					"the lock outside": c.lock(compress(http.HandlerFunc(losing))),
				} {
					for _, method := range []string{"GET", "HEAD"} {
						t.Run(proto+", "+name+", "+nesting+", "+c.name+", "+method, func(t *testing.T) {
							srv := serveProto(t, proto, h)
							req, err := http.NewRequestWithContext(t.Context(), method, srv.URL, nil)
							if err != nil {
								t.Fatal(err)
							}
							resp, err := srv.Client().Do(req) // which asks for gzip, and undoes it
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
							if resp.StatusCode != c.status || method == "GET" && p.Reason != c.reason {
								t.Errorf("status %d, %+v", resp.StatusCode, p)
							}
						})
					}
				}
			}
		}
	}
}
