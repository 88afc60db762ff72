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
// The exit status is 0 only if no lock failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

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
	return (&story{out: out, colour: colourful(out), url: *url}).play(ctx)
}
