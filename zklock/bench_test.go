package zklock_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/zklock/go-zklock/zklock"
)

// The library's own cost, on an ensemble in memory: what a real one adds is in
// the integration tests' bench command.

func benchClient(b *testing.B) *zklock.Client {
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

func cycle(b *testing.B, a zklock.Acquirer) {
	l, err := a.Acquire(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	if err := l.Release(context.Background()); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkMutex(b *testing.B) {
	m := benchClient(b).Mutex("a")
	b.ReportAllocs()
	for b.Loop() {
		cycle(b, m)
	}
}

func BenchmarkMutexParallelNames(b *testing.B) {
	c := benchClient(b)
	b.ReportAllocs()
	b.SetParallelism(32)
	n := make(chan int, 1)
	n <- 0
	b.RunParallel(func(pb *testing.PB) {
		i := <-n
		n <- i + 1
		m := c.Mutex("name-" + strconv.Itoa(i))
		for pb.Next() {
			cycle(b, m)
		}
	})
}

func BenchmarkHandover(b *testing.B) {
	m := benchClient(b).Mutex("a")
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			cycle(b, m)
		}
	})
}

func BenchmarkSharedReaders(b *testing.B) {
	r := benchClient(b).RWMutex("a").Reader()
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			cycle(b, r)
		}
	})
}

func BenchmarkDo(b *testing.B) {
	m := benchClient(b).Mutex("a")
	b.ReportAllocs()
	for b.Loop() {
		if err := zklock.Do(context.Background(), m, func(context.Context) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValid(b *testing.B) {
	l, err := benchClient(b).Mutex("a").Acquire(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if !l.Valid() {
			b.Fatal("not valid")
		}
	}
	_ = l.Release(context.Background())
}
