package integration_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
)

// TestSessionsBeginOnDifferentServers: the sessions of a client are on as many servers as
// possible, so that a server that fails takes as few of them as possible. A session's id
// begins with the number of the server that it began on.
func TestSessionsBeginOnDifferentServers(t *testing.T) {
	t.Parallel()
	long.Test(t, "servers of its own")
	ensemble.Require(t)
	const servers = 3
	e := ensemble.Start(t, ensemble.Config{Servers: servers})
	raw := dialRaw(t, e.Hosts(), 20*time.Second)
	for round := range 5 {
		c := dial(t, e.Hosts(), quick("pool_max_sessions", "3"))
		sessions, begun := make(map[int64]bool), make(map[int64]bool)
		for i := 0; len(sessions) < servers; i++ {
			m := c.Mutex(fmt.Sprintf("%d/%d", round, i))
			l := acquire(t, m)
			if _, err := raw.Sync(m.Path()); err != nil {
				t.Fatal(err)
			}
			_, stat, err := raw.Get(m.Path() + "/" + contenders(t, raw, m)[0])
			if err != nil {
				t.Fatal(err)
			}
			sessions[stat.EphemeralOwner], begun[stat.EphemeralOwner>>56] = true, true
			release(t, l)
		}
		if len(begun) != servers {
			t.Fatalf("round %d: three sessions of a client began on the servers %v", round, begun)
		}
	}
}
