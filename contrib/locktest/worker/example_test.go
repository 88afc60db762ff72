package worker_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
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

// nested is a library whose acquisitions a function makes.
type nested struct {
	local
	acquire func(ctx context.Context, name string) (worker.Hold, error)
}

func (n *nested) Acquire(ctx context.Context, name string) (worker.Hold, error) {
	return n.acquire(ctx, name)
}

// The second acquisition of a client, which has to wait until the first one has its answer.
func ExampleHolding() {
	n := new(nested)
	n.acquire = func(ctx context.Context, name string) (worker.Hold, error) {
		if held := worker.Holding(ctx); len(held) > 0 {
			return nil, fmt.Errorf("%s would not be the only lock", name)
		}
		return n.local.Acquire(ctx, name)
	}
	in, requests := io.Pipe()
	answers, out := io.Pipe()
	result := make(chan error, 1)
	go func() { result <- worker.Serve(n, in, out) }()
	lines := bufio.NewScanner(answers)
	next := func() {
		lines.Scan()
		fmt.Println(lines.Text())
	}
	next()
	fmt.Fprintln(requests, `{"op":"acquire","id":7,"name":"a"}`)
	next()
	fmt.Fprintln(requests, `{"op":"acquire","id":8,"name":"b","holding":7}`)
	next()
	requests.Close()
	if err := <-result; err != nil {
		panic(err)
	}
	// Output:
	// {"op":"ready"}
	// {"op":"granted","id":7,"name":"a"}
	// {"op":"failed","id":8,"name":"b","reason":"b would not be the only lock"}
}

// A library with locks for readers, which asks the request for that.
func ExampleRequest() {
	n := new(nested)
	n.acquire = func(ctx context.Context, name string) (worker.Hold, error) {
		return nil, fmt.Errorf("%s is asked for by a reader: %v", name, worker.Request(ctx).Shared)
	}
	in, requests := io.Pipe()
	answers, out := io.Pipe()
	result := make(chan error, 1)
	go func() { result <- worker.Serve(n, in, out) }()
	lines := bufio.NewScanner(answers)
	lines.Scan()
	fmt.Fprintln(requests, `{"op":"acquire","id":7,"name":"a","shared":true}`)
	lines.Scan()
	fmt.Println(lines.Text())
	requests.Close()
	if err := <-result; err != nil {
		panic(err)
	}
	// Output: {"op":"failed","id":7,"name":"a","reason":"a is asked for by a reader: true"}
}
