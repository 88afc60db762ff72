package middleware_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
)

// serve runs a server on the loopback interface until the test ends.
func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = quiet()
	srv.Start()
	t.Cleanup(srv.Close)
	return srv
}

func TestPanicReleasesAndGoesOn(t *testing.T) {
	for _, v := range []any{"boom", http.ErrAbortHandler} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			h := middleware.New(w.fixed)(w.watched(func(http.ResponseWriter, *http.Request) { panic(v) }))
			func() {
				defer func() {
					if got := recover(); got != v {
						t.Errorf("recovered %v, want %v", got, v)
					}
				}()
				do(h, httptest.NewRequest("GET", "/", nil))
			}()
			if st := w.client.Stats(); st.Held != 0 || len(w.Locks()) != 1 {
				t.Errorf("%d locks held of %d acquired, want 0 of 1", st.Held, len(w.Locks()))
			}
		})
	}
}

func TestHandlerMayReleaseEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		h := middleware.New(w.fixed, middleware.WithObserver(func(_ *http.Request, err error) { t.Errorf("the observer got %v", err) }))(
			http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				l, _ := zklock.FromContext(r.Context())
				if err := l.Release(context.WithoutCancel(r.Context())); err != nil {
					t.Error(err)
				}
				rw.WriteHeader(http.StatusAccepted)
				if _, err := io.WriteString(rw, "later"); err != nil {
					t.Error(err)
				}
			}))
		if rec := do(h, httptest.NewRequest("GET", "/", nil)); rec.Code != http.StatusAccepted || rec.Body.String() != "later" {
			t.Errorf("status %d, body %q", rec.Code, rec.Body)
		}
	})
}

func TestClientThatHangsUpWhileWaitingLeavesTheQueue(t *testing.T) {
	big := strings.Repeat("x", 128<<10)
	for _, c := range []struct {
		name, method, body string
		chunked            bool
		opts               []middleware.Option
		noticed            bool
	}{
		{name: "without a body", method: "GET", noticed: true},
		{name: "with a body", method: "POST", body: "order", noticed: true},
		{name: "with a chunked body", method: "POST", body: "order", chunked: true, noticed: true},
		{name: "with a body of exactly the limit", method: "POST", body: big[:64<<10], noticed: true},
		{name: "with a chunked body of exactly the limit", method: "POST", body: big[:64<<10], chunked: true, noticed: true},
		{name: "with a body above the default and a higher limit", method: "POST", body: big, opts: []middleware.Option{middleware.WithBufferBody(1 << 20)}, noticed: true},
		{name: "with a body too long", method: "POST", body: big},
		{name: "without a buffer", method: "POST", body: "order", opts: []middleware.Option{middleware.WithBufferBody(0)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			release := w.Hold("orders/42")
			defer release()
			gone := make(chan error, 1)
			opts := append(c.opts, middleware.WithObserver(func(_ *http.Request, err error) { gone <- err }))
			var body io.Reader
			if c.body != "" {
				body = strings.NewReader(c.body)
			}
			if c.chunked {
				body = struct{ io.Reader }{body}
			}
			srv := serve(t, middleware.New(w.fixed, opts...)(w.watched(func(http.ResponseWriter, *http.Request) {})))
			ctx, hangUp := context.WithCancel(t.Context())
			defer hangUp()
			req, err := http.NewRequestWithContext(ctx, c.method, srv.URL, body)
			if err != nil {
				t.Fatal(err)
			}
			failed := make(chan error, 1)
			go func() {
				resp, err := srv.Client().Do(req)
				if err == nil {
					resp.Body.Close()
				}
				failed <- err
			}()
			<-w.waiting
			hangUp()
			if err := <-failed; !errors.Is(err, context.Canceled) {
				t.Fatalf("the client got %v, want context.Canceled", err)
			}
			if c.noticed {
				if err := <-gone; !errors.Is(err, context.Canceled) {
					t.Errorf("the observer got %v, want context.Canceled", err)
				}
				if n := len(w.Locks()); n != 0 {
					t.Errorf("%d locks were acquired, want none", n)
				}
				return
			}
			// The request keeps its place in the queue: without the buffer, the
			// server does not notice that the client has disconnected.
			release()
			eventually(t, "the request of the disconnected client to be served", func() bool { return len(w.Locks()) == 1 && w.client.Stats().Held == 0 })
			select {
			case err := <-gone:
				t.Errorf("the observer got %v, want no error", err)
			default:
			}
		})
	}
}

func TestClientThatHangsUpWhileTheHandlerRunsReleasesNothing(t *testing.T) {
	w := newWorld(t)
	entered, goOn, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
	srv := serve(t, middleware.New(w.fixed)(w.watched(func(_ http.ResponseWriter, r *http.Request) {
		defer close(left)
		close(entered)
		<-r.Context().Done()
		if cause := context.Cause(r.Context()); !errors.Is(cause, context.Canceled) {
			t.Errorf("the context's cause is %v, want context.Canceled", cause)
		}
		<-goOn
		if l, ok := zklock.FromContext(r.Context()); !ok || !l.Valid() {
			t.Error("the lock was released when the client disconnected")
		}
	})))
	ctx, hangUp := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", srv.URL, strings.NewReader("order"))
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := srv.Client().Do(req)
		failed <- err
	}()
	<-entered
	hangUp()
	<-failed
	if _, err := w.client.Mutex("orders/42").TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
		t.Errorf("TryAcquire while the handler runs: %v, want ErrNotAcquired", err)
	}
	close(goOn)
	<-left
	eventually(t, "the release", func() bool { return w.client.Stats().Held == 0 })
}

