package memdriver_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// An operator deletes the queue node of a holder, which then loses the lock.
func ExampleEnsemble_Break() {
	client, err := zklock.Open("mem://example-break/locks")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	ctx := context.Background()
	mutex := client.Mutex("orders/42")
	lock, err := mutex.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	ensemble := memdriver.Named("example-break") // the ensemble of the URL
	fmt.Println("deleted:", ensemble.Break(mutex.Path()))
	fmt.Println("lost:", errors.Is(lock.Verify(ctx), zklock.ErrLost))
	// Output:
	// deleted: 1
	// lost: true
}

// Three servers, which can be cut off in every way that a network can. A test that
// depends on time should run in a bubble of testing/synctest.
func ExampleNew() {
	ensemble := memdriver.New(
		memdriver.WithServers(3),
		memdriver.WithTickTime(500*time.Millisecond),
		memdriver.WithSyncLimit(4),
		memdriver.WithReapInterval(time.Second),
		memdriver.WithLatency(0),
	)
	defer ensemble.Close()
	ctx := context.Background()
	session, err := ensemble.Connector(0).Connect(ctx, 4*time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close(ctx)
	for _, cut := range []memdriver.Cut{
		memdriver.AroundClients(1),                // clients cannot reach server 1
		memdriver.AroundServer(2),                 // server 2 is cut off from the others, and goes on answering
		memdriver.BetweenServers(0, 2),            // servers 0 and 2 cannot reach each other
		memdriver.AroundSession(session.ID()),     // the session cannot reach any server
		memdriver.BetweenSession(session.ID(), 1), // the session cannot reach server 1
	} {
		ensemble.Partition(cut)
		ensemble.Heal(cut)
	}
	_, err = session.Create(ctx, "/a", nil, driver.Persistent, driver.OpenACL(driver.PermAll))
	fmt.Println(err)
	ensemble.KillSession(session.ID())
	_, err = session.Get(ctx, "/a")
	fmt.Println("expired:", errors.Is(err, driver.ErrSessionExpired))
	// Output:
	// <nil>
	// expired: true
}
