package middleware_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	testworld "github.com/zklock/go-zklock/internal/testkit/world"
	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
)

// A client that neither reads nor sends any longer keeps no lock for ever: WithMaxHold ends what waits for it.
func TestMaxHoldEndsWhatWaitsForAFrozenClient(t *testing.T) {
	much, text := bytes.Repeat([]byte("x"), 1<<20), strings.Repeat("x", 1<<20)
	for what, c := range map[string]struct {
		work func(http.ResponseWriter, *http.Request) error
		held time.Duration
	}{
		"a write": {func(rw http.ResponseWriter, _ *http.Request) error {
			_, err := rw.Write(much)
			return err
		}, 3300 * time.Millisecond},
		"a string": {func(rw http.ResponseWriter, _ *http.Request) error {
			_, err := io.WriteString(rw, text)
			return err
		}, 3300 * time.Millisecond},
		"a copy": {func(rw http.ResponseWriter, _ *http.Request) error {
			_, err := io.Copy(rw, struct{ io.Reader }{bytes.NewReader(much)})
			return err
		}, 3300 * time.Millisecond},
		"a flush": {func(rw http.ResponseWriter, _ *http.Request) error {
			_, _ = rw.Write(much[:1000])
			return http.NewResponseController(rw).Flush()
		}, 3300 * time.Millisecond},
		"a flush without an error": {func(rw http.ResponseWriter, _ *http.Request) error {
			_, _ = rw.Write(much[:1000])
			rw.(http.Flusher).Flush()
			return io.ErrClosedPipe
		}, 3300 * time.Millisecond},
		"a hint": {func(rw http.ResponseWriter, _ *http.Request) error {
			rw.WriteHeader(http.StatusEarlyHints)
			return io.ErrClosedPipe
		}, 3300 * time.Millisecond},
		"a write that begins later": {func(rw http.ResponseWriter, _ *http.Request) error {
			time.Sleep(time.Minute)
			_, err := rw.Write(much)
			return err
		}, time.Minute + 300*time.Millisecond},
		"a read": {func(_ http.ResponseWriter, r *http.Request) error {
			_, err := io.ReadAll(r.Body)
			return err
		}, 3300 * time.Millisecond},
		"a hijacked connection": {func(rw http.ResponseWriter, _ *http.Request) error {
			conn, _, err := http.NewResponseController(rw).Hijack()
			if err != nil {
				return nil
			}
			defer conn.Close()
			_, err = conn.Read(make([]byte, 10))
			return err
		}, 3300 * time.Millisecond},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				left := make(chan time.Duration, 1)
				lock := middleware.New(w.fixed, middleware.WithMaxHold(3*time.Second), middleware.WithBufferBody(0))
				ended := make(chan struct{}) // the server is done with the connection
				state := func(_ net.Conn, s http.ConnState) {
					if s == http.StateClosed || s == http.StateHijacked {
						close(ended)
					}
				}
				client := testworld.Serve(t, &http.Server{ErrorLog: quiet(), ConnState: state, Handler: lock(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					start := time.Now()
					if err := c.work(rw, r); err == nil {
						t.Error("no error")
					}
					left <- time.Since(start)
				}))})
				conn, err := client.Transport.(*http.Transport).DialContext(t.Context(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					_ = conn.Close()
					<-ended
				}()
				// The client sends a part of its request, and is frozen.
				if _, err := io.WriteString(conn, "POST /orders/42 HTTP/1.1\r\nHost: shop\r\nContent-Length: 1000\r\n\r\npart"); err != nil {
					t.Fatal(err)
				}
				if held := <-left; held != c.held {
					t.Errorf("the handler returned after %v, want %v", held, c.held)
				}
				l, err := w.client.Mutex("orders/42").Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				_ = l.Release(t.Context())
			})
		})
	}
}

