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

// nowhere is a ResponseWriter that discards everything and has Flush, like a server's.
type nowhere struct{ h http.Header }

func (n nowhere) Header() http.Header         { return n.h }
func (n nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n nowhere) WriteHeader(int)             {}
func (n nowhere) Flush()                      {}

// joined is a mutex that its callers already hold and join. Acquiring and releasing it
// sends no request, so the benchmark measures only the code around it.
type joined struct{ *zklock.Mutex }

func (j joined) Acquire(ctx context.Context, opts ...zklock.AcquireOption) (*zklock.Lock, error) {
	return j.Mutex.Acquire(ctx, append(opts, zklock.Reenter())...)
}

// joinable returns a mutex to join, and a context that holds it.
func joinable(tb testing.TB) (context.Context, zklock.Acquirer) {
	tb.Helper()
	c, err := zklock.Open("mem://")
	if err != nil {
		tb.Fatal(err)
	}
	m := c.Mutex("orders/42")
	l, err := m.Acquire(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := l.Context(context.Background())
	tb.Cleanup(func() {
		cancel()
		if err := l.Release(context.Background()); err != nil {
			tb.Error(err)
		}
		c.Close()
	})
	return ctx, joined{m}
}

// plain calls Do as the middleware does, with a limit on the wait.
func plain(ctx context.Context, a zklock.Acquirer) func() {
	wait := zklock.WithWait(10 * time.Second)
	return func() { _ = zklock.Do(ctx, a, func(context.Context, *zklock.Lock) error { return nil }, wait) }
}

// wrapped serves a request under that lock.
func wrapped(ctx context.Context, a zklock.Acquirer) func() {
	h := middleware.New(func(*http.Request) zklock.Acquirer { return a })(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	w, r := nowhere{make(http.Header)}, httptest.NewRequestWithContext(ctx, "POST", "/", http.NoBody)
	return func() { h.ServeHTTP(w, r) }
}

// The cost of the middleware is the difference of BenchmarkMiddleware and BenchmarkDo.

func BenchmarkDo(b *testing.B) { measure(b, plain) }

func BenchmarkMiddleware(b *testing.B) { measure(b, wrapped) }

func measure(b *testing.B, of func(context.Context, zklock.Acquirer) func()) {
	f := of(joinable(b))
	b.ReportAllocs()
	for b.Loop() {
		f()
	}
}

// maxTime is how much the middleware may add to a Do.
const maxTime = 2 * time.Microsecond

// TestMiddlewareAddsLittleTime runs both in turns, and compares the best of many short
// runs of each. Other processes make some runs slower, but never faster.
func TestMiddlewareAddsLittleTime(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes the times meaningless")
	}
	ctx, a := joinable(t)
	best := func(f func(), least time.Duration) time.Duration {
		const n = 100
		began := time.Now()
		for range n {
			f()
		}
		return min(least, time.Since(began)/n)
	}
	without, with := time.Hour, time.Hour
	for round := 0; round < 300 || round < 3000 && with-without > maxTime; round++ {
		without, with = best(plain(ctx, a), without), best(wrapped(ctx, a), with)
	}
	if t.Logf("%v with the middleware, %v without", with, without); with-without > maxTime {
		t.Errorf("%v with the middleware, %v without: want at most %v more", with, without, maxTime)
	}
}

// maxAllocs is how many allocations the middleware may add to a Do.
const maxAllocs = 6

func TestMiddlewareAddsFewAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates too")
	}
	ctx, a := joinable(t)
	without := testing.AllocsPerRun(2000, plain(ctx, a))
	with := testing.AllocsPerRun(2000, wrapped(ctx, a))
	if with-without > maxAllocs {
		t.Errorf("%.1f allocations with the middleware, %.1f without: want at most %d more", with, without, maxAllocs)
	}
}
