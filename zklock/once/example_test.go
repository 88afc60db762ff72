package once_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

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

// A process runs a report each hour. The database is not there at first, so the slot runs again.
func ExampleEvery() {
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	ctx, stop := context.WithCancel(context.Background())
	calls := 0
	report := func(ctx context.Context, hour time.Time) error {
		if calls++; calls == 1 {
			return errors.New("the database is not there")
		}
		fmt.Println("the report of the hour that began at minute", hour.Minute())
		stop() // a program ends Every when it ends itself
		return nil
	}
	err = once.Every(ctx, client, "hourly-report", time.Hour, report,
		once.WithMissed(once.RunLatest),                // after an outage
		once.WithRetry(10, 50*time.Millisecond),        // by this process, in one hour
		once.WithMaxHold(time.Hour),                    // a job that hangs does not keep all later slots
		once.WithLogger(slog.New(slog.DiscardHandler)), // instead of slog's default logger
	)
	fmt.Println(calls, errors.Is(err, context.Canceled))
	// Output:
	// the report of the hour that began at minute 0
	// 2 true
}

// A job of each day at 02:00 in Berlin, whose days have 23 to 25 hours.
func ExampleWithZone() {
	berlin, err := time.LoadLocation("Europe/Berlin") // import _ "time/tzdata" for hosts without the rules of zones
	if err != nil {
		panic(err)
	}
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	ctx, stop := context.WithCancel(context.Background())
	_ = once.Every(ctx, client, "invoices", 24*time.Hour, func(_ context.Context, day time.Time) error {
		fmt.Println("the day that began at hour", day.Hour(), "in", day.Location())
		stop()
		return nil
	}, once.WithZone(berlin, 2*time.Hour))
	// Output: the day that began at hour 2 in Europe/Berlin
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