// Nor does a client that goes on for ever, although the handler sets a new deadline before each read or write, as servers of
// WebSockets do.
func TestMaxHoldEndsWhatSetsDeadlinesOfItsOwn(t *testing.T) {
	for what, work := range map[string]func(*http.ResponseController, http.ResponseWriter, *http.Request) error{
		"reads": func(rc *http.ResponseController, _ http.ResponseWriter, r *http.Request) (err error) {
			for buf := make([]byte, 1); err == nil; _, err = r.Body.Read(buf) {
				_ = rc.SetReadDeadline(time.Now().Add(time.Minute))
			}
			return err
		},
		"writes": func(rc *http.ResponseController, rw http.ResponseWriter, _ *http.Request) (err error) {
			for ; err == nil; err = rc.Flush() {
				_ = rc.SetWriteDeadline(time.Time{})
				_, _ = io.WriteString(rw, "data: 1\n\n")
				time.Sleep(20 * time.Millisecond)
			}
			return err
		},
		"reads of a hijacked connection": func(rc *http.ResponseController, _ http.ResponseWriter, _ *http.Request) error {
			conn, _, err := rc.Hijack()
			if err != nil {
				return nil
			}
			defer conn.Close()
			for buf := make([]byte, 1); err == nil; _, err = conn.Read(buf) {
				_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			}
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				left := make(chan time.Duration, 1)
				lock := middleware.New(w.fixed, middleware.WithMaxHold(3*time.Second), middleware.WithBufferBody(0))
				ended := make(chan struct{}) // the server is done with the connection
				state := func(_ net.Conn, s http.ConnState) {
					if s == http.StateClosed || s == http.StateHijacked {
						close(ended)
					}
				}
				client := testworld.Serve(t, &http.Server{ErrorLog: quiet(), ConnState: state, Handler: lock(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					start := time.Now()
					if err := work(http.NewResponseController(rw), rw, r); err == nil {
						t.Error("no error")
					}
					left <- time.Since(start)
				}))})
				conn, err := client.Transport.(*http.Transport).DialContext(t.Context(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				var sides sync.WaitGroup
				defer func() {
					_ = conn.Close()
					<-ended
					sides.Wait()
				}()
				sides.Go(func() { _, _ = io.Copy(io.Discard, conn) })
				if _, err := io.WriteString(conn, "POST /orders/42 HTTP/1.1\r\nHost: shop\r\nContent-Length: 100000\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				sides.Go(func() {
					for err := error(nil); err == nil; _, err = io.WriteString(conn, "x") {
						time.Sleep(20 * time.Millisecond)
					}
				})
				select {
				case held := <-left:
					if held < 3*time.Second || held > 4*time.Second {
						t.Errorf("the handler returned after %v", held)
					}
				case <-time.After(time.Minute):
					t.Error("the handler goes on")
					_ = conn.Close()
					<-left
				}
			})
		})
	}
}

// A client that reads gets the answer of a handler that was slow for another reason.
func TestMaxHoldLeavesTheAnswerOfASlowHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		lock := middleware.New(w.fixed, middleware.WithMaxHold(3*time.Second))
		client := testworld.Serve(t, &http.Server{Handler: lock(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			time.Sleep(time.Minute)
			_, _ = io.WriteString(rw, "late")
		}))})
		for range 2 { // on one connection
			resp, err := client.Post("http://shop/orders/42", "text/plain", strings.NewReader("pay"))
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if string(body) != "late" || err != nil {
				t.Errorf("body %q, %v", body, err)
			}
		}
	})
}

// Over HTTP/2 the deadline is that of the request's stream. It ends a write that waits because the client reads
// no more, and other requests of the connection go on.
func TestMaxHoldEndsAWriteOverHTTP2(t *testing.T) {
	w := newWorld(t)
	left := make(chan error, 1)
	lock := middleware.New(w.fixed, middleware.WithMaxHold(100*time.Millisecond))
	mux := http.NewServeMux()
	mux.Handle("/frozen", lock(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var err error
		for chunk := make([]byte, 1<<20); err == nil; { // more than a client that does not read lets in
			_, err = rw.Write(chunk)
		}
		left <- err
	})))
	mux.HandleFunc("/other", func(http.ResponseWriter, *http.Request) {})
	srv := serveProto(t, "HTTP/2.0", mux)
	resp, err := srv.Client().Get(srv.URL + "/frozen")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := <-left; errors.Is(err, zklock.ErrLost) {
		t.Error(err)
	}
	l, err := w.client.Mutex("orders/42").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Release(t.Context())
	other, err := srv.Client().Get(srv.URL + "/other")
	if err != nil {
		t.Fatal(err)
	}
	_ = other.Body.Close()
	if other.ProtoMajor != 2 || other.StatusCode != http.StatusOK {
		t.Errorf("%s, status %d", other.Proto, other.StatusCode)
	}
}
