package fence_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A holder is stopped between the last check of its lock and its write. Its session
// expires, and another client gets the lock and writes. Then the first holder goes
// on, and its late write is refused.
func Example() {
	ctx := context.Background()
	ensemble := memdriver.New()
	defer ensemble.Close()
	first, err := zklock.OpenConnector(ensemble.Connector())
	if err != nil {
		panic(err)
	}
	defer first.Close()
	second, err := zklock.OpenConnector(ensemble.Connector())
	if err != nil {
		panic(err)
	}
	defer second.Close()

	var guard fence.Guard // it belongs next to the resource
	status := "new"
	pay := func(lock *zklock.Lock, as string) error {
		return guard.Do(fence.Of(lock), func() error {
			status = "paid by " + as
			return nil
		})
	}

	stopped, err := first.Mutex("orders/42").Acquire(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println("first:  holds the lock, valid:", stopped.Valid(), "- and is stopped")

	ensemble.ExpireAll() // the ensemble expires the session of a client that sends nothing
	err = zklock.Do(ctx, second.Mutex("orders/42"), func(ctx context.Context, lock *zklock.Lock) error {
		return pay(lock, "second")
	})
	fmt.Println("second: pays, error:", err)

	err = pay(stopped, "first")
	fmt.Println("first:  goes on and pays, refused:", errors.Is(err, fence.ErrStale))
	fmt.Println("status:", status)

	// Output:
	// first:  holds the lock, valid: true - and is stopped
	// second: pays, error: <nil>
	// first:  goes on and pays, refused: true
	// status: paid by second
}

// A service that has received sequencers holds a lock itself, and passes the call on
// with the sequencers of all these locks.
func ExampleAddValues() {
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	received := []string{"0000000100000004.00000000 exclusive orders%2F42"} // from a sender that the service trusts
	err = zklock.Do(context.Background(), client.Mutex("stock"), func(ctx context.Context, _ *zklock.Lock) error {
		for _, value := range fence.AddValues(ctx, received) {
			seq, err := fence.Parse(value)
			fmt.Println(seq.Name, err)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// orders/42 <nil>
	// stock <nil>
	// <nil>
}

// A sequencer is sent to another service, which checks it.
func ExampleParseValues() {
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	var guard fence.Guard // of the service
	serve := func(header []string, caller string) error {
		seqs, err := fence.ParseValues(header, caller)
		if err != nil {
			return err
		}
		return guard.Check(seqs)
	}
	err = zklock.Do(context.Background(), client.Mutex("orders/42"), func(ctx context.Context, _ *zklock.Lock) error {
		values := fence.Values(ctx) // sent under fence.Key
		seq, err := fence.Parse(values[0])
		fmt.Println(seq.Name, seq.Token == fence.Held(ctx)[0].Token, err)
		return serve(values, "shop")
	})
	fmt.Println("served:", err == nil)
	fmt.Println("refused:", serve([]string{"nonsense"}, "shop") != nil)
	// Output:
	// orders/42 true <nil>
	// served: true
	// refused: true
}
