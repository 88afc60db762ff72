package zklock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock/go-zklock/zklock"
)

// Readers of a name hold it together. A writer holds it alone.
func ExampleClient_RWMutex() {
	client, err := zklock.Open("mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	ctx := context.Background()
	prices := client.RWMutex("prices")
	first, err := prices.Reader().Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := prices.Reader().Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("two readers:", first.Mode(), second.Mode())
	_, err = prices.Writer().TryAcquire(ctx)
	fmt.Println("a writer while they hold:", !errors.Is(err, zklock.ErrNotAcquired))
	_, _ = first.Release(ctx), second.Release(ctx)

	writer, err := prices.Writer().Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer writer.Release(ctx)
	fmt.Println("a writer after them:", writer.Mode())
	// Output:
	// two readers: shared shared
	// a writer while they hold: false
	// a writer after them: exclusive
}

// At most two importers run at a time, on any number of machines.
func ExampleClient_Semaphore() {
	client, err := zklock.Open("mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	ctx := context.Background()
	importers := client.Semaphore("importers", 2)
	for i := range 3 {
		lock, err := importers.TryAcquire(ctx)
		if err != nil {
			fmt.Println(i, "has to wait:", errors.Is(err, zklock.ErrNotAcquired))
			continue
		}
		defer lock.Release(ctx)
		fmt.Println(i, "has a", lock.Mode())
	}
	// Output:
	// 0 has a permit
	// 1 has a permit
	// 2 has to wait: true
}

// Two transfers that name their accounts in opposite order do not deadlock.
func ExampleAll() {
	client, err := zklock.Open("mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	transfer := func(from, to string) error {
		all := zklock.All(client.Mutex("accounts/"+from), client.Mutex("accounts/"+to), client.RWMutex("rates").Reader())
		return zklock.Do(context.Background(), all, func(ctx context.Context, lock *zklock.Lock) error {
			fmt.Println(from, "to", to, "under", lock.Names(), lock.Modes())
			return nil
		})
	}
	fmt.Println(transfer("anna", "ben"), transfer("ben", "anna"))
	// Output:
	// anna to ben under [accounts/anna accounts/ben rates] [exclusive exclusive shared]
	// ben to anna under [accounts/anna accounts/ben rates] [exclusive exclusive shared]
	// <nil> <nil>
}

// A writer that has finished its changes lets readers in and goes on as a reader.
func ExampleLock_Downgrade() {
	client, err := zklock.Open("mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	ctx := context.Background()
	prices := client.RWMutex("prices")
	lock, err := prices.Writer().Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lock.Release(ctx)
	if err := lock.Downgrade(ctx); err != nil {
		fmt.Println(err)
		return
	}
	reader, err := prices.Reader().TryAcquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer reader.Release(ctx)
	fmt.Println("the writer:", lock.Mode())
	fmt.Println("a reader:", reader.Mode())
	// Output:
	// the writer: shared
	// a reader: shared
}

// The lock of an order depends on its tenant, and a suspended tenant gets none. The adapters take
// such functions, and answer a request as for any acquisition that failed with the error.
func ExampleRefuse() {
	client, err := zklock.Open("mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	errSuspended := errors.New("the tenant is suspended")
	lockOf := func(tenant, order string) zklock.Acquirer {
		if tenant == "initech" {
			return zklock.Refuse(errSuspended)
		}
		return client.Mutex(tenant + "/orders/" + order)
	}
	for _, tenant := range []string{"acme", "initech"} {
		err := zklock.Do(context.Background(), lockOf(tenant, "42"), func(_ context.Context, lock *zklock.Lock) error {
			fmt.Println("holds", lock.Name())
			return nil
		})
		if errors.Is(err, errSuspended) {
			fmt.Println(err)
		}
	}
	// Output:
	// holds acme/orders/42
	// zklock: acquire: the tenant is suspended
}

// A worker waits for the active one to end, for days if nothing goes wrong. No alert takes it for stuck.
func ExampleWithCandidacy() {
	client, err := zklock.Open("mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	ctx := context.Background()
	active, err := client.Mutex("importer").Acquire(ctx, zklock.WithCandidacy(), zklock.WithLabel("eu-west"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer active.Release(ctx)
	fmt.Println("meant to last:", active.Candidacy())
	queue, err := client.Contenders(ctx, "importer")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("other clients know:", queue[0].Label, queue[0].Held, queue[0].Candidacy)
	st := client.Stats()
	fmt.Println("held:", st.Held, "leading:", st.Leading, "longest hold:", st.LongestHold)
	// Output:
	// meant to last: true
	// other clients know: eu-west true true
	// held: 1 leading: 1 longest hold: 0s
}
