package once_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/once"
)

// Each process of a fleet calls Do when it is time for a slot. One of them runs the job.
func ExampleDo() {
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	ctx := context.Background()
	for _, process := range []string{"a", "b", "c"} {
		ran, err := once.Do(ctx, client, "hourly-report", "2026-11-22T14:00:00Z", func(ctx context.Context) error {
			if process == "a" {
				return errors.New("the database is not there")
			}
			lock, held := zklock.FromContext(ctx)
			fmt.Println(process, "reports, with a token:", held && !lock.Token().IsZero())
			return nil
		})
		fmt.Println(process, ran, err)
	}
	// Output:
	// a true the database is not there
	// b reports, with a token: true
	// b true <nil>
	// c false <nil>
}

// An operator lets a day run again.
func ExampleForget() {
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	ctx := context.Background()
	invoices := func(day string) {
		ran, err := once.Do(ctx, client, "invoices", day, func(context.Context) error { return nil })
		fmt.Println(day, ran, err)
	}
	invoices("2026-11-22")
	invoices("2026-11-22")
	fmt.Println(once.Forget(ctx, client, "invoices"))
	invoices("2026-11-22")
	// Output:
	// 2026-11-22 true <nil>
	// 2026-11-22 false <nil>
	// <nil>
	// 2026-11-22 true <nil>
}
