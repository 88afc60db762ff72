// Command peers speaks for libraries that lock on something else than
// ZooKeeper: etcd's concurrency.Mutex and redsync. It is what the benchmark's
// -peers takes, and a module of its own, so that whoever uses the library never
// sees its dependencies.
//
//	peers serve etcd|redsync DIR    start a server, until the end of the input
//	peers work etcd|redsync ADDR    be a worker
//
// The servers, etcd and redis-server, are looked for in $PATH.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/zklock/go-zklock/integration_test/bench/worker"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) != 3 {
		return fmt.Errorf("%d arguments, want 3: serve or work, a library, a folder or an address", len(args))
	}
	verb, library, where := args[0], args[1], args[2]
	p, ok := peers[library]
	switch {
	case !ok:
		return fmt.Errorf("unknown library %q", library)
	case verb == "serve":
		return serve(ctx, p, where, in, out)
	case verb == "work":
		l, err := p.open(where)
		if err != nil {
			return err
		}
		return worker.Serve(l, library, in, out)
	}
	return fmt.Errorf("unknown verb %q", verb)
}

// peer is a library and the server it needs.
type peer struct {
	binary  string                                // of the server
	args    func(dir string, port []int) []string // of the server
	ready   func(ctx context.Context, addr string) (version string, err error)
	module  string // of the library
	open    func(addr string) (worker.Locker, error)
	comment string // what of the server's configuration matters
}

var peers = map[string]peer{"etcd": etcd, "redsync": redis}
