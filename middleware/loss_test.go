package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	testworld "github.com/zklock/go-zklock/internal/testkit/world"
	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Handlers, by how they write a response. After a loss, none of these responses may be sent.
var answers = map[string]func(http.ResponseWriter) error{
	"not at all": func(http.ResponseWriter) error { return zklock.ErrLost },
	"WriteHeader": func(rw http.ResponseWriter) error {
		rw.WriteHeader(http.StatusCreated)
		_, err := io.WriteString(rw, "made")
		return err
	},
	"Write": func(rw http.ResponseWriter) error { _, err := rw.Write([]byte("made")); return err },
	"WriteString": func(rw http.ResponseWriter) error {
		_, err := rw.(io.StringWriter).WriteString("made")
		return err
	},
	"ReadFrom": func(rw http.ResponseWriter) error {
		_, err := io.Copy(rw, struct{ io.Reader }{strings.NewReader("made")})
		return err
	},
	"Flush": func(rw http.ResponseWriter) error {
		rw.(http.Flusher).Flush()
		_, err := rw.Write(nil)
		return err
	},
	"FlushError": func(rw http.ResponseWriter) error { return http.NewResponseController(rw).Flush() },
	"early hints": func(rw http.ResponseWriter) error {
		rw.WriteHeader(http.StatusEarlyHints)
		return zklock.ErrLost
	},
	"beneath": func(rw http.ResponseWriter) error {
		rw = rw.(interface{ Unwrap() http.ResponseWriter }).Unwrap()
		rw.Header().Set("X-Beneath", "yes")
		rw.WriteHeader(http.StatusCreated)
		_, err := rw.Write([]byte("made"))
		return err
	},
}

func TestLostBeforeTheFirstByteIsA424WithoutTheHandlersHeaders(t *testing.T) {
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				h := middleware.New(w.fixed, middleware.WithTokenHeader("X-Fence"))(w.watched(func(rw http.ResponseWriter, r *http.Request) {
					rw.Header().Set("X-Handler", "yes")
					rw.Header().Set("X-Outer", "overwritten")
					rw.Header().Del("X-Gone")
					w.Lose(r.Context())
					rw.Header().Set("Set-Cookie", "a=b")
					if err := answer(rw); !errors.Is(err, zklock.ErrLost) {
						t.Errorf("the handler got %v, want ErrLost", err)
					}
				}))
				rec := httptest.NewRecorder()
				rec.Header().Set("X-Outer", "outer")
				rec.Header().Set("X-Gone", "not")
				h.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
				wantProblem(t, rec, 424, middleware.ReasonLost)
				if rec.Flushed {
					t.Error("something was flushed")
				}
				got := rec.Header()
				for _, key := range []string{"X-Handler", "Set-Cookie", "X-Fence", "X-Beneath", "Retry-After"} {
					if got.Get(key) != "" {
						t.Errorf("the response has the header %s: %q", key, got.Get(key))
					}
				}
				if got.Get("X-Outer") != "outer" || got.Get("X-Gone") != "not" {
					t.Errorf("headers of outer middlewares are missing: %v", got)
				}
			})
		})
	}
}

func TestLostThroughAPartitionBeforeTheFirstByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		h := middleware.New(w.fixed)(w.watched(func(rw http.ResponseWriter, r *http.Request) {
			w.ensemble.Partition(memdriver.AroundClients(0))
			start := time.Now()
			<-r.Context().Done()
			if took := time.Since(start); took > corekit.SessionTimeout {
				t.Errorf("the context ended after %v, when another client may hold the lock", took)
			}
			io.WriteString(rw, "made")
		}))
		wantProblem(t, do(h, httptest.NewRequest("GET", "/", nil)), 424, middleware.ReasonLost)
	})
}

func TestLostWhenTheHandlerHadFailedIsStillALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		h := middleware.New(w.fixed)(w.watched(func(rw http.ResponseWriter, r *http.Request) {
			w.Lose(r.Context())
			http.Error(rw, "my own idea", http.StatusTeapot)
		}))
		wantProblem(t, do(h, httptest.NewRequest("GET", "/", nil)), 424, middleware.ReasonLost)
	})
}

func TestLostAfterTheFirstByteAbortsTheConnection(t *testing.T) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		for outside, around := range map[string]func(http.Handler) http.Handler{
			"":                  func(h http.Handler) http.Handler { return h },
			", with a recovery": recovery,
			", with a recovery that lets nothing pass": swallow,
		} {
			for how, end := range map[string]func(){
				"returns": func() {},
				"panics":  func() { panic("boom") },
				"aborts":  func() { panic(http.ErrAbortHandler) },
			} {
				for _, flushes := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s%s, %s, flushed %v", proto, outside, how, flushes), func(t *testing.T) {
						lostAfterTheFirstByte(t, proto, around, end, flushes)
					})
				}
			}
		}
	}
}

