package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver" // a program makes a blank import of zkdriver instead
)

func ExampleOpen() {
	// In production: zk://zk1:2181,zk2:2181,zk3:2181/shop/locks?session_timeout=15s
	client, err := zklock.Open("mem:///shop/locks?session_timeout=15s")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	// Open checks the URL and does not connect yet. Ping asks a quorum of the ensemble.
	if err := client.Ping(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the lock orders/42 is the znode", client.Mutex("orders/42").Path())

	_, err = zklock.Open("mem://?session_timeout=soon")
	fmt.Println(err)
	// Output:
	// the lock orders/42 is the znode /shop/locks/orders%2F42
	// zklock: open: key "session_timeout": want a duration such as 10s or 1500ms
}

func ExampleDo() {
	client, err := zklock.Open("mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	err = zklock.Do(context.Background(), client.Mutex("orders/42"), func(ctx context.Context, lock *zklock.Lock) error {
		// ctx carries the lock, and ends if the lock is lost.
		fmt.Println("holding", lock.Name(), lock.Mode())
		return errors.New("out of stock")
	})
	fmt.Println("released:", err)
	// Output:
	// holding orders/42 exclusive
	// released: out of stock
}

func ExampleMutex_Acquire() {
	client, err := zklock.Open("mem://", zklock.WithIdentity(zklock.Identity{Host: "web-3", PID: 812}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	ctx := context.Background()
	lock, err := client.Mutex("orders/42").Acquire(ctx, zklock.WithLabel("POST /pay"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("held:", lock.Valid())

	// Another caller gives up after 10 ms. A deadline of ctx would do the same, but it
	// would also end everything else that uses ctx.
	_, err = client.Mutex("orders/42").Acquire(ctx, zklock.WithWait(10*time.Millisecond))
	fmt.Println(err)
	fmt.Println("not acquired:", errors.Is(err, zklock.ErrNotAcquired))

	if err := lock.Release(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Println("held:", lock.Valid(), "because", lock.Err())
	// Output:
	// held: true
	// zklock: acquire "orders/42": lock not acquired: the time given to WithWait has passed; held by web-3/812 "POST /pay"
	// not acquired: true
	// held: false because lock was released already
}

func ExampleMutex_TryAcquire() {
	client, err := zklock.Open("mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	ctx := context.Background()
	report := client.Mutex("nightly-report")
	for _, worker := range []string{"first", "second"} {
		lock, err := report.TryAcquire(ctx)
		switch {
		case errors.Is(err, zklock.ErrNotAcquired):
			fmt.Println(worker, "worker: another one holds the lock")
			continue
		case err != nil:
			fmt.Println(err)
			return
		}
		fmt.Println(worker, "worker: writes the report")
		defer lock.Release(ctx)
	}
	// Output:
	// first worker: writes the report
	// second worker: another one holds the lock
}

func ExampleLock_Context() {
	client, err := zklock.Open("mem://example-lock-context")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	lock, err := client.Mutex("orders/42").Acquire(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := lock.Context(context.Background())
	defer cancel()

	// The ensemble in memory expires the client's session, so the lock is lost.
	memdriver.Named("example-lock-context").ExpireAll()

	<-ctx.Done() // so work that uses ctx stops
	fmt.Println(context.Cause(ctx))
	fmt.Println("lost:", errors.Is(lock.Err(), zklock.ErrLost))
	// Output:
	// zklock: lock "orders/42" lost: session expired
	// lost: true
}

func ExampleLock_Token() {
	client, err := zklock.Open("mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	// The resource remembers the newest token, and refuses older ones.
	var newest zklock.Token
	write := func(token zklock.Token, text string) {
		if token.Compare(newest) < 0 {
			fmt.Println("refused:", text)
			return
		}
		newest = token
		fmt.Println("written:", text)
	}

	ctx := context.Background()
	first, err := client.Mutex("orders/42").Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	late := first.Token() // belongs to a process that pauses here
	_ = first.Release(ctx)

	second, err := client.Mutex("orders/42").Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer second.Release(ctx)
	write(second.Token(), "paid")
	write(late, "reserved")
	// Output:
	// written: paid
	// refused: reserved
}
