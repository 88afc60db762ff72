package middleware_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
)

// nowhere is a ResponseWriter of a server's make, as far as interfaces go.
type nowhere struct{ h http.Header }

func (n nowhere) Header() http.Header         { return n.h }
func (n nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n nowhere) WriteHeader(int)             {}
func (n nowhere) Flush()                      {}

// The cost of the middleware is what BenchmarkMiddleware shows above
// BenchmarkDo.

func BenchmarkDo(b *testing.B) {
	plain := do10(memMutex(b))
	b.ReportAllocs()
	for b.Loop() {
		plain()
	}
}

func BenchmarkMiddleware(b *testing.B) {
	h, w, r := lockedNothing(memMutex(b))
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}

// do10 is a Do as the middleware does it, which is with a limit on the wait.
func do10(a zklock.Acquirer) func() {
	wait := zklock.WithWait(10 * time.Second)
	return func() {
		_ = zklock.Do(context.Background(), a, func(context.Context) error { return nil }, wait)
	}
}

// memMutex is a mutex on an ensemble in memory.
func memMutex(tb testing.TB) zklock.Acquirer {
	tb.Helper()
	c, err := zklock.Open("mem://")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	return c.Mutex("orders/42")
}

func lockedNothing(a zklock.Acquirer) (http.Handler, http.ResponseWriter, *http.Request) {
	h := middleware.New(func(*http.Request) zklock.Acquirer { return a })(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	return h, nowhere{make(http.Header)}, httptest.NewRequest("POST", "/", http.NoBody)
}

// maxAllocs is how many allocations the middleware may add to a Do.
const maxAllocs = 6

func TestMiddlewareAddsFewAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates too")
	}
	a := memMutex(t)
	plain := testing.AllocsPerRun(2000, do10(a))
	h, w, r := lockedNothing(a)
	wrapped := testing.AllocsPerRun(2000, func() { h.ServeHTTP(w, r) })
	if wrapped-plain > maxAllocs {
		t.Errorf("%.1f allocations with the middleware, %.1f without: want at most %d more", wrapped, plain, maxAllocs)
	}
	t.Logf("%.1f allocations with the middleware, %.1f without", wrapped, plain)
}
