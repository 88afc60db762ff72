package middleware_test

import (
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zklock/go-zklock/middleware"
)

func TestPanicAfterALossLeavesNoneOfTheHandlersHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		lock := middleware.New(w.fixed)
		h := recovery(lock(w.watched(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("X-Handler", "yes")
			w.Lose(r.Context())
			if _, err := rw.Write([]byte("made")); err != nil {
				panic(err)
			}
		})))
		rec := do(h, httptest.NewRequest("GET", "/", nil))
		if rec.Code != 500 || rec.Header().Get("X-Handler") != "" {
			t.Errorf("status %d, header %v; want 500 without the handler's header", rec.Code, rec.Header())
		}
	})
}

func TestPanicAfterALossShowsItsStackOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		h := middleware.New(w.fixed)(w.watched(func(rw http.ResponseWriter, r *http.Request) {
			w.Lose(r.Context())
			blowUp()
		}))
		defer func() {
			if v, stack := recover(), string(debug.Stack()); v != "boom" || !strings.Contains(stack, "blowUp") {
				t.Errorf("recovered %v, want boom, from the stack\n%s", v, stack)
			}
		}()
		do(h, httptest.NewRequest("GET", "/", nil))
		t.Error("the panic did not get out of the middleware")
	})
}

//go:noinline
func blowUp() { panic("boom") }

// swallow is a recovery that also swallows http.ErrAbortHandler, as gin's does.
func swallow(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		defer func() { _ = recover() }()
		next.ServeHTTP(rw, r)
	})
}

// recovery responds to panics with 500 and lets http.ErrAbortHandler through.
func recovery(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		defer func() {
			switch v := recover(); v {
			case nil:
			case http.ErrAbortHandler:
				panic(v)
			default:
				rw.WriteHeader(http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(rw, r)
	})
}
