package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/once"
)

// A program changes what its URL says, and sets what only code can set.
func ExampleParseURL() {
	cfg, err := zklock.ParseURL("mem:///shop/locks?session_timeout=15s")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cfg.Scheme, cfg.Root, cfg.SessionTimeout, cfg.ConnectTimeout) // 0s: the default
	cfg.MaxWaiters = 100
	client, err := zklock.OpenConfig(cfg,
		zklock.WithIdentity(zklock.Identity{Host: "till-3", PID: 812}),
		zklock.WithLogger(slog.New(slog.NewTextHandler(os.Stderr, nil))),
		zklock.WithAcquireStacks(), // the log shows where a lock was acquired that was dropped without Release
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	fmt.Println(client, client.Mutex("orders/42").Path())
	// Output:
	// mem /shop/locks 15s 0s
	// mem:///shop/locks /shop/locks/orders%2F42
}

// A test opens a client of its own ensemble, with the settings that it needs.
func ExampleOpenConfig() {
	ensemble := memdriver.New()
	defer ensemble.Close()
	client, err := zklock.OpenConfig(zklock.Config{
		Connector: ensemble.Connector(),
		Root:      "/shop/locks",
		Keep:      2 * time.Second,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	fmt.Println(client.Mutex("orders/42").Path())
	// Output: /shop/locks/orders%2F42
}

// Without settings, a connector is enough.
func ExampleOpenConnector() {
	ensemble := memdriver.New()
	defer ensemble.Close()
	client, err := zklock.OpenConnector(ensemble.Connector())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	fmt.Println(client.Mutex("orders/42").Path())
	// Output: /zklock/orders%2F42
}

// Drivers returns the schemes that Open accepts: those of the imported drivers.
func ExampleDrivers() {
	fmt.Println("mem:", slices.Contains(zklock.Drivers(), "mem"))
	_, err := zklock.Open("etcd://127.0.0.1:2379")
	fmt.Println("etcd:", err == nil)
	// Output:
	// mem: true
	// etcd: false
}

// CheckName checks a name, for example one from a user's request, without a client.
func ExampleCheckName() {
	for _, name := range []string{"orders/42", "orders//42", "../etc"} {
		fmt.Println(name, zklock.CheckName(name) == nil)
	}
	// Output:
	// orders/42 true
	// orders//42 false
	// ../etc false
}

// An operator lists the queue of a lock and removes the node of a client that hangs.
func ExampleClient_Contenders() {
	client, err := zklock.Open("mem://", zklock.WithIdentity(zklock.Identity{Host: "till-3", PID: 812}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	ctx := context.Background()
	lock, err := client.Mutex("orders/42").Acquire(ctx, zklock.WithLabel("payment 7"))
	if err != nil {
		fmt.Println(err)
		return
	}
	queue, err := client.Contenders(ctx, "orders/42")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range queue {
		fmt.Println(c.Host, c.PID, c.Label, c.Mode, c.Held)
		if err := client.Break(ctx, "orders/42", c.Node); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("lost:", errors.Is(lock.Verify(ctx), zklock.ErrLost))
	// Output:
	// till-3 812 payment 7 exclusive true
	// lost: true
}

// An operator lists the names that are in use.
func ExampleClient_Locks() {
	client, err := zklock.Open("mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	ctx := context.Background()
	for _, name := range []string{"users/7", "orders/43", "orders/42"} {
		lock, err := client.Mutex(name).Acquire(ctx, zklock.WithLabel("import of "+name))
		if err != nil {
			fmt.Println(err)
			return
		}
		defer lock.Release(ctx)
	}
	for lock, err := range client.Locks(ctx, "orders/") {
		if err != nil {
			fmt.Println(err)
			continue // the error may be about one name
		}
		fmt.Println(lock.Name, len(lock.Contenders), lock.Contenders[0].Label)
	}
	// Output:
	// orders/42 1 import of orders/42
	// orders/43 1 import of orders/43
}

// An operator lists which days have run: see package once.
func ExampleClient_Slots() {
	client, err := zklock.Open("mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	ctx := context.Background()
	for _, day := range []string{"2026-11-21", "2026-11-22"} {
		if _, err := once.Do(ctx, client, "nightly-report", day, func(context.Context) error { return nil }); err != nil {
			fmt.Println(err)
			return
		}
	}
	for s, err := range client.Slots(ctx, "nightly") {
		if err != nil {
			fmt.Println(err)
			continue // the error may be about one name
		}
		fmt.Println(s.Name, s.Slot, s.Path, s.Token.IsZero(), s.Recorded.IsZero())
	}
	// Output:
	// nightly-report 2026-11-22 /zklock/~nightly-report false false
}

// An operator's tool shows the deadlocks that exist.
func ExampleClient_Deadlocks() {
	client, err := zklock.Open("mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	found, err := client.Deadlocks(context.Background())
	for _, d := range found {
		fmt.Println(d)
	}
	fmt.Println(len(found), err)

	// What the holders of the names in use wait for, if they have waited for long.
	var locks []zklock.LockInfo
	for l, err := range client.Locks(context.Background(), "") {
		if err == nil {
			locks = append(locks, l)
		}
	}
	waits, err := client.NestedWaits(context.Background(), locks)
	for _, w := range waits {
		fmt.Println("the holder of", w.Held, "waits for", w.Waiting)
	}
	fmt.Println(len(waits), err)
	// Output:
	// 0 <nil>
	// 0 <nil>
}

// A program follows the queue of a name until it has seen the lock being released.
func ExampleClient_Watch() {
	client, err := zklock.Open("mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	ctx := context.Background()
	lock, err := client.Mutex("orders/42").Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for queue, err := range client.Watch(ctx, "orders/42") {
		if err != nil {
			fmt.Println(err) // if it matches ErrUnavailable, the loop may go on
			continue
		}
		fmt.Println("contenders:", len(queue))
		if len(queue) == 0 {
			break
		}
		fmt.Println("release:", lock.Release(ctx))
	}
	// Output:
	// contenders: 1
	// release: <nil>
	// contenders: 0
}

func ExampleClient_Stats() {
	client, err := zklock.Open("mem://")
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
	defer lock.Release(context.Background())
	stats := client.Stats()
	fmt.Println("held:", stats.Held, "lost:", stats.Lost)
	// Output: held: 1 lost: 0
}

// Goroutines of one process wait behind each other in memory: the queue in ZooKeeper shows one node.
func ExampleClient_Waiting() {
	waits := make(chan struct{}, 2)
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
	orders := client.Mutex("orders/42")
	err = zklock.Do(context.Background(), orders, func(ctx context.Context, _ *zklock.Lock) error {
		for range 2 {
			go func() { _, _ = orders.Acquire(zklock.Detach(ctx)) }()
			<-waits
		}
		fmt.Println(client.Waiting())
		return nil
	})
	fmt.Println(err)
	// Output:
	// map[orders/42:2]
	// <nil>
}

// A readiness probe calls Healthy. The first call begins to open a session.
func ExampleClient_Healthy() {
	client, err := zklock.Open("mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	ready := func(w http.ResponseWriter, r *http.Request) {
		if err := client.Healthy(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}
	if err := client.Ping(context.Background()); err != nil { // waits for a session
		fmt.Println(err)
	}
	probe := func() int {
		w := httptest.NewRecorder()
		ready(w, httptest.NewRequest(http.MethodGet, "/ready", nil))
		return w.Code
	}
	fmt.Println("ready:", probe())
	client.Close()
	fmt.Println("after Close:", probe())
	// Output:
	// ready: 200
	// after Close: 503
}

// Before a program ends, Shutdown lets holders finish, for as long as its context allows.
// Requests that wait or come later fail with ErrClosed.
func ExampleClient_Shutdown() {
	client, err := zklock.Open("mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	lock, err := client.Mutex("orders/42").Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error)
	go func() { ended <- client.Shutdown(ctx) }() // a program gives ctx a deadline
	fmt.Println("release:", lock.Release(ctx))
	fmt.Println("shutdown:", <-ended)
	_, err = client.Mutex("orders/42").Acquire(ctx)
	fmt.Println("closed:", errors.Is(err, zklock.ErrClosed))
	// Output:
	// release: <nil>
	// shutdown: <nil>
	// closed: true
}

// A service ends when only an operator can help. Its supervisor shows the reason, and does not
// start it again for reasons that need a change first.
func ExampleReason() {
	client, err := zklock.Open("mem:///orders?create_root=false")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	_, err = client.Mutex("orders/42").Acquire(context.Background())
	if errors.Is(err, zklock.ErrBadEnsemble) {
		fmt.Println(zklock.Reason(err))
		fmt.Println(err)
	}
	// Output:
	// root_missing
	// zklock: acquire "orders/42": root does not exist, and create_root=false: create /orders, or remove create_root from the URL
}
