package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// demonstrate runs all parts and prints a summary. It returns an error if a part found
// something wrong. mutex is Client.Mutex; a test passes a broken one.
func demonstrate(ctx context.Context, mutex func(name string) *zklock.Mutex, out io.Writer) error {
	const name = "quickstart/counter"
	shared := mutex(name)
	parts := []func() result{
		func() result {
			return contend(ctx, out, "each with a Mutex value of its own", func() *zklock.Mutex { return mutex(name) })
		},
		func() result {
			return contend(ctx, out, "all with the same Mutex value", func() *zklock.Mutex { return shared })
		},
		func() result { return serve(ctx, out, mutex) },
	}
	var results []result
	for _, part := range parts {
		results = append(results, part())
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	fmt.Fprintln(out, "\nSummary")
	var errs []error
	for _, r := range results {
		verdict := "ok"
		if r.err != nil {
			verdict = "FAILED"
			errs = append(errs, r.err)
		}
		fmt.Fprintf(out, "  %-6s  %s\n", verdict, r.seen)
	}
	return errors.Join(errs...)
}

// result is the result of one part.
type result struct {
	seen string // for the summary
	err  error  // what should not have happened
}

// work takes the time d. It stops early when ctx ends, because the lock was lost or
// because the user interrupts the program.
func work(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// summarize combines the errors of many goroutines into one.
func summarize(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%d failed, one of them with: %w", len(errs), errs[0])
}
