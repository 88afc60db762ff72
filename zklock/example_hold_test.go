package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
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

	// pay needs the lock, which its caller may hold already.
	pay := func(ctx context.Context) error {
		return zklock.Do(ctx, client.Mutex("orders/42"), func(ctx context.Context, _ *zklock.Lock) error {
			fmt.Println("paying, with", len(zklock.HeldIn(ctx)), "handles on the lock")
			return nil
		}, zklock.Reenter())
	}
	ctx := context.Background()
	err = zklock.Do(ctx, client.Mutex("orders/42"), func(ctx context.Context, _ *zklock.Lock) error {
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

// Work that goes on after the lock is released must not rely on the lock. Detach returns a
// context that carries no lock.
func ExampleDetach() {
	client, err := zklock.Open("mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	_ = zklock.Do(context.Background(), client.Mutex("orders/42"), func(ctx context.Context, _ *zklock.Lock) error {
		_, held := zklock.FromContext(ctx)
		after := zklock.Detach(context.WithoutCancel(ctx)) // without WithoutCancel it ends with the lock
		_, detached := zklock.FromContext(after)
		fmt.Println("lock in ctx:", held)
		fmt.Println("lock after Detach:", detached)
		return nil
	})
	// Output:
	// lock in ctx: true
	// lock after Detach: false
}

// Work without an end of its own does not keep its lock for ever.
func ExampleWithMaxHold() {
	client, err := zklock.Open("mem://", zklock.WithLogger(nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	answer := make(chan string) // of a service that never answers
	err = zklock.Do(context.Background(), client.Mutex("orders/42"), func(ctx context.Context, _ *zklock.Lock) error {
		select {
		case <-answer:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, zklock.WithMaxHold(10*time.Millisecond)) // in production such as five minutes
	fmt.Println(errors.Is(err, zklock.ErrMaxHold), err)
	// Output: true lock held for longer than WithMaxHold allows: context deadline exceeded
}

// A request fails at once if too many requests of the client wait for the name already.
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
	lock, err := client.Mutex("orders/42").Acquire(ctx,
		zklock.WithoutHandover(),  // has its own queue node
		zklock.WithFailBusy(),     // would fail at once if it could not be served within the time of its context
		zklock.WithAsyncRelease()) // Release does not wait for the ensemble's confirmation
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lock.Release(ctx)

	waiting, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = client.Mutex("orders/42").Acquire(waiting)
	}()
	<-waits // one request waits now
	_, err = client.Mutex("orders/42").Acquire(ctx, zklock.WithMaxWaiters(1))
	fmt.Println("too many waiters:", errors.Is(err, zklock.ErrTooManyWaiters))
	stop()
	<-ended
	// Output: too many waiters: true
}

// Txn writes data in ZooKeeper only while the lock is held: the same transaction checks
// that the lock's queue node exists.
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
		fmt.Println(data, "written:", err == nil, "released:", errors.Is(err, zklock.ErrReleased))
	}
	write("first")
	fmt.Println("verify:", lock.Verify(ctx), "lease left:", lock.Until().After(time.Now()))
	if err := lock.Release(ctx); err != nil {
		fmt.Println(err)
	}
	write("second")
	// Output:
	// first written: true released: false
	// verify: <nil> lease left: true
	// second written: false released: true
}

// A counter in ZooKeeper that only the holder of a lock changes.
func ExampleLock_Get() {
	client, err := zklock.Open("mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	count := func(ctx context.Context, lock *zklock.Lock) error {
		n, err := lock.Get(ctx, "/count")
		if errors.Is(err, driver.ErrNoNode) {
			_, err = lock.Txn(ctx, driver.CreateOp("/count", []byte("1"), driver.Persistent, client.ACL()))
			return err
		}
		if err != nil {
			return err
		}
		fmt.Println("so far:", string(n.Data))
		next := fmt.Sprint(n.Stat.Version + 2)
		_, err = lock.Txn(ctx, driver.SetOp("/count", []byte(next), n.Stat.Version))
		return err
	}
	for range 3 {
		if err := zklock.Do(context.Background(), client.Mutex("count"), count); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// so far: 1
	// so far: 2
}

// Work outside the process takes time to end. MinLease says how much time the lock has left at
// least, as long as the ensemble answers. Until says when the lock ends if the ensemble does not
// answer again.
func ExampleLock_MinLease() {
	client, err := zklock.Open("mem://?session_timeout=30s")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	lock, err := client.Mutex("nightly").Acquire(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lock.Release(context.Background())
	const toEnd = 5 * time.Second
	fmt.Println("session timeout:", lock.SessionTimeout())
	fmt.Println("time to end the work:", lock.MinLease() > toEnd)
	fmt.Println("has to end now:", time.Until(lock.Until()) < toEnd)
	// Output:
	// session timeout: 30s
	// time to end the work: true
	// has to end now: false
}

// A resource that stores tokens as strings parses and compares them. The strings sort in
// the same order as the tokens.
func ExampleParseToken() {
	first, err := zklock.ParseToken("0000000100000006.00000001")
	if err != nil {
		fmt.Println(err)
		return
	}
	second := zklock.Token{Zxid: 0x100000007}
	fmt.Println("compare:", first.Compare(second))
	fmt.Println("strings in the same order:", first.String() < second.String())
	fmt.Println("zero:", first.IsZero())
	// Output:
	// compare: -1
	// strings in the same order: true
	// zero: false
}

// A lock that only prevents duplicate work is not worth a long wait in an outage. With
// WithFailFast the caller gets ErrOutage and can go on without the lock.
func ExampleWithFailFast() {
	ensemble := memdriver.New()
	defer ensemble.Close()
	ensemble.Partition(memdriver.AroundClients(0).Reset()) // no client can reach it
	client, err := zklock.OpenConfig(zklock.Config{Connector: ensemble.Connector(), ConnectTimeout: 2 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	for range 2 { // the second request fails at once: the client knows of the outage
		_, err = client.Mutex("reports/today").Acquire(context.Background(), zklock.WithFailFast())
		fmt.Println("an outage:", errors.Is(err, zklock.ErrOutage))
	}
	// Output:
	// an outage: true
	// an outage: true
}

// A holder reports its progress to operators.
func ExampleLock_SetLabel() {
	client, err := zklock.Open("mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	ctx := context.Background()
	err = zklock.Do(ctx, client.Mutex("import"), func(ctx context.Context, lock *zklock.Lock) error {
		for row := 0; row <= 9000; row += 3000 {
			if err := lock.SetLabel(ctx, fmt.Sprintf("row %d of 9000", row)); err != nil {
				return err
			}
		}
		queue, err := client.Contenders(ctx, "import")
		if err != nil {
			return err
		}
		fmt.Println(queue[0].Label)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: row 9000 of 9000
}

// A request of another service arrived, which holds "orders/42" until it gets the answer. The adapters
// read that from the request, with their option WithCallerLocks.
func ExampleContextWithCallerLocks() {
	client, err := zklock.OpenConnector(memdriver.New().Connector())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	caller, err := client.Mutex("orders/42").Acquire(context.Background())
	if err != nil {
		log.Fatal(err)
	}

	ctx := zklock.ContextWithCallerLocks(context.Background(), zklock.CallerLock{Name: caller.Name(), Mode: caller.Mode(), Token: caller.Token()})
	_, err = client.Mutex("orders/42").Acquire(ctx)
	fmt.Println(errors.Is(err, zklock.ErrDeadlock))
	// Output:
	// true
}
