package zklock_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/zklock/go-zklock/zklock"
)

// These benchmarks measure the library on an ensemble in memory. Operations that send
// requests include the cost of that ensemble. What a real ensemble adds is measured by
// the command integration_test/bench.

func benchClient(b testing.TB) *zklock.Client {
	c, err := zklock.Open("mem://")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	if err := c.Ping(context.Background()); err != nil {
		b.Fatal(err)
	}
	return c
}

func acquireFor(b testing.TB, a zklock.Acquirer) *zklock.Lock {
	l, err := a.Acquire(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Release(context.Background()) })
	return l
}

func cycle(b testing.TB, a zklock.Acquirer) {
	l, err := a.Acquire(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	if err := l.Release(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// parallel runs cycles in 32 goroutines per core. Goroutine number i uses the lock that
// of returns for i.
func parallel(b *testing.B, of func(i int) zklock.Acquirer) {
	var n atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		a := of(int(n.Add(1)))
		for pb.Next() {
			cycle(b, a)
		}
	})
}

func BenchmarkMutex(b *testing.B) {
	m := benchClient(b).Mutex("a")
	b.ReportAllocs()
	for b.Loop() {
		cycle(b, m)
	}
}

// keepingBenchClient returns a client that keeps names.
func keepingBenchClient(b testing.TB) *zklock.Client {
	c, err := zklock.Open("mem://?keep=1h")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	return c
}

func BenchmarkKeptMutex(b *testing.B) {
	m := keepingBenchClient(b).Mutex("a")
	cycle(b, m)
	b.ReportAllocs()
	for b.Loop() {
		cycle(b, m)
	}
}

func BenchmarkKeptParallelNames(b *testing.B) {
	c := keepingBenchClient(b)
	parallel(b, func(i int) zklock.Acquirer { return c.Mutex("name-" + strconv.Itoa(i)) })
}

func BenchmarkMutexParallelNames(b *testing.B) {
	c := benchClient(b)
	parallel(b, func(i int) zklock.Acquirer { return c.Mutex("name-" + strconv.Itoa(i)) })
}

func BenchmarkHandover(b *testing.B) {
	m := benchClient(b).Mutex("a")
	parallel(b, func(int) zklock.Acquirer { return m })
}

func BenchmarkSharedReaders(b *testing.B) {
	r := benchClient(b).RWMutex("a").Reader()
	parallel(b, func(int) zklock.Acquirer { return r })
}

func BenchmarkAll(b *testing.B) {
	c := benchClient(b)
	names := make([]zklock.Acquirer, 8)
	for i := range names {
		names[i] = c.Mutex(strconv.Itoa(i))
	}
	a := zklock.All(names...)
	b.ReportAllocs()
	for b.Loop() {
		cycle(b, a)
	}
}

// The next helpers, up to reenterHeld, use a lock that is held. They send no request to
// the ensemble.

func tryHeld(b testing.TB, m *zklock.Mutex) {
	if _, err := m.TryAcquire(context.Background()); !errors.Is(err, zklock.ErrNotAcquired) {
		b.Fatalf("TryAcquire of a held name: %v", err)
	}
}

func checkValid(b testing.TB, l *zklock.Lock) {
	if !l.Valid() {
		b.Fatal("the lock is not valid")
	}
}

func deriveContext(b testing.TB, l *zklock.Lock) {
	ctx, cancel := l.Context(context.Background())
	cancel()
	if ctx.Err() == nil {
		b.Fatal("the context has not ended after its cancel")
	}
}

func reenterHeld(b testing.TB, ctx context.Context, m *zklock.Mutex) {
	l, err := m.Acquire(ctx, zklock.Reenter())
	if err == nil {
		err = l.Release(ctx)
	}
	if err != nil {
		b.Fatal(err)
	}
}

func doNothing(b testing.TB, m *zklock.Mutex) {
	if err := zklock.Do(context.Background(), m, func(context.Context, *zklock.Lock) error { return nil }); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkTryAcquireHeldLocally(b *testing.B) {
	m := benchClient(b).Mutex("a")
	acquireFor(b, m)
	b.ReportAllocs()
	for b.Loop() {
		tryHeld(b, m)
	}
}

func BenchmarkValid(b *testing.B) {
	l := acquireFor(b, benchClient(b).Mutex("a"))
	b.ReportAllocs()
	for b.Loop() {
		checkValid(b, l)
	}
}

func BenchmarkContext(b *testing.B) {
	l := acquireFor(b, benchClient(b).Mutex("a"))
	b.ReportAllocs()
	for b.Loop() {
		deriveContext(b, l)
	}
}

func BenchmarkReenter(b *testing.B) {
	m := benchClient(b).Mutex("a")
	ctx, cancel := acquireFor(b, m).Context(context.Background())
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		reenterHeld(b, ctx, m)
	}
}

func BenchmarkDo(b *testing.B) {
	m := benchClient(b).Mutex("a")
	b.ReportAllocs()
	for b.Loop() {
		doNothing(b, m)
	}
}