func TestHijackedConnectionHoldsUntilTheHandlerReturns(t *testing.T) {
	w := newWorld(t)
	hijacks := map[string]func(http.ResponseWriter) (io.WriteCloser, error){
		"by assertion": func(rw http.ResponseWriter) (io.WriteCloser, error) {
			conn, _, err := rw.(http.Hijacker).Hijack()
			return conn, err
		},
		"by ResponseController": func(rw http.ResponseWriter) (io.WriteCloser, error) {
			conn, _, err := http.NewResponseController(rw).Hijack()
			return conn, err
		},
	}
	for name, hijack := range hijacks {
		for _, loses := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, lost %v", name, loses), func(t *testing.T) {
				goOn, left := make(chan struct{}), make(chan any, 1)
				h := middleware.New(w.fixed, middleware.WithErrorHandler(func(_ http.ResponseWriter, _ *http.Request, err error) {
					t.Errorf("the error handler was called with %v, though the handler has hijacked the connection", err)
				}))(w.watched(func(rw http.ResponseWriter, r *http.Request) {
					conn, err := hijack(rw)
					if err != nil {
						t.Error(err)
						return
					}
					io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nhello\n")
					<-goOn
					if loses {
						w.Lose(r.Context())
					}
					io.WriteString(conn, "bye\n")
					conn.Close()
				}))
				srv := serve(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					defer func() { left <- recover() }()
					h.ServeHTTP(rw, r)
				}))
				resp, err := srv.Client().Get(srv.URL)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				lines := bufio.NewReader(resp.Body)
				if line, err := lines.ReadString('\n'); line != "hello\n" {
					t.Fatalf("the client read %q, %v", line, err)
				}
				if _, err := w.client.Mutex("orders/42").TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
					t.Errorf("TryAcquire while the handler runs: %v, want ErrNotAcquired", err)
				}
				close(goOn)
				if line, err := lines.ReadString('\n'); line != "bye\n" {
					t.Fatalf("the client read %q, %v", line, err)
				}
				if v := <-left; v != nil {
					t.Errorf("panic %v, though the handler has hijacked the connection", v)
				}
			})
		}
	}
}

func TestStreamIsSentAsItIsWrittenAndHoldsToItsEnd(t *testing.T) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto, func(t *testing.T) {
			w := newWorld(t)
			next := make(chan struct{})
			srv := serveProto(t, proto, middleware.New(w.fixed)(w.watched(func(rw http.ResponseWriter, r *http.Request) {
				if r.Proto != proto {
					t.Errorf("served over %s", r.Proto)
				}
				rw.Header().Set("Content-Type", "text/event-stream")
				for i := range 3 {
					fmt.Fprintf(rw, "data: %d\n\n", i)
					if i == 1 {
						if err := http.NewResponseController(rw).Flush(); err != nil {
							t.Error(err)
						}
					} else {
						rw.(http.Flusher).Flush()
					}
					<-next
				}
			})))
			resp, err := srv.Client().Get(srv.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			lines := bufio.NewReader(resp.Body)
			for i := range 3 {
				line, err := lines.ReadString('\n')
				if err != nil || line != fmt.Sprintf("data: %d\n", i) {
					t.Fatalf("the client read %q, %v", line, err)
				}
				lines.ReadString('\n')
				if _, err := w.client.Mutex("orders/42").TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
					t.Errorf("TryAcquire while the handler runs: %v, want ErrNotAcquired", err)
				}
				next <- struct{}{}
			}
			if _, err := lines.ReadByte(); err != io.EOF {
				t.Errorf("the stream ended with %v, want io.EOF", err)
			}
		})
	}
}

func TestClientThatHangsUpOverHTTP2WhileWaitingLeavesTheQueue(t *testing.T) {
	w := newWorld(t)
	release := w.Hold("orders/42")
	defer release()
	gone := make(chan error, 1)
	srv := serveProto(t, "HTTP/2.0", middleware.New(w.fixed, middleware.WithObserver(func(_ *http.Request, err error) { gone <- err }))(never(t)))
	ctx, hangUp := context.WithCancel(t.Context())
	// A body that has not ended, like that of a running upload.
	pr, pw := io.Pipe()
	defer pw.Close()
	req, err := http.NewRequestWithContext(ctx, "POST", srv.URL, pr)
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := srv.Client().Do(req)
		failed <- err
	}()
	<-w.waiting
	hangUp()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("the client got %v, want context.Canceled", err)
	}
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the observer got %v, want context.Canceled", err)
	}
}
