package middleware_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

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
				t.Errorf("%q, %v", b, err)
			}
		}
	})), r)
	if w.locks() != 1 {
		t.Errorf("%d locks", w.locks())
	}
}

func TestClosedBodyGivesNothing(t *testing.T) {
	w := newWorld(t)
	do(middleware.New(w.fixed)(w.watched(func(_ http.ResponseWriter, r *http.Request) {
		if err := r.Body.Close(); err != nil {
			t.Error(err)
		}
		if b, err := io.ReadAll(r.Body); len(b) != 0 || err != http.ErrBodyReadAfterClose {
			t.Errorf("%q, %v", b, err)
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
				t.Errorf("%d bytes are left", body.Len())
			}
		})), r)
	}
	untouched([]middleware.Option{middleware.WithTry()}, 1)
	untouched(nil, 2)
}
