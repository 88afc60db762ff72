package zklock_test

import (
	"context"
	"fmt"

	"github.com/zklock/go-zklock/zklock"
)

// A hook is called at the start of an operation and may return a function for its end. So
// start and end belong together, however many operations run at the same time. JoinHooks
// combines several sets of hooks.
func ExampleWithHooks() {
	logging := zklock.Hooks{
		Acquire: func(ctx context.Context, e zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
			fmt.Println("acquire", e.Name, e.Mode)
			return ctx, func(r zklock.AcquireResult) { fmt.Println("acquired:", r.Err == nil) }
		},
	}
	counting := zklock.Hooks{
		Release: func(ctx context.Context, e zklock.ReleaseEvent) (context.Context, func(zklock.ReleaseResult)) {
			fmt.Println("release", e.Lock.Name())
			return ctx, nil
		},
	}
	client, err := zklock.Open("mem://", zklock.WithHooks(zklock.JoinHooks(logging, counting)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	_ = zklock.Do(context.Background(), client.Mutex("orders/42"), func(context.Context, *zklock.Lock) error { return nil })
	// Output:
	// acquire orders/42 exclusive
	// acquired: true
	// release orders/42
}
