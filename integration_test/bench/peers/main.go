// Command peers measures libraries that do not lock with ZooKeeper: etcd's
// concurrency.Mutex, and redsync. It is the program for the benchmark's flag -peers. It is
// a separate module, so that users of zklock do not get its dependencies.
//
//	peers serve etcd|redsync DIR SERVERS    run servers until the end of the input
//	peers work etcd|redsync ADDR[,ADDR...]  run a worker
//
// The servers, etcd and redis-server, must be in $PATH.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/zklock/go-zklock/integration_test/bench/worker"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) < 3 {
		return fmt.Errorf("%d arguments, want at least 3: serve or work, a library, a folder or addresses", len(args))
	}
	verb, library, where := args[0], args[1], args[2]
	p, ok := peers[library]
	switch {
	case !ok:
		return fmt.Errorf("unknown library %q, want etcd or redsync", library)
	case verb == "serve" && len(args) == 4:
		n, err := strconv.Atoi(args[3])
		if err != nil || n < 1 {
			return fmt.Errorf("%q is not a number of servers", args[3])
		}
		return serve(ctx, p, where, n, in, out)
	case verb == "work" && len(args) == 3:
		l, err := p.open(strings.Split(where, ","))
		if err != nil {
			return err
		}
		return worker.Serve(l, library, in, out)
	}
	return fmt.Errorf("%q, want serve LIBRARY DIR SERVERS, or work LIBRARY ADDRESSES", args)
}

// peer is a library and the servers that it needs.
type peer struct {
	binary  string                                                             // the server's command
	args    func(dir string, ports []pair, i int) []string                     // the arguments of the i-th server
	ready   func(ctx context.Context, addr string) (version string, err error) // fails until the server answers
	module  string                                                             // the library's module
	open    func(addrs []string) (worker.Locker, error)
	comment string // the part of the server's configuration that matters for the figures
}

var peers = map[string]peer{"etcd": etcd, "redsync": redis}
