package integration_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/integration_test/ensemble"
)

// TestWarmNameOnThreeServers: another program, on another server, deletes and creates a
// lock's znode again and again, with a contender below it, so that the client's next
// contender gets the suffix that would prove that it is alone. The client must not be
// granted the lock while that contender is there.
func TestWarmNameOnThreeServers(t *testing.T) {
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{Servers: 3})
	followers := e.Followers()
	c := dial(t, followers[0].Addr(), quick())
	raw := dialRaw(t, followers[1].Addr(), 20*time.Second)
	acl := zk.WorldACL(zk.PermAll)
	path := c.Mutex("a").Path()
	warmed, waited := 0, 0
	const rounds = 150
	for round := range rounds {
		for range 4 {
			release(t, acquire(t, c.Mutex("a")))
		}
		if _, err := raw.Sync(path); err != nil {
			t.Fatal(err)
		}
		_, stat, err := raw.Get(path)
		if err != nil {
			t.Fatal(err)
		}
		next := (stat.Cversion + stat.NumChildren) / 2 // ZooKeeper shows twice the creations, less the children
		remade := make(chan error, 1)
		contender := make(chan string, 1)
		go func() {
			// One transaction, so that the client's create is before all of it or after it.
			ops := []any{&zk.DeleteRequest{Path: path, Version: -1}, &zk.CreateRequest{Path: path, Data: []byte("zklock"), Acl: acl}}
			for range next - 1 {
				ops = append(ops, &zk.CreateRequest{Path: path + "/x", Acl: acl}, &zk.DeleteRequest{Path: path + "/x", Version: -1})
			}
			ops = append(ops, &zk.CreateRequest{Path: path + "/_c_00000000000000000000000000000001-__WRIT__", Acl: acl, Flags: zk.FlagEphemeralSequential})
			results, err := raw.Multi(ops...)
			if err == nil {
				contender <- results[len(results)-1].String
			}
			remade <- err
		}()
		if rand.IntN(2) == 0 { // else the two race
			time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
		}
		attempt := try(t, within(t), c.Mutex("a"))
		err = <-remade
		switch {
		case errors.Is(err, zk.ErrNotEmpty): // the client was first
			warmed++
			release(t, attempt.must(t))
			continue
		case err != nil:
			t.Fatal(err)
		}
		waited++
		attempt.pending(t)
		if err := raw.Delete(<-contender, -1); err != nil {
			t.Fatal(err)
		}
		release(t, attempt.must(t))
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	t.Logf("%d rounds: %d times the client was first, %d times it waited", rounds, warmed, waited)
	if warmed == 0 || waited == 0 {
		t.Errorf("the two never raced: the client was first %d times, and waited %d times", warmed, waited)
	}
}
