package zklocktest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// The client works until the test ends, and is closed then.
func TestNew(t *testing.T) {
	var client *zklock.Client
	var ensemble *memdriver.Ensemble
	t.Run("in use", func(t *testing.T) {
		client, ensemble = zklocktest.New(t, zklock.WithIdentity(zklock.Identity{Host: "till-3"}))
		lock, err := client.Mutex("orders/42").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if found, err := client.Contenders(t.Context(), "orders/42"); err != nil || len(found) != 1 || found[0].Host != "till-3" {
			t.Errorf("%+v, %v; want one holder on till-3", found, err)
		}
		if n := ensemble.Break(client.Mutex("orders/42").Path()); n != 1 {
			t.Errorf("the client's ensemble has %d holders, want 1", n)
		}
		if err := lock.Verify(t.Context()); !errors.Is(err, zklock.ErrLost) {
			t.Errorf("after its node was deleted: %v, want ErrLost", err)
		}
	})
	if _, err := client.Mutex("orders/42").Acquire(t.Context()); !errors.Is(err, zklock.ErrClosed) {
		t.Errorf("after the test: %v, want ErrClosed", err)
	}
	if _, err := ensemble.Connector().Connect(t.Context(), time.Second); err == nil {
		t.Error("the ensemble accepts a session after the test")
	}
}

// Two tests do not share an ensemble.
func TestNewIsPrivate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := zklocktest.New(t)
		b, _ := zklocktest.New(t)
		for _, c := range []*zklock.Client{a, b} {
			if _, err := c.Mutex("x").TryAcquire(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// A test of code that takes a client.
func ExampleNew() {
	t := &example{}
	defer t.end()

	client, _ := zklocktest.New(t)
	err := zklock.Do(context.Background(), client.Mutex("orders/42"), func(context.Context, *zklock.Lock) error {
		fmt.Println("under the lock")
		return nil
	})
	fmt.Println(err)
	// Output:
	// under the lock
	// <nil>
}

// example stands for the *testing.T of a test.
type example struct {
	testing.TB
	cleanup func()
}

func (e *example) Helper()          {}
func (e *example) Cleanup(f func()) { e.cleanup = f }
func (e *example) end()             { e.cleanup() }
