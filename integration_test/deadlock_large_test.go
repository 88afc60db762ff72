package integration_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/zklock"
)

// A circle of waits whose nodes and registrations have more bytes than servers with a low jute.maxbuffer read in one
// request ends as others do, by one wait. The client does not know of the limit.
func TestLargeDeadlockOnServersWithALowLimit(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{JavaOptions: []string{"-Djute.maxbuffer=65536"}})
	const members = 30 // two nodes of a wait have 3,300 bytes
	var clients []*zklock.Client
	for range 3 {
		clients = append(clients, dial(t, e.Hosts(), quick()))
	}
	var held []*zklock.Lock
	for i := range members {
		held = append(held, acquire(t, clients[i%3].Mutex(wide+fmt.Sprintf("%012d", i))))
	}
	type end struct {
		of   int
		lock *zklock.Lock
		err  error
	}
	ended := make(chan end, members)
	for i := range members {
		next := clients[i%3].Mutex(wide + fmt.Sprintf("%012d", (i+1)%members))
		go func() {
			ctx, cancel := held[i].Context(within(t))
			defer cancel()
			l, err := next.Acquire(ctx)
			ended <- end{i, l, err}
		}()
	}
	victims := 0
	for range members {
		w := receive(t, "the end of a wait", ended)
		switch {
		case errors.Is(w.err, zklock.ErrDeadlock):
			victims++
		case w.err != nil:
			t.Errorf("wait %d: %.300v", w.of, w.err)
		default:
			release(t, w.lock)
		}
		release(t, held[w.of])
	}
	reconnects := uint64(0)
	for _, c := range clients {
		reconnects += c.Stats().Reconnects
	}
	if victims != 1 || e.Server(0).Logged("Len error") {
		t.Errorf("%d waits were ended because of the deadlock, and %d connections were lost; want one, and no request that the server cuts", victims, reconnects)
	}
}
