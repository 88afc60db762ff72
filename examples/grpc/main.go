// Command grpc shows a service whose .proto file declares which lock each method needs,
// and checks that its servers take these locks.
//
//	go run ./examples/grpc
//	go run ./examples/grpc -url zk://127.0.0.1:2181/grpc
//	go run ./examples/grpc -listen 127.0.0.1:50051   # one server, until interrupted; call it with grpcurl
//
// Two servers share a database and the ensemble, and nothing else. Clients call both of
// them at the same time, for a few orders. The exit status is 0 only if no two calls worked
// on one order at the same time, and no update was lost.
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

	"google.golang.org/grpc"

	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/memdriver" // mem://
	_ "github.com/zklock/go-zklock/zklock/zkdriver"  // zk:// and zks://
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "grpc:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("grpc", flag.ContinueOnError)
	url := flags.String("url", "mem://grpc", "the ensemble: zk://host:port/root, or mem://name for one in memory")
	listen := flags.String("listen", "", "address of one server that runs until interrupted, instead of the demonstration")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	scheme, _, _ := strings.Cut(*url, "://") // the rest may contain a password
	fmt.Fprintf(out, "zklock on %s://\n", scheme)

	var books books
	if *listen != "" {
		s, err := start(ctx, *url, *listen, "server", &books, locking)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "serving at %s\n", s.address)
		<-ctx.Done()
		return s.stop()
	}
	return demonstrate(ctx, *url, &books, locking, out)
}

// locking returns the options that make a server take the locks that its .proto declares.
// A service needs no other code for its locks.
func locking(c *zklock.Client) []grpc.ServerOption {
	declared := interceptors.FromProto(c)
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(interceptors.UnaryServerInterceptor(declared)),
		grpc.ChainStreamInterceptor(interceptors.StreamServerInterceptor(declared, interceptors.WithFirstMessage())),
	}
}

// demonstrate runs two servers and their clients, prints a summary, and returns an error
// if something was wrong. lock returns the options of a server, as locking does.
func demonstrate(ctx context.Context, url string, books *books, lock func(*zklock.Client) []grpc.ServerOption, out io.Writer) (err error) {
	var servers []*server
	defer func() {
		for _, s := range servers {
			err = errors.Join(err, s.stop())
		}
	}()
	for _, name := range []string{"north", "south"} {
		s, err := start(ctx, url, "127.0.0.1:0", name, books, lock)
		if err != nil {
			return err
		}
		servers = append(servers, s)
	}
	calls, err := callAll(ctx, servers)
	if err != nil {
		return err
	}
	refusal, err := collide(ctx, servers)
	if err != nil {
		return err
	}
	calls.payments += refusal.paid
	return errors.Join(books.summary(out, calls), refusal.summary(out))
}