func lostAfterTheFirstByte(t *testing.T, proto string, around func(http.Handler) http.Handler, end func(), flushes bool) {
	w := newWorld(t)
	observed := make(chan error, 10)
	h := middleware.New(w.fixed, middleware.WithObserver(func(_ *http.Request, err error) { observed <- err }))(
		w.watched(func(rw http.ResponseWriter, r *http.Request) {
			if _, err := io.WriteString(rw, "half an "); err != nil {
				t.Error(err)
			}
			if flushes {
				rw.(http.Flusher).Flush()
			}
			w.Lose(r.Context())
			if _, err := io.WriteString(rw, "answer"); !errors.Is(err, zklock.ErrLost) {
				t.Errorf("the handler got %v, want ErrLost", err)
			}
			end()
		}))
	srv := serveProto(t, proto, around(h))
	resp, err := srv.Client().Get(srv.URL)
	if err == nil {
		var body []byte
		body, err = io.ReadAll(resp.Body)
		resp.Body.Close()
		if strings.Contains(string(body), "answer") || !flushes {
			t.Errorf("the client read %q", body)
		}
	}
	if err == nil {
		t.Error("the client took half a response for a complete one")
	}
	eventually(t, "a call of the observer", func() bool { return len(observed) > 0 })
	if err := <-observed; !errors.Is(err, zklock.ErrLost) {
		t.Errorf("the observer got %v, want ErrLost", err)
	}
	srv.Close()
	if len(observed) != 0 {
		t.Errorf("the observer was called again, with %v", <-observed)
	}
}

// TestAbortBeforeTheFirstByteAfterALossIsNotAnEmptyAnswer has a handler that aborts
// because it cannot write, as httputil.ReverseProxy does.
func TestAbortBeforeTheFirstByteAfterALossIsNotAnEmptyAnswer(t *testing.T) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		w := newWorld(t)
		srv := serveProto(t, proto, swallow(middleware.New(w.fixed)(w.watched(func(rw http.ResponseWriter, r *http.Request) {
			w.Lose(r.Context())
			rw.WriteHeader(http.StatusCreated)
			panic(fmt.Errorf("cannot copy: %w", http.ErrAbortHandler))
		}))))
		if resp, err := srv.Client().Get(srv.URL); err == nil {
			resp.Body.Close()
			t.Errorf("%s: the client got status %s, want an aborted connection", proto, resp.Status)
		}
	}
}

func TestBreakByAnOperatorIsALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		h := middleware.New(w.fixed)(w.watched(func(rw http.ResponseWriter, _ *http.Request) {
			if n := w.ensemble.Break(w.client.Mutex("orders/42").Path()); n != 1 {
				t.Errorf("Break removed %d nodes, want 1", n)
			}
			rw.Header().Set("X-Handler", "yes")
		}))
		rec := do(h, httptest.NewRequest("GET", "/", nil))
		wantProblem(t, rec, 424, middleware.ReasonLost)
		if rec.Header().Get("X-Handler") != "" {
			t.Error("the response has the handler's header")
		}
	})
}

// TestLossIsALossThoughTheHandlerReleasedTheLockItself: the handler releases the lost
// lock, so that Do does not notice the loss.
func TestLossIsALossThoughTheHandlerReleasedTheLockItself(t *testing.T) {
	for _, begun := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			var observed error
			h := middleware.New(w.fixed, middleware.WithObserver(func(_ *http.Request, err error) { observed = err }))(
				http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					if begun {
						io.WriteString(rw, "half an answer")
					}
					w.Lose(r.Context())
					for _, l := range w.Locks() {
						if err := l.Release(context.Background()); !errors.Is(err, zklock.ErrLost) {
							t.Errorf("Release: %v, want ErrLost", err)
						}
					}
					rw.WriteHeader(http.StatusCreated)
				}))
			rec := httptest.NewRecorder()
			aborted := func() (v any) {
				defer func() { v = recover() }()
				h.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
				return nil
			}()
			switch {
			case begun && aborted != http.ErrAbortHandler:
				t.Errorf("recovered %v, want http.ErrAbortHandler", aborted)
			case !begun:
				wantProblem(t, rec, 424, middleware.ReasonLost)
			}
			if !errors.Is(observed, zklock.ErrLost) {
				t.Errorf("the observer got %v, want ErrLost", observed)
			}
		})
	}
}

// TestLostBeforeTheHandlerIsCalled: the lock is lost directly after its grant. A hook
// delays the rest of the acquisition until then.
func TestLostBeforeTheHandlerIsCalled(t *testing.T) {
	for _, nested := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			defer e.Close()
			open := func(opts ...zklock.Option) *zklock.Client {
				c, err := zklock.OpenConnector(e.Connector(), opts...)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close() })
				return c
			}
			sessions := make(chan int64, 1)
			c := open(zklock.WithHooks(zklock.Hooks{
				Session: func(e zklock.SessionEvent) {
					if e.State == driver.Connected {
						select {
						case sessions <- e.ID:
						default:
						}
					}
				},
				Acquire: func(ctx context.Context, _ zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
					return ctx, func(r zklock.AcquireResult) {
						e.Expire(<-sessions)
						<-r.Lock.Done()
					}
				},
			}))
			h := middleware.New(func(*http.Request) zklock.Acquirer { return c.Mutex("inner") })(never(t))
			if nested {
				outer := open()
				h = middleware.New(func(*http.Request) zklock.Acquirer { return outer.Mutex("outer") })(h)
			}
			wantProblem(t, do(h, httptest.NewRequest("GET", "/", nil)), 503, middleware.ReasonUnavailable)
		})
	}
}

// TestLostBeforeTheHandlerIsCalledButNotReported: a process that was stopped after the grant does
// not call the handler.
func TestLostBeforeTheHandlerIsCalledButNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, m := testworld.Unreported(t)
		h := middleware.New(func(*http.Request) zklock.Acquirer { return m }, middleware.WithAcquire(zklock.Reenter()))(never(t))
		wantProblem(t, do(h, httptest.NewRequestWithContext(ctx, "GET", "/", nil)), 503, middleware.ReasonUnavailable)
	})
}
