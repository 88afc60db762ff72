// Command quickstart shows what a zklock mutex does, and checks it.
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -url zk://127.0.0.1:2181/quickstart
//
// First fifty goroutines contend for one lock, then an HTTP server handles a
// burst of requests one at a time per key. The exit status is 0 only if nobody
// was ever inside together with somebody else.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/memdriver" // mem://
	_ "github.com/zklock/go-zklock/zklock/zkdriver"  // zk:// and zks://
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	os.Exit(status(err))
}

// status says on standard error what went wrong, and returns the exit status.
func status(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "quickstart:", err)
	return 1
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	url := flags.String("url", "mem://", "the ensemble: zk://host:port/root, or mem:// for one in memory")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	client, err := zklock.Open(*url)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil {
		return err
	}
	scheme, _, _ := strings.Cut(*url, "://") // the rest may hold a password
	fmt.Fprintf(out, "zklock on %s://\n", scheme)
	return demonstrate(ctx, client.Mutex, out)
}

// demonstrate runs all parts, prints a summary, and returns what was wrong.
// mutex is Client.Mutex, unless a test puts something broken in its place.
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

// result is what came of one part.
type result struct {
	seen string // for the summary
	err  error  // what should not have happened
}

// work takes its time, and stops when ctx ends: because the lock was lost, or
// because somebody wants it all to stop.
func work(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// summarize makes one error of those of many goroutines.
func summarize(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%d failed, one of them so: %w", len(errs), errs[0])
}
