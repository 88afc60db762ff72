// Command quickstart shows on one screen why the library exists, and checks what it
// shows: replicas that oversell without a lock and do not with one, the holder of a lock
// that is killed, and one that is paused and writes too late.
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -url zk://127.0.0.1:2181/quickstart
//
// On mem:// the replicas are goroutines, each with a client of its own, in one process;
// on a real ensemble they are processes. With -plain it prints tables instead: fifty
// goroutines that contend for one lock, and an HTTP server that handles a burst of
// requests one at a time per key.
//
// The exit status is 0 only if all went as it should.
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
	var err error
	if shop, ok := os.LookupEnv(replicaEnv); ok {
		err = replicaProcess(ctx, os.Getenv(urlEnv), shop)
	} else {
		err = run(ctx, os.Args[1:], os.Stdout)
	}
	stop()
	os.Exit(status(err))
}

// replicaProcess is the whole life of a replica that is a process.
func replicaProcess(ctx context.Context, url, shop string) error {
	client, err := zklock.Open(url)
	if err != nil {
		return err
	}
	defer client.Close()
	runReplica(ctx, client, shop, os.Stdin, os.Stdout)
	return nil
}

// status prints what went wrong on standard error, and returns the exit status.
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
	plain := flags.Bool("plain", false, "print tables of contenders and requests instead of the replicas' story")
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
	scheme, _, _ := strings.Cut(*url, "://") // the rest may contain a password
	fmt.Fprintf(out, "zklock on %s://\n", scheme)
	if *plain {
		return demonstrate(ctx, client.Mutex, out)
	}
	return (&story{out: out, colour: colourful(out), url: *url}).tell(ctx)
}

// colourful reports whether out is a terminal whose user has not turned colours off
// (no-color.org).
func colourful(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
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
// because the user interrupts the program.
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
