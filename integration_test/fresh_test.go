package integration_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
)

// TestFreshNamesOfTwoClientsOnThreeServers: two clients, on two servers, acquire the same
// names at the same time, which no client has used before. For each name, one of them holds
// the lock, and then the other.
func TestFreshNamesOfTwoClientsOnThreeServers(t *testing.T) {
	t.Parallel()
	e, count := trioOfServers(t), long.Count(t, "ZKLOCK_NAMES", 300, 1000)
	holders := make([]atomic.Int32, count)
	tokens := make([][]zklock.Token, count)
	var wg sync.WaitGroup
	for i, server := range e.Followers() {
		c := dial(t, server.Addr(), quick())
		if err := c.Ping(within(t)); err != nil {
			t.Fatal(err)
		}
		for n := range count {
			n := (n + i*10) % count // so that each client is first for some names
			wg.Go(func() {
				l, err := c.Mutex(fmt.Sprint("fresh-", n)).Acquire(within(t))
				if err != nil {
					t.Error(err)
					return
				}
				if k := holders[n].Add(1); k != 1 {
					t.Errorf("name %d has %d holders", n, k)
				}
				tokens[n] = append(tokens[n], l.Token()) // by one holder at a time
				holders[n].Add(-1)
				if err := l.Release(within(t)); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	for n, of := range tokens {
		if len(of) != 2 || of[0].Compare(of[1]) >= 0 {
			t.Errorf("name %d: tokens %v, want two that rise", n, of)
		}
	}
}

// TestFreshNamesAreOneTransactionEach: on a real server the znode of a name and its
// first contender come from one transaction, also for many names at once.
func TestFreshNamesAreOneTransactionEach(t *testing.T) {
	t.Parallel()
	c := calmDial(t, calm(t))
	const count = 200
	before := c.proxy.Counts()
	var wg sync.WaitGroup
	for n := range count {
		wg.Go(func() { release(t, acquire(t, c.Mutex(fmt.Sprint("fresh-", n)))) })
	}
	wg.Wait()
	got := c.proxy.Counts().Sub(before)
	if got.MultiOps["create"] != 2*count || got.MultiOps["setData"] != count || got.Requests["createContainer"] != 0 || got.Requests["create"] != 0 || got.Requests["getData"] != 0 {
		t.Errorf("%d fresh names: requests %v, operations of transactions %v", count, got.Requests, got.MultiOps)
	}
	if err := c.Ping(within(t)); err != nil {
		t.Fatal(err)
	}
}
