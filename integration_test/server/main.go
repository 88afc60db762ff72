// Command server runs a ZooKeeper server, or several, to try the library with. They listen on
// 127.0.0.1. They end when the command is interrupted, also while they start, and their data are
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
	port := flag.Int("port", 2181, "the port for clients of the first server; the others take free ones")
	servers := flag.Int("servers", 1, "the number of servers")
	flag.Parse()
	if flag.NArg() > 0 {
		log.Fatalf("unexpected argument %q", flag.Arg(0))
	}
	if *servers < 1 {
		log.Fatal("-servers is less than 1")
	}
	interrupted, leave := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer leave()
	e, err := ensemble.New(ensemble.Config{Servers: *servers, Port: *port, TickTime: 2 * time.Second, Stop: interrupted.Done()})
	if err != nil {
		log.Fatal(err)
	}
	if *servers == 1 {
		fmt.Printf("A ZooKeeper server is ready at zk://%s. Its data are deleted when it ends. Press Ctrl-C, or interrupt process %d, to end it.\n", e.Hosts(), os.Getpid())
	} else {
		fmt.Printf("%d ZooKeeper servers are ready at zk://%s. Their data are deleted when they end. Press Ctrl-C, or interrupt process %d, to end them.\n", *servers, e.Hosts(), os.Getpid())
		for _, s := range e.Servers() {
			fmt.Printf("%s is process %d\n", s.Addr(), s.PID())
		}
	}
	<-interrupted.Done()
	if err := e.Close(); err != nil {
		log.Fatal(err)
	}
}
