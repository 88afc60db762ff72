// Command server runs a ZooKeeper server to try the library with. The server listens on
// 127.0.0.1. It ends when the command is interrupted, also while it starts, and its data are
// deleted then.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("server: ")
	port := flag.Int("port", 2181, "the port for clients")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatalf("unexpected argument %q", flag.Arg(0))
	}
	interrupted, leave := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer leave()
	e, err := ensemble.New(ensemble.Config{Port: *port, TickTime: 2 * time.Second, Stop: interrupted.Done()})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("A ZooKeeper server is ready at zk://%s. Its data are deleted when it ends. Press Ctrl-C, or interrupt process %d, to end it.\n", e.Hosts(), os.Getpid())
	<-interrupted.Done()
	if err := e.Close(); err != nil {
		log.Fatal(err)
	}
}
