package worker_test

import (
	"context"
	"os"
	"strings"
	"sync"

	"github.com/zklock/go-zklock/contrib/locktest/worker"
)

// local is a lock library for one process.
type local struct{ mutex sync.Mutex }

func (l *local) Acquire(context.Context, string) (worker.Hold, error) {
	l.mutex.Lock()
	return l, nil
}

func (l *local) Token() string         { return "" }
func (l *local) Held() bool            { return true }
func (l *local) Lost() <-chan struct{} { return nil }
func (l *local) Close() error          { return nil }

func (l *local) Release(context.Context) error {
	l.mutex.Unlock()
	return nil
}

// A worker of a library that implements Library and Hold.
func ExampleServe() {
	requests := strings.NewReader("")
	if err := worker.Serve(new(local), requests, os.Stdout); err != nil {
		panic(err)
	}
	// Output: {"op":"ready"}
}
