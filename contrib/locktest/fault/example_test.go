package fault_test

import (
	"fmt"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
)

func ExamplePlan_Schedule() {
	plan := fault.Plan{Seed: 7, Kinds: []fault.Kind{fault.StopClient}, For: time.Minute, TTL: 2 * time.Second, Clients: 3}
	fmt.Println(len(plan.Schedule()) > 0)
	// Output: true
}

// A client's way to two servers, which are out of reach for a while.
func ExampleNewLink() {
	link, err := fault.NewLink([]string{"127.0.0.1:2181", "127.0.0.1:2182"})
	if err != nil {
		panic(err)
	}
	defer link.Close()
	link.Break(fault.CutClient)
	link.Heal()
	fmt.Println(len(link.Addrs()))
	// Output: 2
}
