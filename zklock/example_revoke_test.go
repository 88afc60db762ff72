package zklock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock/go-zklock/zklock"
)

// An operator asks the holder of a lock to give it back. The holder cleans up first: the lock
// stays held until its function returns.
func ExampleClient_Revoke() {
	client, err := zklock.Open("mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	ctx := context.Background()
	working, ended := make(chan struct{}), make(chan error)
	go func() {
		ended <- zklock.Do(ctx, client.Mutex("report"), func(ctx context.Context, _ *zklock.Lock) error {
			close(working)
			<-ctx.Done() // the work ends with its context
			lock, held := zklock.FromContext(ctx)
			fmt.Println("cleaning up, held:", held && lock.Valid())
			return context.Cause(ctx)
		}, zklock.WithRevocable())
	}()
	<-working

	queue, err := client.Contenders(ctx, "report")
	if err != nil {
		fmt.Println(err)
		return
	}
	node := fmt.Sprintf("%s@%#x", queue[0].Node, queue[0].Zxid) // as the command zklock prints it
	if err := client.Revoke(ctx, "report", node, "the database moves at 14:00"); err != nil {
		fmt.Println(err)
	}
	err = <-ended
	fmt.Println("revoked:", errors.Is(err, zklock.ErrRevoked))
	fmt.Println(err)
	// Output:
	// cleaning up, held: true
	// revoked: true
	// lock revoked: its holder is asked to give it back: "the database moves at 14:00"
}

// A program that works in rounds looks at the channel between two of them.
func ExampleLock_Revoked() {
	client, err := zklock.Open("mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	ctx := context.Background()
	lock, err := client.Mutex("report").Acquire(ctx, zklock.WithRevocable())
	if err != nil {
		fmt.Println(err)
		return
	}
	queue, err := client.Contenders(ctx, "report")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := client.Revoke(ctx, "report", queue[0].Node, "maintenance"); err != nil { // by an operator
		fmt.Println(err)
	}
	select {
	case <-lock.Revoked():
		fmt.Println("asked, and still held:", lock.Valid())
	case <-lock.Done():
		fmt.Println("lost")
	}
	fmt.Println("release:", lock.Release(ctx))
	// Output:
	// asked, and still held: true
	// release: <nil>
}
