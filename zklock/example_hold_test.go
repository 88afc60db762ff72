package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func ExampleReenter() {
	client, err := zklock.Open("mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	// pay takes the lock that its caller may have already.
	pay := func(ctx context.Context) error {
		return zklock.Do(ctx, client.Mutex("orders/42"), func(ctx context.Context) error {
			fmt.Println("paying, with", len(zklock.HeldIn(ctx)), "handles on the lock")
			return nil
		}, zklock.Reenter())
	}
	ctx := context.Background()
	err = zklock.Do(ctx, client.Mutex("orders/42"), func(ctx context.Context) error {
		_, err := client.Mutex("orders/42").Acquire(ctx) // without Reenter
		fmt.Println("again:", errors.Is(err, zklock.ErrDeadlock))
		return pay(ctx)
	})
	fmt.Println(err)
	// Output:
	// again: true
	// paying, with 2 handles on the lock
	// <nil>
}

// Work that outlives the request must not go by the request's lock.
func ExampleDetach() {
	client, err := zklock.Open("mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	_ = zklock.Do(context.Background(), client.Mutex("orders/42"), func(ctx context.Context) error {
		_, held := zklock.FromContext(ctx)
		after := zklock.Detach(context.WithoutCancel(ctx)) // else it ends with the lock
		_, detached := zklock.FromContext(after)
		fmt.Println(held, detached)
		return nil
	})
	// Output: true false
}

func ExampleWithMaxWaiters() {
	waits := make(chan struct{}, 1)
	client, err := zklock.Open("mem://", zklock.WithHooks(zklock.Hooks{
		Wait: func(ctx context.Context, _ zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
			waits <- struct{}{}
			return ctx, nil
		},
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	ctx := context.Background()
	lock, err := client.Mutex("orders/42").Acquire(ctx, zklock.WithoutHandover()) // a place of its own
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lock.Release(ctx)

	patient, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = client.Mutex("orders/42").Acquire(patient)
	}()
	<-waits
	_, err = client.Mutex("orders/42").Acquire(ctx, zklock.WithMaxWaiters(1))
	fmt.Println("one waits already:", errors.Is(err, zklock.ErrTooManyWaiters))
	stop()
	<-ended
	// Output: one waits already: true
}

// Data in ZooKeeper is written only while the lock is held: in one transaction,
// with a look at the lock's own node.
func ExampleLock_Txn() {
	client, err := zklock.Open("mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	ctx := context.Background()
	lock, err := client.Mutex("config").Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	write := func(data string) {
		_, err := lock.Txn(ctx, driver.CreateOp("/config-"+data, []byte(data), driver.Persistent, driver.OpenACL(driver.PermAll)))
		fmt.Println(data, err == nil, errors.Is(err, zklock.ErrReleased))
	}
	write("first")
	fmt.Println(lock.Verify(ctx), lock.Until().After(time.Now()))
	if err := lock.Release(ctx); err != nil {
		fmt.Println(err)
	}
	write("second")
	// Output:
	// first true false
	// <nil> true
	// second false true
}

func ExampleParseToken() {
	first, err := zklock.ParseToken("0000000100000006.00000001")
	if err != nil {
		fmt.Println(err)
		return
	}
	second := zklock.Token{Zxid: 0x100000007}
	fmt.Println(first.Compare(second), first.String() < second.String(), first.IsZero())
	// Output: -1 true false
}

// Work that a lock only saves effort for goes on without it in an outage.
func ExampleWithFailFast() {
	ensemble := memdriver.New()
	defer ensemble.Close()
	ensemble.Partition(memdriver.AroundClients(0).Reset()) // no client reaches it
	client, err := zklock.OpenConnector(ensemble.Connector(), zklock.WithParams(url.Values{"connect_timeout": {"200ms"}}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	for range 2 { // the second time it is known at once
		_, err = client.Mutex("reports/today").Acquire(context.Background(), zklock.WithFailFast())
		fmt.Println("an outage:", errors.Is(err, zklock.ErrOutage))
	}
	// Output:
	// an outage: true
	// an outage: true
}
