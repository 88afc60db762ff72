// Command walker acquires and releases a lock that nothing else wants, in ZooKeeper's queue in memory. Package layers
// builds it with a core that writes its calls to the standard error: layers -walk. The marks between them say what the
// program does next. The session is open, and the client knows the name, as in most acquisitions of a long-lived client.
package main

import (
	"context"
	"log"
	"os"
	"time"

	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/memdriver"
)

func main() {
	ctx := context.Background()
	client, err := zklock.Open("mem://walk/locks")
	if err != nil {
		log.Fatal(err)
	}
	mutex := client.Mutex("orders/42")
	for range 20 { // the first cycle opens the session and creates the znode
		rest()
		mark("Acquire")
		lock, err := mutex.Acquire(ctx)
		if err != nil {
			log.Fatal(err)
		}
		rest()
		mark("Release")
		if err := lock.Release(ctx); err != nil {
			log.Fatal(err)
		}
	}
	mark("end")
	if err := client.Close(); err != nil {
		log.Fatal(err)
	}
}

// rest lets goroutines end that have worked for the step before.
func rest() {
	mark("end")
	time.Sleep(20 * time.Millisecond)
}

func mark(what string) { _, _ = os.Stderr.WriteString("mark " + what + "\n") }
