package middleware_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/zklock/go-zklock/middleware"
)

func TestBodyIsWhatTheClientSent(t *testing.T) {
	w := newWorld(t)
	for _, limit := range []int64{-1, 0, 1, 9, 10, 11, 1000} {
		for _, n := range []int{0, 1, 9, 10, 11, 5000} {
			for _, known := range []bool{false, true} {
				sent := strings.Repeat("0123456789", 500)[:n]
				r := httptest.NewRequest("POST", "/", iotest.HalfReader(strings.NewReader(sent)))
				if known {
					r.ContentLength = int64(n)
				}
				var got string
				do(middleware.New(w.fixed, middleware.WithBufferBody(limit))(w.watched(func(_ http.ResponseWriter, r *http.Request) {
					b, err := io.ReadAll(r.Body)
					if err != nil {
						t.Error(err)
					}
					got = string(b)
				})), r)
				if got != sent {
					t.Errorf("limit %d, %d bytes, length known %v: the handler read %d bytes", limit, n, known, len(got))
				}
			}
		}
	}
}

func TestBodyFailsForTheHandlerAsItDidForUs(t *testing.T) {
	w := newWorld(t)
	broken := errors.New("broken")
	r := httptest.NewRequest("POST", "/", io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)))
	do(middleware.New(w.fixed)(w.watched(func(_ http.ResponseWriter, r *http.Request) {
		for range 2 {
			if b, err := io.ReadAll(r.Body); err != broken || len(b) != 0 && string(b) != "half" {
				t.Errorf("the handler read %q with error %v, want the client's error", b, err)
			}
		}
	})), r)
	if len(w.Locks()) != 1 {
		t.Errorf("%d locks were acquired, want 1", len(w.Locks()))
	}
}

func TestClosedBodyGivesNothing(t *testing.T) {
	w := newWorld(t)
	do(middleware.New(w.fixed)(w.watched(func(_ http.ResponseWriter, r *http.Request) {
		if err := r.Body.Close(); err != nil {
			t.Error(err)
		}
		if b, err := io.ReadAll(r.Body); len(b) != 0 || err != http.ErrBodyReadAfterClose {
			t.Errorf("read %q with error %v, want nothing and http.ErrBodyReadAfterClose", b, err)
		}
	})), httptest.NewRequest("POST", "/", strings.NewReader("body")))
}

func TestBodyIsNotReadForATryOrForHTTP2(t *testing.T) {
	w := newWorld(t)
	untouched := func(opts []middleware.Option, major int) {
		t.Helper()
		body := strings.NewReader("body")
		r := httptest.NewRequest("POST", "/", body)
		r.ProtoMajor = major
		do(middleware.New(w.fixed, opts...)(w.watched(func(http.ResponseWriter, *http.Request) {
			if body.Len() != 4 {
				t.Errorf("%d bytes of the body are unread, want 4", body.Len())
			}
		})), r)
	}
	untouched([]middleware.Option{middleware.WithWait(0)}, 1)
	untouched(nil, 2)
}

// TestBodyMayBeClosedWhileItIsRead closes a body during a Read, as HTTP/2 clients do after an
// early response. It is a test for the race detector.
func TestBodyMayBeClosedWhileItIsRead(t *testing.T) {
	w := newWorld(t)
	for range 50 {
		r := httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", 10000)))
		do(middleware.New(w.fixed)(w.watched(func(_ http.ResponseWriter, r *http.Request) {
			read := make(chan error, 1)
			begun := make(chan struct{})
			go func() {
				buf := make([]byte, 1)
				_, err := r.Body.Read(buf)
				close(begun)
				for err == nil {
					_, err = r.Body.Read(buf)
				}
				read <- err
			}()
			<-begun
			if err := r.Body.Close(); err != nil {
				t.Error(err)
			}
			if err := <-read; err != http.ErrBodyReadAfterClose && err != io.EOF {
				t.Error(err)
			}
		})), r)
	}
}

// TestBodyThatDoesNotArrive has a client that stops in the middle of its body, while
// another client has the lock.
func TestBodyThatDoesNotArrive(t *testing.T) {
	for head, sent := range map[string]string{"Content-Length: 10": "abc", "Transfer-Encoding: chunked": "3\r\nabc\r\n"} {
		for _, c := range []struct {
			name   string
			around func(http.Handler) http.Handler
			wait   time.Duration
			status int
			reason string
		}{
			{"longer than the wait", func(h http.Handler) http.Handler { return h }, 50 * time.Millisecond, 408, middleware.ReasonBody},
			{"longer than the request's deadline", func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					ctx, cancel := context.WithTimeout(r.Context(), 50*time.Millisecond)
					defer cancel()
					h.ServeHTTP(rw, r.WithContext(ctx))
				})
			}, time.Hour, 503, middleware.ReasonContended},
		} {
			t.Run(head+", "+c.name, func(t *testing.T) {
				w := newWorld(t)
				defer w.Hold("orders/42")()
				srv := serve(t, c.around(middleware.New(w.fixed, middleware.WithWait(c.wait))(never(t))))
				conn, err := net.Dial("tcp", srv.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				conn.SetDeadline(time.Now().Add(10 * time.Second))
				fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n%s", head, sent)
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatalf("no response: %v", err)
				}
				defer resp.Body.Close()
				var p problem
				if err := json.NewDecoder(resp.Body).Decode(&p); err != nil || resp.StatusCode != c.status || p.Reason != c.reason || !resp.Close {
					t.Errorf("status %s, problem %+v, close %v, error %v; want %d, %s and a closed connection", resp.Status, p, resp.Close, err, c.status, c.reason)
				}
			})
		}
	}
}

// TestBodyThatWaitsForTheAnswer has a client that sends its body only after it has
// received the response's header, so the handler must be called before that.
func TestBodyThatWaitsForTheAnswer(t *testing.T) {
	w := newWorld(t)
	srv := serve(t, middleware.New(w.fixed, middleware.WithBufferBody(0))(w.watched(func(rw http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(rw)
		if err := rc.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		if err := rc.Flush(); err != nil {
			t.Error(err)
		}
		_, _ = io.Copy(rw, r.Body)
	})))
	body, send := io.Pipe()
	resp, err := srv.Client().Post(srv.URL, "text/plain", body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	io.WriteString(send, "hello")
	send.Close()
	if got, err := io.ReadAll(resp.Body); string(got) != "hello" || err != nil {
		t.Errorf("the client read %q, %v", got, err)
	}
}
