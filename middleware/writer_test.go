package middleware_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
)

// opaque hides all other methods but Unwrap, as the writers of some middlewares do.
type opaque struct{ inner http.ResponseWriter }

func (o opaque) Header() http.Header         { return o.inner.Header() }
func (o opaque) Write(p []byte) (int, error) { return o.inner.Write(p) }
func (o opaque) WriteHeader(code int)        { o.inner.WriteHeader(code) }
func (o opaque) Unwrap() http.ResponseWriter { return o.inner }

func TestResponseControllerWorksThroughTheWriter(t *testing.T) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto, func(t *testing.T) {
			w := newWorld(t)
			lock := middleware.New(w.fixed)(w.watched(func(rw http.ResponseWriter, r *http.Request) {
				if _, ok := rw.(http.Flusher); ok {
					t.Error("the writer has Flush, which the inner writer does not have")
				}
				c := http.NewResponseController(rw)
				for what, err := range map[string]error{
					"SetReadDeadline":  c.SetReadDeadline(time.Now().Add(time.Minute)),
					"SetWriteDeadline": c.SetWriteDeadline(time.Now().Add(time.Minute)),
					"Flush":            c.Flush(),
				} {
					if err != nil {
						t.Errorf("%s: %v", what, err)
					}
				}
				if proto == "HTTP/1.1" {
					if err := c.EnableFullDuplex(); err != nil {
						t.Errorf("EnableFullDuplex: %v", err)
					}
				} else if _, _, err := c.Hijack(); err == nil {
					t.Error("an HTTP/2 stream was hijacked")
				}
				io.WriteString(rw, "fine")
			}))
			srv := serveProto(t, proto, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				lock.ServeHTTP(opaque{rw}, r)
			}))
			resp, err := srv.Client().Get(srv.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if body, err := io.ReadAll(resp.Body); string(body) != "fine" || err != nil {
				t.Errorf("the client read %q, %v", body, err)
			}
		})
	}
}

func TestLostBeforeAHijackRefusesIt(t *testing.T) {
	w := newWorld(t)
	h := middleware.New(w.fixed)(w.watched(func(rw http.ResponseWriter, r *http.Request) {
		w.Lose(r.Context())
		for range 2 {
			if _, _, err := rw.(http.Hijacker).Hijack(); err == nil {
				t.Error("Hijack succeeded after the lock was lost")
			}
		}
		if _, _, err := http.NewResponseController(rw).Hijack(); err == nil {
			t.Error("Hijack by ResponseController succeeded after the lock was lost")
		}
	}))
	srv := serve(t, h)
	resp, err := srv.Client().Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusFailedDependency {
		t.Errorf("status %d, want 424", resp.StatusCode)
	}
}

func TestEarlyHintsAreNotTheAnswer(t *testing.T) {
	for _, loses := range []bool{false, true} {
		w := newWorld(t)
		srv := serve(t, middleware.New(w.fixed)(w.watched(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Link", "</style.css>; rel=preload")
			rw.WriteHeader(http.StatusEarlyHints)
			if loses {
				w.Lose(r.Context())
			}
			rw.WriteHeader(http.StatusCreated)
		})))
		hints := 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			if code == 103 && h.Get("Link") != "" {
				hints++
			}
			return nil
		}})
		req, _ := http.NewRequestWithContext(ctx, "GET", srv.URL, nil)
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		want := http.StatusCreated
		if loses {
			want = http.StatusFailedDependency
		}
		if hints != 1 || resp.StatusCode != want {
			t.Errorf("lost %v: %d hints, status %d, want %d", loses, hints, resp.StatusCode, want)
		}
	}
}

func TestCopiesArriveWhole(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	content := bytes.Repeat([]byte("0123456789abcdef"), 10000)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	mux := http.NewServeMux()
	lock := middleware.New(w.fixed)
	mux.Handle("/file", lock(w.watched(func(rw http.ResponseWriter, r *http.Request) { http.ServeFile(rw, r, file) })))
	mux.Handle("/slow/{n}", lock(w.watched(func(rw http.ResponseWriter, r *http.Request) {
		var n int64
		fmt.Sscan(r.PathValue("n"), &n)
		copied, err := io.Copy(rw, iotest.OneByteReader(bytes.NewReader(content[:n])))
		if err != nil || copied != n {
			t.Errorf("copied %d of %d, %v", copied, n, err)
		}
	})))
	mux.Handle("/broken", lock(w.watched(func(rw http.ResponseWriter, r *http.Request) {
		src := io.MultiReader(bytes.NewReader(content[:100]), iotest.ErrReader(os.ErrDeadlineExceeded))
		if n, err := io.Copy(rw, src); n != 100 || err != os.ErrDeadlineExceeded {
			t.Errorf("copied %d bytes with error %v, want 100 and the source's error", n, err)
		}
	})))
	srv := serve(t, mux)
	for path, n := range map[string]int{"/file": len(content), "/slow/0": 0, "/slow/511": 511, "/slow/512": 512, "/slow/513": 513, "/slow/2000": 2000, "/broken": 100} {
		resp, err := srv.Client().Get(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !bytes.Equal(body, content[:n]) {
			t.Errorf("%s: %d bytes, want %d; %v", path, len(body), n, err)
		}
	}
}

func TestSourceThatIsSlowerThanTheLockIsNotTheAnswer(t *testing.T) {
	w := newWorld(t)
	h := middleware.New(w.fixed)(w.watched(func(rw http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(rw, io.MultiReader(losing{w, r}, strings.NewReader("made"))); err == nil {
			t.Error("the copy succeeded")
		}
	}))
	wantProblem(t, do(h, httptest.NewRequest("GET", "/", nil)), 424, middleware.ReasonLost)
}

// losing is an empty source. Its Read returns after the lock was lost.
type losing struct {
	w *world
	r *http.Request
}

func (l losing) Read([]byte) (int, error) {
	l.w.Lose(l.r.Context())
	return 0, io.EOF
}

func TestOutsideSeesTheRouteAndTheFormOfTheRequest(t *testing.T) {
	w := newWorld(t)
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}", w.watched(func(_ http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil {
			t.Error(err)
		}
	}))
	var body bytes.Buffer
	boundary := "b"
	fmt.Fprintf(&body, "--%[1]s\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n%[2]s\r\n--%[1]s--\r\n", boundary, strings.Repeat("x", 20<<20))
	r := httptest.NewRequest("POST", "/orders/42", &body)
	r.Header.Set("Content-Type", "multipart/form-data; boundary="+boundary)
	do(middleware.New(w.fixed)(mux), r)
	if r.Pattern != "POST /orders/{id}" {
		t.Errorf("the outer request has the pattern %q", r.Pattern)
	}
	if r.MultipartForm == nil {
		t.Fatal("the outer request has no form, so the server cannot remove its files")
	}
	if err := r.MultipartForm.RemoveAll(); err != nil {
		t.Error(err)
	}
	if _, ok := zklock.FromContext(r.Context()); ok {
		t.Error("the request that was passed in carries the lock")
	}
}

func TestFlushThatTheServerDoesNotHaveIsNotTheAnswer(t *testing.T) {
	w := newWorld(t)
	h := middleware.New(w.fixed)(w.watched(func(rw http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(rw).Flush(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("Flush: %v, want ErrNotSupported", err)
		}
		w.Lose(r.Context())
	}))
	rec := httptest.NewRecorder()
	h.ServeHTTP(struct{ http.ResponseWriter }{rec}, httptest.NewRequest("GET", "/", nil))
	wantProblem(t, rec, 424, middleware.ReasonLost)
}
