package integration_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/internal/testkit/ring"
	"github.com/zklock/go-zklock/zklock"
)

// Circles of clients with default settings end at a server that is a round trip of 200 ms away: one member fails, no other one, and the
// circle does not stand. TestDeadlocksAtADistance has the bound, in virtual time; here a machine may be late.
func TestDeadlocksFarFromAServer(t *testing.T) {
	long.Parallel(t)
	long.Test(t, "twenty circles, each of which takes seconds")
	const rtt = 200 * time.Millisecond
	zk := ensemble.Start(t, ensemble.Shipped(1))
	p, err := proxy.New(zk.Server(0).Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	p.Delay(proxy.Both, rtt/2)
	sizes := []int{2, 3, 5, 8, 12}
	late := 0
	for i := range 20 {
		r := ring.Ring{Kind: ring.Kinds[i/len(sizes)], Members: sizes[i%len(sizes)], Timeout: time.Second, RTT: rtt}
		stood := r.Play(t, uint64(i), fmt.Sprint("ring ", i, " "), func(hooks zklock.Hooks) *zklock.Client {
			c, err := zklock.Open(withCanary(ensemble.URL(p.Addr(), rootOf(t), nil)), zklock.WithHooks(hooks), zklock.WithLogger(searchedLog()))
			if err != nil {
				t.Fatal(err)
			}
			return c
		})
		if stood > r.Bound() {
			late++
		}
		t.Logf("%s of %d stood for %v, by the bound for %v at most", r.Kind, r.Members, stood, r.Bound())
	}
	t.Logf("%d of 20 stood for longer than the bound", late)
}
